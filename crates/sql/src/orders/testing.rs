//! What tests of order entry on several servers share.

use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_measure::config::Settings;
use assay_measure::snapshot::RunData;
use assay_orders::checks::Checked;
use assay_orders::part::FromEngine;
use assay_run::conformance::life::Unwatched;
use assay_run::engine::Target;
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::{Options, Unobserved, execute};

/// How long a run lasts that has no WORK_LOOP.
pub(crate) const RUN_TIME_NS: Ns = NS_PER_S;

/// A run, and what the engine says of it. `act` comes between the claim of the data set, which bears nothing strange, and the
/// first transaction.
pub(crate) fn ran(
    target: &dyn Target,
    place: &str,
    settings: &Settings,
    run_time_ns: Ns,
    act: impl FnOnce(),
) -> (RunData, FromEngine) {
    let work_loop = settings.int("WORK_LOOP");
    let mut plan = Plan {
        seed: 3,
        run_time_ns: if work_loop > 0 { 0 } else { run_time_ns },
        work_loop,
        rate_per_s: settings.int("RATE"),
        ..Plan::plain(1, 1, 1000)
    };
    target.shape(settings, &mut plan).unwrap();
    let (clock, stop) = (Clock::real(), Stop::new());
    let engine = target
        .open(place, &plan, settings, &stop, &Unwatched)
        .unwrap();
    act();
    let options = Options {
        host: false,
        calibrate: false,
        ..Options::default()
    };
    let data = execute(&plan, &*engine, &clock, &stop, &mut Unobserved, options).unwrap();
    let part = serde_json::from_value(data.part.clone().expect("the engine's part")).unwrap();
    (data, part)
}

/// The checks of this verdict.
pub(crate) fn verdicts(checks: &[Checked], verdict: &str) -> Vec<String> {
    let of = checks.iter().filter(|one| one.verdict == verdict);
    of.map(|one| one.id.clone()).collect()
}
