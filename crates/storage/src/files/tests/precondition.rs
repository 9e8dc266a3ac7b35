//! Preconditioning of real files.

use super::super::super::spec::{Precondition, PreconditionOptions};
use super::super::super::steady::{SNIA_MOST_ROUNDS, SniaRounds};
use super::*;
use assay_measure::steady::ROUNDS;

fn conditioned(method: Precondition, mut invocation: Invocation) -> Invocation {
    invocation.jobs[0].options.precondition = PreconditionOptions { method, round_ns: 10_000_000 };
    invocation
}

#[test]
fn a_fill_writes_all_of_the_region_twice_and_nothing_else() {
    let place = directory();
    let path = place.path().join("f");
    run(&one(Mode::Read, &path, 4 * MIB));
    let before = fs::read(&path).unwrap();
    let mut invocation = conditioned(Precondition::Fill, one(Mode::Read, &path, MIB));
    invocation.jobs[0].options.files.offset = Amount::Bytes(MIB);
    let opened = opened(&invocation);
    let told = Told::default();
    let readings = opened.precondition(&invocation, &Stop::new(), &told).unwrap();
    opened.finish().unwrap();
    assert_eq!(told.steps.lock().unwrap().len(), 2);
    let [reading] = &readings[..] else { panic!("{readings:?}") };
    assert_eq!((reading.bytes, reading.fills), (MIB, 2));
    assert!(reading.attained && reading.rounds.is_empty());
    assert!(reading.fill_bytes_per_s.iter().all(|rate| *rate > 0.0));
    let after = fs::read(&path).unwrap();
    let (from, to) = (MIB as usize, 2 * MIB as usize);
    assert_eq!(after[..from], before[..from]);
    assert_eq!(after[to..], before[to..]);
    let same = (from..to).step_by(4096).filter(|at| before[*at..at + 4096] == after[*at..at + 4096]);
    assert_eq!(same.count(), 0);
}

#[test]
fn snia_goes_on_until_its_own_rule_says_steady_or_25_rounds_are_over() {
    let place = directory();
    let path = place.path().join("f");
    let invocation = conditioned(Precondition::Snia, one(Mode::RandRead, &path, 2 * MIB));
    let planned = plan(&invocation).unwrap();
    // It fills the file itself: nothing has to be laid out before.
    assert_eq!(planned.files[0].fill, Fill::Allocate);
    assert!(planned.files[0].written);
    let verdict = planned.files[0].verdict();
    assert!(verdict.contains("preconditioned"), "{verdict}");
    let opened = opened(&invocation);
    let readings = opened.precondition(&invocation, &Stop::new(), &Told::default()).unwrap();
    opened.finish().unwrap();
    let reading = &readings[0];
    assert_eq!(reading.block_bytes, 4096);
    assert!((ROUNDS..=SNIA_MOST_ROUNDS).contains(&reading.rounds.len()));
    let mut judge = SniaRounds::default();
    let more: Vec<bool> = reading.rounds.iter().map(|iops| judge.round(*iops)).collect();
    assert_eq!(more.iter().filter(|more| !**more).count(), 1);
    assert_eq!(reading.attained, judge.is_steady());
    assert_eq!(content::hole_bytes(&path, 0, 2 * MIB), 0);
}

#[test]
fn what_may_not_be_written_to_may_not_be_preconditioned() {
    let place = directory();
    let path = place.path().join("theirs");
    fs::write(&path, vec![1; MIB as usize]).unwrap();
    let mut invocation = conditioned(Precondition::Fill, one(Mode::Read, &path, MIB));
    assert!(refused(&invocation).contains("--destroy"));
    invocation.output.readonly = true;
    assert!(refused(&invocation).contains("--readonly"));
    assert_eq!(fs::read(&path).unwrap(), vec![1; MIB as usize]);
}

#[test]
fn a_stop_request_ends_it() {
    let place = directory();
    let path = place.path().join("f");
    let invocation = conditioned(Precondition::Snia, one(Mode::Read, &path, 2 * MIB));
    let opened = opened(&invocation);
    let stop = Stop::new();
    let told = Told { stop: Some(stop.clone()), ..Told::default() };
    let ended = opened.precondition(&invocation, &stop, &told);
    assert!(matches!(ended, Err(EngineError::Interrupted)));
    assert_eq!(told.calls.load(Ordering::Relaxed), 1);
    opened.finish().unwrap();
}
