//! The headline of memory: latency, bandwidth, steadiness, what limits.

use super::super::info::{BandwidthRow, MemoryInfo, SaturationRow};
use super::metrics::widest;
use super::{UNSTEADY_PCT, beyond_caches, huge};
use assay_measure::cpu;
use assay_measure::facts::CPU_MODEL;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::record::{Figure, Part, Record};
use assay_measure::units::{fixed, many, size};

/// The headline of memory.
pub(super) fn of(record: &Record, info: &MemoryInfo) -> Headline {
    let model = CPU_MODEL.find(&record.host.facts).unwrap_or("CPUs of unknown model");
    let cpus = many(info.cpus.len() as u64, "CPU");
    if info.mode == "soak" {
        return of_load(record, info, &format!("{cpus} ({model})"));
    }
    Headline {
        tested: format!("Memory of {cpus} ({model}), arrays of {}.", size(info.arrays.bytes)),
        rows: vec![
            bandwidth(info, "Read", "read", ""),
            bandwidth(info, "Triad", "triad", "normal"),
            bandwidth(info, "", "triad", "non-temporal"),
            latency(info),
            caches(info),
            faults(info),
        ],
        steadiness: steadiness(info),
        rerun_command: rerun_command(record),
        limit: limit(record, info),
        next: next(info),
        ..Headline::default()
    }
}

fn next(info: &MemoryInfo) -> Vec<Next> {
    let mut next = vec![Next::new("assay memory --soak 0 --time 15m", "shows whether memory returns what was written")];
    if !info.arrays.is_met && info.arrays.why.contains("--time") {
        next.push(Next::new("assay memory --time 2m", "has time for arrays that no cache holds"));
    }
    next.push(Next::new("assay topology", "shows which CPUs share which cache and node"));
    next
}

fn bandwidth(info: &MemoryInfo, title: &'static str, kernel: &str, stores: &str) -> HeadlineLine {
    let of = |wanted: &dyn Fn(&BandwidthRow) -> bool| {
        let is_it = |row: &&BandwidthRow| row.kernel == kernel && row.stores == stores && wanted(row);
        let found = info.bandwidth.iter().find(is_it);
        found.map_or_else(Figure::default, |row| row.gb_per_s_p50.clone())
    };
    let widest = widest(info, kernel, stores).map_or(0, |row| row.threads_count);
    let what = match stores {
        "" => String::new(),
        stores => format!(", {stores} stores"),
    };
    let mut told = Vec::new();
    if widest > 1 {
        let all = of(&|row| row.threads_count == widest);
        told.push(HeadlineFigure::new(&all, &format!("GB/s by all {widest} CPUs")));
    }
    told.push(HeadlineFigure::new(&of(&|row| row.threads_count == 1), &format!("GB/s by one{what}")));
    HeadlineLine::told(title, told)
}

fn latency(info: &MemoryInfo) -> HeadlineLine {
    let of = |pages: &str, name: &str| {
        let row = beyond_caches(info, pages);
        let bytes = row.map_or(0, |row| row.bytes);
        let unit = format!("ns in {} of {name}", size(bytes));
        HeadlineFigure::new(&super::latency(info, pages), &unit)
    };
    let mut told = vec![of("4k", "4 KiB pages")];
    told.extend(huge(info).map(|pages| of(pages, &format!("huge pages ({pages})"))));
    HeadlineLine::told("Latency", told)
}

/// Latencies of the caches, in huge pages where there are any.
fn caches(info: &MemoryInfo) -> HeadlineLine {
    let pages = huge(info).unwrap_or("4k");
    let of = info.plateaus.iter().filter(|row| row.pages == pages);
    let known = of.filter(|row| row.level.starts_with('L'));
    let told = known.map(|row| {
        let unit = format!("ns {} (to {})", row.level, size(row.to_bytes));
        HeadlineFigure::new(&row.latency_ns_p50, &unit)
    });
    HeadlineLine::of("Caches", told.collect(), "n/a (no flat part found)")
}

fn faults(info: &MemoryInfo) -> HeadlineLine {
    let one = info.faults.iter().filter(|row| row.threads_count == 1);
    let told = one.map(|row| {
        let unit = format!("GB/s of fresh memory by one CPU in {} pages", row.pages);
        HeadlineFigure::new(&row.first_touch_gb_per_s, &unit)
    });
    HeadlineLine::told("First touch", told.take(2).collect())
}

