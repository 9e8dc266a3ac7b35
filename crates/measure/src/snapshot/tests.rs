use super::*;
use crate::counter_catalog::{DB_TIME, PHYSICAL_READS, REDO_SIZE};
use crate::testing;
use proptest::prelude::*;

fn event(name: &str, actor: Actor, waits_ns: &[u64]) -> EventReading {
    let mut waits = Histogram::new();
    waits_ns.iter().for_each(|&ns| waits.record(ns));
    EventReading { name: name.to_owned(), class: WaitClass::UserIo, actor, timeouts: 0, waits }
}

fn na(reason: &str) -> Reading {
    Reading::Na(reason.to_owned())
}

#[test]
fn a_sum_with_an_unknown_part_is_unknown() {
    let mut sum = Reading::Count(5);
    sum.merge(&Reading::Count(7));
    assert_eq!(sum, Reading::Count(12));
    sum.merge(&na("denied"));
    assert_eq!(sum, na("denied"));
    sum.merge(&Reading::Count(1));
    assert_eq!(sum, na("denied"));
    // Of two reasons the sum keeps the same one, whoever comes first.
    sum.merge(&na("absent"));
    assert_eq!(sum, na("absent"));
    sum.merge(&na("denied"));
    assert_eq!(sum, na("absent"));
}

#[test]
fn adding_to_an_unknown_counter_leaves_it_unknown() {
    let mut set = StatSet::default();
    set.counters.insert(REDO_SIZE.name.to_owned(), na("unsupported"));
    set.add(REDO_SIZE, 5);
    assert_eq!(set.get(REDO_SIZE), None);
    set.add(DB_TIME, 5);
    set.add(DB_TIME, 6);
    assert_eq!(set.get(DB_TIME), Some(11));
}

#[test]
fn a_counter_that_went_backwards_is_reset_alone() {
    let mut earlier = StatSet::default();
    earlier.add(PHYSICAL_READS, 100);
    earlier.add(DB_TIME, 100);
    let mut now = StatSet::default();
    now.add(PHYSICAL_READS, 99);
    now.add(DB_TIME, 130);
    now.add(REDO_SIZE, 7);
    let since = now.difference(&earlier);
    assert_eq!(since.counters[PHYSICAL_READS.name], na("reset"));
    assert_eq!(since.get(DB_TIME), Some(30));
    // What did not exist then counts from 0.
    assert_eq!(since.get(REDO_SIZE), Some(7));
    // What no longer exists cannot be known.
    let gone = StatSet::default().difference(&earlier);
    assert_eq!(gone.counters[DB_TIME.name], na("reset"));
}

#[test]
fn an_event_that_went_backwards_is_left_out_and_named() {
    let read = "db file sequential read";
    let mut earlier = StatSet::default();
    merge_rows(&mut earlier.events, &[event(read, Actor::Foreground, &[5, 6])]);
    merge_rows(&mut earlier.events, &[event("log file sync", Actor::Foreground, &[5])]);
    let mut now = StatSet::default();
    merge_rows(&mut now.events, &[event(read, Actor::Foreground, &[5])]);
    merge_rows(&mut now.events, &[event(read, Actor::Background, &[5])]);
    let since = now.difference(&earlier);
    assert_eq!(since.events, [event(read, Actor::Background, &[5])]);
    let named: Vec<&str> = since.resets.iter().map(String::as_str).collect();
    assert_eq!(named, ["event db file sequential read (foreground)", "event log file sync (foreground)"]);
}

fn timed(waits: Reading, wait_ns: Reading, source: &str) -> TimedReading {
    TimedReading {
        name: "db file sequential read".to_owned(),
        class: WaitClass::UserIo,
        actor: Actor::Foreground,
        waits,
        wait_ns,
        source: source.to_owned(),
    }
}

#[test]
fn totals_of_an_event_add_up_and_what_one_part_cannot_tell_the_sum_cannot() {
    let mut set = StatSet::default();
    for part in [
        timed(Reading::Count(2), Reading::Count(30), "pg_stat_io"),
        timed(Reading::Count(3), na("disabled"), "pg_stat_database"),
    ] {
        let part = StatSet { timed: vec![part], ..StatSet::default() };
        set.merge(&part);
    }
    assert_eq!(set.timed, [timed(Reading::Count(5), na("disabled"), "pg_stat_database")]);
}

#[test]
fn a_total_that_went_backwards_is_reset_alone_and_one_that_vanished_is_named() {
    let set = |waits, ns| StatSet {
        timed: vec![timed(Reading::Count(waits), Reading::Count(ns), "pg_stat_io")],
        ..StatSet::default()
    };
    let since = set(5, 40).difference(&set(7, 30));
    assert_eq!(since.timed, [timed(na("reset"), Reading::Count(10), "pg_stat_io")]);
    assert!(since.resets.is_empty());
    let gone = StatSet::default().difference(&set(1, 1));
    assert!(gone.resets.contains("timed event db file sequential read (foreground)"));
}

