//! From raw readings to the record: every derived figure is made here, once.

mod activity;
mod checks;
mod driver;
mod events;
mod host;
mod io;
mod layers;
mod load;
mod reads;
pub(crate) mod series;
mod server;
mod totals;

#[cfg(test)]
mod tests;

pub(crate) use assay_measure::plain::slug;
pub use load::ROWS as LOAD_ROWS;
pub use series::{SeriesBuilder, steadiness_of};

use crate::deltas::{Deltas, NO_WINDOW, Rises, seconds};
use assay_measure::counter_catalog;
use assay_measure::record::{AshInfo, Figure, Instance, Interval, OsInfo, Record, Series};
use assay_measure::snapshot::RunData;

/// Builds the record of a run.
///
/// Works on a run that was cut short too: then `end` and `drained` are the last
/// readings there are, and identities that need quiet threads are n/a.
#[must_use]
pub fn build(data: &RunData) -> Record {
    let deltas = Deltas::new(data);
    let series = series::series(&deltas);
    derive(&deltas, series, &Rises::of(data))
}

/// [`build`], with the series that was made from the snapshots as they arrived; `data` may lack every one of them.
#[must_use]
pub fn build_with(data: &RunData, mut series: SeriesBuilder) -> Record {
    let mut rises = series.take_rises();
    // Of a run that ended in its first second nothing came; what the close wrote comes after the last step.
    if rises.is_empty() {
        rises = Rises::of(data);
    } else {
        rises.push(&data.drained);
    }
    derive(&Deltas::new(data), series.finish(data), &rises)
}

/// Builds the record of a server that others worked on between `begin` and `end`: what it counted, and nothing of the
/// clients.
#[must_use]
pub fn watched(data: &RunData, series: SeriesBuilder) -> Record {
    let deltas = &Deltas::new(data);
    let mut load_profile = load::profile(deltas);
    // Of sessions of ours, of which there were none.
    load_profile.retain(|row| !["DB Time(s)", "Operations"].contains(&row.name.as_str()));
    let instance = Instance {
        load_profile,
        efficiency: load::efficiency(deltas),
        stats: load::statistics(deltas),
        gauges: load::gauges(deltas),
        events: events::events(deltas, &AshInfo::default()),
        io_functions: io::functions(deltas),
        ..Instance::default()
    };
    let interval = Interval {
        begin: data.begin.wall.clone(),
        end: data.end.wall.clone(),
        elapsed_s: deltas.window.elapsed_s.into(),
        ..Interval::default()
    };
    let series = series.finish(data);
    Record { kind: data.workload.clone(), interval, series, instance, ..Record::labelled(data) }
}

fn derive(deltas: &Deltas<'_>, series: Series, rises: &Rises) -> Record {
    let data = deltas.data;
    let ash = activity::ash(deltas);
    let events = events::events(deltas, &ash);
    let instance = Instance {
        load_profile: load::profile(deltas),
        efficiency: load::efficiency(deltas),
        stats: load::statistics(deltas),
        gauges: load::gauges(deltas),
        time_model: load::time_model(deltas, &ash, &events),
        wait_classes: events::wait_classes(deltas, &events),
        events,
        layers: layers::layers(deltas),
        scan: layers::scan(deltas),
        io_functions: io::functions(deltas),
        paths: io::paths(deltas),
        io_profile: io::profile(deltas),
        ash,
        ..Instance::default()
    };
    let mut record = Record {
        kind: data.workload.clone(),
        interval: interval(deltas),
        os: host::os(deltas),
        driver: driver::driver(deltas),
        series,
        instance,
        timeline: activity::timeline(&data.timeline),
        ..Record::labelled(data)
    };
    record.checks = checks::checks(deltas, &record);
    record.instance.reads = reads::sources(deltas, &record.checks);
    record.instance.server = server::server(deltas, &record);
    record.integrity = crate::integrity::evaluate(deltas, &record, rises);
    record.warnings = checks::warnings(deltas);
    record.advice = crate::rules::advise(&record);
    record.advice_unjudged = crate::rules::unjudged(&record);
    // Whatever the workload is called: kinds of runs that have more to say add it afterwards.
    assay_measure::kind::attach_metrics(&crate::INSTANCE, &mut record);
    record
}

/// What the host did over the window of a run.
#[must_use]
pub fn os(data: &RunData) -> OsInfo {
    host::os(&Deltas::new(data))
}

fn interval(deltas: &Deltas<'_>) -> Interval {
    let (data, window) = (deltas.data, &deltas.window);
    Interval {
        begin: data.begin.wall.clone(),
        end: data.end.wall.clone(),
        begin_s: seconds(data.begin.at_ns).into(),
        end_s: seconds(data.end.at_ns).into(),
        elapsed_s: window.elapsed_s.into(),
        whole_run_s: deltas.whole.elapsed_s.into(),
        skew_ms: (data.begin.skew_ns.max(data.end.skew_ns) as f64 / 1e6).into(),
        worker_active_fraction: active_fraction(data),
        tx_count: window.transactions(),
        execs_count: window.get(counter_catalog::EXECUTE_COUNT),
        calls_count: window.get(counter_catalog::USER_CALLS),
        ops_count: window.ops().into(),
        sessions_begin_count: data.begin.driver.sessions_active.into(),
        sessions_end_count: data.end.driver.sessions_active.into(),
    }
}

/// Sum over the sessions of the part of the window in which they were active,
/// over sessions x window. A session is active from its first operation to its
/// last, and for one pause before and after them as long as those between them on
/// average: think time and a rate are part of the load that was asked for.
fn active_fraction(data: &RunData) -> Figure {
    let (begin, end) = (data.begin.at_ns, data.end.at_ns);
    if data.per_session.is_empty() {
        return Figure::na("no per-session readings");
    }
    if end <= begin {
        return Figure::na(NO_WINDOW);
    }
    let active: u64 = data
        .per_session
        .iter()
        .map(|session| match (session.first_op_ns, session.last_op_ns) {
            (Some(first), Some(last)) => {
                let idle = (last - first).saturating_sub(session.busy_ns);
                let pause = idle.checked_div(session.ops.saturating_sub(1)).unwrap_or(0);
                let first = first.saturating_sub(pause);
                (last + pause).min(end).saturating_sub(first.max(begin))
            }
            _ => 0,
        })
        .sum();
    let sessions = data.sessions.max(data.per_session.len() as u64);
    Figure::decimal(active as f64 / (sessions as f64 * (end - begin) as f64))
}
