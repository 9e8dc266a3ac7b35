use super::super::reading::{PairKind, PairReading, ShotReading, ThreadReading};
use super::info::{KernelRow, ScalingRow};
use super::*;
use crate::conditions::HostWindow;
use crate::load::{LoadInfo, LoadReading, SecondReading};
use assay_measure::kind::Kind as _;
use assay_measure::record::{Advice, Figure};
use assay_measure::section::Part as Piece;
use assay_measure::snapshot::{Fact, HostReading};

const WINDOW_NS: u64 = 100_000_000;

/// Threads that each make so many calls in a window, of which they were on a CPU for `given_pct`.
fn shot(kernel: &'static str, repetition: u32, calls: &[u64], given_pct: u64) -> ShotReading {
    let threads = calls.iter().enumerate().map(|(cpu, calls)| ThreadReading {
        cpu: cpu as u32,
        is_pinned: true,
        calls: *calls,
        elapsed_ns: WINDOW_NS,
        cpu_ns: WINDOW_NS * given_pct / 100,
        run_delay_ns: Some(WINDOW_NS - WINDOW_NS * given_pct / 100),
        mhz: 3000.0,
    });
    ShotReading {
        kernel,
        repetition,
        ended_ns: u64::from(repetition + 1) * WINDOW_NS,
        threads: threads.collect(),
        steal_pct: Some(0.0),
    }
}

/// Four CPUs: `tuple` scales to 90 %, memory to half.
fn readings(given_pct: u64) -> CpuReadings {
    let mut shots = Vec::new();
    for repetition in 0..5 {
        let calls = |one: u64| one * given_pct;
        shots.push(shot("tuple", repetition, &[calls(100)], given_pct));
        shots.push(shot("tuple", repetition, &[calls(95), calls(97)], given_pct));
        shots.push(shot("tuple", repetition, &[calls(90); 4], given_pct));
        shots.push(shot("memcpy-8k-256m", repetition, &[calls(100)], given_pct));
        shots.push(shot("memcpy-8k-256m", repetition, &[calls(90); 2], given_pct));
        shots.push(shot("memcpy-8k-256m", repetition, &[calls(50); 4], given_pct));
        shots.push(shot("branchy", repetition, &[calls(50)], given_pct));
        shots.push(shot("branchy-predictable", repetition, &[calls(200)], given_pct));
    }
    CpuReadings {
        cpus: vec![0, 1, 2, 3],
        cores: Some(4),
        is_pinned: true,
        is_optimised: true,
        usable_millicpus: Some(4000),
        window_ns: WINDOW_NS,
        mhz_before: vec![(0, 3000.0), (1, 3010.0)],
        mhz_after: vec![(0, 3000.0)],
        mhz_told: vec![Some(2995.0), None],
        shots,
        pairs: vec![PairReading { kind: PairKind::Line, from: 0, to: 1, ns: 40.0, ns_min: 38.0, batches: 9 }],
        host: HostWindow {
            before: HostReading { cgroup_throttled_ns: Some(0), ..HostReading::default() },
            after: HostReading { cgroup_throttled_ns: Some(0), ..HostReading::default() },
            steal_pct: Some(0.1),
            elapsed_ns: 10_000_000_000,
        },
        ..CpuReadings::default()
    }
}

fn built(readings: &CpuReadings) -> Record {
    let run = RunData {
        run_id: "0123abcd".to_owned(),
        workload: "cpu".to_owned(),
        engine: "probe".to_owned(),
        host: vec![Fact { name: "virtualisation".to_owned(), value: "guest".to_owned() }],
        ..RunData::default()
    };
    build(&run, readings)
}

fn advice<'a>(record: &'a Record, id: &str) -> Option<&'a Advice> {
    record.advice.iter().find(|advice| advice.id == id)
}

fn info(record: &Record) -> CpuInfo {
    record.parts.get().unwrap()
}

fn kernel<'a>(info: &'a CpuInfo, name: &str, threads: u64) -> &'a KernelRow {
    let mut rows = info.kernels.iter();
    rows.find(|row| row.kernel == name && row.threads_count == threads).unwrap()
}