#[test]
fn a_column_one_instant_cannot_tell_is_not_known_of_the_interval() {
    let row = |na: &[(&str, &str)]| IoReading {
        function: "Buffer Cache Reads".to_owned(),
        file_type: "Data File".to_owned(),
        na: na.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ..IoReading::default()
    };
    let set = |na| StatSet { io: vec![row(na)], ..StatSet::default() };
    let since = set(&[("waits", "disabled")]).difference(&set(&[("read_requests", "absent")]));
    let expected = row(&[("read_requests", "absent"), ("waits", "disabled")]);
    assert_eq!(since.io, [expected]);
}

#[test]
fn io_rows_add_up_by_function_and_file_type() {
    let row = |file_type: &str, read_bytes| IoReading {
        function: "Buffer Cache Reads".to_owned(),
        file_type: file_type.to_owned(),
        read_bytes,
        ..IoReading::default()
    };
    let mut set = StatSet::default();
    merge_rows(&mut set.io, &[row("Undo File", 1)]);
    merge_rows(&mut set.io, &[row("Data File", 10)]);
    merge_rows(&mut set.io, &[row("Data File", 20)]);
    assert_eq!(set.io, [row("Data File", 30), row("Undo File", 1)]);
    let earlier = set.clone();
    set.io[0].read_bytes = 29;
    let since = set.difference(&earlier);
    assert!(since.resets.contains("io Buffer Cache Reads, Data File"));
    assert_eq!(since.io, [row("Undo File", 0)]);
}

#[test]
fn driver_fields_that_went_backwards_are_named() {
    let earlier = DriverReading { retries: 5, busy_ns: 5, in_flight: 9, ..DriverReading::default() };
    let now = DriverReading { retries: 4, busy_ns: 8, in_flight: 2, ..DriverReading::default() };
    let since = now.difference(&earlier);
    assert_eq!((since.retries, since.busy_ns, since.in_flight), (0, 3, 2));
    assert_eq!(since.resets, BTreeSet::from(["retries".to_owned()]));
}

#[test]
fn host_sums_are_unknown_where_one_host_does_not_know() {
    let left = HostReading {
        cpus: Some(2),
        process_cpu_ns: Some(10),
        psi_ns: BTreeMap::from([("io_some".to_owned(), 3), ("cpu_some".to_owned(), 4)]),
        load: Some([0.1, 0.2, 0.3]),
        ..HostReading::default()
    };
    let right = HostReading {
        cpus: Some(64),
        psi_ns: BTreeMap::from([("io_some".to_owned(), 5)]),
        load: Some([0.2, 0.4, 0.6]),
        ..HostReading::default()
    };
    let mut both = left.clone();
    both.merge(&right);
    assert_eq!((both.hosts, both.cpus, both.process_cpu_ns), (2, Some(66), None));
    assert_eq!(both.psi_ns, BTreeMap::from([("io_some".to_owned(), 8)]));
    assert_eq!(both.load, Some([0.3, 0.6, 0.9]));
}

#[test]
fn host_values_that_went_backwards_are_absent() {
    let mut earlier = HostReading {
        cpu_ns: Some([100; 10]),
        context_switches: Some(50),
        disks: vec![DiskReading { name: "vda".to_owned(), reads: 10, ..DiskReading::default() }],
        ..HostReading::default()
    };
    let mut now = earlier.clone();
    now.cpu_ns = Some([110, 100, 100, 99, 98, 100, 100, 107, 100, 100]);
    now.context_switches = Some(49);
    now.disks[0].reads = 9;
    let since = now.difference(&earlier);
    // Idle and iowait may run backwards a little; the other columns may not.
    assert_eq!(since.cpu_ns, Some([10, 0, 0, 0, 0, 0, 0, 7, 0, 0]));
    assert_eq!(since.context_switches, None);
    assert!(since.disks.is_empty());
    earlier.cpu_ns = Some([111; 10]);
    assert_eq!(now.difference(&earlier).cpu_ns, None);
}

