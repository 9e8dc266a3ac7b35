//! The cost of the tool itself: the null engine in the same loop that runs the real one, and the cost of one clock
//! reading. Every record has both.

use crate::control::Control;
use crate::driver_loop::Worker;
use crate::engine::Engine;
use crate::null::NullEngine;
use crate::plan::Plan;
use crate::workload::Workload;
use assay_measure::clock::{Clock, Ns};

/// Long enough for a stable mean, short enough for nobody to notice.
const RUN_NS: Ns = 50_000_000;
/// Clock readings timed together.
const READINGS: u32 = 20_000;

/// ns per operation of `plan`'s mix with one session, on a thread of its own, in a
/// closed loop without pauses; `None` if the thread could not be had.
pub(crate) fn ns_per_op(plan: &Plan, workload: &dyn Workload) -> Option<f64> {
    let plan = Plan {
        schemas: 1,
        threads_per_schema: 1,
        sessions_asked: None,
        run_time_ns: RUN_NS,
        warmup_ns: 0,
        work_loop: 0,
        max_run_time_ns: None,
        rate_per_s: 0,
        think: None,
        ..plan.clone()
    };
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("floor".to_owned())
            .spawn_scoped(scope, || run(&plan, workload))
            .ok()?
            .join()
            .ok()?
    })
}

fn run(plan: &Plan, workload: &dyn Workload) -> Option<f64> {
    let clock = Clock::real();
    let engine = NullEngine::new(plan, workload, &clock);
    let assignments = plan.assignments(1);
    let control = Control::new(&clock, 1, plan.sessions(), 0);
    let assignment = assignments.first()?;
    let mut driver = engine.driver(assignment).ok()?;
    let mut worker = Worker::new(plan, workload, &control, assignment, true, None);
    let begin = clock.now_ns();
    control.stop_at(begin + RUN_NS);
    worker.run(&mut *driver, begin).ok()?;
    let elapsed_ns = clock.now_ns() - begin;
    let ops: u64 = worker.sessions().iter().map(|reading| reading.ops).sum();
    (ops > 0).then(|| elapsed_ns as f64 / ops as f64)
}

/// ns of one clock reading.
pub(crate) fn clock_read_ns(clock: &Clock) -> f64 {
    let begin = clock.now_ns();
    for _ in 0..READINGS {
        std::hint::black_box(clock.now_ns());
    }
    (clock.now_ns() - begin) as f64 / f64::from(READINGS)
}
