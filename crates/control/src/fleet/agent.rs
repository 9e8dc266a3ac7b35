//! An agent: what makes a host one of a fleet's.
//!
//! It dials out and waits. For a run it starts a process, passes on what the process says, keeps what it measured in JetStream
//! until that has all of it, and stops it when it is told to or when nobody has said anything for too long. Its own work is a few
//! messages a second: the load never waits for it, and a host whose CPUs are all taken still answers.

use super::FleetError;
use super::bus::{Address, Bus};
use super::clock::{mono_ns, wall_ns};
use super::gather;
use super::message::{Answer, Beat, Begin, Hello, Kept, News, Phase, Request, Spec, Stop as StopRun};
use super::worker::{Order, Said, line};
use assay_run::stop::Stop;
use async_nats::Message;
use futures_util::StreamExt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// How often the agent looks at the clock and at a request to stop.
const LOOK: Duration = Duration::from_millis(200);
/// Between two attempts to keep what the server did not confirm.
const AGAIN: Duration = Duration::from_millis(500);
/// The exit code of a process that could not write what it measured.
const NOT_WRITTEN: i32 = 6;
/// How long an agent that was told to end waits for its run.
const LEAVING: Duration = Duration::from_secs(10);

/// A host's part of a run, as its process is told.
#[derive(Debug)]
pub struct Share<'a> {
    /// The command after `assay`.
    pub words: &'a [String],
    /// Which host, from 0.
    pub host: usize,
    /// Hosts of the run.
    pub hosts: usize,
    /// The seed of all of them.
    pub seed: u64,
    /// What both ends of a test between hosts know.
    pub secret: &'a str,
}

/// How an agent works.
pub struct Options<'a> {
    /// The server and the fleet.
    pub address: Address,
    /// Who it is; its instance is drawn by the caller.
    pub hello: Hello,
    /// Added to its clocks: what tests put a host with another clock in place by, ns.
    pub clock_ahead_ns: i64,
    /// The process of a part.
    pub launch: &'a dyn Fn(&Share<'_>) -> Command,
    /// Hears when it waits for runs.
    pub ready: &'a dyn Fn(),
    /// It ends when the server could not be reached for so long.
    pub gone_after: Option<Duration>,
}

/// Serves until it is told to stop.
///
/// # Errors
/// The server cannot be reached at the start, or lets nobody in.
pub fn serve(options: &Options<'_>, stop: &Stop, say: &mut dyn FnMut(&str)) -> Result<(), FleetError> {
    super::runtime()?.block_on(async {
        let bus = Bus::connect(&options.address, &format!("agent {}", options.hello.name)).await?;
        let mut everybody = bus.subscribe("all.*").await?;
        let mut own = bus.subscribe(&format!("to.{}", options.hello.instance)).await?;
        let (sender, mut heard) = unbounded_channel();
        let mut agent = Agent { options, bus, sender, say, job: None };
        agent.greet().await;
        (options.ready)();
        let mut reached = Instant::now();
        let mut look = tokio::time::interval(LOOK);
        let mut leaving: Option<Instant> = None;
        loop {
            tokio::select! {
                Some(message) = everybody.next() => agent.everybody(message).await,
                Some(message) = own.next() => agent.own(message).await,
                Some(word) = heard.recv() => agent.heard(word).await,
                _ = look.tick() => {
                    agent.look();
                    if agent.bus.is_connected() {
                        reached = Instant::now();
                    }
                    let is_gone = options.gone_after.is_some_and(|patience| reached.elapsed() > patience);
                    if stop.requested() || is_gone {
                        let since = leaving.get_or_insert_with(Instant::now);
                        let is_busy = agent.job.as_mut().is_some_and(|job| job.leave());
                        if !is_busy || since.elapsed() > LEAVING {
                            return Ok(());
                        }
                    }
                }
            }
        }
    })
}

