//! From raw readings to a record's figures.

use super::super::bench::SCALED;
use super::super::kernels::{KERNELS, Kernel, SET};
use super::super::reading::{CpuReadings, PairKind, ShotReading, ThreadReading};
use super::info::{ClockPoint, ClockRow, CpuInfo, KernelRow, PairRow, ScalingRow};
use super::steadiness;
use crate::conditions::{Conditions, NOT_EXPOSED, OURS_PCT};
use crate::load::LoadInfo;
use assay_measure::record::Figure;
use assay_measure::statistics::{half_width, mean, median, stddev};

pub(super) const STOPPED: &str = "the probe was stopped before";
/// Largest number of threads that still pays.
pub(super) const KNEE_RATIO: f64 = 0.8;

/// Everything.
pub(super) fn info(readings: &CpuReadings) -> CpuInfo {
    let mut info = CpuInfo {
        kernel_set: SET.to_owned(),
        mode: if readings.soak.is_some() { "soak" } else { "kernels" }.to_owned(),
        cpus: readings.cpus.clone(),
        cores_count: readings.cores.map_or_else(|| Figure::na(NOT_EXPOSED), |n| Figure::Count(n as u64)),
        usable_cpus: readings
            .usable_millicpus
            .map_or_else(|| Figure::na(NOT_EXPOSED), |m| Figure::decimal(m as f64 / 1e3)),
        is_optimised: readings.is_optimised,
        is_pinned: readings.is_pinned,
        clock_read_ns: Figure::decimal(readings.clock_read_ns),
        page_bytes: rustix::param::page_size() as u64,
        window_ms: match readings.window_ns {
            0 => Figure::na("no windows"),
            ns => Figure::decimal(ns as f64 / 1e6),
        },
        conditions: conditions(readings),
        clocks: clocks(readings),
        clock_series: readings.shots.iter().map(clock_point).collect(),
        pairs: readings.pairs.iter().map(pair).collect(),
        soak: readings.soak.as_ref().map(LoadInfo::of),
        verification_errors_count: readings
            .soak
            .as_ref()
            .map_or(0, |soak| soak.errors)
            .max(readings.wrong.len() as u64),
        verification_errors: readings.wrong.clone(),
        ..CpuInfo::default()
    };
    for kernel in KERNELS {
        let mut counts: Vec<usize> = of(readings, kernel.name).map(|shot| shot.threads.len()).collect();
        counts.sort_unstable();
        counts.dedup();
        let ends = [counts.first(), counts.last().filter(|_| counts.len() > 1)];
        info.kernels.extend(ends.into_iter().flatten().map(|threads| row(readings, kernel, *threads)));
        if SCALED.contains(&kernel.name) {
            info.scaling.extend(curve(readings, kernel, &counts));
        }
    }
    for (name, why) in &readings.left_out {
        info.kernels.push(KernelRow { kernel: (*name).to_owned(), per_s: Figure::na(why), ..KernelRow::default() });
    }
    let threads = readings.shots.iter().flat_map(|shot| &shot.threads);
    let clocks: Vec<f64> = threads.map(|thread| thread.mhz).collect();
    info.effective_mhz = match &info.soak {
        Some(soak) => soak.mhz_mean.clone(),
        None => figure(median(&clocks)),
    };
    info.misprediction_ns = misprediction(&info.kernels);
    info
}

fn figure(value: Option<f64>) -> Figure {
    Figure::known(value, STOPPED)
}

fn known(value: Option<f64>) -> Figure {
    Figure::known(value, NOT_EXPOSED)
}

fn of<'a>(readings: &'a CpuReadings, kernel: &'a str) -> impl Iterator<Item = &'a ShotReading> {
    readings.shots.iter().filter(move |shot| shot.kernel == kernel)
}

fn thread_rate(kernel: &Kernel, thread: &ThreadReading) -> f64 {
    (thread.calls * kernel.units_per_call) as f64 * 1e9 / thread.elapsed_ns.max(1) as f64
}

/// Units per second of all threads, each by its own time.
pub(super) fn rate(kernel: &Kernel, shot: &ShotReading) -> f64 {
    shot.threads.iter().map(|thread| thread_rate(kernel, thread)).sum()
}

fn per_cpu_s(kernel: &Kernel, shot: &ShotReading) -> f64 {
    let calls: u64 = shot.threads.iter().map(|thread| thread.calls).sum();
    let cpu_ns: u64 = shot.threads.iter().map(|thread| thread.cpu_ns).sum();
    (calls * kernel.units_per_call) as f64 * 1e9 / cpu_ns.max(1) as f64
}

