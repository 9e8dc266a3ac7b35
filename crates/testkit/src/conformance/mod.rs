//! One suite that every engine must pass: the contract of [`assay_run::engine`], checked
//! from the side of the driver loop, and a whole run.
//!
//! An engine's tests call [`suite`] with a factory that opens the engine for a plan. The
//! plans vary, but their data does not: [`plan`] says what must be loaded.

mod claims;
pub mod life;
mod probe;
mod script;

pub use claims::{Ground, claims_suite, claims_suite_of_nothing};
pub use probe::{probe_suite, probe_suite_with};

use assay_measure::clock::Clock;
use assay_measure::counter_catalog;
use assay_measure::snapshot::{RunData, SCAN, SELECT, UPDATE, Verdict};
use assay_run::engine::{Engine, Op};
use assay_run::plan::{Edge, Plan};
use assay_run::stop::Stop;
use assay_run::{Options, Unobserved, execute};
use script::Script;

/// Operations of each session in the whole run.
const WORK_LOOP: u64 = 100;

/// An engine under test and the clock it was opened with.
pub struct Subject {
    /// Opened for the plan the factory was given.
    pub engine: Box<dyn Engine>,
    /// The clock whose instants it returns.
    pub clock: Clock,
}

/// Opens the engine for a plan.
pub type Factory<'a> = &'a mut dyn FnMut(&Plan) -> Subject;

/// The plan of the suite: 2 schemas of 1000 blocks with scan tables of 16 blocks.
#[must_use]
pub fn plan() -> Plan {
    Plan {
        update_pct: 30,
        scan_pct: 20,
        scan_blocks: 16,
        work_unit: 32,
        update_work_unit: 8,
        work_loop: WORK_LOOP,
        run_time_ns: 0,
        ..Plan::plain(2, 3, 1000)
    }
}

/// Runs every check; returns each violation as a sentence.
#[must_use]
pub fn suite(make: Factory<'_>) -> Vec<String> {
    let mut found = Vec::new();
    describes_itself(make, &mut found);
    rows_are_right(make, &mut found);
    ranges_wrap(make, &mut found);
    sessions_overlap(make, &mut found);
    idle_reaps_return(make, &mut found);
    sampling_is_concurrent(make, &mut found);
    a_whole_run_adds_up(make, &mut found);
    found
}

/// Adds `text` unless `holds`.
fn expect(found: &mut Vec<String>, holds: bool, text: impl FnOnce() -> String) {
    if !holds {
        found.push(text());
    }
}

fn close(subject: &Subject, found: &mut Vec<String>) {
    if let Err(error) = subject.engine.close() {
        found.push(format!("close failed: {error}"));
    }
}

fn describes_itself(make: Factory<'_>, found: &mut Vec<String>) {
    let subject = make(&plan());
    let facts = subject.engine.facts();
    expect(found, !facts.is_empty(), || "facts: there are none".to_owned());
    for (i, fact) in facts.iter().enumerate() {
        let twice = facts[..i].iter().any(|other| other.name == fact.name);
        expect(found, !twice, || format!("facts: {} stands twice", fact.name));
        let complete = !fact.name.is_empty() && !fact.value.is_empty();
        expect(found, complete, || format!("facts: {fact:?} is empty"));
    }
    for (sessions, cpus) in [(1, 1), (4, 2), (1000, 2)] {
        let threads = subject.engine.driver_threads(sessions, cpus);
        expect(found, (1..=sessions).contains(&threads), || {
            format!("driver_threads: {threads} for {sessions} sessions on {cpus} CPUs")
        });
    }
    close(&subject, found);
}

/// Each kind of operation alone, at both ends of the table and committed or not.
fn rows_are_right(make: Factory<'_>, found: &mut Vec<String>) {
    let plan = plan();
    let subject = make(&plan);
    let select = |first_key, width| Op::Select { schema: 1, first_key, width };
    let update = |first_key, width, stamp, commit| Op::Update { schema: 2, first_key, width, stamp, commit };
    let ops = [
        select(1, 1),
        select(1, 32),
        select(969, 32),
        select(1000, 1),
        select(1, 1000),
        update(1, 1, 1, true),
        update(993, 8, 2, false),
        update(993, 8, 3, false),
        update(1, 8, 4, true),
        Op::Select { schema: 2, first_key: 990, width: 11 },
        Op::Scan { schema: 1 },
        Op::Scan { schema: 2 },
    ];
    let rows = Script::new(&subject, &plan, found).run(|script| {
        for op in ops {
            script.one(0, op);
        }
        script.rows
    });
    let expected: u64 = ops.iter().map(|op| plan.rows_expected(op)).sum();
    expect(found, rows == Some(expected), || format!("rows: {rows:?} in all, expected {expected}"));
    close(&subject, found);
}

