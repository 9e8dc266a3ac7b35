//! Charts of the CPUs.

use super::info::{CpuInfo, ScalingRow};
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, ORANGE, nth};
use assay_measure::record::Figure;

/// All of them.
pub(super) fn all(info: &CpuInfo) -> Vec<Drawn> {
    match &info.soak {
        Some(soak) => crate::load::charts(soak, "kernel calls"),
        None => vec![scaling(info), efficiency(info), kernels(info), lines(info), clock(info)],
    }
}

/// A chart over numbers, with a trace for each name.
fn over(id: &str, title: &str, note: &str, x: Axis, y: Axis) -> Chart {
    Chart { id: id.to_owned(), title: title.to_owned(), note: note.to_owned(), x, y, ..Chart::default() }
}

fn by_kernel(mut chart: Chart, info: &CpuInfo, of: &dyn Fn(&ScalingRow) -> Option<f64>) -> Drawn {
    let mut names: Vec<&str> = info.scaling.iter().map(|row| row.kernel.as_str()).collect();
    names.dedup();
    for (at, name) in names.iter().enumerate() {
        let rows = info.scaling.iter().filter(|row| row.kernel == *name);
        let x = rows.clone().map(|row| row.threads_count as f64).collect();
        let trace = Trace::new(name, Stroke::Joined, nth(at), rows.map(of).collect());
        chart.traces.push(trace.at(x));
    }
    Drawn::or(chart, "the probe was stopped before")
}

fn scaling(info: &CpuInfo) -> Drawn {
    let one = |row: &ScalingRow| {
        let mut rows = info.scaling.iter();
        rows.find(|first| first.kernel == row.kernel && first.threads_count == 1)?.per_s.value()
    };
    let note = "Rate of N threads divided by the rate of one thread; the straight line is perfect scaling.";
    let (x, y) = (Axis::of("threads", ""), Axis::of("times the rate of one thread", ""));
    let mut chart = over("c-scaling", "Scaling curve", note, x, y);
    let mut counts: Vec<f64> = info.scaling.iter().map(|row| row.threads_count as f64).collect();
    counts.sort_by(f64::total_cmp);
    counts.dedup();
    let ideal = counts.iter().map(|n| Some(*n)).collect();
    if counts.len() > 1 {
        chart.traces.push(Trace::new("perfect", Stroke::Dashed, "ink", ideal).at(counts));
    }
    by_kernel(chart, info, &|row| Some(row.per_s.value()? / one(row)?))
}

fn efficiency(info: &CpuInfo) -> Drawn {
    let note = "Rate divided by (threads times the rate of one thread). Below 0.8 more threads gain little.";
    let mut chart =
        over("c-efficiency", "Efficiency against threads", note, Axis::of("threads", ""), Axis::of("efficiency", ""));
    chart.limits = vec![assay_measure::chart::ChartMark { at: 0.8, text: "0.8".to_owned() }];
    by_kernel(chart, info, &|row| row.efficiency_ratio.value())
}

/// Rates are of several units: what is drawn is what more CPUs bring and how steady it is.
fn kernels(info: &CpuInfo) -> Drawn {
    let widest = info.kernels.iter().map(|row| row.threads_count).max().unwrap_or(0);
    let rows = |threads: u64| info.kernels.iter().filter(move |row| row.threads_count == threads);
    let cv = |threads: u64| rows(threads).map(|row| row.cv_pct.value()).collect();
    let title = "Spread of the repetitions of each kernel";
    let note = "Coefficient of variation of the repetitions. Above 3 % a rate is called unsteady.";
    let mut chart =
        over("c-kernels-cv", title, note, Axis::of("kernel", ""), Axis::of("coefficient of variation", "%"));
    chart.rows = Rows::Names(rows(1).map(|row| row.kernel.clone()).collect());
    chart.traces.push(Trace::new("one CPU", Stroke::Bar, BLUE, cv(1)));
    if widest > 1 && rows(widest).count() == rows(1).count() {
        chart.traces.push(Trace::new("all CPUs", Stroke::Bar, ORANGE, cv(widest)));
    }
    Drawn::or(chart, "fewer than two repetitions")
}

/// One trace for each first CPU of a pair.
fn lines(info: &CpuInfo) -> Drawn {
    let note = "Time to pass a cache line from one CPU to another, one way: steps show siblings, clusters and sockets.";
    let x = Axis::of("to CPU", "");
    let mut chart = over("c-lines", "Core to core", note, x, Axis::of("one way", "ns"));
    let pairs = || info.pairs.iter().filter(|row| row.what == "line");
    let mut names: Vec<u32> = pairs().map(|row| row.from).collect();
    names.dedup();
    for (at, from) in names.iter().enumerate() {
        let to = pairs().filter(|row| row.from == *from);
        let x = to.clone().map(|row| f64::from(row.to)).collect();
        let ns = to.map(|row| row.ns.value()).collect();
        chart.traces.push(Trace::new(&format!("from CPU {from}"), Stroke::Points, nth(at), ns).at(x));
    }
    Drawn::or(chart, "there is one CPU")
}

fn clock(info: &CpuInfo) -> Drawn {
    let note = "Effective clock of the CPUs right after each window: the one-cycle operations of a chain divided by \
        its time.";
    let mut chart = over("c-clock", "Clock over time", note, Axis::of("time", "s"), Axis::of("effective clock", "MHz"));
    chart.rows = Rows::Numbers(info.clock_series.iter().map(|point| point.t_s).collect());
    let of = |get: fn(&super::info::ClockPoint) -> &Figure| {
        info.clock_series.iter().map(|point| get(point).value()).collect()
    };
    chart.traces = vec![
        Trace::new("mean of the threads", Stroke::Line, BLUE, of(|point| &point.mhz_mean)),
        Trace::new("lowest", Stroke::Dotted, ORANGE, of(|point| &point.mhz_min)),
    ];
    Drawn::or(chart, "no window ended")
}