#[test]
fn readings_are_numbers_or_reasons_in_json() {
    let mut set = StatSet::default();
    set.add(DB_TIME, u64::MAX);
    set.counters.insert(REDO_SIZE.name.to_owned(), na("unsupported"));
    let text = serde_json::to_string(&set.counters).unwrap();
    assert_eq!(text, r#"{"DB time":18446744073709551615,"redo size":{"na":"unsupported"}}"#);
    for bad in ["-1", "1.5", "null", "{}", "\"n/a\"", "[1]"] {
        assert!(serde_json::from_str::<Reading>(bad).is_err(), "{bad}");
    }
    let later = r#"{"since":[1,{}],"na":"reset"}"#;
    assert_eq!(serde_json::from_str::<Reading>(later).unwrap(), na("reset"));
}

#[test]
fn unknown_keys_are_ignored_and_missing_ones_take_the_default() {
    let text = r#"{"at_ns":5,"colour":"red","stats":{"counters":{"x":1},"new":[]},"host":{"gpu":1}}"#;
    let snapshot: Snapshot = serde_json::from_str(text).unwrap();
    assert_eq!(snapshot.at_ns, 5);
    assert_eq!(snapshot.stats.counters["x"], Reading::Count(1));
    assert_eq!(snapshot.host, HostReading::default());
}

#[test]
fn enums_are_snake_case_in_json() {
    let json = |value: serde_json::Value| value.to_string();
    assert_eq!(json(serde_json::to_value(WaitClass::UserIo).unwrap()), "\"user_io\"");
    assert_eq!(json(serde_json::to_value(Actor::Background).unwrap()), "\"background\"");
    assert_eq!(json(serde_json::to_value(SELECT).unwrap()), "\"select\"");
    assert_eq!(json(serde_json::to_value(Mark::Drained).unwrap()), "\"drained\"");
    let incomplete = Verdict::Incomplete("TERM".to_owned());
    assert_eq!(json(serde_json::to_value(incomplete).unwrap()), r#"{"incomplete":"TERM"}"#);
    assert_eq!(json(serde_json::to_value(Verdict::Complete).unwrap()), "\"complete\"");
}

/// Merge laws of one type.
macro_rules! merge_laws {
    ($name:ident, $type:ty, $strategy:expr) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(64))]
            #[test]
            fn $name(a in $strategy, b in $strategy, c in $strategy) {
                let merged = |left: &$type, right: &$type| {
                    let mut sum = left.clone();
                    sum.merge(right);
                    sum
                };
                prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
                prop_assert_eq!(merged(&a, &b), merged(&b, &a));
                prop_assert_eq!(&merged(&a, &<$type>::default()), &a);
                prop_assert_eq!(&merged(&<$type>::default(), &a), &a);
                let text = serde_json::to_string(&a).unwrap();
                prop_assert_eq!(serde_json::from_str::<$type>(&text).unwrap(), a);
            }
        }
    };
}

merge_laws!(stat_sets_obey_the_merge_laws, StatSet, testing::stat_set());
merge_laws!(driver_readings_obey_the_merge_laws, DriverReading, testing::driver());
merge_laws!(host_readings_obey_the_merge_laws, HostReading, testing::host());
merge_laws!(snapshots_obey_the_merge_laws, Snapshot, testing::snapshot());

fn is_known(row: &TimedReading) -> bool {
    matches!((&row.waits, &row.wait_ns), (Reading::Count(_), Reading::Count(_)))
}

/// What is left of a difference once rows and counters without any change are dropped.
fn changes(mut set: StatSet) -> StatSet {
    set.counters.retain(|_, reading| *reading != Reading::Count(0));
    for row in &mut set.io {
        row.na.clear();
    }
    set.sources.clear();
    set.buckets.retain(|row| row.waits.iter().any(|waits| *waits > 0));
    for row in &mut set.buckets {
        row.source.clear();
    }
    set.timed.retain(|row| {
        let moved = |reading: &Reading| *reading != Reading::Count(0);
        moved(&row.waits) || moved(&row.wait_ns)
    });
    for row in &mut set.timed {
        row.class = WaitClass::Other;
        row.source.clear();
    }
    let quiet_io = |row: &IoReading| IoReading {
        function: row.function.clone(),
        file_type: row.file_type.clone(),
        ..IoReading::default()
    };
    set.io.retain(|row| *row != quiet_io(row));
    set.paths.retain(|row| row.read_requests + row.read_bytes > 0 || row.write_requests + row.write_bytes > 0);
    set.events.retain(|event| event.timeouts > 0 || !event.waits.is_empty());
    set.requests.retain(|row| row.bytes > 0 || !row.completions.is_empty());
    for row in &mut set.requests {
        row.completions = without_extremes(&row.completions);
    }
    set.gauges.clear();
    for event in &mut set.events {
        event.waits = without_extremes(&event.waits);
        event.class = WaitClass::Other;
    }
    set
}

