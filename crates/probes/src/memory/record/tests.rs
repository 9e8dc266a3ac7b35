use super::super::info::{ArrayRule, BandwidthRow, CacheRow, ChainRow, FaultRow, LadderRow, LoadedRow, PagesRow};
use super::super::sizes::steps;
use super::*;
use crate::conditions::HostWindow;
use assay_measure::kind::Kind as _;
use assay_measure::section::Part as Piece;

#[expect(clippy::too_many_lines, reason = "a list")]
fn readings() -> MemoryReadings {
    let bandwidth = |kernel: &str, stores: &str, threads: u64, rate: f64| BandwidthRow {
        kernel: kernel.to_owned(),
        stores: stores.to_owned(),
        threads_count: threads,
        passes_count: 20,
        gb_per_s_p50: Figure::decimal(rate),
        gb_per_s_max: Figure::decimal(rate * 1.02),
        bus_gb_per_s_p50: Figure::decimal(rate * 4.0 / 3.0),
        cv_pct: Figure::decimal(1.0),
        gb_per_s_half_width: Figure::decimal(rate / 100.0),
        given_pct: Figure::decimal(100.0),
    };
    let latency = |bytes: u64, factor: f64| match bytes {
        0..=49_152 => 1.5,
        49_153..=2_097_152 => 5.0,
        2_097_153..=33_554_432 => 20.0 * factor,
        _ => 80.0 * factor,
    };
    let ladder = [("4k", 1.5), ("thp", 1.0)].into_iter().flat_map(|(pages, factor)| {
        steps(1 << 30).into_iter().map(move |bytes| {
            let ns = Figure::decimal(latency(bytes, factor));
            LadderRow {
                pages: pages.to_owned(),
                spacing: "lines".to_owned(),
                bytes,
                ns_p50: ns.clone(),
                ns_min: ns.clone(),
                cycles_p50: ns.scaled(3.0),
                hops_count: 1_000_000,
            }
        })
    });
    let cache = |name: &str, bytes, count| CacheRow { name: name.to_owned(), bytes, count, shared_by: "0".to_owned() };
    let info = MemoryInfo {
        kernel_set: super::super::info::SET.to_owned(),
        mode: "bench".to_owned(),
        cpus: vec![0, 1],
        is_pinned: true,
        is_optimised: true,
        path: "AVX".to_owned(),
        pages: "thp".to_owned(),
        transparent_huge_pages: "madvise".to_owned(),
        caches: vec![cache("L1d", 48 << 10, 2), cache("L2", 2 << 20, 2), cache("L3", 32 << 20, 1)],
        arrays: ArrayRule {
            last_level_bytes: Figure::Count(32 << 20),
            wanted_bytes: 128 << 20,
            bytes: 128 << 20,
            is_met: true,
            why: String::new(),
        },
        bandwidth: vec![
            bandwidth("triad", "normal", 1, 10.0),
            bandwidth("triad", "non-temporal", 1, 12.0),
            bandwidth("read", "", 1, 14.0),
            bandwidth("triad", "normal", 2, 15.0),
            bandwidth("triad", "non-temporal", 2, 19.0),
            bandwidth("read", "", 2, 14.2),
        ],
        ladder: ladder.collect(),
        got: vec![PagesRow {
            pages: "thp".to_owned(),
            what: "ladder".to_owned(),
            bytes: 1 << 30,
            huge_pct: Figure::decimal(100.0),
        }],
        chains: vec![ChainRow {
            chains_count: 8,
            ns_p50: Figure::decimal(12.0),
            parallel_ratio: Figure::decimal(6.7),
            gb_per_s: Figure::decimal(5.3),
        }],
        loaded: [(0, 0.0, 80.0), (1, 13.0, 100.0)]
            .map(|(readers, rate, ns)| LoadedRow {
                readers_count: readers,
                gb_per_s: Figure::decimal(rate),
                loaded_latency_ns_p50: Figure::decimal(ns),
            })
            .to_vec(),
        faults: vec![FaultRow {
            pages: "4k".to_owned(),
            threads_count: 1,
            first_touch_gb_per_s: Figure::decimal(1.5),
            ..FaultRow::default()
        }],
        nodes: vec![0],
        effective_mhz: Figure::decimal(3000.0),
        ..MemoryInfo::default()
    };
    let mut info = info;
    info.saturation = super::super::bandwidth::saturation(&info.bandwidth);
    MemoryReadings {
        info,
        time: super::super::Times { elapsed_ns: 1000, cpu_ns: 1000, run_delay_ns: Some(0) },
        host: HostWindow { elapsed_ns: 30_000_000_000, ..HostWindow::default() },
        ..MemoryReadings::default()
    }
}

