//! Charts of recovery.

use super::RecoveryInfo;
use assay_measure::chart::{Axis, Chart, ChartMark, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, GREY, ORANGE, VERMILION};

/// All of them.
pub(super) fn all(info: &RecoveryInfo) -> Vec<Drawn> {
    const MIB: f64 = 1_048_576.0;
    let mut steps: Vec<_> =
        (info.steps.iter()).filter_map(|step| Some((step.replayed_bytes.value()? / MIB, step))).collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut chart = Chart {
        id: "c-recovery".to_owned(),
        title: "Time to the first commit against the redo replayed".to_owned(),
        note: "One point per kill. The dashed line is the least-squares line through the kills.".to_owned(),
        x: Axis::of("redo replayed", "MiB"),
        y: Axis::of("time", "s"),
        rows: Rows::Numbers(steps.iter().map(|(mib, _)| *mib).collect()),
        ..Chart::default()
    };
    let column = |of: &dyn Fn(usize) -> Option<f64>| (0..steps.len()).map(of).collect();
    chart.traces = vec![
        Trace::new("first commit", Stroke::Joined, BLUE, column(&|at| steps[at].1.first_commit_s.value())),
        Trace::new("recovery itself", Stroke::Joined, ORANGE, column(&|at| steps[at].1.recovery_s.value())),
        Trace::new("95 % of the old rate", Stroke::Joined, VERMILION, column(&|at| steps[at].1.rate_95_s.value())),
    ];
    if let (Some(fixed), Some(slope)) = (info.fixed_s.value(), info.per_mib_s.value()) {
        let line = column(&|at| Some(fixed + slope * steps[at].0));
        chart.traces.push(Trace::new("fitted line", Stroke::Dashed, GREY, line));
    }
    if let Some(wanted) = info.rto_wanted_s.value() {
        let text = format!("wanted: {wanted} s");
        chart.limits = vec![ChartMark { at: wanted, text }];
    }
    vec![Drawn::or(chart, "no recovery followed a kill")]
}
