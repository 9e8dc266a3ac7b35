//! The standby: it receives messages, writes them as requested, acknowledges them, and reports how long each part took.
//!
//! Each connection has its own thread and its own log, which is removed with the connection.

use super::log::{APPLY_MOST_US, Log, PAYLOAD_AT, Shape, Slowed, Took};
use super::options;
use super::pack::{Compress, Unpacker};
use super::wire::{
    Ack, END, Found, HEADER_BYTES, Header, MESSAGE_MAX, PATIENCE_LEAST, Ready, SERVICE, Wanted, WriteMode, saturated,
};
use crate::crew::effective_mhz;
use crate::host::{CpuTimes, thread_times};
use crate::peer::asked;
use crate::peer::frame::PARAMETERS_MAX;
use crate::peer::hello::welcome;
use crate::peer::line::{Line as Peer, PeerError, is_wait};
use crate::peer::listen::{Listener, Places};
use crate::peer::secret::Secret;
use crate::scratch::left_behind;
use assay_block::device_facts;
use assay_block::socket::set_wake_bytes;
use assay_measure::clock::Clock;
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::Fact;
use assay_measure::units::{duration, size};
use assay_run::dataset::lines::text;
use assay_run::engine::{EngineError, Line};
use assay_run::host;
use assay_run::probe::{Request, Serving};
use assay_run::stop::Stop;
use rustix::net::RecvFlags;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A client that has not greeted and said what it wants by then is none.
const GREETING: Duration = PATIENCE_LEAST;
const WHILE_READY: &str = "while messages were expected";
/// How often a client that waits for the log hears of it.
const PREPARING: Duration = Duration::from_millis(500);
/// How often an ASYNC client hears what is consumed, and after how many bytes at the latest.
const PROGRESS_NS: u64 = 250_000_000;
const PROGRESS_BYTES: u64 = 64 << 20;
/// Bytes of a streamed message that wake the server: each wake costs the sender more than copying a segment.
const WAKE_BYTES: usize = 256 << 10;
/// What the kernel delivers at once at most: below it there is nothing to be saved.
const SEGMENT_BYTES: usize = 64 << 10;

/// What the server was told.
pub(super) struct Server {
    bind: String,
    port: u16,
    allow_write: Option<PathBuf>,
    max_log: u64,
    max_time: Duration,
    clients: usize,
    secret: Option<Secret>,
    slowed: Slowed,
}

impl Server {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let allow_write = asked::directory(request, &options::ALLOW_WRITE)?;
        Ok(Self {
            bind: request.option(&options::BIND).to_owned(),
            port: request.number(&options::PORT, 0..=u16::MAX)?.unwrap_or_default(),
            allow_write,
            max_log: options::size_bytes(request, &options::MAX_LOG)?,
            max_time: options::duration(request, &options::MAX_TIME)?,
            clients: request.number(&options::CLIENTS, 1..=1024)?.unwrap_or_default(),
            secret: asked::secret(request, &options::SECRET_FILE)?,
            slowed: slowed(request)?,
        })
    }
}

impl Server {
    /// One that allows everything, for parameters of strangers.
    pub(super) fn of_strangers() -> Self {
        Self {
            bind: String::new(),
            port: 0,
            allow_write: Some(PathBuf::from(".")),
            max_log: 4 << 30,
            max_time: Duration::from_secs(86_400),
            clients: 1,
            secret: None,
            slowed: Slowed::default(),
        }
    }
}

/// The log that is wanted, of parameters that are not refused.
fn shape(wanted: &Wanted) -> Shape {
    Shape {
        mode: wanted.write,
        falls_back: wanted.falls_back,
        length: wanted.length,
        block: wanted.log_block,
        bytes: wanted.log_bytes,
    }
}

fn slowed(request: &Request) -> Result<Slowed, EngineError> {
    let each = options::duration(request, &options::SLOW_WRITE)?;
    let limit = request.read(&options::LIMIT_WRITES, |text| {
        let (rate, burst) = text.split_once(',').unwrap_or((text, "1"));
        let of = |word: &str| word.parse().ok().filter(|number: &f64| *number >= 1.0);
        of(rate).zip(of(burst)).ok_or("RATE or RATE,BURST")
    })?;
    Ok(Slowed { each, limit })
}

