//! The record of a run and its faces, from raw measurements to files.

use crate::exit::{Code, Failure};
use crate::observer::{Header, SERIES_SCHEMA};
use crate::rundir::{self, RECORD, REPORT, RunDir, SERIES};
use assay_measure::record::Record;
use assay_measure::series::Series;
use assay_measure::snapshot::{Mark, RunData, Snapshot, Verdict};
use assay_report::compare::Repeats;
use assay_report::sweep::Sweep;
use std::path::Path;

const S_NS: u64 = 1_000_000_000;
const HALF_S_NS: u64 = S_NS / 2;

/// A record as it is printed and kept.
pub(crate) struct Faces {
    /// `report.txt`.
    pub(crate) text: String,
    /// `record.json`.
    pub(crate) json: String,
    /// Exact identities that do not hold: the run cannot be trusted.
    pub(crate) void: Vec<String>,
    /// What both are faces of.
    pub(crate) record: Record,
}

/// Derives everything from what was measured.
pub(crate) fn faces(data: &RunData) -> Result<Faces, Failure> {
    let record = assay_report::record::build(data);
    Ok(Faces {
        text: assay_report::text::render(&record),
        json: json(&record)?,
        void: assay_report::integrity::violated_exact(&record)
            .iter()
            .map(|identity| format!("identity {} does not hold: {}", identity.id, identity.rule))
            .collect(),
        record,
    })
}

/// `record.json` with its final line end.
pub(crate) fn json(record: &Record) -> Result<String, Failure> {
    assay_report::json::write(record)
        .map_err(|error| Failure::new(Code::Bug, format!("record.json: {error}")))
}

/// Writes `record.json`, `report.txt` and `report.html`.
pub(crate) fn write(dir: &RunDir, faces: &Faces) -> Result<(), Failure> {
    dir.write(RECORD, &faces.json)?;
    dir.write(REPORT, &faces.text)?;
    crate::html::write_report(dir, &faces.record)
}

/// Reads a record.
pub(crate) fn read(path: &Path) -> Result<Record, Failure> {
    let bad = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    assay_report::json::read(&text).map_err(|error| bad(error.to_string()))
}

/// Reads a sweep's summary.
pub(crate) fn read_sweep(path: &Path) -> Result<Sweep, Failure> {
    let bad = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    assay_report::sweep::read(&text).map_err(bad)
}

/// Reads the summary of repeats.
pub(crate) fn read_repeats(path: &Path) -> Result<Repeats, Failure> {
    let bad = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    Repeats::read(&text).map_err(bad)
}

/// Rebuilds what a killed run had measured up to its last whole second.
pub(crate) fn recover(dir: &Path) -> Result<RunData, Failure> {
    let path = dir.join(SERIES);
    let bad = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let bytes = std::fs::read(&path).map_err(|error| rundir_error(&path, &error))?;
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let Some(end) = end else {
        return Err(bad(
            "the header is not whole: the run never began".to_owned()
        ));
    };
    let header: Header = serde_json::from_slice(&bytes[..end])
        .map_err(|error| bad(format!("line 1 is no header of a series: {error}")))?;
    if header.schema != SERIES_SCHEMA {
        return Err(bad(format!(
            "its schema is {}, this version reads {SERIES_SCHEMA}",
            header.schema
        )));
    }
    let series = Series::read(&bytes[end + 1..], 2);
    let mut data = header.run;
    if let Some(stopped) = &series.stopped
        && !stopped.last
    {
        data.warnings.push(format!(
            "The series is damaged at line {} ({}): everything after it is lost.",
            stopped.line, stopped.error
        ));
    }
    data.activity = series.activity;
    data.timeline = series.timeline;
    let readings: Vec<(Mark, Snapshot)> = series
        .readings
        .into_iter()
        .map(|reading| (reading.mark, reading.snapshot))
        .collect();
    if !place_snapshots(&mut data, readings) {
        return Err(bad(
            "no snapshot is whole: the run never passed its gate".to_owned()
        ));
    }
    Ok(data)
}

fn rundir_error(path: &Path, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::NotFound {
        Failure::usage(format!(
            "{}: there is none; nothing can be recovered",
            path.display()
        ))
    } else {
        rundir::cannot(path, error)
    }
}

