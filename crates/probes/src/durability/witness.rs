//! The witness: it keeps what was acknowledged where the cut does not reach.
//!
//! After the greeting of [`crate::peer`] the writer says what it is about ([`Asked`]) and hears what the journal knows ([`Known`]). To
//! write, it sends a stamp of 16 bytes (sequence u64 | position u32 | checksum u32, little-endian) and waits for its sequence (u64), again
//! and again; sequence 0 is the end. To read back, it hears the last stamp of every place, and tells what it found ([`Cut`]).

use super::info::Cut;
use super::options;
use super::stamps::{BLOCKS, Stamp};
use crate::peer::asked;
use crate::peer::frame::PARAMETERS_MAX;
use crate::peer::hello::{Service, welcome};
use crate::peer::line::{Line as Peer, PeerError};
use crate::peer::listen::{Listener, Places};
use crate::peer::secret::Secret;
use assay_measure::figures::figures;
use assay_measure::locked::locked;
use assay_run::dataset::lines::text;
use assay_run::engine::{EngineError, Line};
use assay_run::probe::{Request, Serving};
use assay_run::stop::Stop;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

pub(super) const SERVICE: Service = Service { name: "witness", version: 1, started_by: "assay durability witness" };
pub(super) const STAMP_BYTES: usize = 16;
/// A writer that says nothing for so long is cut off: longer than a disk thinks about a flush.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a session is waited for whose last writer has gone and may be back before its end is kept here.
const PUT_AWAY: Duration = Duration::from_secs(1);
const WRITERS: usize = 16;
/// Journals in a directory, and ends that one keeps: what strangers can fill is bounded.
const JOURNALS: usize = 64;
const CUTS: usize = 200;
/// Bytes of a journal before its stamps.
const HEAD_BYTES: usize = 64 << 10;
const WHILE_STAMPING: &str = "while stamps were expected";
const ENDING: &str = ".journal";
const BEGINNING: &str = "assay-witness-";

/// What a writer wants.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) session: String,
    /// Of the writer's system, as it is since it started.
    pub(super) boot: String,
    /// A session that begins: only that makes a journal.
    pub(super) is_new: bool,
    pub(super) reads_back: bool,
}

/// What the journal knows, as the witness tells it and keeps it.
#[figures]
pub(super) struct Known {
    /// Why it will not; empty where it will.
    pub(super) refused: String,
    pub(super) session: String,
    /// The last sequence that was acknowledged.
    pub(super) last: u64,
    pub(super) boot: String,
    /// How the last writing ended: [`WRITING`] and the words below it.
    pub(super) ended: String,
    pub(super) cuts: Vec<Cut>,
}

/// The witness itself was cut off meanwhile.
pub(super) const WRITING: &str = "writing";
pub(super) const IN_ORDER: &str = "in order";
pub(super) const CLOSED: &str = "connection closed";
pub(super) const SILENT: &str = "silence";
pub(super) const STOPPED: &str = "the witness was stopped";
pub(super) const READ_BACK: &str = "read back";

impl Known {
    /// Whether something was acknowledged that nobody has read back after an end that was none.
    pub(super) fn is_open(&self) -> bool {
        ![IN_ORDER, READ_BACK, ""].contains(&self.ended.as_str())
    }
}

pub(super) fn bytes_of(stamp: Stamp) -> [u8; STAMP_BYTES] {
    let mut bytes = [0; STAMP_BYTES];
    bytes[..8].copy_from_slice(&stamp.sequence.to_le_bytes());
    bytes[8..12].copy_from_slice(&stamp.position.to_le_bytes());
    bytes[12..].copy_from_slice(&stamp.checksum.to_le_bytes());
    bytes
}

pub(super) fn stamp_of(bytes: &[u8]) -> Stamp {
    let mut sequence = [0; 8];
    sequence.copy_from_slice(&bytes[..8]);
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Stamp { sequence: u64::from_le_bytes(sequence), position: word(8), checksum: word(12) }
}

