//! The writer's side: stamps that the witness acknowledges one by one, and what a cut left of them.

use super::info::{Cut, ORDERLY, POWER, PROCESS, RESET};
use super::stamps::{
    BLOCK_BYTES, BLOCKS, Held, Stamp, StampFile, cannot, fill, judge, newest, offset_of, path_in, position_of,
};
use super::witness::{Asked, IN_ORDER, Known, READ_BACK, SERVICE, SILENT, STAMP_BYTES, bytes_of, stamp_of};
use crate::dial;
use crate::peer::frame::PARAMETERS_MAX;
use crate::peer::hello::greet;
use crate::peer::line::{Line, PeerError};
use crate::peer::secret::Secret;
use crate::scratch::failed;
use assay_block::BlockError;
use assay_measure::clock::Clock;
use assay_measure::histogram::Histogram;
use assay_run::engine::EngineError;
use assay_run::host::random_u64;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use std::path::Path;
use std::time::Duration;

/// How the witness is reached.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) patience: Duration,
    pub(super) secret: Option<Secret>,
}

/// What became of a run of stamps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stamped {
    pub(super) path: String,
    pub(super) is_direct: bool,
    /// The witness is this host.
    pub(super) is_here: bool,
    pub(super) count: u64,
    /// Write and sync of each.
    pub(super) latency: Histogram,
    /// Of this session until now.
    pub(super) cuts: Vec<Cut>,
    /// Why it ended early; empty where it did not.
    pub(super) failed: String,
}

/// What each block holds, of which no stamp is one that the witness does not know.
fn read(file: &StampFile, known: &Known) -> Result<Vec<Held>, EngineError> {
    let held = file.read()?;
    match newest(&held).filter(|newest| *newest > known.last + 1) {
        None => Ok(held),
        Some(newest) => Err(EngineError::Unusable(format!(
            "{}: the file has stamp {newest}, and this witness knows of {} only: its journal is older than the file. Was the witness on \
             the host that was cut?",
            file.path.display(),
            known.last
        ))),
    }
}

/// Since when this system runs, as the kernel names it.
fn boot() -> String {
    let told = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    told.map_or_else(|_| String::new(), |text| text.trim().to_owned())
}

impl Link {
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Greets the witness and hears what it knows of a session.
    fn open(
        &self,
        session: u128,
        (is_new, reads_back): (bool, bool),
        stop: &Stop,
    ) -> Result<(Line, Known), EngineError> {
        let mut line = Line::connect(&self.host, self.port, self.patience, stop)?;
        let asked = Asked { session: format!("{session:032x}"), boot: boot(), is_new, reads_back };
        let mut talk = || {
            greet(&mut line, SERVICE, self.secret.as_ref())?;
            line.tell(&asked, "in the parameters")?;
            line.hear::<Known>(PARAMETERS_MAX, "in the answer")
        };
        let known = talk().map_err(|error| error.of(&self.name()))?;
        if known.refused.is_empty() {
            Ok((line, known))
        } else {
            Err(EngineError::Unusable(format!("{}: {}", self.name(), known.refused)))
        }
    }

    /// Writes stamps for so long; the file stays.
    pub(super) fn write(
        &self,
        directory: &Path,
        time: Duration,
        stop: &Stop,
        steps: &dyn Steps,
    ) -> Result<Stamped, EngineError> {
        let found = StampFile::find(directory)?;
        let session = found
            .as_ref()
            .map_or_else(|| (u128::from(random_u64()) << 64) | u128::from(random_u64()), |file| file.session);
        let (mut line, known) = self.open(session, (found.is_none(), false), stop)?;
        let file = match found {
            Some(file) => read(&file, &known).map(|_| file)?,
            None => StampFile::create(directory, session, &|| !stop.requested())?,
        };
        let mut writer = file.writer()?;
        let clock = Clock::real();
        let mut done = Stamped {
            path: file.path.display().to_string(),
            is_direct: writer.is_direct(),
            is_here: is_here(&line),
            cuts: known.cuts.clone(),
            ..Stamped::default()
        };
        let of_disk = |error: BlockError| match error {
            BlockError::Io { what, source, .. } => cannot(what, &file.path, source),
            other => failed(other),
        };
        let (begun, mut told) = (clock.now_ns(), 0);
        let seconds = time.as_secs().max(1) as usize;
        loop {
            let passed = clock.now_ns() - begun;
            let second = ((passed / 1_000_000_000) as usize).min(seconds);
            while told < second {
                told += 1;
                steps.step(told, seconds, "stamps with a witness: cut now");
            }
            if stop.requested() || passed >= time.as_nanos() as u64 {
                break;
            }
            let sequence = known.last + done.count + 1;
            let position = position_of(sequence, BLOCKS);
            let stamp = fill(writer.buffer(), session, sequence, position);
            let start = clock.now_ns();
            writer.write(offset_of(position), BLOCK_BYTES, false).map_err(of_disk)?;
            writer.sync_data().map_err(of_disk)?;
            done.latency.record(clock.now_ns() - start);
            match exchange(&mut line, stamp) {
                Ok(()) => done.count += 1,
                Err(error) => {
                    done.failed = error.to_string();
                    return Ok(done);
                }
            }
        }
        // The end is no cut.
        if let Err(error) = exchange(&mut line, Stamp::default()) {
            done.failed = error.to_string();
        }
        Ok(done)
    }

