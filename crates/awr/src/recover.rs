//! Rebuilds a run without a record from its series, line by line, so that a day of seconds takes no more memory than a
//! minute.

use crate::record::SeriesBuilder;
use assay_measure::clock::NS_PER_S;
use assay_measure::fleet::{Fleet, HostHeard};
use assay_measure::record::bounds;
use assay_measure::series::{SeriesEntry, SeriesReader};
use assay_measure::snapshot::{Mark, RunData, Snapshot, Verdict};
use assay_measure::timeline;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::{self, BufRead, Read as _};

/// What a killed run had measured up to its last whole second.
pub struct Recovered {
    /// The run without its per-second snapshots; the nearest existing snapshot replaces a missing one.
    pub data: RunData,
    /// Every second of it.
    pub series: SeriesBuilder,
}

/// Version of the series file's header.
pub const SERIES_SCHEMA: &str = "assay-series/1";
/// A longer line is none of ours, bytes.
const LONGEST_LINE: u64 = 64 << 20;

/// First line of a series: what is known before the gate.
#[derive(Debug, Deserialize, Serialize)]
pub struct Header {
    /// [`SERIES_SCHEMA`].
    pub schema: String,
    /// The run without its snapshots.
    pub run: RunData,
}

/// Why nothing can be rebuilt.
#[derive(Debug)]
pub enum Unrecovered {
    /// The series cannot be read.
    Unreadable(io::Error),
    /// It holds no run; what is wrong, in a sentence.
    Bad(String),
}

impl From<io::Error> for Unrecovered {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// Whether a series begins as ours do.
pub fn is_ours(series: impl BufRead) -> bool {
    Lines::new(series).header().is_ok()
}

/// Whether a series is of the run with this id.
pub fn is_of_run(series: impl BufRead, id: &str) -> bool {
    Lines::new(series).header().is_ok_and(|header| header.run.run_id == id)
}

/// Rebuilds a run from the lines of its series.
///
/// # Errors
/// It cannot be read, has no header of ours, or ends before the gate.
pub fn recover(series: impl BufRead) -> Result<Recovered, Unrecovered> {
    let mut lines = Lines::new(series);
    let mut run = Following::new(lines.header()?);
    while let Some(line) = lines.next()? {
        if let Err(damage) = run.take(&line) {
            run.data.warnings.extend(lines.damage(&damage)?);
            break;
        }
    }
    run.ended().ok_or_else(|| bad("no snapshot is complete: the run never passed its gate"))
}

/// A run as far as its series tells, line by line.
pub struct Following {
    data: RunData,
    reader: SeriesReader,
    marks: Marks,
    /// Of a fleet: its hosts now, and at the begin of the measured window.
    hosts: Vec<HostHeard>,
    hosts_at_begin: Vec<HostHeard>,
}

impl Following {
    /// The run of a header.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            data: header.run,
            reader: SeriesReader::default(),
            marks: Marks::default(),
            hosts: Vec::new(),
            hosts_at_begin: Vec::new(),
        }
    }

    /// The run of the first line of a series.
    ///
    /// # Errors
    /// It is none of ours.
    pub fn begin(line: &[u8]) -> Result<Self, Unrecovered> {
        Lines::new(line).header().map(Self::new)
    }

    /// Takes the next line.
    ///
    /// # Errors
    /// What is wrong with it; nothing after it can be taken.
    pub fn take(&mut self, line: &[u8]) -> Result<(), String> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if bounds::are_broken(line) {
            return Err(bounds::WHY.to_owned());
        }
        match self.reader.line(line).map_err(|error| error.to_string())? {
            SeriesEntry::Snapshot(reading) => {
                if reading.mark == Mark::Begin {
                    self.hosts_at_begin.clone_from(&self.hosts);
                }
                self.marks.take(reading.mark, reading.snapshot);
            }
            SeriesEntry::Hosts(hosts) => self.hosts = hosts,
            SeriesEntry::Activity(part) => {
                self.marks.series.activity(part.clone());
                self.data.activity.get_or_insert_default().append(part);
            }
            SeriesEntry::Event(event) => timeline::note(&mut self.data.timeline, event),
            SeriesEntry::Unknown => {}
        }
        Ok(())
    }

    /// The last snapshot.
    #[must_use]
    pub fn latest(&self) -> Option<&Snapshot> {
        self.marks.last.as_ref()
    }

    /// The hosts of a fleet at the last snapshot; none of any other run.
    #[must_use]
    pub fn hosts(&self) -> &[HostHeard] {
        &self.hosts
    }

    /// The hosts with their rates in the window, and after `since`; `None` without a fleet.
    #[must_use]
    pub fn fleets(&self, since: &[HostHeard]) -> Option<[Fleet; 2]> {
        let of = |since: &[HostHeard]| Fleet::going(since, &self.hosts);
        (!self.hosts.is_empty()).then(|| [of(&self.hosts_at_begin), of(since)])
    }

    /// The run up to now, and what it did after `since`, a snapshot of it; `None` before the gate.
    #[must_use]
    pub fn so_far(&self, since: &Snapshot) -> Option<(Recovered, RunData)> {
        let gate = self.marks.gate.as_ref()?;
        let last = self.marks.last.as_ref()?;
        let begin = self.marks.begin.as_ref();
        let phase = if begin.is_none() { "the warm-up goes on" } else { "the run goes on" };
        let known = RunData {
            verdict: Verdict::Incomplete(format!("{phase}, at second {}", last.at_ns / NS_PER_S)),
            end: self.marks.end.as_ref().unwrap_or(last).clone(),
            drained: last.clone(),
            gate: gate.clone(),
            ..self.data.clone()
        };
        let recent = RunData { begin: since.clone(), end: last.clone(), ..known.clone() };
        let whole = RunData { begin: begin.unwrap_or(gate).clone(), ..known };
        Some((Recovered { data: whole, series: self.marks.series.clone() }, recent))
    }

    /// The run, which has ended.
    fn ended(mut self) -> Option<Recovered> {
        self.marks.place(&mut self.data).then_some(Recovered { data: self.data, series: self.marks.series })
    }
}

