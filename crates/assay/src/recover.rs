//! What a killed run left in its series: read line by line, so that a day of seconds takes no more memory than a minute.

use crate::exit::Failure;
use crate::observer::{Header, SERIES_SCHEMA};
use crate::rundir::{self, SERIES};
use assay_measure::clock::NS_PER_S;
use assay_measure::series::{Line, SeriesError, SeriesReader};
use assay_measure::snapshot::{Mark, RunData, Snapshot, Verdict};
use assay_measure::timeline;
use assay_report::record::SeriesBuilder;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

const HALF_S_NS: u64 = NS_PER_S / 2;
/// Snapshots kept for the identities over the series, at most: as many as a run keeps itself.
const KEPT_MAX: usize = 900;

/// What a killed run had measured up to its last whole second.
pub(crate) struct Recovered {
    /// The run; what is missing is the nearest that is there.
    pub(crate) data: RunData,
    /// Every second of it.
    pub(crate) series: SeriesBuilder,
}

/// Whether a series begins as ours do.
pub(crate) fn is_ours(dir: &Path) -> bool {
    Lines::open(dir).is_ok_and(|mut lines| lines.header().is_ok())
}

/// Rebuilds a run from its series.
pub(crate) fn recover(dir: &Path) -> Result<Recovered, Failure> {
    let mut lines = Lines::open(dir)?;
    let header = lines.header()?;
    let mut marks = Marks::default();
    let mut data = header.run;
    let mut reader = SeriesReader::default();
    while let Some(line) = lines.next()? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match reader.line(&line) {
            Ok(Line::Snapshot(reading)) => marks.take(reading.mark, reading.snapshot),
            Ok(Line::Activity(part)) => {
                marks.series.activity(part.clone());
                data.activity.get_or_insert_default().append(part);
            }
            Ok(Line::Event(event)) => timeline::note(&mut data.timeline, event),
            Ok(Line::Unknown) => {}
            Err(error) => {
                data.warnings.extend(lines.damage(&error)?);
                break;
            }
        }
    }
    if !marks.place(&mut data) {
        return Err(lines.bad("no snapshot is whole: the run never passed its gate"));
    }
    Ok(Recovered {
        data,
        series: marks.series,
    })
}

/// The lines of a series with their numbers.
struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    number: usize,
}

impl Lines {
    fn open(dir: &Path) -> Result<Self, Failure> {
        let path = dir.join(SERIES);
        let file = File::open(&path).map_err(|error| unreadable(&path, &error))?;
        Ok(Self {
            path,
            file: BufReader::new(file),
            number: 0,
        })
    }

    fn bad(&self, what: &str) -> Failure {
        Failure::usage(format!("{}: {what}", self.path.display()))
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut line = Vec::new();
        let read = self.file.read_until(b'\n', &mut line);
        let read = read.map_err(|error| unreadable(&self.path, &error))?;
        self.number += 1;
        Ok((read > 0).then_some(line))
    }

    fn header(&mut self) -> Result<Header, Failure> {
        let line = self.next()?.unwrap_or_default();
        if line.last() != Some(&b'\n') {
            return Err(self.bad("the header is not whole: the run never began"));
        }
        let header: Header = serde_json::from_slice(&line)
            .map_err(|error| self.bad(&format!("line 1 is no header of a series: {error}")))?;
        if header.schema != SERIES_SCHEMA {
            return Err(self.bad(&format!(
                "its schema is {}, this version reads {SERIES_SCHEMA}",
                header.schema
            )));
        }
        Ok(header)
    }

    /// What to say of a line that could not be read: nothing of the last one, which a kill cuts off.
    fn damage(&mut self, error: &SeriesError) -> Result<Option<String>, Failure> {
        let number = self.number;
        while let Some(line) = self.next()? {
            if !line.trim_ascii().is_empty() {
                return Ok(Some(format!(
                    "The series is damaged at line {number} ({error}): everything after it is lost."
                )));
            }
        }
        Ok(None)
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::NotFound {
        Failure::usage(format!(
            "{}: there is none; nothing can be recovered",
            path.display()
        ))
    } else {
        rundir::cannot(path, error)
    }
}

/// The snapshots that matter so far.
#[derive(Default)]
struct Marks {
    gate: Option<Snapshot>,
    begin: Option<Snapshot>,
    end: Option<Snapshot>,
    drained: Option<Snapshot>,
    last: Option<Snapshot>,
    kept: Vec<Snapshot>,
    /// Of full seconds only those divisible by two to this power are kept.
    thinned: u32,
    series: SeriesBuilder,
}

impl Marks {
    fn take(&mut self, mark: Mark, now: Snapshot) {
        match mark {
            Mark::Gate => self.gate = self.gate.take().or_else(|| Some(now.clone())),
            Mark::Begin => self.begin = self.begin.take().or_else(|| Some(now.clone())),
            Mark::End => self.end = self.end.take().or_else(|| Some(now.clone())),
            Mark::Drained => self.drained = self.drained.take().or_else(|| Some(now.clone())),
            Mark::Second => {}
        }
        if let Some(before) = self.last.as_ref().filter(|_| mark != Mark::Drained) {
            self.series.push(before, &now);
        }
        self.keep(mark, &now);
        self.last = Some(now);
    }