impl Serving for Server {
    fn plan(&self) -> Vec<Line> {
        let allowed = match &self.allow_write {
            Some(dir) => format!("{}, up to {} each", dir.display(), size(self.max_log)),
            None => "nowhere (--allow-write DIR permits it)".to_owned(),
        };
        let who = match &self.secret {
            Some(_) => "clients that know the secret of --secret-file",
            None => "anyone who reaches it (--secret-file FILE limits this to clients that know a secret)",
        };
        let most = self.max_time.as_nanos() as u64;
        let mut lines = vec![
            text("listens", "listens on", format!("{} port {}", self.bind, self.port)),
            text("serves", "serves", who),
            text("connections", "connections at once", self.clients.to_string()),
            text("logs", "clients may have logs written in", allowed),
            text("longest", "longest test", duration(most)),
        ];
        lines.extend(self.allow_write.as_deref().and_then(left_behind));
        lines
    }

    fn serve(&self, stop: &Stop, say: &(dyn Fn(&str) + Sync)) -> Result<(), EngineError> {
        let listener = Listener::bind(&self.bind, self.port)?;
        say(&format!("OraTcpTest server started. It listens on {}; Ctrl-C ends it.", listener.address()));
        let places = Places::new(self.clients);
        listener.serve(self.clients, GREETING, stop, say, |mut peer| {
            let name = peer.peer().to_owned();
            match self.one(&mut peer, &places, stop) {
                Ok(told) => say(&format!("{name}: {told}")),
                Err(error) => say(&format!("{name}: {error}")),
            }
        });
        Ok(())
    }
}

impl Server {
    /// Serves one connection from greeting to end; what happened, in words.
    fn one(&self, peer: &mut Peer, places: &Places, stop: &Stop) -> Result<String, PeerError> {
        let mut place = None;
        welcome(peer, SERVICE, self.secret.as_ref(), || {
            place = places.take();
            place.is_some()
        })?;
        let wanted: Wanted = peer.hear(PARAMETERS_MAX, "in the parameters")?;
        if let Some(refused) = self.refused(&wanted) {
            let ready = Ready { refused: refused.clone(), ..Ready::default() };
            peer.tell(&ready, "in the answer")?;
            return Err(PeerError::Refused(format!("refused: {refused}")));
        }
        let clock = Clock::real();
        let made = self.prepare(peer, &wanted, &clock, stop);
        let (mut log, ready) = match made {
            Ok(Some(made)) => made,
            Ok(None) => return Err(PeerError::Gone("while its log was written".to_owned())),
            Err(error) => {
                peer.lasts(GREETING);
                let ready = Ready { refused: error.to_string(), ..Ready::default() };
                peer.tell(&ready, "in the answer")?;
                return Err(PeerError::Refused(error.to_string()));
            }
        };
        peer.lasts(wanted.longest());
        peer.tell(&ready, "in the answer")?;
        let mut session = Session {
            peer,
            is_wanted: &mut |silent| place.as_mut().is_some_and(|place| place.is_wanted(silent)),
            wanted: &wanted,
            clock: &clock,
            stop,
            found: Found::default(),
            began_ns: 0,
            wake_bytes: 1,
        };
        let (cpu, times) = (CpuTimes::read(), thread_times());
        let ended = session.messages(&mut log);
        let failed = match ended {
            Ok(()) => String::new(),
            Err(Ended::Log(error)) => error.to_string(),
            Err(Ended::Peer(PeerError::Stopped)) => "the standby was stopped".to_owned(),
            Err(Ended::Peer(error)) => return Err(error),
        };
        if !failed.is_empty() {
            // Who waits for an acknowledgement learns that none comes.
            session.say_end()?;
        }
        let mut found = session.found;
        let spent = thread_times().since(&times);
        (found.cpu_ns, found.run_delay_ns) = (spent.cpu_ns, spent.run_delay_ns);
        let now = CpuTimes::read();
        found.steal_pct = cpu.zip(now).and_then(|(then, now)| now.steal_pct(&then));
        found.busy_pct = cpu.zip(now).and_then(|(then, now)| now.busy_pct(&then));
        found.cpu_mhz = effective_mhz(&clock);
        // Gone before the client hears of the end.
        drop(log);
        found.failed = failed;
        peer.tell(&found, "in the result")?;
        if found.failed.is_empty() {
            Ok(format!("{} messages of up to {}", found.messages, size(wanted.length)))
        } else {
            Ok(format!("ended: {}", found.failed))
        }
    }

