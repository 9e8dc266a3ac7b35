//! Where the engine is short of something: buffers, log, threads, order.

use super::*;
use crate::control::State;
use crate::control_file::ControlFile;
use assay_measure::snapshot::Snapshot;
use assay_run::{Mark, Observer};

pub(super) fn waits(data: &RunData, name: &str) -> u64 {
    let events = data.drained.stats.events.iter();
    events.filter(|event| event.name == name).map(|event| event.waits.count()).sum()
}

pub(super) fn updates(schemas: u32, threads: u32, operations: u64) -> Plan {
    Plan {
        update_pct: 100,
        work_unit: 16,
        update_work_unit: 16,
        work_loop: operations,
        run_time_ns: 0,
        scan_blocks: 16,
        ..Plan::plain(schemas, threads, 1000)
    }
}

#[test]
fn a_tiny_cache_makes_updates_wait_for_free_buffers() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "0.5")]);
    prepare(dir.path(), &settings, 2);
    let data = run(dir.path(), &settings, &updates(2, 8, 60));
    assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 960);
    assert!(waits(&data, "free buffer waits") > 0);
    check(dir.path(), &settings);
}

#[test]
fn many_sessions_share_log_writes() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "64")]);
    prepare(dir.path(), &settings, 2);
    let data = run(dir.path(), &settings, &updates(2, 32, 30));
    let commits = counted(&data, counter_catalog::USER_COMMITS);
    let writes = counted(&data, counter_catalog::REDO_WRITES);
    assert_eq!(commits, 1920);
    assert!(writes < commits, "{writes} log writes of {commits} commits");
    check(dir.path(), &settings);
}

#[test]
fn sync_commits_have_a_log_write_each() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "64"), ("COMMIT_MODE", "sync")]);
    prepare(dir.path(), &settings, 2);
    let data = run(dir.path(), &settings, &updates(2, 4, 30));
    let writes = counted(&data, counter_catalog::REDO_WRITES);
    assert!(writes >= 240, "{writes} log writes of 240 commits");
}

#[test]
fn a_thousand_sessions_need_no_more_threads_than_cpus() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "64"), ("UNDO_MB", "80")]);
    prepare(dir.path(), &settings, 8);
    let plan = Plan { update_pct: 10, ..updates(8, 125, 5) };
    let data = run(dir.path(), &settings, &plan);
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    assert!(data.end.driver.threads <= cpus);
    assert_eq!(data.per_session.len(), 1000);
    assert!(data.per_session.iter().all(|session| session.ops == 5));
    check(dir.path(), &settings);
}

/// Copies the data set while the sessions change it. The control file first and the log last:
/// then the log has every change that any block of the copy has, as after a crash.
struct Copier<'a> {
    from: &'a Path,
    to: &'a Path,
    copied: bool,
}

impl Observer for Copier<'_> {
    fn phase(&mut self, _name: &str) {}

    fn snapshot(&mut self, mark: Mark, _now: &Snapshot) {
        if mark != Mark::End {
            return;
        }
        let entries = std::fs::read_dir(self.from).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_by_key(|name| (name.starts_with("redo"), name.clone()));
        assert_eq!(names[0], "control.assay");
        for name in names {
            std::fs::copy(self.from.join(&name), self.to.join(&name)).unwrap();
        }
        self.copied = true;
    }
}

#[test]
fn a_copy_taken_while_sessions_change_it_is_recovered() {
    let (dir, crashed) = (directory(), directory());
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "4"), ("REDO_LOG_MB", "64")]);
    prepare(dir.path(), &settings, 2);
    let plan = Plan { work_loop: 0, run_time_ns: 300_000_000, ..updates(2, 2, 0) };
    let engine = open(dir.path(), &plan, &settings).unwrap();
    let mut copier = Copier { from: dir.path(), to: crashed.path(), copied: false };
    let options = Options { calibrate: false, ..Options::default() };
    let (clock, stop) = (Clock::real(), Stop::new());
    execute(&plan, &*engine, &clock, &stop, &mut copier, options).unwrap();
    assert!(copier.copied);
    drop(engine);
    check(dir.path(), &settings);
    let control = ControlFile::read(crashed.path()).unwrap().unwrap();
    assert_eq!(control.state, State::Open);
    let engine = open(crashed.path(), &plan, &settings).unwrap();
    let facts = engine.facts();
    let fact = |name: &str| {
        let fact = facts.iter().find(|fact| fact.name == name).unwrap();
        fact.value.parse::<u64>().unwrap()
    };
    assert!(fact("recovered_commits") > 0);
    assert!(fact("recovered_rows") >= 16 * fact("recovered_commits"));
    engine.close().unwrap();
    drop(engine);
    check(crashed.path(), &settings);
    run(crashed.path(), &settings, &updates(2, 2, 20));
    check(crashed.path(), &settings);
}

/// A session that has stopped holds its row locks until it commits; those who wait for them must not wait for ever.
#[test]
fn sessions_that_stop_with_a_transaction_open_let_the_others_end() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000"), ("CACHE_MB", "16")]);
    prepare(dir.path(), &settings, 1);
    let plan = Plan { commit_every: 10, work_loop: 0, run_time_ns: 400_000_000, ..updates(1, 16, 0) };
    for _ in 0..3 {
        let data = run(dir.path(), &settings, &plan);
        assert_eq!(data.verdict, Verdict::Complete);
        let uneven = Plan { work_loop: 15, run_time_ns: 0, ..plan.clone() };
        let data = run(dir.path(), &settings, &uneven);
        // Fifteen operations each, ten to a commit: the last five are committed at log-off, if not before.
        assert!(data.per_session.iter().all(|session| session.ops == 15));
        assert!(counted(&data, counter_catalog::USER_COMMITS) >= 32);
    }
    check(dir.path(), &settings);
}

#[test]
fn a_data_set_in_use_is_not_opened_twice() {
    let dir = directory();
    let settings = settings(&[("SCALE", "1000")]);
    prepare(dir.path(), &settings, 1);
    let plan = updates(1, 1, 1);
    let first = open(dir.path(), &plan, &settings).unwrap();
    assert!(open(dir.path(), &plan, &settings).is_err());
    first.close().unwrap();
    drop(first);
    assert!(open(dir.path(), &plan, &settings).is_ok());
}