fn given_pct<'a>(threads: impl Iterator<Item = &'a ThreadReading>) -> Option<f64> {
    let (cpu, elapsed) =
        threads.fold((0, 0), |(cpu, elapsed), thread| (cpu + thread.cpu_ns, elapsed + thread.elapsed_ns));
    (elapsed > 0).then(|| 100.0 * cpu as f64 / elapsed as f64)
}

/// How far repetitions lie apart: their coefficient of variation, %.
fn spread_pct(rates: &[f64]) -> Figure {
    match rates.len() {
        0 | 1 => Figure::na("one repetition"),
        _ => Figure::decimal(100.0 * stddev(rates) / mean(rates)),
    }
}

fn row(readings: &CpuReadings, kernel: &Kernel, threads: usize) -> KernelRow {
    let shots: Vec<&ShotReading> = of(readings, kernel.name).filter(|shot| shot.threads.len() == threads).collect();
    let rates: Vec<f64> = shots.iter().map(|shot| rate(kernel, shot)).collect();
    let per_cpu: Vec<f64> = shots.iter().map(|shot| per_cpu_s(kernel, shot)).collect();
    let clocks: Vec<f64> = shots.iter().flat_map(|shot| shot.threads.iter().map(|thread| thread.mhz)).collect();
    let cv = spread_pct(&rates);
    KernelRow {
        kernel: kernel.name.to_owned(),
        unit: kernel.unit.to_owned(),
        bound: kernel.bound.name().to_owned(),
        path: (kernel.path)().to_owned(),
        about: kernel.about.to_owned(),
        threads_count: threads as u64,
        repetitions_count: shots.len() as u64,
        per_s: figure(median(&rates)),
        per_s_min: figure(rates.iter().copied().reduce(f64::min)),
        per_s_max: figure(rates.iter().copied().reduce(f64::max)),
        per_s_half_width: figure(half_width(&rates)),
        per_cpu_s: figure(median(&per_cpu)),
        per_cpu_s_cv_pct: spread_pct(&per_cpu),
        given_pct: figure(given_pct(shots.iter().flat_map(|shot| &shot.threads))),
        mhz: figure(median(&clocks)),
        moved_with: cv.value().map_or_else(String::new, |cv| steadiness::cause(cv, &rates, &shots)),
        cv_pct: cv,
    }
}

/// The efficiency of every number of threads, and where it stops to pay.
fn curve(readings: &CpuReadings, kernel: &Kernel, counts: &[usize]) -> Vec<ScalingRow> {
    let rows: Vec<KernelRow> = counts.iter().map(|threads| row(readings, kernel, *threads)).collect();
    let Some(one) = rows.first().filter(|row| row.threads_count == 1) else {
        return Vec::new();
    };
    let ratio = |figure: &Figure, of: &Figure, times: f64| match of.value() {
        Some(of) => figure.per(of * times, "no rate"),
        None => of.clone(),
    };
    let mut curve: Vec<ScalingRow> = Vec::new();
    for row in &rows {
        let threads = row.threads_count as usize;
        let efficiency = ratio(&row.per_s, &one.per_s, threads as f64);
        let clock = ratio(&row.mhz, &one.mhz, 1.0);
        let (slowest, quickest) = spread(readings, kernel, row);
        curve.push(ScalingRow {
            kernel: row.kernel.clone(),
            unit: row.unit.clone(),
            bound: row.bound.clone(),
            threads_count: row.threads_count,
            cpus: readings.cpus[..threads.min(readings.cpus.len())].to_vec(),
            per_s: row.per_s.clone(),
            thread_per_s_min: figure(slowest),
            thread_per_s_max: figure(quickest),
            shared_ratio: ratio(&efficiency, &clock, 1.0),
            efficiency_ratio: efficiency,
            clock_ratio: clock,
            per_cpu_s_ratio: ratio(&row.per_cpu_s, &one.per_cpu_s, 1.0),
            given_pct: row.given_pct.clone(),
            is_knee: false,
        });
    }
    // Where others took CPU time, what they left of it says nothing about more threads.
    let is_ours = |row: &ScalingRow| row.given_pct.value().is_some_and(|pct| pct >= OURS_PCT);
    let is_quiet = curve.iter().all(is_ours);
    let pays = |row: &ScalingRow| {
        let ratio = if is_quiet { &row.efficiency_ratio } else { &row.per_cpu_s_ratio };
        ratio.value().is_some_and(|ratio| ratio >= KNEE_RATIO)
    };
    if let Some(knee) = curve.iter_mut().rev().find(|row| pays(row)) {
        knee.is_knee = true;
    }
    curve
}

