use super::*;
use crate::testing;
use proptest::prelude::*;
use proptest::sample::Index;

const MARKS: [Mark; 5] = [Mark::Gate, Mark::Begin, Mark::Second, Mark::End, Mark::Drained];

/// Snapshots as a source takes them: mostly growing, now and then after a reset.
fn sequence() -> impl Strategy<Value = Vec<Snapshot>> {
    let step = (testing::snapshot(), prop::bool::weighted(0.2));
    prop::collection::vec(step, 1..5).prop_map(|steps| {
        let mut now = Snapshot::default();
        let grown = steps.into_iter().map(|(step, reset)| {
            if reset {
                now = step
            } else {
                now.merge(&step)
            }
            now.clone()
        });
        grown.collect()
    })
}

fn text_of(snapshots: &[Snapshot], source: &str) -> String {
    let mut writer = SeriesWriter::new(source);
    let marks = MARKS.iter().cycle();
    let lines = snapshots.iter().zip(marks);
    lines.map(|(now, &mark)| writer.line(mark, now)).collect()
}

fn snapshots_of(series: &Series) -> Vec<Snapshot> {
    let readings = series.readings.iter();
    readings.map(|reading| reading.snapshot.clone()).collect()
}

fn with_waits(waits_ns: &[u64]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut waits = Histogram::new();
    waits_ns.iter().for_each(|&ns| waits.record(ns));
    snapshot.stats.events.push(EventReading {
        name: "log file sync".to_owned(),
        class: WaitClass::Commit,
        actor: Actor::Foreground,
        timeouts: 0,
        waits,
    });
    snapshot
}

#[test]
fn a_line_holds_only_the_slots_that_changed() {
    let before = with_waits(&[100, 100, 5000]);
    let now = with_waits(&[100, 100, 5000, 5000, 90]);
    let line = SeriesLine::encode(Some(&before), &now, Mark::Second, "run");
    let waits = &line.events[0].waits;
    let slot = |ns| crate::histogram::slot_of(ns) as u32;
    assert_eq!(waits.slots, [(slot(90), 1), (slot(5000), 1)]);
    assert_eq!((waits.count, waits.sum_ns), (5, 10_290));
    assert!(!waits.full);
    assert_eq!(line.decode(Some(&before)).unwrap(), now);
}

#[test]
fn a_reset_source_writes_all_its_slots() {
    let before = with_waits(&[100, 100, 5000]);
    let now = with_waits(&[100]);
    let line = SeriesLine::encode(Some(&before), &now, Mark::Second, "run");
    assert!(line.events[0].waits.full);
    assert_eq!(line.decode(Some(&before)).unwrap(), now);
}

#[test]
fn a_line_without_its_predecessor_is_refused() {
    let before = with_waits(&[100, 100, 5000]);
    let now = with_waits(&[100, 100, 5000, 5000]);
    let line = SeriesLine::encode(Some(&before), &now, Mark::Second, "run");
    let error = line.decode(None).unwrap_err().to_string();
    assert!(error.starts_with("log file sync: "), "{error}");
}

#[test]
fn a_line_whose_count_is_not_its_slots_is_refused() {
    let now = with_waits(&[100, 5000]);
    let mut line = SeriesLine::encode(None, &now, Mark::Second, "run");
    line.events[0].waits.count = 3;
    let error = line.decode(None).unwrap_err().to_string();
    assert_eq!(error, "log file sync: the count is 3, the sum of the slots is 2");
}

#[test]
fn damage_before_the_last_line_ends_the_series_and_is_named() {
    let snapshots = [with_waits(&[1]), with_waits(&[1, 2]), with_waits(&[1, 2, 3])];
    let text = text_of(&snapshots, "run");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1] = "{\"t_ns\":";
    let series = Series::read(lines.join("\n").as_bytes(), 2);
    assert_eq!(snapshots_of(&series), snapshots[..1]);
    let stopped = series.stopped.unwrap();
    assert_eq!((stopped.line, stopped.last), (3, false));
}

#[test]
fn a_line_lost_in_between_does_not_go_unnoticed() {
    let snapshots = [with_waits(&[1]), with_waits(&[1, 2]), with_waits(&[1, 2, 3])];
    let text = text_of(&snapshots, "run");
    let lines: Vec<&str> = text.lines().collect();
    let series = Series::read([lines[0], lines[2]].join("\n").as_bytes(), 1);
    assert_eq!(series.readings.len(), 1);
    assert!(series.stopped.is_some());
}

#[test]
fn an_empty_file_is_an_empty_series() {
    for text in ["", "\n", "\n\n"] {
        let series = Series::read(text.as_bytes(), 1);
        assert!(series.readings.is_empty() && series.stopped.is_none());
    }
}