fn near(figure: &Figure, wanted: f64) {
    let value = figure.value().unwrap();
    assert!((value / wanted - 1.0).abs() < 1e-6, "{value} for {wanted}");
}

#[test]
fn cpu_14_efficiency_of_one_is_one_and_threads_add_up_to_the_total() {
    let info = info(&built(&readings(100)));
    let row = |kernel: &str, threads: u64| -> &ScalingRow {
        let mut rows = info.scaling.iter();
        rows.find(|row| row.kernel == kernel && row.threads_count == threads).unwrap()
    };
    for kernel in ["tuple", "memcpy-8k-256m"] {
        near(&row(kernel, 1).efficiency_ratio, 1.0);
    }
    near(&row("tuple", 4).efficiency_ratio, 0.9);
    near(&row("memcpy-8k-256m", 4).efficiency_ratio, 0.5);
    near(&row("memcpy-8k-256m", 4).shared_ratio, 0.5);
    assert!(row("tuple", 4).is_knee && row("memcpy-8k-256m", 2).is_knee);
    let two = row("tuple", 2);
    let sum = two.thread_per_s_min.value().unwrap() + two.thread_per_s_max.value().unwrap();
    near(&two.per_s, sum);
    assert_eq!(two.cpus, [0, 1]);
}

#[test]
fn cpu_07_half_a_share_halves_rates_and_leaves_those_per_cpu_second() {
    let mut half = readings(50);
    half.host.after.cgroup_throttled_ns = Some(5_000_000_000);
    half.usable_millicpus = Some(2000);
    let (whole, record) = (built(&readings(100)), built(&half));
    let (a, b) = (info(&whole), info(&record));
    let (a, b) = (kernel(&a, "tuple", 4).clone(), kernel(&b, "tuple", 4).clone());
    near(&b.per_s, a.per_s.value().unwrap() / 2.0);
    near(&b.per_cpu_s, a.per_cpu_s.value().unwrap());
    near(&b.given_pct, 50.0);
    let text = &advice(&record, "P1").unwrap().text;
    assert!(text.starts_with("Throttling: a CPU quota"), "{text}");
    assert!(text.contains("Only 2.00 of the 4 visible CPUs"), "{text}");
    assert!(advice(&record, "P10").unwrap().text.contains("throttling"));
    assert_eq!(whole.doubts().next(), None);
    assert_eq!(advice(&whole, "P1"), None);
}

/// What a quota or steal took is said once; what it does not account for is said as well.
#[test]
fn time_that_a_quota_or_steal_took_is_one_warning() {
    // Eight seconds of windows, half of them without a CPU.
    let of = |throttled_ns: u64, steal_pct: f64| {
        let mut half = readings(50);
        half.host.elapsed_ns = 8_000_000_000;
        half.host.before.process_cpu_ns = Some(0);
        half.host.after.process_cpu_ns = Some(4_000_000_000);
        half.host.after.cpus = Some(4);
        half.host.after.cgroup_throttled_ns = Some(throttled_ns);
        half.host.steal_pct = Some(steal_pct);
        let record = built(&half);
        let doubts = record.doubts().map(|(rule, _)| rule.to_owned());
        doubts.collect::<Vec<_>>()
    };
    assert_eq!(of(3_700_000_000, 0.0), ["P1"]);
    assert_eq!(of(0, 12.0), ["P2"]);
    assert_eq!(of(2_000_000_000, 6.0), ["P1", "P2"]);
    assert_eq!(of(3_500_000_000, 0.0), ["P1", "P10"], "the high one first");
    assert_eq!(of(0, 11.0), ["P2", "P10"]);
    assert_eq!(of(0, 0.0), ["P10"]);
}