/// Extremes of a difference are known to a slot only: replace them by its borders.
fn without_extremes(histogram: &Histogram) -> Histogram {
    let mut plain = Histogram::default();
    for (slot, n) in histogram.sparse() {
        plain.record_n(crate::histogram::slot_low_and_width_ns(slot as usize).0, n);
    }
    plain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_difference_of_statistics_is_what_was_merged_in(
        a in testing::stat_set(), b in testing::stat_set(),
    ) {
        let mut sum = a.clone();
        sum.merge(&b);
        let mut since = sum.difference(&a);
        let mut want = b.clone();
        // What is unknown in either is unknown in the difference.
        for set in [&mut since, &mut want] {
            set.counters.retain(|name, _| {
                let known = |of: &StatSet| !matches!(of.counters.get(name), Some(Reading::Na(_)));
                known(&a) && known(&b)
            });
            set.timed.retain(|row| {
                let known = |of: &StatSet| {
                    let same = |other: &&TimedReading| {
                        (&other.name, other.actor) == (&row.name, row.actor)
                    };
                    of.timed.iter().find(same).is_none_or(is_known)
                };
                known(&a) && known(&b)
            });
        }
        prop_assert!(since.resets.is_empty());
        prop_assert_eq!(changes(since), changes(want));
    }

    #[test]
    fn a_difference_of_driver_readings_is_what_was_merged_in(
        a in testing::driver(), b in testing::driver(),
    ) {
        let mut sum = a.clone();
        sum.merge(&b);
        let since = sum.difference(&a);
        prop_assert!(since.resets.is_empty());
        prop_assert_eq!(since.ops_ended(), b.ops_ended());
        prop_assert_eq!(since.service().sparse(), b.service().sparse());
        prop_assert_eq!(since.schedule_lag.sum_ns(), b.schedule_lag.sum_ns());
        prop_assert_eq!(
            (since.retries, since.hot_spot_hits, since.hot_schema_hits, since.think_count),
            (b.retries, b.hot_spot_hits, b.hot_schema_hits, b.think_count)
        );
        prop_assert_eq!(
            (since.think_ns, since.busy_ns, since.thread_cpu_ns, since.thread_run_delay_ns),
            (b.think_ns, b.busy_ns, b.thread_cpu_ns, b.thread_run_delay_ns)
        );
        let errors = |of: &DriverReading| -> u64 { of.errors.values().sum() };
        prop_assert_eq!(errors(&since), errors(&b));
        let retried = |of: &DriverReading| -> u64 { of.retried.values().sum() };
        prop_assert_eq!(retried(&since), retried(&b));
    }

    #[test]
    fn identity_i44_sub_intervals_add_up_to_the_whole(
        first in testing::snapshot(), steps in prop::collection::vec(testing::stat_set(), 1..4),
    ) {
        // Counters of one source: known throughout and never falling.
        let known = |mut set: StatSet| {
            set.counters.retain(|_, reading| matches!(reading, Reading::Count(_)));
            set.timed.retain(is_known);
            set
        };
        let begin = known(first.stats);
        let mut now = begin.clone();
        let mut parts = StatSet::default();
        for step in steps {
            let before = now.clone();
            now.merge(&known(step));
            parts.merge(&now.difference(&before));
        }
        prop_assert_eq!(changes(parts), changes(now.difference(&begin)));
    }

    #[test]
    fn no_two_snapshots_make_a_difference_panic(
        a in testing::snapshot(), b in testing::snapshot(),
    ) {
        let since = b.difference(&a);
        let text = serde_json::to_string(&since).unwrap();
        prop_assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), since);
        let nothing = a.difference(&a);
        prop_assert_eq!(nothing.at_ns, 0);
        prop_assert!(nothing.stats.resets.is_empty() && nothing.driver.resets.is_empty());
        prop_assert_eq!(nothing.driver.ops_ended(), 0);
    }

    #[test]
    fn run_data_round_trips(
        gate in testing::snapshot(), end in testing::snapshot(),
        seed in any::<u64>(), floor in prop::option::of(0.0..1e6_f64), case in 0..3_u8,
    ) {
        let data = RunData {
            run_id: "4f2a".to_owned(),
            label: (case == 1).then(|| "first".to_owned()),
            seed,
            verdict: match case {
                0 => Verdict::Complete,
                1 => Verdict::Incomplete("TERM".to_owned()),
                _ => Verdict::Invalid(vec!["a".to_owned(), "b".to_owned()]),
            },
            settings: vec![SettingLine::default()],
            host: vec![Fact { name: "kernel".to_owned(), value: "6.1".to_owned() }],
            series: vec![gate.clone(), end.clone()],
            per_session: vec![SessionReading { first_op_ns: Some(seed), ..SessionReading::default() }],
            floor_ns_per_op: floor,
            gate,
            end,
            ..RunData::default()
        };
        let text = serde_json::to_string(&data).unwrap();
        prop_assert_eq!(serde_json::from_str::<RunData>(&text).unwrap(), data);
    }

    #[test]
    fn garbage_is_refused_without_a_panic(text in ".{0,200}") {
        let _ = serde_json::from_str::<Snapshot>(&text);
        let _ = serde_json::from_str::<Reading>(&text);
    }
}