#[test]
fn zeros_left_by_a_crash_are_a_cut_last_line() {
    let snapshots = [with_waits(&[1])];
    let mut text = text_of(&snapshots, "run").into_bytes();
    text.extend([0; 512]);
    let series = Series::read(&text, 1);
    assert_eq!(snapshots_of(&series), snapshots);
    assert!(series.stopped.unwrap().last);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_sequence_is_rebuilt_exactly(snapshots in sequence()) {
        let series = Series::read(text_of(&snapshots, "run").as_bytes(), 1);
        prop_assert!(series.stopped.is_none(), "{:?}", series.stopped);
        prop_assert_eq!(snapshots_of(&series), snapshots);
        for (reading, mark) in series.readings.iter().zip(MARKS.iter().cycle()) {
            prop_assert_eq!((reading.mark, reading.source.as_str()), (*mark, "run"));
        }
    }

    #[test]
    fn sources_may_take_turns(left in sequence(), right in sequence()) {
        let (left_text, right_text) = (text_of(&left, "host 1"), text_of(&right, "host 2"));
        let mut turns = String::new();
        let mut queues = [left_text.lines(), right_text.lines()];
        while turns.lines().count() < left.len() + right.len() {
            for line in queues.iter_mut().filter_map(Iterator::next) {
                turns.push_str(line);
                turns.push('\n');
            }
        }
        let series = Series::read(turns.as_bytes(), 1);
        let of = |source: &str| -> Vec<Snapshot> {
            let readings = series.readings.iter().filter(|reading| reading.source == source);
            readings.map(|reading| reading.snapshot.clone()).collect()
        };
        prop_assert_eq!(of("host 1"), left);
        prop_assert_eq!(of("host 2"), right);
    }

    #[test]
    fn a_file_cut_anywhere_loses_only_the_cut_line(snapshots in sequence(), at in any::<Index>()) {
        let text = text_of(&snapshots, "run");
        let kept = &text.as_bytes()[..at.index(text.len() + 1)];
        let series = Series::read(kept, 1);
        let ends = kept.iter().filter(|&&byte| byte == b'\n').count();
        let cut_at_end = text.as_bytes().get(kept.len()) == Some(&b'\n');
        // A line that lacks nothing but its end is whole.
        let whole = ends + usize::from(cut_at_end);
        prop_assert_eq!(snapshots_of(&series), &snapshots[..whole]);
        let clean = kept.is_empty() || kept.ends_with(b"\n") || cut_at_end;
        prop_assert_eq!(series.stopped.is_none(), clean);
        if let Some(stopped) = series.stopped {
            prop_assert!(stopped.last);
            prop_assert_eq!(stopped.line, whole + 1);
        }
    }

    #[test]
    fn a_changed_byte_never_panics(
        snapshots in sequence(), at in any::<Index>(), byte in any::<u8>(),
    ) {
        let mut text = text_of(&snapshots, "run").into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        let series = Series::read(&text, 1);
        // A changed line end can make one line of two or two of one, no more.
        prop_assert!(series.readings.len() <= snapshots.len());
    }

    #[test]
    fn garbage_never_panics(text in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Series::read(&text, 1);
    }

    #[test]
    fn garbage_of_the_right_shape_never_panics(
        slots in prop::collection::vec((any::<u32>(), any::<u64>()), 0..4),
        count in any::<u64>(), sum_ns in any::<u64>(), min_ns in any::<u64>(), max_ns in any::<u64>(),
        full in any::<bool>(), before in testing::snapshot(),
    ) {
        let step = HistogramStep { full, count, sum_ns, min_ns, max_ns, slots };
        let mut line = SeriesLine::encode(None, &before, Mark::Second, "run");
        line.schedule_lag = step.clone();
        line.ops.iter_mut().for_each(|op| op.service = step.clone());
        let _ = line.decode(Some(&before));
        let _ = line.decode(None);
    }
}

#[test]
fn activity_and_events_stand_between_the_snapshots_and_a_later_kind_is_passed_over() {
    use crate::history::{ActivityKey, ActivityStep, SessionState};
    use crate::timeline::TimelineKind;
    let step = |at_ns| ActivityStep { at_ns, ticks: 1, cells: vec![(0, 2, 20)], ..ActivityStep::default() };
    let key = ActivityKey {
        state: SessionState::Waiting,
        event: "log file sync".to_owned(),
        class: Some(WaitClass::Commit),
        op: crate::class::UPDATE.to_owned(),
    };
    let part = |keys: Vec<ActivityKey>, at_ns| {
        let activity =
            ActivityHistory { interval_ns: 10, keys, steps: vec![step(at_ns)], schemas: BTreeMap::from([(1, 2)]) };
        SideLine::activity("run", activity)
    };
    let event = TimelineEvent {
        number: 1,
        at_ns: 7,
        wall: String::new(),
        kind: TimelineKind::Affinity,
        text: "CPUs of the driver threads".to_owned(),
        from: Some("0-1".to_owned()),
        to: Some("0".to_owned()),
        output: None,
        end: None,
    };
    let mut writer = SeriesWriter::new("run");
    let snapshot = with_waits(&[100]);
    let mut text = part(vec![key.clone()], 5).line();
    text += &writer.line(Mark::Second, &snapshot);
    text += "{\"kind\":\"weather\",\"source\":\"run\",\"rain\":1}\n";
    text += &SideLine::event("run", event.clone()).line();
    text += &part(Vec::new(), 15).line();
    text += "{\"kind\":\"activity\",\"sou";
    let series = Series::read(text.as_bytes(), 1);
    assert_eq!(snapshots_of(&series), [snapshot]);
    assert_eq!(series.timeline, [event]);
    let history = series.activity.expect("there is a history");
    assert_eq!(history.keys, [key]);
    assert_eq!(history.steps, [step(5), step(15)]);
    assert_eq!(history.schemas, BTreeMap::from([(1, 4)]));
    assert!(series.stopped.is_some_and(|stopped| stopped.last && stopped.line == 6));
}
