//! The client's options, checked before anything is sent.

pub(super) use super::demand::Commits;
use super::demand::{Demand, Workload};
use super::log::mode_of;
use super::options as o;
use super::pack::Compress;
use super::payload::Content;
use super::quorum::Rule;
use super::wire::{MESSAGE_MAX, Wanted, WriteMode};
use crate::peer::asked;
use crate::peer::secret::Secret;
use crate::scratch::left_behind;
use assay_measure::units::{parse_duration_ns, size};
use assay_run::dataset::lines::{measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::probe::Request;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Threads that anybody could mean.
const CONNECTIONS_MAX: usize = 256;
const INFLIGHT_MAX: usize = 1024;
/// A disk that writes a log more slowly makes no standby.
const SLOW_LOG_BYTES_PER_S: u64 = 4 << 20;
/// Standbys at once.
const STANDBYS_MAX: usize = 16;

/// When the primary writes its own log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Local {
    #[default]
    None,
    /// Before it sends: only what is locally durable is shipped.
    Serial,
    /// In parallel with the standby.
    Parallel,
}

const LOCALS: [(&str, Local); 3] = [("none", Local::None), ("serial", Local::Serial), ("parallel", Local::Parallel)];

/// One standby: its name and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Standby {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) port: u16,
}

/// Everything asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) standbys: Vec<Standby>,
    pub(super) is_async: bool,
    pub(super) length: u64,
    pub(super) time: Duration,
    pub(super) interval_s: u64,
    pub(super) write: WriteMode,
    /// Modes that are measured before it, each for as long: `--write-mode all`.
    pub(super) before: Vec<WriteMode>,
    pub(super) apply_us: u64,
    /// `-write`: direct I/O where it can be had.
    pub(super) falls_back: bool,
    pub(super) connections: usize,
    pub(super) sockbuf: Option<u64>,
    pub(super) content: Content,
    pub(super) compress: Compress,
    /// Commits by schedule that share messages; `length` is that of the longest.
    pub(super) commits: Option<Commits>,
    /// What is asked of the way.
    pub(super) workload: Option<Workload>,
    pub(super) delay: Duration,
    pub(super) inflight: usize,
    pub(super) rate: Option<f64>,
    pub(super) rule: Rule,
    pub(super) max_lag: u64,
    /// How long the others are waited for once the first has acknowledged.
    pub(super) grace: Option<Duration>,
    pub(super) local: Local,
    pub(super) local_file: PathBuf,
    pub(super) slow_local: Duration,
    pub(super) alone: Duration,
    pub(super) log_block: u64,
    pub(super) log_bytes: u64,
    pub(super) timeout: Duration,
    /// Whether the time-out was given.
    pub(super) has_timeout: bool,
    #[serde(skip)]
    pub(super) secret: Option<Secret>,
}

impl Ask {
    pub(super) fn of(request: &Request) -> Result<Self, EngineError> {
        let usage = |text: String| Err(EngineError::Usage(text));
        let is_async = request.choice(&o::MODE, &[("sync", false), ("async", true)])?;
        let (write, apply_us, falls_back) = writes(request)?;
        let before = match request.option(&o::WRITE_MODE) {
            "all" => vec![WriteMode::Pagecache, WriteMode::Fdatasync, WriteMode::Dsync],
            _ => Vec::new(),
        };
        let standbys = standbys(request)?;
        let (rule, grace) = rule(request, standbys.len())?;
        let Demand { commits, workload, length } = Demand::of(request)?;
        if !matches!(request.option(&o::FREQ).to_lowercase().as_str(), "" | "no") {
            let text = "-freq: assay does not repeat a test by itself; use cron or a timer, and compare with `assay \
                runs trend`";
            return usage(text.to_owned());
        }
        let ask = Self {
            standbys,
            is_async,
            length,
            time: request.time / (before.len() as u32 + 1),
            interval_s: interval(request)?,
            write,
            before,
            apply_us,
            falls_back,
            connections: request.number(&o::CONNECTIONS, 1..=CONNECTIONS_MAX)?.unwrap_or_default(),
            sockbuf: request.size_bytes(&o::SOCKBUF, 0..=u64::MAX)?,
            content: Content::parse(request.option(&o::CONTENT), length)?,
            compress: Compress::parse(request.option(&o::COMPRESS))?,
            commits,
            workload,
            delay: delay(request)?,
            inflight: request.number(&o::INFLIGHT, 1..=INFLIGHT_MAX)?.unwrap_or_default(),
            rate: request.number(&o::RATE, o::RATES)?,
            rule,
            max_lag: o::size_bytes(request, &o::MAX_LAG)?,
            grace,
            local: request.choice(&o::LOCAL, &LOCALS)?,
            local_file: PathBuf::from(request.option(&o::LOCAL_FILE)),
            slow_local: o::duration(request, &o::SLOW_LOCAL)?,
            alone: o::duration(request, &o::ALONE)?,
            log_block: o::size_bytes(request, &o::LOG_BLOCK)?,
            log_bytes: o::size_bytes(request, &o::LOG_SIZE)?,
            timeout: o::duration(request, &o::TIMEOUT)?.max(Duration::from_millis(100)),
            has_timeout: request.words.iter().any(|w| w.starts_with("timeout=")),
            secret: asked::secret(request, &o::SECRET_FILE)?,
        };
        ask.fits_together()?;
        Ok(ask)
    }