/// The slowest and the quickest thread of the repetition that is the median.
fn spread(readings: &CpuReadings, kernel: &Kernel, row: &KernelRow) -> (Option<f64>, Option<f64>) {
    let wanted = row.per_s.value().unwrap_or(0.0);
    let shots = of(readings, kernel.name).filter(|shot| shot.threads.len() as u64 == row.threads_count);
    let far = |shot: &ShotReading| (rate(kernel, shot) - wanted).abs();
    let Some(shot) = shots.min_by(|a, b| far(a).total_cmp(&far(b))) else {
        return (None, None);
    };
    let rates = || shot.threads.iter().map(|thread| thread_rate(kernel, thread));
    (rates().reduce(f64::min), rates().reduce(f64::max))
}

/// What one branch costs more where nobody can foresee it: half of the random ones are mispredicted.
fn misprediction(rows: &[KernelRow]) -> Figure {
    let seconds = |name: &str| {
        let mut rows = rows.iter();
        let row = rows.find(|row| row.kernel == name && row.threads_count == 1)?;
        Some(1.0 / row.per_cpu_s.value()?)
    };
    let both = seconds("branchy").zip(seconds("branchy-predictable"));
    match both {
        Some((random, sorted)) if random > sorted => Figure::decimal(2e9 * (random - sorted)),
        Some(_) => Figure::na("random data was not slower"),
        None => Figure::na(STOPPED),
    }
}

fn pair(reading: &super::super::reading::PairReading) -> PairRow {
    let what = match reading.kind {
        PairKind::Line => "line",
        PairKind::Pipe => "switch",
        PairKind::Wake => "wake",
    };
    PairRow {
        what: what.to_owned(),
        from: reading.from,
        to: reading.to,
        ns: Figure::decimal(reading.ns),
        ns_min: Figure::decimal(reading.ns_min),
        batches_count: reading.batches,
    }
}

fn clocks(readings: &CpuReadings) -> Vec<ClockRow> {
    let find = |all: &[(u32, f64)], cpu| all.iter().find(|(which, _)| *which == cpu).map(|(_, mhz)| *mhz);
    let rows = readings.mhz_before.iter().enumerate().map(|(at, (cpu, before))| ClockRow {
        cpu: *cpu,
        before_mhz: Figure::decimal(*before),
        after_mhz: figure(find(&readings.mhz_after, *cpu)),
        told_mhz: known(readings.mhz_told.get(at).copied().flatten()),
    });
    rows.collect()
}

fn clock_point(shot: &ShotReading) -> ClockPoint {
    let clocks: Vec<f64> = shot.threads.iter().map(|thread| thread.mhz).collect();
    ClockPoint {
        t_s: shot.ended_ns as f64 / 1e9,
        threads_count: shot.threads.len() as u64,
        mhz_mean: figure((!clocks.is_empty()).then(|| mean(&clocks))),
        mhz_min: figure(clocks.iter().copied().reduce(f64::min)),
    }
}

fn conditions(readings: &CpuReadings) -> Conditions {
    let threads = || readings.shots.iter().flat_map(|shot| &shot.threads);
    let (elapsed, delay): (u64, Option<u64>) = match &readings.soak {
        Some(soak) => (soak.real_ns * soak.workers, soak.run_delay_ns),
        None => (threads().map(|thread| thread.elapsed_ns).sum(), threads().map(|thread| thread.run_delay_ns).sum()),
    };
    let given = match &readings.soak {
        Some(soak) => {
            let had = soak.real_ns as f64 * (soak.workers.min(readings.cpus.len() as u64)) as f64;
            Some(100.0 * (soak.user_ns + soak.system_ns) as f64 / had.max(1.0))
        }
        None => given_pct(threads()),
    };
    let delay_pct = match (elapsed, delay) {
        (0, _) => Figure::na("no windows"),
        (elapsed, delay) => known(delay.map(|delay| 100.0 * delay as f64 / elapsed as f64)),
    };
    Conditions::of(&readings.host, figure(given), delay_pct)
}
