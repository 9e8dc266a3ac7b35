//! A server that others work on, watched for a while: `fit` derives a load from what it counts.

use crate::cli::SettingArgs;
use crate::configure::{self, Configured};
use crate::exit::{Code, Failure};
use crate::{registry, rundir, ui};
use assay_awr::record::{SeriesBuilder, watched};
use assay_measure::clock::Clock;
use assay_measure::record::Record;
use assay_measure::snapshot::{RunData, Snapshot};
use assay_measure::units;
use assay_platform::fit::load::WATCHED;
use assay_run::engine::Watched;
use assay_run::stop::Stop;
use std::path::Path;
use std::time::Duration;

/// Between two readings.
const STEP: Duration = Duration::from_secs(1);
/// Between two looks at the request to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The URL that a word is, if it is no file.
pub(super) fn url(word: &Path) -> Option<&str> {
    let text = word.to_str()?;
    (!word.exists() && registry::locate(text).is_some()).then_some(text)
}

/// What a server counts over an interval, as a record.
pub(super) fn watch(url: &str, interval: Duration, stop: &Stop) -> Result<Record, Failure> {
    let args = SettingArgs { target: Some(url.to_owned()), ..SettingArgs::default() };
    let (configured, _) = configure::configure_quietly(&args, Vec::new())?;
    configured.refuse_temporary("watch")?;
    let server = configured.target.watch(&configured.location, &configured.settings)?;
    let shown = configured.shown();
    ui::say(&format!("watching {shown} for {}", units::duration(interval.as_nanos() as u64)));
    let (data, series) = readings(&configured, &*server, interval, stop)?;
    Ok(watched(&data, series))
}

fn readings(
    configured: &Configured,
    server: &dyn Watched,
    interval: Duration,
    stop: &Stop,
) -> Result<(RunData, SeriesBuilder), Failure> {
    let clock = Clock::real();
    let reading = || Snapshot {
        at_ns: clock.now_ns(),
        wall: jiff::Timestamp::now().to_string(),
        stats: server.sample(),
        ..Snapshot::default()
    };
    let begin = reading();
    let ends_ns = begin.at_ns + interval.as_nanos() as u64;
    let mut series = SeriesBuilder::default();
    let mut last = begin.clone();
    while last.at_ns < ends_ns {
        let next_ns = (last.at_ns + STEP.as_nanos() as u64).min(ends_ns);
        while clock.now_ns() < next_ns {
            if stop.requested() {
                return Err(Failure::new(Code::Interrupted, "interrupted while the server was watched"));
            }
            std::thread::sleep(LOOK.min(Duration::from_nanos(next_ns.saturating_sub(clock.now_ns()))));
        }
        let now = reading();
        series.push(&last, &now);
        last = now;
    }
    let data = RunData {
        run_id: rundir::new_id(),
        workload: WATCHED.to_owned(),
        engine: configured.target.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: begin.wall.clone(),
        settings: configured.lines(),
        engine_facts: server.facts(),
        gate: begin.clone(),
        begin,
        drained: last.clone(),
        end: last,
        ..RunData::default()
    };
    Ok((data, series))
}