/// Puts the snapshots where they belong; what is missing is the nearest that is there.
fn place_snapshots(data: &mut RunData, readings: Vec<(Mark, Snapshot)>) -> bool {
    let find = |wanted: Mark| {
        readings
            .iter()
            .find(|(mark, _)| *mark == wanted)
            .map(|(_, snapshot)| snapshot.clone())
    };
    let (Some(gate), Some((_, last))) = (find(Mark::Gate), readings.last()) else {
        return false;
    };
    let seconds = last.at_ns / S_NS;
    let begin = find(Mark::Begin);
    if begin.is_none() {
        data.warnings.push(
            "The run ended during its warm-up: the figures are of the warm-up, not of a measured window."
                .to_owned(),
        );
    }
    let drained = find(Mark::Drained);
    let reason = if drained.is_some() {
        "recovered: the run had ended, but its record was not written".to_owned()
    } else {
        format!("recovered: the run was killed, its last whole second is {seconds}")
    };
    data.verdict = Verdict::Incomplete(reason);
    data.begin = begin.unwrap_or_else(|| gate.clone());
    data.end = find(Mark::End).unwrap_or_else(|| last.clone());
    data.drained = drained.unwrap_or_else(|| last.clone());
    data.gate = gate;
    data.series = thinned(readings);
    true
}

/// Snapshots of the report's series, at most: as many as a run keeps itself.
const SERIES_MAX: usize = 900;

/// One snapshot per instant between gate and end; of a long run every 2nd, 4th, ... second.
fn thinned(readings: Vec<(Mark, Snapshot)>) -> Vec<Snapshot> {
    let mut step = 1;
    while readings.len() / step > SERIES_MAX {
        step *= 2;
    }
    let mut kept: Vec<Snapshot> = Vec::new();
    for (mark, snapshot) in readings {
        let wanted = match mark {
            Mark::Gate | Mark::Drained => false,
            Mark::Begin | Mark::End => step == 1,
            Mark::Second => ((snapshot.at_ns + HALF_S_NS) / S_NS).is_multiple_of(step as u64),
        };
        if wanted && kept.last().is_none_or(|last| last.at_ns < snapshot.at_ns) {
            kept.push(snapshot);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Snapshot {
        Snapshot {
            at_ns: ms * 1_000_000,
            ..Snapshot::default()
        }
    }

    #[test]
    fn an_instant_of_two_marks_is_one_snapshot_of_the_series() {
        let readings = vec![
            (Mark::Gate, at(0)),
            (Mark::Second, at(1000)),
            (Mark::Begin, at(1000)),
            (Mark::Second, at(2001)),
            (Mark::End, at(2500)),
            (Mark::Drained, at(2510)),
        ];
        let mut data = RunData::default();
        assert!(place_snapshots(&mut data, readings));
        let instants: Vec<u64> = data.series.iter().map(|s| s.at_ns / 1_000_000).collect();
        assert_eq!(instants, [1000, 2001, 2500]);
        assert_eq!(
            (data.begin.at_ns, data.end.at_ns),
            (1_000_000_000, 2_500_000_000)
        );
        assert_eq!(data.drained.at_ns, 2_510_000_000);
        assert!(matches!(&data.verdict, Verdict::Incomplete(why) if why.contains("had ended")));
    }

    #[test]
    fn a_run_killed_during_its_warm_up_says_so() {
        let mut data = RunData::default();
        let readings = vec![(Mark::Gate, at(0)), (Mark::Second, at(1000))];
        assert!(place_snapshots(&mut data, readings));
        assert!(data.warnings[0].contains("warm-up"), "{:?}", data.warnings);
        assert_eq!((data.begin.at_ns, data.end.at_ns), (0, 1_000_000_000));
        assert!(!place_snapshots(&mut RunData::default(), Vec::new()));
    }

    #[test]
    fn a_long_run_keeps_a_bounded_series_with_its_shape() {
        let readings = (1..=4000).map(|s| (Mark::Second, at(s * 1000))).collect();
        let kept = thinned(readings);
        assert_eq!(kept.len(), 500);
        assert!(kept.iter().all(|s| s.at_ns % (8 * S_NS) == 0));
    }
}