    /// What contradicts itself, or is not there.
    fn fits_together(&self) -> Result<(), EngineError> {
        let usage = |text: String| Err(EngineError::Usage(text));
        if self.length > MESSAGE_MAX {
            let (most, length) = (size(MESSAGE_MAX), self.length);
            return usage(format!("--length {length}: a message can have at most {most}"));
        }
        if !matches!(self.log_block, 512 | 4096) {
            return usage(format!("--logblock {}: 512 or 4k", self.log_block));
        }
        self.schedule_fits()?;
        let is_plain = self.inflight == 1 && self.rate.is_none() && self.connections == 1;
        if self.standbys.len() > 1 && !is_plain {
            let text = "assay tests several standbys with one connection to each and one message in flight: leave out \
                --connections, --inflight and --rate";
            return usage(text.to_owned());
        }
        if self.grace.is_some() && (self.standbys.len() == 1 || self.is_async) {
            let text = "--grace: how long a commit waits for the other standbys once the first has acknowledged; it needs \
                        --standby and --mode sync";
            return usage(text.to_owned());
        }
        if self.standbys.len() > 1 && self.compress != Compress::None {
            let text = "--compress: assay tests compressed messages with one standby at a time";
            return usage(text.to_owned());
        }
        let waits = self.inflight > 1 || self.local != Local::None || self.rate.is_some();
        if self.is_async && (waits || self.rule != Rule::All) {
            let text =
                "--mode async waits for no acknowledgement: --inflight, --rate, --ack and --local have no effect";
            return usage(text.to_owned());
        }
        if self.local != Local::None && (self.inflight > 1 || self.connections > 1) {
            let text = "--local: one connection with one message in flight writes the primary's log";
            return usage(text.to_owned());
        }
        Ok(())
    }

    /// What the instants at which messages go leave no room for.
    fn schedule_fits(&self) -> Result<(), EngineError> {
        let usage = |text: &str| Err(EngineError::Usage(text.to_owned()));
        if self.rate.is_some() && (self.inflight > 1 || !self.delay.is_zero()) {
            return usage("--rate: a schedule leaves no room for --inflight and --delay");
        }
        if self.workload.is_some() && (self.rate.is_some() || !self.delay.is_zero()) {
            return usage("--redo-rate measures the most that this link can carry: leave out --rate and --delay");
        }
        let is_one_writer = !self.is_async
            && self.inflight == 1
            && self.connections == 1
            && self.standbys.len() == 1
            && self.rate.is_none()
            && self.delay.is_zero();
        let is_one_test = is_one_writer && self.commits.is_none() && self.local == Local::None && self.alone.is_zero();
        if !self.before.is_empty() && !is_one_test {
            return usage(
                "--write-mode all compares ways to write, one message after the other: leave out --mode async, \
                 --connections, --inflight, --standby, --rate, --commit-rate, --delay, --local and --alone",
            );
        }
        if self.commits.is_some() && !is_one_writer {
            usage(
                "--commit-rate simulates one log writer with one message in flight: leave out --mode async, \
                 --connections, --inflight, --standby, --rate and --delay",
            )
        } else {
            Ok(())
        }
    }

    /// What each connection's server is told.
    pub(super) fn wanted(&self) -> Wanted {
        let seconds = self.time + 2 * self.alone;
        Wanted {
            is_async: self.is_async,
            length: self.length,
            is_varied: self.commits.is_some() || self.compress != Compress::None,
            compress: self.compress,
            write: self.write,
            falls_back: self.falls_back,
            log_block: self.log_block,
            log_bytes: self.log_bytes / self.connections as u64,
            apply_us: self.apply_us,
            seconds: seconds.as_secs_f64(),
            alone_ms: self.alone.as_millis() as u64,
            patience_ms: (self.timeout + self.delay).as_millis() as u64,
        }
    }

    /// How long a standby may make ready without its log growing, and in all: as long as it takes to write the log slowly.
    pub(super) fn making_ready(&self) -> (Duration, Duration) {
        let still = self.timeout.saturating_add(self.alone);
        let log = match self.write {
            WriteMode::None => 0,
            _ => self.log_bytes / SLOW_LOG_BYTES_PER_S,
        };
        (still, still.saturating_add(Duration::from_secs(log)))
    }

    /// What the write is called.
    pub(super) fn write_name(&self) -> String {
        match self.apply_us {
            0 if !self.before.is_empty() => "all".to_owned(),
            0 => self.write.name().to_owned(),
            us => format!("apply:{us}"),
        }
    }