fn built(readings: &MemoryReadings) -> Record {
    build(&RunData::default(), readings)
}

fn text(record: &Record) -> String {
    assay_report::text::write(&KIND.sections(record))
}

#[test]
fn the_answer_has_bandwidth_latency_of_both_pages_and_what_saturates() {
    let record = built(&readings());
    let headline = KIND.headline(&record);
    let line = |nth: usize| {
        let told = headline.rows[nth].told.iter();
        told.map(|told| told.value.value().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(line(0), [14.2, 14.0]);
    assert_eq!(line(3), [120.0, 80.0]);
    assert_eq!(line(4), [1.5, 5.0, 20.0]);
    assert!(headline.limit.what.contains("all CPUs share"), "{:?}", headline.limit);
    assert!(headline.limit.evidence.contains("1 of 2 threads"), "{:?}", headline.limit);
    assert!(headline.steadiness.starts_with("steady"), "{}", headline.steadiness);
    let keys: Vec<&str> = record.metrics.iter().take(4).map(|m| m.key.as_str()).collect();
    assert_eq!(keys, ["triad_gb_per_s_p50", "read_gb_per_s_p50", "latency_4k_ns_p50", "latency_huge_ns_p50"]);
    assert_eq!(record.doubts().next(), None);
    let ids: Vec<&str> = record.advice.iter().map(|advice| advice.id.as_str()).collect();
    assert_eq!(ids, ["M1"], "{:?}", record.advice);
}

#[test]
fn memory_12_pages_that_did_not_come_are_told_and_no_gain_is_claimed() {
    let mut none = readings();
    none.info.got[0].huge_pct = Figure::decimal(0.0);
    none.info.transparent_huge_pages = "never".to_owned();
    let record = built(&none);
    let ids: Vec<&str> = record.advice.iter().map(|advice| advice.id.as_str()).collect();
    assert_eq!(ids, ["M2"]);
    assert!(record.advice[0].text.contains("enabled is never"), "{}", record.advice[0].text);
    assert!(text(&record).contains("Transparent huge pages are set to: never"));
    let same = KIND.conditions(&built(&readings()), &record);
    assert!(same.iter().any(|check| check.finding == Finding::Forbids));
}

#[test]
fn memory_11_arrays_below_the_rule_are_a_warning_with_both_sizes() {
    let mut small = readings();
    small.info.arrays = ArrayRule {
        wanted_bytes: 1920 << 20,
        bytes: 1 << 30,
        is_met: false,
        why: "a sixth of the available memory is 1 GiB".to_owned(),
        ..ArrayRule::default()
    };
    let record = built(&small);
    let (rule, text) = record.doubts().next().unwrap();
    assert!(
        rule == "M10" && text.contains("could not be met") && text.contains("a sixth of the available memory"),
        "{text}"
    );
}

#[test]
fn memory_10_a_cache_that_the_ladder_does_not_find_is_flagged() {
    let mut guest = readings();
    guest.info.caches[2].bytes = 480 << 20;
    let record = built(&guest);
    let ids: Vec<&str> = record.advice.iter().map(|advice| advice.id.as_str()).collect();
    assert!(ids.contains(&"M3"), "{:?}", record.advice);
    assert!(record.advice.iter().any(|advice| advice.text.contains("480 MiB")));
}

#[test]
fn memory_09_a_ladder_that_falls_is_doubted() {
    let mut odd = readings();
    odd.info.ladder[20].ns_min = Figure::decimal(90.0);
    let record = built(&odd);
    let (rule, text) = record.doubts().next().unwrap();
    assert!(rule == "M13" && text.contains("larger memory cannot be"), "{text}");
    // 5 % are noise.
    let mut noise = readings();
    noise.info.ladder[20].ns_min = noise.info.ladder[20].ns_min.scaled(1.04);
    assert_eq!(built(&noise).doubts().next(), None);
}

#[test]
fn memory_13_one_node_is_said_in_one_line() {
    let record = built(&readings());
    let sections = KIND.sections(&record);
    let numa = sections.all.iter().find(|section| section.title == "NUMA").unwrap();
    let [Piece::Line(line)] = &numa.parts[..] else {
        panic!("{:?}", numa.parts);
    };
    assert!(line.starts_with("One node"), "{line}");
}

#[test]
fn memory_19_another_version_or_other_pages_are_not_the_same_test() {
    let (a, mut b) = (built(&readings()), readings());
    assert!(KIND.conditions(&a, &a).iter().all(|check| check.finding == Finding::Same));
    b.info.kernel_set = "mem-v2".to_owned();
    assert!(KIND.conditions(&a, &built(&b)).iter().any(|c| c.finding == Finding::Forbids));
}

#[test]
fn what_was_stopped_says_so_and_every_face_is_drawn() {
    let mut stopped = readings();
    stopped.is_stopped = true;
    stopped.info.ladder.truncate(3);
    stopped.info.chains.clear();
    stopped.info.loaded.clear();
    stopped.info.faults.clear();
    let record = built(&stopped);
    assert_eq!(record.run.verdict, "incomplete");
    let text = text(&record);
    assert!(text.contains("n/a (the probe was stopped before)"), "{text}");
    let mut drawn = 0;
    KIND.charts(&record, &mut |_| drawn += 1);
    assert_eq!(drawn, 5);
}

fn with(change: impl FnOnce(&mut MemoryInfo)) -> Record {
    let mut readings = readings();
    change(&mut readings.info);
    built(&readings)
}

const CASES: &[assay_testkit::rules::Case] = &[
    ("M1", |fires| {
        with(|info| {
            let ns = if fires { 92.1 } else { 91.9 };
            let small = info.ladder.iter_mut().filter(|row| row.pages == "4k" && row.bytes > 32 << 20);
            small.for_each(|row| row.ns_p50 = Figure::decimal(ns));
        })
    }),
    ("M2", |fires| with(|info| info.got[0].huge_pct = Figure::decimal(if fires { 89.9 } else { 90.0 }))),
    ("M3", |fires| with(|info| info.caches[2].bytes = if fires { 512 << 20 } else { (512 << 20) + 1 })),
    ("M4", |fires| {
        with(|info| info.loaded[1].loaded_latency_ns_p50 = Figure::decimal(if fires { 160.0 } else { 159.0 }))
    }),
    ("M5", |fires| {
        with(|info| {
            let first_touch_gb_per_s = Figure::decimal(if fires { 3.0 } else { 2.9 });
            info.faults.push(FaultRow {
                pages: "thp".to_owned(),
                threads_count: 1,
                first_touch_gb_per_s,
                ..FaultRow::default()
            });
        })
    }),
    ("M6", |fires| with(|info| info.bandwidth[0].cv_pct = Figure::decimal(if fires { 5.1 } else { 5.0 }))),
    ("M7", |fires| {
        with(|info| {
            info.mode = "soak".to_owned();
            let edac_corrected_count = Figure::Count(u64::from(fires));
            info.soaked = Some(super::super::info::Soaked { edac_corrected_count, ..Default::default() });
        })
    }),
    ("M8", |fires| with(|info| info.verification_errors_count = u64::from(fires))),
    ("M9", |fires| with(|info| info.is_optimised = !fires)),
    ("M10", |fires| with(|info| info.arrays.is_met = !fires)),
    ("M11", |fires| with(|info| info.is_pinned = !fires)),
    ("M12", |fires| {
        let mut readings = readings();
        readings.time.cpu_ns = if fires { 989 } else { 990 };
        built(&readings)
    }),
    ("M13", |fires| {
        with(|info| {
            let before = info.ladder[19].ns_min.clone();
            info.ladder[20].ns_min = before.scaled(if fires { 0.949 } else { 0.951 });
        })
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_testkit::rules::just_fire(&advice::rules(), CASES);
}