    /// One snapshot per instant between gate and end; of a long run every 2nd, 4th, ... second.
    fn keep(&mut self, mark: Mark, now: &Snapshot) {
        let thinned = self.thinned;
        let on_step = |snapshot: &Snapshot, thinned: u32| {
            ((snapshot.at_ns + HALF_S_NS) / NS_PER_S).is_multiple_of(1 << thinned)
        };
        let wanted = match mark {
            Mark::Gate | Mark::Drained => false,
            Mark::Begin | Mark::End => thinned == 0,
            Mark::Second => on_step(now, thinned),
        };
        if !wanted || self.kept.last().is_some_and(|last| last.at_ns >= now.at_ns) {
            return;
        }
        self.kept.push(now.clone());
        if self.kept.len() > KEPT_MAX {
            self.thinned += 1;
            let thinned = self.thinned;
            self.kept.retain(|snapshot| on_step(snapshot, thinned));
        }
    }

    /// Puts the snapshots where they belong; false if the run never passed its gate.
    fn place(&mut self, data: &mut RunData) -> bool {
        let (Some(gate), Some(last)) = (self.gate.take(), self.last.take()) else {
            return false;
        };
        if self.begin.is_none() {
            data.warnings.push(
                "The run ended during its warm-up: the figures are of the warm-up, not of a measured window."
                    .to_owned(),
            );
        }
        let reason = if self.drained.is_some() {
            "recovered: the run had ended, but its record was not written".to_owned()
        } else {
            let seconds = last.at_ns / NS_PER_S;
            format!("recovered: the run was killed, its last whole second is {seconds}")
        };
        data.verdict = Verdict::Incomplete(reason);
        data.begin = self.begin.take().unwrap_or_else(|| gate.clone());
        data.end = self.end.take().unwrap_or_else(|| last.clone());
        data.drained = self.drained.take().unwrap_or(last);
        data.gate = gate;
        data.series = std::mem::take(&mut self.kept);
        true
    }
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

    fn placed(readings: Vec<(Mark, Snapshot)>) -> Option<(RunData, Marks)> {
        let (mut data, mut marks) = (RunData::default(), Marks::default());
        for (mark, snapshot) in readings {
            marks.take(mark, snapshot);
        }
        marks.place(&mut data).then_some((data, marks))
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
        let (data, marks) = placed(readings).expect("it passed its gate");
        let instants: Vec<u64> = data.series.iter().map(|s| s.at_ns / 1_000_000).collect();
        assert_eq!(instants, [1000, 2001, 2500]);
        assert_eq!(
            (data.begin.at_ns, data.end.at_ns),
            (1_000_000_000, 2_500_000_000)
        );
        assert_eq!(data.drained.at_ns, 2_510_000_000);
        assert!(matches!(&data.verdict, Verdict::Incomplete(why) if why.contains("had ended")));
        assert_eq!(marks.series.finish(&data).t_s, [1.0, 2.001, 2.5]);
    }

    #[test]
    fn a_run_killed_during_its_warm_up_says_so() {
        let readings = vec![(Mark::Gate, at(0)), (Mark::Second, at(1000))];
        let (data, _) = placed(readings).expect("it passed its gate");
        assert!(data.warnings[0].contains("warm-up"), "{:?}", data.warnings);
        assert_eq!((data.begin.at_ns, data.end.at_ns), (0, 1_000_000_000));
        assert!(placed(Vec::new()).is_none());
    }

    #[test]
    fn a_long_run_keeps_few_snapshots_and_every_second_of_its_series() {
        let seconds = (1..=4000).map(|s| (Mark::Second, at(s * 1000)));
        let readings = [(Mark::Gate, at(0))].into_iter().chain(seconds).collect();
        let (data, marks) = placed(readings).expect("it passed its gate");
        assert_eq!(data.series.len(), 500);
        assert!(data.series.iter().all(|s| s.at_ns % (8 * NS_PER_S) == 0));
        assert_eq!(marks.series.finish(&data).t_s.len(), 4000);
    }
}
