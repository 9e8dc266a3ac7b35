//! The headline of the CPUs: how fast, how steady, what limits.

use super::info::{CpuInfo, KernelRow};
use super::steadiness::UNSTEADY_PCT;
use assay_measure::cpu;
use assay_measure::facts::CPU_MODEL;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::record::{Figure, Part, Record};
use assay_measure::units::{fixed, many};

/// The headline of the CPUs.
pub(super) fn of(record: &Record, info: &CpuInfo) -> Headline {
    let model = CPU_MODEL.find(&record.host.facts).unwrap_or("CPUs of unknown model");
    let cpus = many(info.cpus.len() as u64, "CPU");
    if let Some(soak) = &info.soak {
        let ops = Figure::Count(soak.ops_count).per(soak.real_s, "no time passed");
        return Headline {
            tested: format!(
                "{} workers on {cpus} ({model}) for {} s, kernels {}.",
                soak.workers_count,
                fixed(soak.real_s, 1),
                info.kernel_set
            ),
            rows: vec![
                line("Load", &soak.cpus_busy, "CPUs kept busy"),
                line("Rate", &ops, "kernel calls/s"),
                line("Clock", &soak.mhz_mean, "MHz effective, mean"),
                line("Wrong results", &Figure::Count(info.verification_errors_count), ""),
            ],
            steadiness: crate::load::steadiness(soak),
            verbatim: crate::load::block(&[(CpuInfo::NAME, soak)]),
            limit: limit(record, info),
            rerun_command: rerun_command(record),
            ..Headline::default()
        };
    }
    let widest = info.kernels.iter().map(|row| row.threads_count).max().unwrap_or(0);
    let of = |name: &str, threads: u64| {
        let mut rows = info.kernels.iter();
        rows.find(|row| row.kernel == name && row.threads_count == threads)
    };
    let pair = |title, name: &str, per: f64, unit: &str| {
        let told = |threads: u64, whose: &str| {
            let per_s = of(name, threads).map_or_else(Figure::default, |row| row.per_s.scaled(per));
            HeadlineFigure::new(&per_s, &format!("{unit} {whose}"))
        };
        let all = (widest > 1).then(|| told(widest, "by all"));
        let told = std::iter::once(told(1, "by one CPU")).chain(all).collect();
        HeadlineLine::told(title, told)
    };
    Headline {
        tested: format!("{cpus} ({model}), kernels {}.", info.kernel_set),
        rows: vec![
            line("Clock", &info.effective_mhz, "MHz effective"),
            pair("Index lookups", "btree-16m", 1e-6, "M/s"),
            pair("Rows decoded", "tuple", 1e-6, "M/s"),
            pair("Pages copied", "memcpy-8k-256m", 1e-6, "MB/s"),
            line("Switch", &switch(info), "ns from one thread to another"),
        ],
        steadiness: steadiness(info),
        rerun_command: rerun_command(record),
        limit: limit(record, info),
        next: vec![Next::new("assay cpu --cpu 0 --timeout 10m", "shows whether the clock holds under a long load")],
        ..Headline::default()
    }
}

/// The CPUs are what is measured: it tells who else had them, and what the threads share.
fn limit(record: &Record, info: &CpuInfo) -> Limit {
    // Its load is meant to keep every CPU busy; only what others took is a limit.
    let shares = cpu::shares(record);
    if shares.is_some_and(|shares| shares.others >= cpu::OTHERS_PCT || shares.steal >= cpu::STEAL_PCT) {
        return cpu::limit(record).unwrap_or_else(|| {
            Limit::new("CPU time that other processes or guests took", cpu::disturbed(record).unwrap_or_default() + ".")
        });
    }
    let known = info.scaling.iter().filter_map(|row| Some((row, row.efficiency_ratio.value()?)));
    let widest = info.scaling.iter().map(|row| row.threads_count).max();
    let known = known.filter(|(row, _)| Some(row.threads_count) == widest && row.threads_count > 1);
    match known.min_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((row, ratio)) => Limit::new(
            "the CPUs and their shared resources",
            format!(
                "{} scales worst: {} threads do {} times the work of one.",
                row.kernel,
                row.threads_count,
                fixed(ratio * row.threads_count as f64, 2)
            ),
        ),
        None => Limit::new("the CPUs, which this test measures", String::new()),
    }
}

fn switch(info: &CpuInfo) -> Figure {
    let found = info.pairs.iter().find(|row| row.what == "switch");
    found.map_or_else(Figure::default, |row| row.ns.clone())
}

fn line(title: &'static str, figure: &Figure, unit: &str) -> HeadlineLine {
    HeadlineLine::told(title, vec![HeadlineFigure::new(figure, unit)])
}

fn steadiness(info: &CpuInfo) -> String {
    let known: Vec<(&KernelRow, f64)> =
        info.kernels.iter().filter_map(|row| Some((row, row.cv_pct.value()?))).collect();
    let worst = known.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((row, cv)) = worst else {
        return "n/a (no repetitions)".to_owned();
    };
    let unsteady = known.iter().filter(|(_, cv)| *cv > UNSTEADY_PCT).count();
    let worst = format!("{} most, {} % between repetitions", row.kernel, fixed(*cv, 1));
    match unsteady {
        0 => format!("steady: all {} rates within 3 % ({worst})", known.len()),
        _ => format!("not steady: {unsteady} of {} rates moved by more than 3 % ({worst})", known.len()),
    }
}