#[test]
fn cpu_06_repetitions_that_differ_are_unsteady_with_what_moved() {
    let steady = info(&built(&readings(100)));
    near_zero(&kernel(&steady, "tuple", 1).cv_pct);
    assert_eq!(kernel(&steady, "tuple", 1).moved_with, "");
    let mut moved = readings(100);
    for shot in moved.shots.iter_mut().filter(|shot| shot.kernel == "tuple" && shot.threads.len() == 1) {
        let lost = u64::from(shot.repetition) * 600;
        shot.threads[0].calls -= lost;
        shot.threads[0].mhz -= lost as f64 / 10.0;
        shot.threads[0].run_delay_ns = Some(0);
    }
    let record = built(&moved);
    let row = kernel(&info(&record), "tuple", 1).clone();
    assert!(row.cv_pct.value().unwrap() > 3.0);
    assert_eq!(row.moved_with, "clock");
    assert!(advice(&record, "P5").unwrap().text.contains("clock (1)"));
    let headline = KIND.headline(&record);
    assert!(headline.steadiness.starts_with("not steady: 1 of"), "{}", headline.steadiness);
}

fn near_zero(figure: &Figure) {
    assert!(figure.value().unwrap() < 1e-9, "{figure:?}");
}

#[test]
fn a_misprediction_costs_twice_the_difference_since_half_are_foreseen() {
    let info = info(&built(&readings(100)));
    // 65,536 decisions a call, 50,000 calls a second against 200,000.
    let random = 1e9 / (50_000.0 * 65_536.0);
    near(&info.misprediction_ns, 2.0 * (random - random / 4.0));
}

#[test]
fn advice_p3_fires_on_cpus_that_are_siblings_and_is_silent_on_cores() {
    assert_eq!(advice(&built(&readings(100)), "P3"), None);
    let mut siblings = readings(100);
    for shot in siblings.shots.iter_mut().filter(|shot| shot.kernel == "tuple" && shot.threads.len() == 4) {
        shot.threads.iter_mut().for_each(|thread| thread.calls = thread.calls * 6 / 9);
    }
    let record = built(&siblings);
    let text = &advice(&record, "P3").unwrap().text;
    assert!(text.contains("one hyperthread") && text.contains("Count half as many cores"), "{text}");
}

#[test]
fn advice_p4_names_the_kernel_that_gains_least() {
    let record = built(&readings(100));
    let found = advice(&record, "P4").unwrap();
    assert!(found.text.starts_with("memcpy-8k-256m on all 4 CPUs reaches 50 %"), "{}", found.text);
    let mut scales = readings(100);
    scales.shots.retain(|shot| shot.kernel != "memcpy-8k-256m");
    assert_eq!(advice(&built(&scales), "P4"), None);
}

#[test]
fn advice_p2_and_p6_fire_on_steal_and_on_clocks_apart() {
    let quiet = built(&readings(100));
    assert_eq!((advice(&quiet, "P2"), advice(&quiet, "P6")), (None, None));
    let mut host = readings(100);
    host.host.steal_pct = Some(7.0);
    host.mhz_before[1].1 = 1500.0;
    let record = built(&host);
    assert_eq!(advice(&record, "P2").unwrap().severity, "high");
    assert!(advice(&record, "P6").unwrap().text.contains("1,500 to 3,000 MHz"));
}

#[test]
fn cpu_19_a_record_carries_its_set_and_another_set_forbids_a_comparison() {
    let record = built(&readings(100));
    let info = info(&record);
    assert_eq!((info.kernel_set.as_str(), info.mode.as_str()), ("db-v1", "kernels"));
    assert!(info.page_bytes >= 4096 && info.is_pinned);
    near(&info.conditions.steal_pct, 0.1);
    near(&info.effective_mhz, 3000.0);
    let row = kernel(&info, "tuple", 1);
    assert!(row.path == "portable" && row.mhz.value().is_some());
    let finding = |a: &Record, b: &Record, what: &str| {
        let checks = KIND.conditions(a, b);
        checks.into_iter().find(|check| check.what == what).unwrap().finding
    };
    assert_eq!(finding(&record, &record, "kernel set"), Finding::Same);
    let mut slow = readings(100);
    slow.is_optimised = false;
    let slow = built(&slow);
    assert!(advice(&slow, "P9").unwrap().text.contains("without optimisation"));
    assert_eq!(finding(&record, &slow, "optimised build"), Finding::Forbids);
    let mut other = record.clone();
    other.parts.put(&CpuInfo { kernel_set: "db-v2".to_owned(), ..info });
    assert_eq!(finding(&record, &other, "kernel set"), Finding::Forbids);
}