/// What the threads around a process and the task that keeps its data say.
enum Heard {
    Said(Said),
    Told(String),
    Ended(Option<i32>),
    Kept,
}

struct Agent<'a> {
    options: &'a Options<'a>,
    bus: Bus,
    sender: UnboundedSender<(String, Heard)>,
    say: &'a mut dyn FnMut(&str),
    job: Option<Job>,
}

/// A part of a run.
struct Job {
    run: String,
    phase: Phase,
    /// The start that its process waits for.
    waits: Option<u64>,
    server: Option<String>,
    input: Option<ChildStdin>,
    kept: Kept,
    /// What it measured, on its way to JetStream.
    data: Option<Box<serde_json::value::RawValue>>,
    /// When a controller was heard of last.
    word: Instant,
    dead_man: Duration,
    is_stopped: bool,
}

impl Job {
    fn is_active(&self) -> bool {
        (Phase::Preparing..=Phase::Ended).contains(&self.phase)
    }

    fn order(&mut self, order: Order) -> bool {
        let input = self.input.as_mut();
        input.is_some_and(|input| input.write_all(line(&order).as_bytes()).and_then(|()| input.flush()).is_ok())
    }

    fn stop(&mut self) {
        if !self.is_stopped && self.phase < Phase::Ended {
            self.is_stopped = true;
            self.order(Order::Stop);
        }
    }

    /// Ends it; whether that still takes time.
    fn leave(&mut self) -> bool {
        self.stop();
        self.is_active()
    }
}