fn bad(what: impl Into<String>) -> Unrecovered {
    Unrecovered::Bad(what.into())
}

/// The lines of a series with their numbers.
struct Lines<R> {
    series: R,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    fn new(series: R) -> Self {
        Self { series, number: 0 }
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, Unrecovered> {
        let mut line = Vec::new();
        let mut bounded = self.series.by_ref().take(LONGEST_LINE);
        let read = bounded.read_until(b'\n', &mut line)?;
        self.number += 1;
        if read as u64 == LONGEST_LINE && line.last() != Some(&b'\n') {
            let number = self.number;
            return Err(bad(format!("line {number} is longer than 64 MiB")));
        }
        Ok((read > 0).then_some(line))
    }

    fn header(&mut self) -> Result<Header, Unrecovered> {
        let line = self.next()?.unwrap_or_default();
        if line.last() != Some(&b'\n') {
            return Err(bad("the header is incomplete: the run never began"));
        }
        if bounds::are_broken(&line) {
            return Err(bad(format!("line 1 is not the header of a series: {}", bounds::WHY)));
        }
        let header: Header = serde_json::from_slice(&line)
            .map_err(|error| bad(format!("line 1 is not the header of a series: {error}")))?;
        if header.schema != SERIES_SCHEMA {
            return Err(bad(format!("its schema is {}, but this version reads {SERIES_SCHEMA}", header.schema)));
        }
        Ok(header)
    }

    /// What to say of a line that could not be read: nothing of the last one, which a kill cuts off.
    fn damage(&mut self, error: &dyn Display) -> Result<Option<String>, Unrecovered> {
        let number = self.number;
        while let Some(line) = self.next()? {
            if !line.trim_ascii().is_empty() {
                return Ok(Some(format!(
                    "The series is damaged at line {number} ({error}): everything after this line is lost."
                )));
            }
        }
        Ok(None)
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
        self.last = Some(now);
    }

    /// Puts the snapshots where they belong; false if the run never passed its gate.
    fn place(&mut self, data: &mut RunData) -> bool {
        let (Some(gate), Some(last)) = (self.gate.take(), self.last.take()) else {
            return false;
        };
        if self.begin.is_none() {
            data.warnings.push(
                "The run ended during its warm-up: the figures cover the warm-up, not a measured window.".to_owned(),
            );
        }
        let reason = if self.drained.is_some() {
            "recovered: the run had ended, but its record had not been written".to_owned()
        } else {
            let seconds = last.at_ns / NS_PER_S;
            format!(
                "recovered: the series ends before the end of the run, at second {seconds}: the run was killed, or \
                 the disk was full"
            )
        };
        data.verdict = Verdict::Incomplete(reason);
        data.begin = self.begin.take().unwrap_or_else(|| gate.clone());
        data.end = self.end.take().unwrap_or_else(|| last.clone());
        data.drained = self.drained.take().unwrap_or(last);
        data.gate = gate;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::series::{SeriesWriter, SideLine};

    fn at(ms: u64) -> Snapshot {
        Snapshot { at_ns: ms * 1_000_000, ..Snapshot::default() }
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
        assert_eq!((data.begin.at_ns, data.end.at_ns), (1_000_000_000, 2_500_000_000));
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
    fn a_run_that_goes_on_has_a_record_of_all_and_one_of_its_last_seconds() {
        let header = Header { schema: SERIES_SCHEMA.to_owned(), run: RunData::default() };
        let header = serde_json::to_string(&header).expect("it can be written");
        let Ok(mut run) = Following::begin(format!("{header}\n").as_bytes()) else { panic!("a header of ours") };
        assert!(run.so_far(&at(0)).is_none(), "it has not passed its gate");
        for (mark, ms) in [(Mark::Gate, 0), (Mark::Begin, 500), (Mark::Second, 1000), (Mark::Second, 2000)] {
            run.marks.take(mark, at(ms));
        }
        let (whole, recent) = run.so_far(&at(1000)).expect("it goes on");
        let span = |data: &RunData| (data.begin.at_ns / 1_000_000, data.end.at_ns / 1_000_000);
        assert_eq!((span(&whole.data), span(&recent)), ((500, 2000), (1000, 2000)));
        assert!(matches!(&whole.data.verdict, Verdict::Incomplete(why) if why == "the run goes on, at second 2"));
        assert!(run.take(b"no line of ours\n").is_err());
    }

    #[test]
    fn hosts_have_their_rates_of_the_window_and_of_the_last_seconds() {
        let mut run = Following::new(Header { schema: SERIES_SCHEMA.to_owned(), run: RunData::default() });
        assert_eq!(run.fleets(&[]), None, "it is of one host");
        let mut lines = SeriesWriter::new("fleet");
        let mut recent = Vec::new();
        for (mark, second, ops_count) in [(Mark::Begin, 1, 50), (Mark::Second, 5, 90), (Mark::Second, 6, 150)] {
            recent = run.hosts().to_vec();
            let host = HostHeard { at_ns: second * NS_PER_S, ops_count, ..HostHeard::default() };
            run.take(SideLine::hosts("fleet", vec![host]).line().as_bytes()).expect("a line of ours");
            run.take(lines.line(mark, &at(1000 * second)).as_bytes()).expect("a line of ours");
        }
        let rates = run.fleets(&recent).expect("a fleet").map(|fleet| fleet.hosts[0].ops_per_s.value());
        assert_eq!(rates, [Some(20.0), Some(60.0)]);
    }

    #[test]
    fn a_long_run_keeps_no_snapshots_and_every_second_of_its_series() {
        let seconds = (1..=4000).map(|s| (Mark::Second, at(s * 1000)));
        let readings = [(Mark::Gate, at(0))].into_iter().chain(seconds).collect();
        let (data, marks) = placed(readings).expect("it passed its gate");
        assert_eq!(data.series.len(), 0);
        assert_eq!(marks.series.finish(&data).t_s.len(), 4000);
    }
}