#[test]
fn what_is_missing_is_n_a_with_its_reason_and_never_zero() {
    let mut bare = readings(100);
    bare.host.steal_pct = None;
    bare.host.after = HostReading::default();
    bare.usable_millicpus = None;
    bare.cores = None;
    for thread in bare.shots.iter_mut().flat_map(|shot| &mut shot.threads) {
        thread.run_delay_ns = None;
    }
    let info = info(&built(&bare));
    let of = &info.conditions;
    for figure in
        [&of.steal_pct, &of.throttled_s, &of.run_delay_pct, &of.cpu_pressure_pct, &info.usable_cpus, &info.cores_count]
    {
        assert_eq!(figure.reason(), Some("not exposed"));
    }
    assert_eq!(info.clocks[1].told_mhz.reason(), Some("not exposed"));
    assert_eq!(info.clocks[1].after_mhz.reason(), Some(derive::STOPPED));
    let record = built(&bare);
    assert!(KIND.sections(&record).all.len() > 8);
}

#[test]
fn advice_p7_fires_where_the_clock_stands_and_wide_work_moves() {
    let with = |moves: u64| {
        let mut readings = readings(100);
        for repetition in 0..5 {
            readings.shots.push(shot("add-dep", repetition, &[10_000], 100));
            let calls = 10_000 - moves * u64::from(repetition % 2);
            readings.shots.push(shot("alu-ilp", repetition, &[calls], 100));
        }
        built(&readings)
    };
    assert_eq!(advice(&with(0), "P7"), None);
    let text = &advice(&with(4000), "P7").unwrap().clone().text;
    assert!(text.contains("other hyperthread"), "{text}");
}

fn load() -> CpuReadings {
    let second = |number: u64| SecondReading {
        ended_ns: number * 1_000_000_000,
        ops: number * 1000,
        mhz: Some((2900.0, 3000.0)),
        steal_pct: Some(0.0),
        throttled_ns: None,
    };
    CpuReadings {
        soak: Some(LoadReading {
            workers: 2,
            ops: 2715,
            real_ns: 2_007_000_000,
            user_ns: 2_113_000_000,
            system_ns: 1_000_000,
            run_delay_ns: Some(0),
            seconds: (1..=6).map(second).collect(),
            errors: 0,
            wrong: Vec::new(),
        }),
        shots: Vec::new(),
        ..readings(100)
    }
}

#[test]
fn cpu_01_the_metrics_block_is_stress_ng_s_and_its_rates_are_those_of_the_row() {
    let record = built(&load());
    let soak = info(&record).soak.unwrap();
    let soak = LoadInfo { pid: 29_965, ..soak };
    let block = crate::load::block(&[("cpu", &soak)]);
    // What stress-ng 0.15.06 printed, with our name in front; of its row the digits before the rates.
    assert_eq!(
        block[0],
        "assay: metrc: [29965] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s"
    );
    assert_eq!(
        block[1],
        "assay: metrc: [29965]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)"
    );
    assert_eq!(
        block[2],
        "assay: metrc: [29965] cpu                2715      2.01      2.11      0.00      1350.75        1286.73"
    );
    let words: Vec<f64> = block[2].split_ascii_whitespace().skip(4).map(|word| word.parse().unwrap()).collect();
    let [ops, real, user, system, per_real, per_cpu] = words[..] else {
        panic!("{words:?}");
    };
    assert_eq!(format!("{:.2}", ops / real), format!("{per_real:.2}"));
    assert_eq!(format!("{:.2}", ops / (user + system)), format!("{per_cpu:.2}"));
    let sections = KIND.sections(&record);
    let lines = sections.all.iter().flat_map(|section| &section.parts);
    assert!(lines.into_iter().any(|part| matches!(part, Piece::Line(line) if line.starts_with("assay: metrc:"))));
    assert!(KIND.headline(&record).steadiness.starts_with("steady: seconds vary by 0.0 %"));
}