impl Agent<'_> {
    fn hello(&self) -> Hello {
        let active = self.job.as_ref().filter(|job| job.is_active());
        Hello { run: active.map(|job| job.run.clone()), ..self.options.hello.clone() }
    }

    /// An instant of this host as the controller is told it.
    fn told(&self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.options.clock_ahead_ns)
    }

    fn from(&self) -> String {
        format!("from.{}", self.options.hello.instance)
    }

    /// A controller whose run had another agent on this machine answers with a refusal.
    async fn greet(&mut self) {
        self.bus.say(&self.from(), &News::Hello(self.hello())).await;
        let (name, fleet) = (&self.options.hello.name, &self.options.address.fleet);
        (self.say)(&format!("{name} waits for runs of fleet {fleet} at {}", self.options.address.shown()));
    }

    async fn everybody(&mut self, message: Message) {
        let Message { subject, reply, payload, .. } = message;
        match subject.rsplit('.').next() {
            Some("hello") => self.bus.answer(reply, &self.hello()).await,
            Some("beat") => {
                let run = serde_json::from_slice::<StopRun>(&payload).map(|beat| beat.run);
                let mut beat = Beat { instance: self.options.hello.instance.clone(), ..Beat::default() };
                let ours = |job: &&mut Job| run.as_ref().is_ok_and(|run| *run == job.run);
                if let Some(job) = self.job.as_mut().filter(ours) {
                    job.word = Instant::now();
                    beat.run = Some(job.run.clone());
                    beat.phase = job.phase;
                    beat.waits = job.waits;
                    beat.gate_ns = job.kept.gate_ns;
                    beat.code = job.kept.code;
                    beat.server.clone_from(&job.server);
                    beat.problem = Some(job.kept.reason.clone()).filter(|text| !text.is_empty());
                }
                self.bus.answer(reply, &beat).await;
            }
            Some("stop") => {
                let run = serde_json::from_slice::<StopRun>(&payload).map(|stop| stop.run);
                if let Some(job) = self.job.as_mut().filter(|job| run.as_ref().is_ok_and(|run| *run == job.run)) {
                    job.stop();
                }
            }
            _ => {}
        }
    }

    async fn own(&mut self, message: Message) {
        // What is none of ours is not answered: whoever sent it is no controller.
        let Ok(request) = serde_json::from_slice::<Request>(&message.payload) else {
            return;
        };
        let answer = match request {
            Request::Clock => Answer::Clock {
                mono_ns: self.told(mono_ns()),
                wall_ns: wall_ns().saturating_add_signed(self.options.clock_ahead_ns),
            },
            Request::Prepare { spec, hash, dead_man_s } => self.prepare(&spec, &hash, dead_man_s),
            Request::Start { run, begin } => self.start(&run, begin),
            Request::Refuse { reason } => {
                (self.say)(&format!("error: {reason}"));
                return;
            }
        };
        self.bus.answer(message.reply, &answer).await;
    }

    fn prepare(&mut self, spec: &Spec, hash: &str, dead_man_s: u64) -> Answer {
        let refused = |reason: String| Answer::Refused { reason };
        let hello = &self.options.hello;
        if let Some(job) = self.job.as_ref().filter(|job| job.is_active()) {
            return refused(format!("it is busy with run {}", job.run));
        }
        if spec.version != hello.version {
            return refused(format!("it is assay {}, the run is of {}", hello.version, spec.version));
        }
        let found = spec.hash();
        if found != hash {
            return refused("it reads another run than was sent: the specs have different hashes".to_owned());
        }
        let Some(host) = spec.hosts.iter().position(|instance| *instance == hello.instance) else {
            return refused("it is not one of the run's hosts".to_owned());
        };
        let share = Share { words: &spec.words, host, hosts: spec.hosts.len(), seed: spec.seed, secret: &spec.secret };
        let mut command = (self.options.launch)(&share);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return refused(format!("its process cannot be started: {error}")),
        };
        (self.say)(&format!("run {}: host {} of {}", spec.run, host + 1, spec.hosts.len()));
        self.job = Some(Job {
            run: spec.run.clone(),
            phase: Phase::Preparing,
            waits: None,
            server: None,
            input: watch(child, &spec.run, &self.sender),
            kept: Kept::default(),
            data: None,
            word: Instant::now(),
            dead_man: Duration::from_secs(dead_man_s.max(1)),
            is_stopped: false,
        });
        Answer::Accepted { hash: found }
    }

    fn start(&mut self, run: &str, begin: Begin) -> Answer {
        let at_ns = begin.at_ns.saturating_sub_signed(self.options.clock_ahead_ns);
        match self.job.as_mut().filter(|job| job.run == run) {
            // One that missed a start is told the next: its process knows what it left out.
            Some(job) if job.waits.is_some_and(|step| step <= begin.step) => {
                job.phase = job.phase.max(Phase::Running);
                job.waits = None;
                job.word = Instant::now();
                job.order(Order::Start(Begin { at_ns, ..begin }));
                Answer::Accepted { hash: String::new() }
            }
            Some(job) if job.phase == Phase::Running && begin.step == 0 => Answer::Accepted { hash: String::new() },
            _ => Answer::Refused { reason: format!("it is not ready for run {run}") },
        }
    }

    async fn heard(&mut self, (run, heard): (String, Heard)) {
        let told = self.options.clock_ahead_ns;
        let Some(job) = self.job.as_mut().filter(|job| job.run == run) else {
            return;
        };
        match heard {
            Heard::Said(Said::Dir(dir)) => job.kept.dir = dir,
            Heard::Said(Said::Ready(server)) => {
                job.phase = job.phase.max(Phase::Ready);
                job.waits = Some(0);
                job.server = server;
            }
            Heard::Said(Said::Waits(step)) => job.waits = Some(step),
            Heard::Said(Said::Gate(ns)) => job.kept.gate_ns = Some(ns.saturating_add_signed(told)),
            Heard::Said(Said::Data(data)) => job.data = Some(data),
            Heard::Said(Said::Tick(tick)) => {
                let news = News::Tick { run, tick };
                self.bus.say(&self.from(), &news).await;
            }
            Heard::Told(text) => {
                if let Some(error) = text.strip_prefix("error: ") {
                    error.clone_into(&mut job.kept.reason);
                }
                (self.say)(&text);
            }
            Heard::Ended(code) => {
                job.phase = Phase::Ended;
                job.waits = None;
                job.input = None;
                job.kept.code = code;
                if job.data.is_some() && code == Some(NOT_WRITTEN) {
                    job.kept.remark = format!("The host's own record is not whole: {}", job.kept.reason);
                }
                if job.data.is_none() && job.kept.reason.is_empty() {
                    job.kept.reason = match code {
                        Some(code) => format!("its process ended with code {code} and measured nothing"),
                        None => "its process was killed".to_owned(),
                    };
                }
                let keeper = Keeper {
                    bus: self.bus.clone(),
                    place: format!("{run}.{}", self.options.hello.instance),
                    kept: job.kept.clone(),
                    data: job.data.take().map(|data| data.get().as_bytes().to_vec()).unwrap_or_default(),
                };
                let sender = self.sender.clone();
                tokio::spawn(async move {
                    keeper.keep().await;
                    let _ = sender.send((run, Heard::Kept));
                });
            }
            Heard::Kept => {
                job.phase = Phase::Kept;
                (self.say)(&format!("run {run}: what was measured is kept for the controller"));
            }
        }
    }

    fn look(&mut self) {
        let Some(job) = self.job.as_mut().filter(|job| job.phase < Phase::Ended && job.is_active()) else {
            return;
        };
        if job.word.elapsed() > job.dead_man && !job.is_stopped {
            let silent = job.word.elapsed().as_secs();
            job.kept.remark = format!("The agent stopped the run: no controller was heard of for {silent} s.");
            (self.say)(&format!("warning: run {}: {}", job.run, job.kept.remark));
            job.stop();
        }
    }
}