/// What more threads bring, with what the threads were not given beside it; that first only where it was half of their time.
fn limit(record: &Record, info: &MemoryInfo) -> Limit {
    const HALF_PCT: f64 = 50.0;
    let lacked = super::given(info);
    if let Some(text) = lacked.clone().filter(|_| info.conditions.given_pct.value().is_some_and(|pct| pct < HALF_PCT)) {
        return Limit::new("CPU time that the threads did not get", text);
    }
    let of_memory = of_memory(info);
    match lacked {
        Some(text) => Limit { evidence: format!("{} {text}", of_memory.evidence), ..of_memory },
        None => cpu::proved(cpu::host(record, info.conditions.run_delay_pct.value()), of_memory),
    }
}

/// The memory's own limit.
fn of_memory(info: &MemoryInfo) -> Limit {
    let is_it = |row: &&SaturationRow| row.kernel == "read";
    let Some(row) = info.saturation.iter().find(is_it) else {
        return Limit::unknown("the bandwidth was not measured");
    };
    let rate = row.gb_per_s_p50.value().unwrap_or(0.0);
    if row.threads_count < row.threads_most_count {
        Limit::new(
            "the path to memory that all CPUs share",
            format!(
                "Reading reaches {} GB/s with {} of {} threads; more threads add less than 5 %.",
                fixed(rate, 1),
                row.threads_count,
                row.threads_most_count
            ),
        )
    } else {
        let one = info.bandwidth.iter().find(|row| row.kernel == "read" && row.threads_count == 1);
        let gain = one.and_then(|one| Some(rate / one.gb_per_s_p50.value()?));
        let gain = gain.map_or_else(String::new, |gain| {
            format!(" {} threads read {} times as much as one.", row.threads_most_count, fixed(gain, 2))
        });
        Limit::new(
            "the accesses that each CPU can keep in flight",
            format!("Reading still grew with the last thread.{gain}"),
        )
    }
}

fn steadiness(info: &MemoryInfo) -> String {
    let known: Vec<(&BandwidthRow, f64)> =
        info.bandwidth.iter().filter_map(|row| Some((row, row.cv_pct.value()?))).collect();
    let Some((row, cv)) = known.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return "n/a (no passes)".to_owned();
    };
    let unsteady = known.iter().filter(|(_, cv)| *cv > UNSTEADY_PCT).count();
    let worst = format!(
        "{} with {} most, {} % between passes",
        [row.kernel.as_str(), row.stores.as_str()].join(" ").trim(),
        many(row.threads_count, "thread"),
        fixed(*cv, 1)
    );
    match unsteady {
        0 => format!("steady: all {} rates within 5 % ({worst})", known.len()),
        _ => format!("not steady: {unsteady} of {} rates moved by more than 5 % ({worst})", known.len()),
    }
}

fn of_load(record: &Record, info: &MemoryInfo, host: &str) -> Headline {
    let soaked = info.soaked.clone().unwrap_or_default();
    let errors = Figure::Count(info.verification_errors_count);
    let one = |title, figure: &Figure, unit: &str| HeadlineLine::told(title, vec![HeadlineFigure::new(figure, unit)]);
    let mut headline = Headline {
        rows: vec![one("Wrong words", &errors, "")],
        rerun_command: rerun_command(record),
        limit: Limit::unknown("a memory load does not measure the speed of memory"),
        ..Headline::default()
    };
    if let Some(soak) = &info.soak {
        let ops = Figure::Count(soak.ops_count).per(soak.real_s, "no time passed");
        headline.tested = format!(
            "{} with {} each on {host} for {} s.",
            many(soak.workers_count, "worker"),
            size(soaked.worker_bytes),
            fixed(soak.real_s, 1)
        );
        headline.rows = vec![
            one("Load", &soak.cpus_busy, "CPUs kept busy"),
            one("Rate", &ops, "pages of 4 KiB written or read back/s"),
            one("", &ops.scaled(4096e-9), "GB/s"),
            one("Wrong words", &errors, ""),
            one("EDAC", &soaked.edac_corrected_count, "errors corrected by the memory controllers"),
        ];
        headline.steadiness = crate::load::steadiness(soak);
        headline.verbatim = crate::load::block(&[("vm", soak)]);
    }
    if headline.tested.is_empty() {
        headline.tested = format!("Nothing of {} was loaded on {host}.", MemoryInfo::NAME);
    }
    headline
}