    /// Why this is not served.
    pub(super) fn refused(&self, wanted: &Wanted) -> Option<String> {
        let time = Duration::try_from_secs_f64(wanted.seconds).unwrap_or(Duration::MAX);
        if wanted.apply_us > APPLY_MOST_US {
            return Some(format!("an apply of {} us is longer than the allowed {APPLY_MOST_US} us", wanted.apply_us));
        }
        if wanted.length > MESSAGE_MAX {
            let (asked, most) = (wanted.length, size(MESSAGE_MAX));
            return Some(format!("a message of {asked} bytes is longer than the allowed {most}"));
        }
        let alone = Duration::from_millis(wanted.alone_ms);
        if time.max(alone) > self.max_time {
            let most = duration(self.max_time.as_nanos() as u64);
            return Some(format!("the test is longer than the allowed {most} (--max-time)"));
        }
        if wanted.write == WriteMode::None {
            return None;
        }
        if self.allow_write.is_none() {
            return Some(
                "this server does not allow writes: start it with --allow-write DIR, or test without \
                --write"
                    .to_owned(),
            );
        }
        if !(512..=1 << 20).contains(&wanted.log_block) || !wanted.log_block.is_power_of_two() {
            return Some(format!("a log block cannot be {} bytes", wanted.log_block));
        }
        let bytes = wanted.log_bytes.max(shape(wanted).log_bytes());
        (bytes > self.max_log).then(|| {
            let (asked, most) = (size(bytes), size(self.max_log));
            format!("a log of {asked} is larger than the allowed {most} (--max-log)")
        })
    }

    /// Writes the log and tells the client how far it is; `None` where the client or the server goes.
    fn prepare(
        &self,
        peer: &mut Peer,
        wanted: &Wanted,
        clock: &Clock,
        stop: &Stop,
    ) -> Result<Option<(Log, Ready)>, EngineError> {
        let mut told = Instant::now();
        let mut goes_on = |log_bytes: u64| {
            let mut is_there = true;
            if told.elapsed() >= PREPARING {
                told = Instant::now();
                peer.lasts(GREETING);
                let ready = Ready { is_preparing: true, log_bytes, ..Ready::default() };
                is_there = peer.tell(&ready, "while the log is written").is_ok();
            }
            is_there && !stop.requested()
        };
        let place = self.allow_write.clone().unwrap_or_default();
        let Some(mut log) = Log::create(&place, shape(wanted), self.slowed, &mut goes_on)? else {
            return Ok(None);
        };
        let mut facts = host::facts();
        let mut warnings = Vec::new();
        if log.mode() != WriteMode::None {
            let device = device_facts(&place);
            if device.is_tmpfs {
                warnings.push(format!(
                    "{} is in memory (tmpfs): the standby's disk figures do not describe a device.",
                    place.display()
                ));
            }
            let lines = device.lines().into_iter();
            facts.extend(lines.map(|(name, value)| Fact::new(name, value)));
        }
        let mut alone = Histogram::new();
        let until = Instant::now() + Duration::from_millis(wanted.alone_ms);
        while goes_on(0) && Instant::now() < until {
            let piece = PREPARING.min(until.saturating_duration_since(Instant::now()));
            alone.merge(&log.alone(wanted.length as usize, piece, clock, stop)?);
        }
        let ready = Ready {
            write: log.mode(),
            write_why: log.why.clone(),
            log: log.path.clone(),
            log_bytes: log.bytes(),
            alone,
            facts,
            warnings,
            ..Ready::default()
        };
        Ok(Some((log, ready)))
    }
}

/// Why no more messages are taken.
enum Ended {
    Peer(PeerError),
    Log(EngineError),
}

impl From<PeerError> for Ended {
    fn from(error: PeerError) -> Self {
        Self::Peer(error)
    }
}

/// One connection after it is ready.
struct Session<'a> {
    peer: &'a mut Peer,
    /// Whether another client needs its place once it has been silent for this long.
    is_wanted: &'a mut dyn FnMut(Duration) -> bool,
    wanted: &'a Wanted,
    clock: &'a Clock,
    stop: &'a Stop,
    found: Found,
    began_ns: u64,
    /// Bytes that wake it.
    wake_bytes: usize,
}