/// Reads what a process says on threads of their own; its input is for orders.
fn watch(mut child: Child, run: &str, sender: &UnboundedSender<(String, Heard)>) -> Option<ChildStdin> {
    let input = child.stdin.take();
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let pass = |sender: &UnboundedSender<(String, Heard)>, run: &str| {
        let (sender, run) = (sender.clone(), run.to_owned());
        move |heard| drop(sender.send((run.clone(), heard)))
    };
    let told = pass(sender, run);
    let telling = std::thread::spawn(move || {
        let lines = errors.into_iter().flat_map(|errors| BufReader::new(errors).lines().map_while(Result::ok));
        lines.for_each(|text| told(Heard::Told(text)));
    });
    let said = pass(sender, run);
    std::thread::spawn(move || {
        let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok));
        for word in lines.filter_map(|text| serde_json::from_str(&text).ok()) {
            said(Heard::Said(word));
        }
        let ended = child.wait().ok().and_then(|status| status.code());
        let _ = telling.join();
        said(Heard::Ended(ended));
    });
    input
}

/// What a host measured, until JetStream has it.
struct Keeper {
    bus: Bus,
    place: String,
    kept: Kept,
    data: Vec<u8>,
}

impl Keeper {
    /// Tries for as long as it takes: the server may be gone for a while.
    async fn keep(mut self) {
        while let Err(_unconfirmed) = self.attempt().await {
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn attempt(&mut self) -> Result<(), FleetError> {
        self.kept.parts.clear();
        if !self.data.is_empty() {
            self.kept.parts.push(self.bus.keep_part(&self.place, gather::DATA, &self.data).await?);
            let series = std::path::Path::new(&self.kept.dir).join("series.jsonl");
            // A full disk may have taken it; what was measured in all is in the data.
            if let Ok(series) = assay_run::bounded::read(&series, assay_run::bounded::SERIES) {
                self.kept.parts.push(self.bus.keep_part(&self.place, gather::SERIES, &series).await?);
            }
        }
        // What says that all is there goes last.
        let all = serde_json::to_vec(&self.kept).map_err(|error| FleetError::Unusable(error.to_string()))?;
        self.bus.keep(&format!("kept.{}.end", self.place), all).await
    }
}