fn ranges_wrap(make: Factory<'_>, found: &mut Vec<String>) {
    let plan = Plan { edge: Edge::Wrap, ..plan() };
    let subject = make(&plan);
    Script::new(&subject, &plan, found).run(|script| {
        for (first_key, width) in [(1000, 2), (980, 32), (1000, 1000)] {
            script.one(0, Op::Select { schema: 1, first_key, width });
            script.one(
                1,
                Op::Update { schema: 1, first_key, width: width.min(8), stamp: u64::from(width), commit: true },
            );
        }
    });
    close(&subject, found);
}

/// All sessions at once, many rounds: every tag comes back once, `Full` gives way to a
/// reap, end stamps lie between start and present, and counters only grow.
fn sessions_overlap(make: Factory<'_>, found: &mut Vec<String>) {
    let plan = plan();
    let subject = make(&plan);
    Script::new(&subject, &plan, found).run(|script| {
        let sessions = script.sessions() as u64;
        for round in 0..20 {
            for session in 0..sessions {
                let first_key = 1 + (round * 37 + session * 11) % 960;
                let schema = (session % 2) as u32 + 1;
                let op = match (round + session) % 3 {
                    0 => Op::Scan { schema },
                    1 => Op::Select { schema, first_key, width: 32 },
                    _ => Op::Update { schema, first_key, width: 8, stamp: round << 32 | session, commit: true },
                };
                script.begin(session as u32, op);
            }
            script.finish_all();
            script.stats_grow();
        }
    });
    close(&subject, found);
}

/// With nothing in flight a reap comes back with nothing.
fn idle_reaps_return(make: Factory<'_>, found: &mut Vec<String>) {
    let plan = plan();
    let subject = make(&plan);
    Script::new(&subject, &plan, found).run(|script| {
        for wait_ms in [0, 0, 1] {
            script.reap_idle(wait_ms);
        }
        script.one(0, Op::Scan { schema: 1 });
        script.reap_idle(0);
    });
    close(&subject, found);
}

/// The collector samples from its own thread while drivers work, and after the close.
fn sampling_is_concurrent(make: Factory<'_>, found: &mut Vec<String>) {
    let plan = plan();
    let subject = make(&plan);
    let engine = &*subject.engine;
    let done = Stop::new();
    let samples = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut samples = 0_u64;
            while !done.requested() {
                std::hint::black_box(engine.sample());
                samples += 1;
                std::thread::yield_now();
            }
            samples
        });
        Script::new(&subject, &plan, found).run(|script| {
            for round in 0..200 {
                script.one(0, Op::Select { schema: 1, first_key: 1 + round, width: 32 });
            }
        });
        done.request();
        sampler.join()
    });
    expect(found, samples.is_ok(), || "sample: panicked".to_owned());
    close(&subject, found);
    let _ = engine.sample();
}

fn a_whole_run_adds_up(make: Factory<'_>, found: &mut Vec<String>) {
    let plan = plan();
    let subject = make(&plan);
    let options = Options { host: false, calibrate: false, ..Options::default() };
    let engine = &*subject.engine;
    match execute(&plan, engine, &subject.clock, &Stop::new(), &mut Unobserved, options) {
        Ok(data) => check_run(&plan, &data, found),
        Err(error) => found.push(format!("run: {error}")),
    }
}

fn check_run(plan: &Plan, data: &RunData, found: &mut Vec<String>) {
    expect(found, data.verdict == Verdict::Complete, || format!("run: {:?}, {:?}", data.verdict, data.warnings));
    let driver = &data.drained.driver;
    let of = |kind| driver.ops.iter().find(|op| op.kind == kind);
    let (mut ops, mut rows) = (0, 0);
    for (kind, width) in
        [(SELECT, u64::from(plan.work_unit)), (UPDATE, u64::from(plan.update_work_unit)), (SCAN, plan.scan_blocks)]
    {
        let count = of(kind).map_or(0, |op| op.service.count());
        let touched = of(kind).map_or(0, |op| op.rows);
        expect(found, count > 0 && touched == count * width, || {
            format!("run: {count} {kind:?} touched {touched} rows")
        });
        ops += count;
        rows += touched;
    }
    let wanted = plan.sessions() as u64 * plan.work_loop;
    expect(found, ops == wanted, || format!("run: {ops} operations, expected {wanted}"));
    // Engines that count rows and commits must agree with the client.
    let updates = of(UPDATE).map_or(0, |op| op.service.count());
    for (stat, expected) in [(counter_catalog::ROWS_VISITED, rows), (counter_catalog::USER_COMMITS, updates)] {
        let counted = data.drained.stats.get(stat);
        expect(found, counted.is_none_or(|n| n == expected), || {
            format!("run: {} is {counted:?}, the client counted {expected}", stat.name)
        });
    }
}

#[cfg(test)]
mod tests;