#[test]
fn a_stopped_probe_is_incomplete_and_reads_back() {
    let mut stopped = readings(100);
    stopped.shots.truncate(1);
    stopped.mhz_after.clear();
    stopped.is_stopped = true;
    let record = built(&stopped);
    assert_eq!(record.run.verdict, "incomplete");
    assert_eq!(record.run.verdict_reasons, ["stopped on request after 1 windows"]);
    let json = serde_json::to_string(&record).unwrap();
    let back: Record = serde_json::from_str(&json).unwrap();
    assert_eq!(back, record);
    let mut charts = 0;
    KIND.charts(&record, &mut |_| charts += 1);
    assert_eq!(charts, 5);
}

#[test]
fn keys_of_metrics_are_unique_and_the_primary_ones_are_few() {
    let record = built(&readings(100));
    let primary = record.metrics.iter().filter(|metric| metric.is_primary);
    assert_eq!(primary.count(), 3, "the clock, rows and copies of the two kernels that are there");
    let found = assay_measure::record::metric::find(&record.metrics, "tuple_4_cpu.rows_per_s").unwrap();
    assert_eq!((found.unit.as_str(), found.layer.as_str()), ("1/s", "cpu"));
    let (low, high) = found.interval.unwrap();
    let rate = found.value.value().unwrap();
    assert!(low <= rate && rate <= high, "{low} {rate} {high}");
    // 10,000 calls of 32 pages in a tenth of a second, on each of four CPUs half of that.
    let find = |key| assay_measure::record::metric::find(&record.metrics, key).unwrap();
    let copied = find("memcpy_8k_256m_mb_per_s");
    assert_eq!(copied.unit, "MB/s");
    near(&copied.value, 4.0 * 50_000.0 * 262_144.0 / 1e6);
    let by_cpu = find("memcpy_8k_256m_4_cpu.by_cpu_time_mb_per_s");
    near(&by_cpu.value, 50_000.0 * 262_144.0 / 1e6);
}

/// The windows of a kernel with so many threads, each call of them changed.
fn with_calls(kernel: &str, threads: usize, change: impl Fn(u64, u32) -> u64) -> Record {
    let mut readings = readings(100);
    let is_it = |shot: &&mut ShotReading| shot.kernel == kernel && shot.threads.len() == threads;
    for shot in readings.shots.iter_mut().filter(is_it) {
        let repetition = shot.repetition;
        shot.threads.iter_mut().for_each(|thread| thread.calls = change(thread.calls, repetition));
    }
    built(&readings)
}

const CASES: &[assay_testkit::rules::Case] = &[
    ("P1", |fires| {
        let mut readings = readings(100);
        readings.host.after.cgroup_throttled_ns = Some(u64::from(fires));
        built(&readings)
    }),
    ("P2", |fires| {
        let mut readings = readings(100);
        readings.host.steal_pct = Some(if fires { 1.0 } else { 0.9 });
        built(&readings)
    }),
    // Two CPUs make 19,200 calls.
    ("P3", |fires| with_calls("tuple", 4, |_, _| if fires { 6479 } else { 6481 })),
    ("P4", |fires| with_calls("memcpy-8k-256m", 4, |_, _| if fires { 7990 } else { 8010 })),
    ("P5", |fires| {
        let step = if fires { 184 } else { 181 };
        with_calls("tuple", 1, move |calls, repetition| calls - u64::from(repetition) * step)
    }),
    ("P6", |fires| {
        let mut readings = readings(100);
        readings.mhz_before[1].1 = if fires { 2700.0 } else { 2701.0 };
        built(&readings)
    }),
    ("P7", |fires| {
        let mut readings = readings(100);
        for repetition in 0..5 {
            readings.shots.push(shot("add-dep", repetition, &[10_000], 100));
            let moves = if fires { 900 } else { 850 };
            readings.shots.push(shot("alu-ilp", repetition, &[10_000 - moves * u64::from(repetition % 2)], 100));
        }
        built(&readings)
    }),
    ("P8", |fires| {
        let mut readings = load();
        readings.soak.as_mut().unwrap().errors = u64::from(fires);
        built(&readings)
    }),
    ("P9", |fires| built(&CpuReadings { is_optimised: !fires, ..readings(100) })),
    ("P10", |fires| built(&readings(if fires { 98 } else { 99 }))),
    ("P11", |fires| built(&CpuReadings { is_pinned: !fires, ..readings(100) })),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_testkit::rules::just_fire(&KIND.rules(), CASES);
}