/// What is kept of a session: a head of JSON, and behind it the last stamp of every place.
struct Journal {
    file: File,
    known: Known,
    stamps: Vec<Stamp>,
}

impl Journal {
    /// Opens it, or makes one where a new session may be; otherwise says why not.
    fn open(directory: &Path, asked: &Asked) -> Result<Self, String> {
        let is_name = asked.session.len() == 32 && asked.session.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_name {
            return Err("no such session can be".to_owned());
        }
        let path = directory.join(format!("{BEGINNING}{}{ENDING}", asked.session));
        let cannot = |error: io::Error| format!("the witness cannot use {}: {error}", path.display());
        match File::options().read(true).write(true).open(&path) {
            Ok(file) => Self::read(file, asked)
                .map_err(cannot)?
                .ok_or_else(|| format!("{}: no journal of this session", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound && asked.is_new => {
                let names = std::fs::read_dir(directory).map_err(cannot)?.filter_map(Result::ok);
                let is_journal = |name: &str| name.starts_with(BEGINNING) && name.ends_with(ENDING);
                if names.filter(|entry| entry.file_name().to_str().is_some_and(is_journal)).count() >= JOURNALS {
                    return Err(format!(
                        "there are {JOURNALS} journals in {}: remove those that nobody needs any more",
                        directory.display()
                    ));
                }
                let file = File::options().read(true).write(true).create_new(true).open(&path).map_err(cannot)?;
                let known = Known { session: asked.session.clone(), ..Known::default() };
                let mut made = Self { file, known, stamps: Vec::new() };
                made.forget().map_err(cannot)?;
                Ok(made)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Err(format!(
                "this witness has no journal of session {} in {}: name the witness and the --journal that acknowledged its stamps",
                asked.session,
                directory.display()
            )),
            Err(error) => Err(cannot(error)),
        }
    }

    fn read(file: File, asked: &Asked) -> io::Result<Option<Self>> {
        let mut head = vec![0; HEAD_BYTES];
        let mut stamps = vec![0; BLOCKS as usize * STAMP_BYTES];
        if !file.metadata()?.is_file() || file.metadata()?.len() != (head.len() + stamps.len()) as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut head, 0)?;
        file.read_exact_at(&mut stamps, HEAD_BYTES as u64)?;
        let end = head.iter().position(|byte| *byte == 0).unwrap_or(head.len());
        let known: Option<Known> = serde_json::from_slice(&head[..end]).ok();
        let Some(mut known) = known.filter(|known| known.session == asked.session) else {
            return Ok(None);
        };
        let stamps: Vec<Stamp> = stamps.chunks_exact(STAMP_BYTES).map(stamp_of).collect();
        known.last = stamps.iter().map(|stamp| stamp.sequence).chain([known.last]).max().unwrap_or_default();
        Ok(Some(Self { file, known, stamps }))
    }

    fn keep(&mut self) -> io::Result<()> {
        let mut head = serde_json::to_vec(&self.known)?;
        head.resize(HEAD_BYTES.max(head.len() + 1), 0);
        if head.len() > HEAD_BYTES {
            return Err(io::Error::other("the journal is full"));
        }
        self.file.write_all_at(&head, 0)
    }

    /// Starts again behind what was read back.
    fn forget(&mut self) -> io::Result<()> {
        self.stamps = vec![Stamp::default(); BLOCKS as usize];
        self.keep()?;
        self.file.write_all_at(&vec![0; BLOCKS as usize * STAMP_BYTES], HEAD_BYTES as u64)
    }

    fn ended(&mut self, how: &str) -> io::Result<()> {
        how.clone_into(&mut self.known.ended);
        self.keep()
    }

    /// Takes a stamp, if it is the next.
    fn add(&mut self, stamp: Stamp) -> Result<(), String> {
        if stamp.sequence != self.known.last + 1 || stamp.position >= BLOCKS {
            return Err(format!(
                "stamp {} at {} is not the one after {}",
                stamp.sequence, stamp.position, self.known.last
            ));
        }
        let at = HEAD_BYTES + stamp.position as usize * STAMP_BYTES;
        self.file
            .write_all_at(&bytes_of(stamp), at as u64)
            .map_err(|error| format!("cannot write the journal: {error}"))?;
        self.stamps[stamp.position as usize] = stamp;
        self.known.last = stamp.sequence;
        Ok(())
    }
}

/// What the witness was told.
pub(super) struct Witness {
    bind: String,
    port: u16,
    directory: PathBuf,
    secret: Option<Secret>,
    /// Sessions that somebody has at the moment.
    open: Mutex<BTreeSet<String>>,
    put_away: Condvar,
}

impl Witness {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let directory = asked::directory(request, &options::JOURNAL)?;
        Ok(Self {
            bind: request.option(&options::BIND).to_owned(),
            port: request.number(&options::PORT, 0..=u16::MAX)?.unwrap_or_default(),
            directory: directory.unwrap_or_default(),
            secret: asked::secret(request, &options::SECRET_FILE)?,
            open: Mutex::default(),
            put_away: Condvar::new(),
        })
    }

    /// Serves one connection; what happened, in words.
    fn one(&self, peer: &mut Peer, places: &Places) -> Result<String, PeerError> {
        let mut place = None;
        welcome(peer, SERVICE, self.secret.as_ref(), || {
            place = places.take();
            place.is_some()
        })?;
        let asked: Asked = peer.hear(PARAMETERS_MAX, "in the parameters")?;
        if !self.takes(&asked.session) {
            return refuse(
                peer,
                format!(
                    "somebody else has session {} open; a writer that has gone without a word has it for {} s more",
                    asked.session,
                    SILENCE.as_secs()
                ),
            );
        }
        let served = self.session(peer, &asked);
        self.gives(&asked.session);
        served
    }

    /// Takes a session for one connection, if nobody else has it.
    fn takes(&self, session: &str) -> bool {
        let others = self.put_away.wait_timeout_while(locked(&self.open), PUT_AWAY, |open| open.contains(session));
        let (mut open, _) = others.unwrap_or_else(PoisonError::into_inner);
        open.insert(session.to_owned())
    }

    fn gives(&self, session: &str) {
        locked(&self.open).remove(session);
        self.put_away.notify_all();
    }

    fn session(&self, peer: &mut Peer, asked: &Asked) -> Result<String, PeerError> {
        let mut journal = match Journal::open(&self.directory, asked) {
            Ok(journal) => journal,
            Err(why) => return refuse(peer, why),
        };
        if journal.known.cuts.len() >= CUTS {
            return refuse(peer, format!("the journal of this session has {CUTS} ends: begin a new session"));
        }
        if asked.reads_back {
            return read_back(peer, &mut journal);
        }
        if journal.known.is_open() {
            return refuse(
                peer,
                "what was acknowledged before has not been read back: do that first (--resume)".to_owned(),
            );
        }
        peer.tell(&journal.known, "in the answer")?;
        let first = journal.known.last;
        asked.boot.clone_into(&mut journal.known.boot);
        let own = |error: io::Error| PeerError::Own(format!("cannot write the journal: {error}"));
        journal.ended(WRITING).map_err(own)?;
        let error = stamps(peer, &mut journal).err();
        let how = match &error {
            None => IN_ORDER,
            Some(PeerError::Silent(..) | PeerError::Late(..)) => SILENT,
            Some(PeerError::Stopped | PeerError::Own(_)) => STOPPED,
            Some(_) => CLOSED,
        };
        journal.ended(how).map_err(own)?;
        let told = format!("session {}: {} stamps, then: {how}", asked.session, journal.known.last - first);
        match error {
            Some(error @ (PeerError::Foreign(_) | PeerError::Own(_))) => Err(error),
            _ => Ok(told),
        }
    }
}

fn refuse(peer: &mut Peer, why: String) -> Result<String, PeerError> {
    peer.tell(&Known { refused: why.clone(), ..Known::default() }, "in the answer")?;
    Err(PeerError::Refused(format!("refused: {why}")))
}

/// Takes stamps until the writer ends.
fn stamps(peer: &mut Peer, journal: &mut Journal) -> Result<(), PeerError> {
    loop {
        let mut bytes = [0; STAMP_BYTES];
        // Who sends a byte now and then holds nobody for longer either.
        peer.lasts(SILENCE);
        peer.read(&mut bytes, WHILE_STAMPING)?;
        let stamp = stamp_of(&bytes);
        if stamp.sequence > 0 {
            journal.add(stamp).map_err(PeerError::Foreign)?;
        }
        peer.write(&stamp.sequence.to_le_bytes(), WHILE_STAMPING)?;
        if stamp.sequence == 0 {
            return Ok(());
        }
    }
}

/// Tells what was acknowledged, hears what became of it, and starts again behind it.
fn read_back(peer: &mut Peer, journal: &mut Journal) -> Result<String, PeerError> {
    const WHEN: &str = "while a file was read back";
    peer.tell(&journal.known, WHEN)?;
    if journal.known.ended == READ_BACK || journal.known.ended.is_empty() {
        return Ok(format!("session {}: asked", journal.known.session));
    }
    let stamps: Vec<u8> = journal.stamps.iter().flat_map(|stamp| bytes_of(*stamp)).collect();
    peer.write(&stamps, WHEN)?;
    peer.lasts(READING);
    let cut: Cut = peer.hear(PARAMETERS_MAX, WHEN)?;
    let told = format!("session {}: {} end, {} missing", journal.known.session, cut.end, cut.missing());
    journal.known.cuts.push(cut);
    READ_BACK.clone_into(&mut journal.known.ended);
    journal.forget().map_err(|error| PeerError::Own(format!("cannot write the journal: {error}")))?;
    peer.tell(&journal.known, WHEN)?;
    Ok(told)
}

/// How long a file of stamps takes to be read at most.
const READING: Duration = SILENCE;

impl Serving for Witness {
    fn plan(&self) -> Vec<Line> {
        let who = match &self.secret {
            Some(_) => "writers that know the secret of --secret-file",
            None => "anyone who reaches it (--secret-file FILE limits this to writers that know a secret)",
        };
        vec![
            text("listens", "listens on", format!("{} port {}", self.bind, self.port)),
            text("serves", "serves", who),
            text("journals", "keeps journals in", format!("{}, {JOURNALS} at most", self.directory.display())),
        ]
    }

    fn serve(&self, stop: &Stop, say: &(dyn Fn(&str) + Sync)) -> Result<(), EngineError> {
        let listener = Listener::bind(&self.bind, self.port)?;
        say(&format!("The witness listens on {}; Ctrl-C ends it.", listener.address()));
        let places = Places::new(WRITERS);
        listener.serve(WRITERS, SILENCE, stop, say, |mut peer| {
            let name = peer.peer().to_owned();
            match self.one(&mut peer, &places) {
                Ok(told) => say(&format!("{name}: {told}")),
                Err(error) => say(&format!("{name}: {error}")),
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_may_be_back_before_the_end_of_its_session_is_kept() {
        let witness = Witness {
            bind: String::new(),
            port: 0,
            directory: PathBuf::new(),
            secret: None,
            open: Mutex::default(),
            put_away: Condvar::new(),
        };
        assert!(witness.takes("mine") && witness.takes("another"));
        assert!(!witness.takes("mine"), "somebody has it");
        std::thread::scope(|scope| {
            let back = scope.spawn(|| witness.takes("mine"));
            witness.gives("mine");
            assert!(back.join().unwrap());
        });
    }
}
