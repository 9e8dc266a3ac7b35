//! The metrics of a sweep: where each curve bends, what keeps the goal, the fitted law, and every step that counts.

use crate::curve::{HOSTS, RATE, amount, held_text, is_load, load_of, load_text};
use crate::info::{Curve, Estimate, SweepInfo, Usl};
use crate::step::SweepStep;
use assay_measure::record::metric::{Better, Group, lower, plain};
use assay_measure::record::{Figure, Metric};

/// What the knee and the goal say, then the law, then the steps; of several curves each under what it holds.
pub(crate) fn all(info: &SweepInfo) -> Vec<Metric> {
    // Under the key and the name that a run has: lists and trends hold both side by side.
    let fastest = fastest(info);
    let mut all = vec![higher(Group::Primary, "ops_per_s", "Operations", &fastest)];
    for curve in &info.curves {
        let scope = match info.curves.len() {
            1 => String::new(),
            _ => held_text(&curve.held),
        };
        let mut found = Vec::new();
        if is_load(&curve.load) {
            found.extend(read_off(info, curve));
            found.extend(fitted(&curve.usl));
        }
        all.extend(found.into_iter().map(|metric| Metric { scope: scope.clone(), ..metric }));
        for step in info.members(curve) {
            let load = if is_load(&curve.load) && curve.load != RATE {
                amount(&curve.load, load_of(&curve.load, step))
            } else {
                format!("{}={}", curve.load, load_text(curve, step))
            };
            let parts: Vec<&str> = [scope.as_str(), &load].into_iter().filter(|part| !part.is_empty()).collect();
            let scope = parts.join(", ");
            all.extend(measured(step).into_iter().map(|metric| Metric { scope: scope.clone(), ..metric }));
        }
    }
    let of_client = |metric: Metric| Metric { layer: "client".to_owned(), ..metric };
    all.into_iter().map(of_client).collect()
}

fn higher(group: Group, key: &str, name: &str, figure: &Figure) -> Metric {
    plain(group, key, name, "1/s", Better::Higher, figure.clone())
}

/// Throughput of the fastest step that counts.
pub(crate) fn fastest(info: &SweepInfo) -> Figure {
    let rates = info.counted().filter_map(|step| step.ops_per_s.value());
    let most = rates.max_by(f64::total_cmp);
    most.map_or_else(|| Figure::na("no step is valid"), Figure::decimal)
}

/// The knee, and what keeps the goal if there is one.
fn read_off(info: &SweepInfo, curve: &Curve) -> Vec<Metric> {
    let (key, unit) = match curve.load.as_str() {
        "cpus" => ("cpus", "CPUs"),
        RATE => ("asked_per_s", "1/s"),
        HOSTS => ("hosts", "hosts"),
        _ => ("sessions", "sessions"),
    };
    let load = |what: &str, name: &str, better, figure: &Figure| {
        let key = format!("{what}_{key}");
        plain(Group::Primary, &key, name, unit, better, figure.clone())
    };
    let (knee, goal) = (&curve.knee, &curve.goal);
    let mut all = vec![
        // Where a curve bends describes it; how much it brings there is what counts.
        Metric {
            interval: knee.low.value().zip(knee.high.value()),
            ..load("knee", "load at the knee", Better::Neither, &knee.load)
        },
        higher(Group::Primary, "knee_ops_per_s", "operations at the knee", &knee.ops_per_s),
    ];
    if info.goal_us_p99.value().is_some() {
        let name = "highest load that keeps the goal";
        all.push(load("goal", name, Better::Higher, &goal.load));
        all.push(higher(Group::Primary, "goal_ops_per_s", "operations at that load", &goal.ops_per_s));
        all.push(lower(Group::Primary, "goal_op_us_p99", "operation p99 at that load", &goal.us_p99));
    }
    all
}

/// Coefficients of the law: computed, so none of them is one to be judged by.
fn fitted(usl: &Usl) -> Vec<Metric> {
    let coefficient = |key: &str, name: &str, unit: &str, better, estimate: &Estimate| {
        let known = |figure: &Figure| if usl.fitted { figure.clone() } else { Figure::na("no law fits") };
        let ends = (estimate.low.value(), estimate.high.value());
        let name = format!("{name}, computed from the fitted law");
        let figure = known(&estimate.value);
        Metric {
            interval: ends.0.zip(ends.1).filter(|_| usl.fitted),
            ..plain(Group::Operation, key, &name, unit, better, figure)
        }
    };
    vec![
        coefficient("usl_lambda_per_s", "operations of one session (lambda)", "1/s", Better::Higher, &usl.lambda_per_s),
        coefficient("usl_sigma_ratio", "contention (sigma)", "ratio", Better::Lower, &usl.sigma_ratio),
        coefficient("usl_kappa_ratio", "coherency (kappa)", "ratio", Better::Lower, &usl.kappa_ratio),
    ]
}

/// The figures of one step, by the keys that its own record has where it has them.
fn measured(step: &SweepStep) -> Vec<Metric> {
    let of = Group::Operation;
    vec![
        higher(of, "ops_per_s", "operations", &step.ops_per_s),
        lower(of, "op_us_avg", "operation avg", &step.op.us_avg),
        lower(of, "op_us_p99", "operation p99", &step.op.us_p99),
        lower(of, "cpu_us_per_op", "CPU per operation", &step.cpu_us_per_op),
    ]
}