impl Session<'_> {
    /// Takes messages until the client says it was the last.
    fn messages(&mut self, log: &mut Log) -> Result<(), Ended> {
        let (mut acked_ns, mut acked_bytes) = (self.clock.now_ns(), 0);
        let mut packed = match self.wanted.compress {
            Compress::None => None,
            how => {
                let unpacker = Unpacker::new(how).map_err(PeerError::Refused)?;
                Some((vec![0; PAYLOAD_AT + self.wanted.length as usize], unpacker))
            }
        };
        loop {
            if self.stop.requested() {
                return Err(PeerError::Stopped.into());
            }
            let (header, first_ns) = match &mut packed {
                // Read aside, and unpacked to where it is written from.
                Some((buffer, _)) => self.message(buffer)?,
                None => self.message(log.buffer())?,
            };
            let received_ns = self.clock.now_ns();
            if header.is_end {
                return Ok(self.say_end()?);
            }
            let length = match &mut packed {
                Some((buffer, unpacker)) => {
                    let room = &mut log.buffer()[PAYLOAD_AT..][..self.wanted.length as usize];
                    unpacked(header, &buffer[PAYLOAD_AT..], unpacker, room)?
                }
                None => header.length as usize,
            };
            let unpack_ns = match packed {
                Some(_) => saturated(self.clock.now_ns() - received_ns),
                None => 0,
            };
            let took = if header.is_unwritten {
                Took::default()
            } else {
                log.write(length, self.clock).map_err(Ended::Log)?
            };
            let apply_ns = self.apply(header);
            let mut ack = Ack {
                sequence: header.sequence,
                assembly_ns: saturated(received_ns - first_ns),
                write_ns: saturated(took.write_ns),
                sync_ns: saturated(took.sync_ns),
                apply_ns,
                unpack_ns,
                total_ns: 0,
                messages: self.found.messages + 1,
            };
            let now = self.clock.now_ns();
            ack.total_ns = saturated(now - received_ns);
            if !self.wanted.is_async {
                self.acknowledge(&ack)?;
            }
            self.note(header, &ack, (first_ns, now));
            if self.wanted.is_async {
                let bytes = self.found.bytes;
                if now - acked_ns >= PROGRESS_NS || bytes - acked_bytes >= PROGRESS_BYTES {
                    (acked_ns, acked_bytes) = (now, bytes);
                    self.acknowledge(&ack)?;
                }
            }
        }
    }

    /// What a standby that applies would do meanwhile: it keeps a CPU busy.
    fn apply(&self, header: Header) -> u32 {
        if self.wanted.apply_us == 0 || header.is_unwritten {
            return 0;
        }
        let begun = self.clock.now_ns();
        let until = begun + 1000 * self.wanted.apply_us;
        while self.clock.now_ns() < until && !self.stop.requested() {
            std::hint::spin_loop();
        }
        saturated(self.clock.now_ns() - begun)
    }

    fn note(&mut self, header: Header, ack: &Ack, (first_ns, now): (u64, u64)) {
        let found = &mut self.found;
        if self.began_ns == 0 {
            self.began_ns = first_ns;
        }
        found.messages += 1;
        found.bytes += HEADER_BYTES as u64 + u64::from(header.length);
        found.elapsed_ns = now - self.began_ns;
        if header.is_unwritten {
            return;
        }
        found.assembly.record(u64::from(ack.assembly_ns));
        found.total.record(u64::from(ack.total_ns));
        if self.wanted.compress != Compress::None {
            found.unpack.record(u64::from(ack.unpack_ns));
        }
        if self.wanted.write != WriteMode::None {
            found.write.record(u64::from(ack.write_ns));
            found.sync.record(u64::from(ack.sync_ns));
            found.disk.record(ack.disk_ns());
        }
    }

    /// Says that no more acknowledgements come.
    fn say_end(&mut self) -> Result<(), PeerError> {
        self.acknowledge(&Ack { sequence: END, messages: self.found.messages, ..Ack::default() })
    }

    fn acknowledge(&mut self, ack: &Ack) -> Result<(), PeerError> {
        self.peer.write(&ack.bytes(), "while messages came")
    }

    /// One message, its payload at [`PAYLOAD_AT`] of the buffer; when its first byte was there.
    ///
    /// Most messages come with one call: as much is asked for as the longest message has.
    fn message(&mut self, buffer: &mut [u8]) -> Result<(Header, u64), PeerError> {
        const FROM: usize = PAYLOAD_AT - HEADER_BYTES;
        // Behind a message shorter than the longest the next may be, and must stay there.
        let mut wanted = if self.wanted.is_varied { HEADER_BYTES } else { HEADER_BYTES + self.wanted.length as usize };
        let mut done = 0;
        let mut first_ns = 0;
        let mut header = Header::default();
        let mut begun = None;
        loop {
            self.peer.in_time(WHILE_READY)?;
            let lacks = wanted - done;
            let is_streamed = self.wanted.is_async && done >= HEADER_BYTES && lacks >= SEGMENT_BYTES;
            let flags = if done < HEADER_BYTES || is_streamed { RecvFlags::empty() } else { RecvFlags::WAITALL };
            // Never more than the message still lacks, so that no end and no smaller message is held back.
            self.wake_at(if is_streamed { lacks.min(WAKE_BYTES) } else { 1 });
            let room = &mut buffer[FROM + done..FROM + wanted];
            match rustix::net::recv(self.peer.stream(), room, flags) {
                Ok((_, 0)) => {
                    return Err(PeerError::Gone("before the client ended the test".to_owned()));
                }
                Ok((_, count)) => {
                    if done == 0 {
                        first_ns = self.clock.now_ns();
                    }
                    let had_header = done >= HEADER_BYTES;
                    done += count;
                    begun = None;
                    if !had_header && done >= HEADER_BYTES {
                        let mut bytes = [0; HEADER_BYTES];
                        bytes.copy_from_slice(&buffer[FROM..PAYLOAD_AT]);
                        header = Header::read(&bytes);
                        wanted = self.whole(header, done)?;
                    }
                    if done >= HEADER_BYTES && done == wanted {
                        return Ok((header, first_ns));
                    }
                }
                Err(error) if is_wait(&error.into()) => {
                    let silent = begun.get_or_insert_with(Instant::now).elapsed();
                    if self.stop.requested() {
                        return Err(PeerError::Stopped);
                    }
                    self.gives_up(silent)?;
                }
                Err(error) => return Err(PeerError::Gone(format!("while messages came: {error}"))),
            }
        }
    }

    /// Whether a client is given up that has been silent for so long.
    fn gives_up(&mut self, silent: Duration) -> Result<(), PeerError> {
        let patience = self.wanted.patience();
        if silent >= patience {
            return Err(PeerError::Silent(patience, WHILE_READY.to_owned()));
        }
        let silent = Duration::from_secs(silent.as_secs());
        if (self.is_wanted)(silent) {
            Err(PeerError::Silent(silent, format!("{WHILE_READY}, and another client waits")))
        } else {
            Ok(())
        }
    }

    /// So many bytes wake it from now on.
    fn wake_at(&mut self, bytes: usize) {
        if bytes != self.wake_bytes {
            self.wake_bytes = bytes;
            // A kernel that refuses wakes for every segment.
            let _ = set_wake_bytes(self.peer.stream(), bytes as u32);
        }
    }

    /// Bytes of a whole message whose header this is; there must not be more than that already.
    fn whole(&self, header: Header, done: usize) -> Result<usize, PeerError> {
        let length = u64::from(header.length);
        let wanted = HEADER_BYTES + length as usize;
        let is_foreign = header.is_packed && self.wanted.compress == Compress::None;
        if length > self.wanted.length || done > wanted || is_foreign {
            return Err(PeerError::Foreign(format!("message {} of {length} bytes was not agreed on", header.sequence)));
        }
        Ok(wanted)
    }
}

/// Brings a payload to where it is written from; its bytes.
fn unpacked(header: Header, came: &[u8], unpacker: &mut Unpacker, room: &mut [u8]) -> Result<usize, PeerError> {
    let came = &came[..header.length as usize];
    if header.is_packed {
        unpacker
            .unpack(came, room)
            .map_err(|why| PeerError::Foreign(format!("message {} cannot be decompressed: {why}", header.sequence)))
    } else {
        room[..came.len()].copy_from_slice(came);
        Ok(came.len())
    }
}