    /// The time of messages, those of other modes too.
    pub(super) fn whole_time(&self) -> Duration {
        self.time * (self.before.len() as u32 + 1)
    }

    fn payload(&self) -> String {
        let compress = match self.compress {
            Compress::None => String::new(),
            how => format!(", compressed by {how}"),
        };
        let size = match self.commits {
            None => size(self.length),
            Some(one) => format!("commits of {}, up to {} in all", size(one.size), size(self.length)),
        };
        format!("{size}, {}{compress}", self.content)
    }

    pub(super) fn plan(&self) -> Vec<Line> {
        let names: Vec<&str> = self.standbys.iter().map(|s| s.name.as_str()).collect();
        let mode = if self.is_async { "ASYNC" } else { "SYNC" };
        let mut lines = vec![
            text("standbys", "messages go to", names.join(", ")),
            text("mode", "transport mode", mode),
            text("length", "payload of a message", self.payload()),
            text("write", "the standby writes", self.write_name()),
        ];
        if self.write != WriteMode::None {
            let log = size(self.log_bytes);
            lines.push(text("log", "log on each standby, removed afterwards", log));
        }
        if self.local != Local::None {
            let path = self.local_file.display().to_string();
            lines.push(text("local", "log on this host, removed afterwards, in", path));
            lines.extend(left_behind(&self.local_file));
        }
        if self.standbys.len() > 1 && !self.is_async {
            lines.push(text("ack", "a commit waits for", self.rule.to_string()));
        }
        lines.push(measuring(self.whole_time() + 2 * self.alone));
        lines
    }
}

/// The write mode, the emulated apply, and whether another mode will do.
fn writes(request: &Request) -> Result<(WriteMode, u64, bool), EngineError> {
    let is_asked = !request.option(&o::WRITE).is_empty();
    match request.option(&o::WRITE_MODE) {
        "" if is_asked => Ok((WriteMode::DirectDsync, 0, true)),
        "" => Ok((WriteMode::None, 0, false)),
        "all" => Ok((WriteMode::DirectDsync, 0, true)),
        "none" if is_asked => Err(EngineError::Usage("--write and --write-mode none contradict each other".to_owned())),
        word => mode_of("--write-mode", word).map(|(mode, us)| (mode, us, false)),
    }
}

/// The other end and those of `--standby`; `HOST`, `HOST:PORT` or `[ADDRESS]:PORT` each.
fn standbys(request: &Request) -> Result<Vec<Standby>, EngineError> {
    let port = asked::port(request, &o::PORT)?;
    let first = request.place.to_string_lossy().into_owned();
    let more = request.option(&o::STANDBY).to_owned();
    let mut all = Vec::new();
    for name in first.split(',').chain(more.split(',')) {
        let name = name.trim();
        if name.is_empty() {
            continue;
        }
        let bad = || {
            let text = format!("{name}: a standby is HOST, HOST:PORT or [ADDRESS]:PORT");
            EngineError::Usage(text)
        };
        let (host, port) = match name.rsplit_once(':') {
            Some((host, end)) if !host.contains(':') || host.ends_with(']') => {
                let port = end.parse().ok().filter(|port| *port > 0);
                (host, port.ok_or_else(bad)?)
            }
            _ => (name, port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains('/') || host.starts_with('-') {
            return Err(bad());
        }
        all.push(Standby { name: name.to_owned(), host: host.to_owned(), port });
    }
    if all.is_empty() || all.len() > STANDBYS_MAX {
        let text = format!("{} standbys: assay can test 1 to {STANDBYS_MAX}", all.len());
        return Err(EngineError::Usage(text));
    }
    Ok(all)
}

/// For whom a commit waits, and how long for the others once the first has acknowledged.
fn rule(request: &Request, standbys: usize) -> Result<(Rule, Option<Duration>), EngineError> {
    let grace = Some(o::duration(request, &o::GRACE)?).filter(|grace| !grace.is_zero());
    match Rule::parse(request.option(&o::ACK), standbys)? {
        Rule::All if grace.is_some() => Ok((Rule::Left, grace)),
        rule => Ok((rule, grace)),
    }
}

fn interval(request: &Request) -> Result<u64, EngineError> {
    let interval = o::duration(request, &o::INTERVAL)?;
    match interval.as_secs() {
        seconds @ 1..=3600 if interval.subsec_nanos() == 0 => Ok(seconds),
        _ => Err(o::INTERVAL.refused(request.option(&o::INTERVAL), "whole seconds, 1s to 1h")),
    }
}

/// A bare number is milliseconds, as in oratcptest.
fn delay(request: &Request) -> Result<Duration, EngineError> {
    let delay = request.read(&o::DELAY, |text| match text.parse::<u64>() {
        _ if text.eq_ignore_ascii_case("no") => Ok(Duration::ZERO),
        Ok(ms) => Ok(Duration::from_millis(ms.min(3_600_000))),
        Err(_) => parse_duration_ns(text).map(Duration::from_nanos),
    })?;
    Ok(delay.unwrap_or_default())
}