    /// Reads the stamps back, and has the witness count what is missing.
    pub(super) fn read_back(
        &self,
        directory: &Path,
        said: Option<&'static str>,
        stop: &Stop,
    ) -> Result<Stamped, EngineError> {
        let Some(file) = StampFile::find(directory)? else {
            return Err(EngineError::Unusable(format!(
                "{}: no such file, so there is nothing to read back; after a cut that may be the loss itself: the witness still has \
                 the journal",
                path_in(directory).display()
            )));
        };
        let (mut line, known) = self.open(file.session, (false, true), stop)?;
        let path = file.path.display().to_string();
        let mut done = Stamped { path, is_here: is_here(&line), cuts: known.cuts.clone(), ..Stamped::default() };
        let held = read(&file, &known)?;
        if known.ended == READ_BACK || known.ended.is_empty() {
            return Ok(done);
        }
        let end = end(&known, &boot(), said)?;
        let of_peer = |error: PeerError| error.of(&self.name());
        let mut stamps = vec![0; BLOCKS as usize * STAMP_BYTES];
        line.read(&mut stamps, "in the journal").map_err(of_peer)?;
        let acknowledged: Vec<Stamp> = stamps.chunks_exact(STAMP_BYTES).map(stamp_of).collect();
        let cut = judge(&acknowledged, known.last, &held);
        let cut =
            Cut { end: end.to_owned(), at: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S").to_string(), ..cut };
        line.tell(&cut, "with the result").map_err(of_peer)?;
        done.cuts = line.hear::<Known>(PARAMETERS_MAX, "in the answer").map_err(of_peer)?.cuts;
        Ok(done)
    }
}

/// What the end of the last writing was: what the user says of a restart, or what the witness saw.
pub(super) fn end(known: &Known, boot: &str, said: Option<&'static str>) -> Result<&'static str, EngineError> {
    let restarted = !boot.is_empty() && known.boot != boot;
    match said {
        Some(_) if known.ended == IN_ORDER => {
            Err(EngineError::Usage("--cut: the writer ended by itself, so there was no cut; leave it out".to_owned()))
        }
        Some(_) if !restarted => Err(EngineError::Usage(
            "--cut: this system has not restarted since the last stamp; leave it out".to_owned(),
        )),
        Some(kind) => Ok(kind),
        None if known.ended == IN_ORDER => Ok(ORDERLY),
        // A process that was killed closes its connection; a system that is cut falls silent.
        None if restarted && known.ended == SILENT => Ok(RESET),
        None if restarted => Err(EngineError::Usage(
            "this system has restarted, but the witness does not know what came first: say what the end was, --cut power, --cut reset, or \
             --cut process if the writer was killed before"
                .to_owned(),
        )),
        None => Ok(PROCESS),
    }
}

/// The words of `--cut`.
pub(super) const CUTS: [(&str, Option<&str>); 3] =
    [(POWER, Some(POWER)), (RESET, Some(RESET)), (PROCESS, Some(PROCESS))];

fn is_here(line: &Line) -> bool {
    line.stream().peer_addr().is_ok_and(dial::is_here)
}

/// Sends a stamp and waits until the witness has it.
fn exchange(line: &mut Line, stamp: Stamp) -> Result<(), PeerError> {
    const WHEN: &str = "while it was to acknowledge a stamp";
    line.write(&bytes_of(stamp), WHEN)?;
    let mut answer = [0; 8];
    line.read(&mut answer, WHEN)?;
    if u64::from_le_bytes(answer) == stamp.sequence {
        Ok(())
    } else {
        Err(PeerError::Foreign("it acknowledged another stamp".to_owned()))
    }
}
