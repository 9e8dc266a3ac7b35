//! The controller of one run: finds the hosts, starts them at an instant, watches them, and takes what they measured.
//!
//! Nothing that was measured depends on it: a controller that dies leaves the hosts at work (until their patience ends), and
//! another one takes the run from JetStream.

mod lockstep;

use super::FleetError;
use super::bus::{Address, Bus, KeptRuns};
use super::clock::{Exchange, Offset, PINGS, mono_ns, wall_ns};
use super::gather;
use super::message::{Answer, Beat, Hello, News, Phase, Request, RunPlan, Spec, Stop as StopRun};
use super::ticks::TickMerge;
use assay_measure::clock::NS_PER_S;
use assay_measure::fleet::{HostHeard, LATE as LATE_STATE, LOST};
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::{Mark, RunData, Snapshot};
use assay_run::stop::Stop;
use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Beats of a run, and lines of its progress.
const BEAT: Duration = Duration::from_secs(1);
/// How often the controller looks around.
const LOOK: Duration = Duration::from_millis(50);
/// A host that said nothing for so long is late: two beats went by.
pub const LATE: Duration = Duration::from_millis(2500);
/// How long hosts are waited for where nobody said how many there are.
const SETTLE: Duration = Duration::from_secs(1);
/// The least patience of a host, and of the controller with one: several beats.
pub const DEAD_MAN_LEAST: Duration = Duration::from_secs(5);
/// See above.
pub const LOST_LEAST: Duration = Duration::from_secs(3);
/// Hosts that a line names.
const NAMED: usize = 8;
/// The exit code of a process whose settings are wrong.
const USAGE: i32 = 2;
/// From the order to the start, and more for each host.
const MARGIN: Duration = Duration::from_millis(500);
const MARGIN_OF_HOST: Duration = Duration::from_millis(5);

/// What is to run, and how patient the controller is.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The server and the fleet.
    pub address: Address,
    /// The run's id.
    pub run: String,
    /// assay's version.
    pub version: String,
    /// The command after `assay`.
    pub words: Vec<String>,
    /// The seed of all hosts.
    pub seed: u64,
    /// Hosts that take part; `None`: all that are there.
    pub hosts: Option<usize>,
    /// How long hosts are waited for.
    pub wait: Duration,
    /// A host that said nothing for so long is lost.
    pub lost_after: Duration,
    /// A host that hears nothing for so long stops by itself.
    pub dead_man: Duration,
}

/// Hears how the run goes.
pub trait Watcher {
    /// Something happened.
    fn say(&mut self, line: &str);
    /// A second of the run, in a line that the next one may replace.
    fn live(&mut self, line: &str);
    /// What the hosts are at now, each second, and the readings of all of them that are new.
    fn heard(&mut self, _hosts: Vec<HostHeard>, _told: &[(Mark, Snapshot)]) {}
}

/// How long somebody is waited for.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// A host that says nothing.
    lost_after: Duration,
    /// The server, which cannot be reached.
    gone_after: Duration,
}

/// What a host gave.
#[derive(Debug, Default)]
pub struct HostResult {
    /// Who it is.
    pub hello: Hello,
    /// Its clocks.
    pub offset: Offset,
    /// Its gate by the controller's clock, ns.
    pub gate_ns: Option<u64>,
    /// Why it has no part in the figures; empty where it has.
    pub lost: String,
    /// The longest time it said nothing in, s.
    pub late_s_max: u64,
    /// The last second heard of, ns after the gate, and the operations until then.
    pub seen_ns: u64,
    /// See above.
    pub seen_ops: u64,
    /// Round trips of its beats.
    pub control: Histogram,
    /// Directory of its own record, on the host.
    pub dir: String,
    /// What its agent did to the run by itself.
    pub remark: String,
    /// What it measured.
    pub data: Option<RunData>,
    /// The lines of its series.
    pub series: Option<Vec<u8>>,
}

/// All that a run of a fleet left.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The run.
    pub plan: RunPlan,
    /// Its hosts in the order of their shares.
    pub hosts: Vec<HostResult>,
    /// Messages on the fleet's subjects that were none of ours.
    pub strangers: u64,
    /// From the first request for what was measured to the last piece, ns.
    pub gather_ns: u64,
}

/// Runs it.
///
/// # Errors
/// Hosts are missing or do not fit together, one cannot run, or the start was called off: then no load was started.
pub fn run(asked: &Asked, stop: &Stop, watcher: &mut dyn Watcher) -> Result<Gathered, FleetError> {
    super::runtime()?.block_on(async {
        let bus = Bus::connect(&asked.address, "controller").await?;
        let kept = bus.kept().await?;
        for run in kept.untaken().await? {
            watcher
                .say(&format!("notice: nobody has taken run {run}: `assay fleet run --take {run}` makes its record"));
        }
        let hosts = find(&bus, asked, stop, watcher).await?;
        let offsets = join_all(hosts.iter().map(|host| clocks(&bus, host))).await;
        let offsets: Vec<Offset> = offsets.into_iter().collect::<Result<_, _>>()?;
        let spec = Spec {
            run: asked.run.clone(),
            version: asked.version.clone(),
            words: asked.words.clone(),
            seed: asked.seed,
            hosts: hosts.iter().map(|host| host.instance.clone()).collect(),
            ..Spec::default()
        };
        let plan = RunPlan { spec, hosts: hosts.into_iter().zip(offsets).collect(), ..RunPlan::default() };
        let patience = Patience { lost_after: asked.lost_after, gone_after: asked.dead_man + asked.lost_after };
        let mut watch = Watch::new(&bus, plan, patience, watcher).await?;
        match watch.begin(asked, stop).await {
            Ok(()) => watch.until_all_kept(&kept, stop).await,
            Err(error) => {
                watch.stop().await;
                // What the hosts say of the start that did not come is nobody's.
                tokio::time::sleep(SETTLE).await;
                let _ = kept.forget(&asked.run).await;
                Err(error)
            }
        }
    })
}

/// How many hosts would take part.
///
/// # Errors
/// Too few answer, or they do not fit together.
pub fn present(asked: &Asked, stop: &Stop, watcher: &mut dyn Watcher) -> Result<usize, FleetError> {
    super::runtime()?.block_on(async {
        let bus = Bus::connect(&asked.address, "controller").await?;
        Ok(find(&bus, asked, stop, watcher).await?.len())
    })
}

/// Takes a run that another controller began.
///
/// # Errors
/// There is none of this name, or the server does not answer.
pub fn take(
    address: &Address,
    run: &str,
    lost_after: Duration,
    stop: &Stop,
    watcher: &mut dyn Watcher,
) -> Result<Gathered, FleetError> {
    super::runtime()?.block_on(async {
        let bus = Bus::connect(address, "controller").await?;
        let kept = bus.kept().await?;
        let found = kept.get(&format!("{run}.plan")).await?;
        let Some(found) = found.filter(|_| run.chars().all(|c| c.is_ascii_hexdigit())) else {
            let untaken = kept.untaken().await?;
            let untaken = if untaken.is_empty() { "none".to_owned() } else { untaken.join(", ") };
            return Err(FleetError::Refused(format!("no run {run} is kept; runs that nobody has taken: {untaken}")));
        };
        let plan = serde_json::from_slice(&found)
            .map_err(|error| FleetError::Unusable(format!("what is kept of run {run} cannot be read: {error}")))?;
        let patience = Patience { lost_after, gone_after: lost_after };
        Watch::new(&bus, plan, patience, watcher).await?.until_all_kept(&kept, stop).await
    })
}

/// Forgets a run whose record is written.
///
/// # Errors
/// The server does not answer.
pub fn forget(address: &Address, run: &str) -> Result<(), FleetError> {
    super::runtime()?.block_on(async { Bus::connect(address, "controller").await?.kept().await?.forget(run).await })
}

/// Waits for the hosts, and refuses those that do not fit together.
pub(super) async fn find(
    bus: &Bus,
    asked: &Asked,
    stop: &Stop,
    watcher: &mut dyn Watcher,
) -> Result<Vec<Hello>, FleetError> {
    let inbox = bus.client().new_inbox();
    let mut answers = subscribe(bus, &inbox).await?;
    let mut found: BTreeMap<String, Hello> = BTreeMap::new();
    let (begun, mut asked_at) = (Instant::now(), None::<Instant>);
    let is_enough = |found: &BTreeMap<String, Hello>| match asked.hosts {
        Some(hosts) => found.len() >= hosts || begun.elapsed() >= asked.wait,
        None => begun.elapsed() >= if found.is_empty() { asked.wait } else { SETTLE },
    };
    while !is_enough(&found) {
        if stop.requested() {
            return Err(FleetError::Interrupted);
        }
        if asked_at.is_none_or(|at| at.elapsed() >= SETTLE / 2) {
            asked_at = Some(Instant::now());
            let _ = bus.client().publish_with_reply(bus.subject("all.hello"), inbox.clone(), "".into()).await;
        }
        if let Ok(Some(message)) = tokio::time::timeout(LOOK, answers.next()).await
            && let Ok(hello) = serde_json::from_slice::<Hello>(&message.payload)
        {
            found.insert(hello.instance.clone(), hello);
        }
    }
    fitting(found.into_values().collect(), asked, watcher)
}

/// The hosts of a run, by name.
fn fitting(mut found: Vec<Hello>, asked: &Asked, watcher: &mut dyn Watcher) -> Result<Vec<Hello>, FleetError> {
    let fleet = &asked.address.fleet;
    found.sort_by(|a, b| (&a.name, &a.instance).cmp(&(&b.name, &b.instance)));
    let wanted = asked.hosts.unwrap_or(1);
    if found.len() < wanted {
        let names: Vec<&str> = found.iter().map(|host| host.name.as_str()).collect();
        let there = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
        return Err(FleetError::Unusable(format!(
            "{} of {wanted} hosts answer in fleet {fleet} ({there}); start `assay fleet agent` on the others, or wait longer with --wait",
            found.len()
        )));
    }
    for (at, host) in found.iter().enumerate() {
        if let Some(twin) = found[..at].iter().find(|twin| twin.machine == host.machine) {
            return Err(FleetError::Refused(format!(
                "agents {} and {} are on one machine (machine id {}): it would be counted twice; stop one of them",
                twin.name, host.name, host.machine
            )));
        }
    }
    if let Some(hosts) = asked.hosts
        && found.len() > hosts
    {
        let left: Vec<String> = found.split_off(hosts).into_iter().map(|host| host.name).collect();
        watcher.say(&format!("notice: {hosts} hosts take part; without: {}", left.join(", ")));
    }
    let other = found.iter().filter(|host| host.version != asked.version);
    let other: Vec<String> = other.map(|host| format!("{} has {}", host.name, host.version)).collect();
    if !other.is_empty() {
        let version = &asked.version;
        return Err(FleetError::Refused(format!(
            "this is assay {version}, but {}: install the same on all hosts",
            other.join(", ")
        )));
    }
    if let Some((host, run)) = found.iter().find_map(|host| Some((host, host.run.as_ref()?))) {
        return Err(FleetError::Refused(format!("{} is busy with run {run}; wait for its end", host.name)));
    }
    for at in 1..found.len() {
        let same = found[..at].iter().filter(|host| host.name == found[at].name).count();
        if same > 0 {
            found[at].name = format!("{}-{}", found[at].name, same + 1);
        }
    }
    Ok(found)
}

/// Judges the clocks of a host.
async fn clocks(bus: &Bus, host: &Hello) -> Result<Offset, FleetError> {
    let mut exchanges = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let sent_ns = mono_ns();
        let answer = bus.ask(&format!("to.{}", host.instance), &Request::Clock).await?;
        if let Answer::Clock { mono_ns: host_mono_ns, wall_ns: host_wall_ns } = answer {
            let (received_ns, wall_ns) = (mono_ns(), wall_ns());
            exchanges.push(Exchange { sent_ns, received_ns, wall_ns, host_mono_ns, host_wall_ns });
        }
    }
    Offset::of(&exchanges).ok_or_else(|| FleetError::Unusable(format!("{} does not say its clock", host.name)))
}

async fn subscribe(bus: &Bus, subject: &str) -> Result<Subscriber, FleetError> {
    let subscribed = bus.client().subscribe(subject.to_owned()).await;
    subscribed.map_err(|error| FleetError::Unusable(error.to_string()))
}

/// A host during the run.
struct Host {
    result: HostResult,
    phase: Phase,
    /// The start that it waits for.
    waits: Option<u64>,
    /// When it was heard of last.
    word: Instant,
    is_late: bool,
    /// Lost for good: its agent was started again.
    is_replaced: bool,
    problem: String,
    /// Which server it can read for all of that server's clients.
    server: Option<String>,
    /// Exit code of its process, once that ended.
    code: Option<i32>,
}

impl Host {
    /// One that nothing was heard of yet.
    fn of(hello: &Hello, offset: &Offset) -> Self {
        Self {
            result: HostResult { hello: hello.clone(), offset: *offset, ..HostResult::default() },
            phase: Phase::Idle,
            waits: None,
            word: Instant::now(),
            is_late: false,
            is_replaced: false,
            problem: String::new(),
            server: None,
            code: None,
        }
    }

    fn is_lost(&self) -> bool {
        !self.result.lost.is_empty()
    }

    fn is_done(&self) -> bool {
        self.is_lost() || self.phase == Phase::Kept
    }

    fn is_at_work(&self) -> bool {
        self.phase == Phase::Running && !self.is_late && !self.is_lost()
    }

    /// What it is at, for who watches.
    fn heard(&self, sessions_count: u64) -> HostHeard {
        let HostResult { hello, lost, seen_ns, seen_ops, .. } = &self.result;
        let state = match self.phase {
            _ if self.is_lost() => LOST.to_owned(),
            _ if self.is_late => format!("{LATE_STATE} {} s", self.word.elapsed().as_secs()),
            Phase::Idle | Phase::Preparing => "preparing".to_owned(),
            Phase::Ready => "ready".to_owned(),
            Phase::Running => "running".to_owned(),
            Phase::Ended | Phase::Kept => "ended".to_owned(),
        };
        HostHeard {
            name: hello.name.clone(),
            state,
            note: lost.clone(),
            sessions_count,
            at_ns: *seen_ns,
            ops_count: *seen_ops,
        }
    }
}

/// The controller at work.
struct Watch<'a> {
    bus: Bus,
    plan: RunPlan,
    hosts: Vec<Host>,
    patience: Patience,
    watcher: &'a mut dyn Watcher,
    inbox: String,
    beats: Subscriber,
    news: Subscriber,
    /// When each beat was sent, ns.
    sent_ns: Vec<u64>,
    next_beat: Instant,
    strangers: u64,
    /// What the hosts told, and the readings that were shown last.
    ticks: TickMerge,
    shown: Snapshot,
    /// Since when the server cannot be reached.
    cut_off: Option<Instant>,
    /// The step that was ordered last, and when, ns.
    step: u64,
    ordered_ns: u64,
}

impl<'a> Watch<'a> {
    async fn new(
        bus: &Bus,
        plan: RunPlan,
        patience: Patience,
        watcher: &'a mut dyn Watcher,
    ) -> Result<Self, FleetError> {
        let inbox = bus.client().new_inbox();
        let beats = subscribe(bus, &format!("{inbox}.*")).await?;
        let news = bus.subscribe("from.*").await?;
        let hosts: Vec<Host> = plan.hosts.iter().map(|(hello, offset)| Host::of(hello, offset)).collect();
        Ok(Self {
            bus: bus.clone(),
            plan,
            ticks: TickMerge::new(hosts.len()),
            hosts,
            patience,
            watcher,
            inbox,
            beats,
            news,
            sent_ns: Vec::new(),
            next_beat: Instant::now(),
            strangers: 0,
            shown: Snapshot::default(),
            cut_off: None,
            step: 0,
            ordered_ns: 0,
        })
    }

    /// Hosts that hear nobody stop by themselves and keep what they measured: a server that stays away is not waited for.
    fn refuse_gone(&self, so: &str) -> Result<(), FleetError> {
        match self.cut_off.map(|since| since.elapsed()).filter(|gone| *gone > self.patience.gone_after) {
            None => Ok(()),
            Some(gone) => Err(FleetError::Unusable(format!(
                "the NATS server could not be reached for {} s: {so}",
                gone.as_secs()
            ))),
        }
    }

    fn run(&self) -> StopRun {
        StopRun { run: self.plan.spec.run.clone() }
    }

    async fn stop(&self) {
        self.bus.say("all.stop", &self.run()).await;
    }

    /// From the order to get ready to the start.
    async fn begin(&mut self, asked: &Asked, stop: &Stop) -> Result<(), FleetError> {
        let names: Vec<&str> = self.hosts.iter().map(|host| host.result.hello.name.as_str()).collect();
        let more = if names.len() > NAMED { ", ..." } else { "" };
        let named = names[..names.len().min(NAMED)].join(", ");
        self.watcher.say(&format!("hosts: {named}{more} ({} in all)", names.len()));
        let hash = self.plan.spec.hash();
        let dead_man_s = asked.dead_man.as_secs();
        let request = Request::Prepare { spec: self.plan.spec.clone(), hash: hash.clone(), dead_man_s };
        for (name, answer) in self.ask_all(|_| Some(request.clone())).await {
            match answer? {
                Answer::Accepted { hash: found } if found == hash => {}
                Answer::Refused { reason } => return Err(FleetError::Refused(format!("{name}: {reason}"))),
                _ => return Err(FleetError::Refused(format!("{name} has another spec of the run: the hashes differ"))),
            }
        }
        while self.hosts.iter().any(|host| host.phase < Phase::Ready) {
            if stop.requested() {
                return Err(FleetError::Interrupted);
            }
            self.turn().await;
            self.refuse_gone("no host began")?;
            let broken = |host: &&Host| host.is_lost() || host.phase >= Phase::Ended;
            if let Some(host) = self.hosts.iter().find(broken) {
                let why = if host.is_lost() { &host.result.lost } else { &host.problem };
                let said = format!("{}: {why}; no host began", host.result.hello.name);
                let is_usage = host.code == Some(USAGE);
                return Err(if is_usage { FleetError::Refused(said) } else { FleetError::Unusable(said) });
            }
        }
        self.start().await;
        Ok(())
    }

    async fn start(&mut self) {
        let run = self.plan.spec.run.clone();
        self.plan.readers = self.readers();
        self.plan.start_ns = self.order(0).await;
        if let Ok(plan) = serde_json::to_vec(&self.plan)
            && let Err(error) = self.bus.keep(&format!("kept.{run}.plan"), plan).await
        {
            self.watcher.say(&format!("warning: no other controller can take this run: {error}"));
        }
    }

    /// The first host of each server: what a server counts is of all its clients, and counts once.
    fn readers(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let first = self.hosts.iter().filter(|host| host.server.as_ref().is_some_and(|server| seen.insert(server)));
        first.map(|host| host.result.hello.instance.clone()).collect()
    }

    /// Asks every host that there is something to ask of, at the same time.
    async fn ask_all(&self, request: impl Fn(&Host) -> Option<Request>) -> Vec<(String, Result<Answer, FleetError>)> {
        let bus = &self.bus;
        let asked = self.hosts.iter().filter_map(|host| {
            let (subject, request) = (format!("to.{}", host.result.hello.instance), request(host)?);
            Some(async move { (host.result.hello.name.clone(), bus.ask(&subject, &request).await) })
        });
        join_all(asked).await
    }

    /// Until each host has kept what it measured, or is lost.
    async fn until_all_kept(mut self, kept: &KeptRuns, stop: &Stop) -> Result<Gathered, FleetError> {
        for host in &mut self.hosts {
            let end = format!("{}.{}.end", self.plan.spec.run, host.result.hello.instance);
            if host.phase == Phase::Idle && matches!(kept.get(&end).await, Ok(Some(_))) {
                host.phase = Phase::Kept;
            }
        }
        let mut stopped_at: Option<Instant> = None;
        while !self.hosts.iter().all(Host::is_done) {
            if stop.requested() && stopped_at.is_none_or(|at| at.elapsed() >= BEAT) {
                stopped_at = Some(Instant::now());
                self.stop().await;
            }
            if stop.abandoned() {
                for host in self.hosts.iter_mut().filter(|host| !host.is_done()) {
                    host.result.lost = "not waited for: the controller was interrupted twice".to_owned();
                }
            }
            self.turn().await;
            if stopped_at.is_none() {
                self.lockstep().await;
            }
            let run = &self.plan.spec.run;
            self.refuse_gone(&format!(
                "the hosts keep what they measured until it is back; `assay fleet run --take {run}` makes the record then"
            ))?;
        }
        self.gather(kept).await
    }

    /// Hears what there is to hear for a moment.
    async fn turn(&mut self) {
        if self.next_beat <= Instant::now() {
            self.next_beat = Instant::now() + BEAT;
            self.beat().await;
        }
        let look = tokio::time::sleep(LOOK);
        tokio::pin!(look);
        loop {
            tokio::select! {
                Some(message) = self.beats.next() => self.heard_beat(&message),
                Some(message) = self.news.next() => self.heard_news(&message).await,
                () = &mut look => break,
            }
        }
        self.judge();
    }

    async fn beat(&mut self) {
        self.show();
        if !self.bus.is_connected() {
            return;
        }
        let reply = format!("{}.{}", self.inbox, self.sent_ns.len());
        self.sent_ns.push(mono_ns());
        if let Ok(run) = serde_json::to_vec(&self.run()) {
            let _ = self.bus.client().publish_with_reply(self.bus.subject("all.beat"), reply, run.into()).await;
        }
    }

    fn heard_beat(&mut self, message: &Message) {
        let number = message.subject.rsplit('.').next().and_then(|n| n.parse::<usize>().ok());
        let sent = number.and_then(|n| self.sent_ns.get(n));
        let (Some(&sent_ns), Ok(beat)) = (sent, serde_json::from_slice::<Beat>(&message.payload)) else {
            self.strangers += 1;
            return;
        };
        let run = self.plan.spec.run.clone();
        let Some(host) = self.hosts.iter_mut().find(|host| host.result.hello.instance == beat.instance) else {
            return;
        };
        host.result.control.record(mono_ns().saturating_sub(sent_ns));
        if beat.run.as_ref() != Some(&run) {
            return;
        }
        host.phase = host.phase.max(beat.phase);
        host.problem = beat.problem.unwrap_or_default();
        host.code = beat.code;
        host.server = beat.server;
        // What was said before the last order is of what was ordered.
        if sent_ns > self.ordered_ns {
            host.waits = beat.waits;
        }
        if let Some(gate_ns) = beat.gate_ns {
            host.result.gate_ns = Some(host.result.offset.from_host(gate_ns));
        }
        self.word(&beat.instance);
    }

    /// A host was heard of: one that was lost is back, unless its agent is another.
    fn word(&mut self, instance: &str) {
        let Some(host) = self.hosts.iter_mut().find(|host| host.result.hello.instance == instance) else {
            return;
        };
        host.word = Instant::now();
        if host.is_replaced || (!host.is_late && !host.is_lost()) {
            return;
        }
        host.is_late = false;
        host.result.lost.clear();
        let name = &host.result.hello.name;
        self.watcher.say(&format!("{name} is heard of again"));
    }

    async fn heard_news(&mut self, message: &Message) {
        let instance = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
        match serde_json::from_slice::<News>(&message.payload) {
            Ok(News::Hello(hello)) => self.greeted(&hello).await,
            Ok(News::Tick { run, tick }) if run == self.plan.spec.run => {
                self.word(&instance);
                let Some(at) = self.hosts.iter().position(|host| host.result.hello.instance == instance) else {
                    return;
                };
                let result = &mut self.hosts[at].result;
                (result.seen_ns, result.seen_ops) = (tick.at_ns, tick.ops);
                self.ticks.take(at, *tick);
            }
            Ok(News::Tick { .. }) => {}
            Err(_) => self.strangers += 1,
        }
    }

    /// An agent that began to listen during the run: on a machine of the run it is one that was started again.
    async fn greeted(&mut self, hello: &Hello) {
        let run = &self.plan.spec.run;
        let same = |host: &&mut Host| {
            host.result.hello.machine == hello.machine && host.result.hello.instance != hello.instance
        };
        let Some(host) = self.hosts.iter_mut().find(same).filter(|host| host.phase != Phase::Kept) else {
            return;
        };
        let name = &host.result.hello.name;
        let at = host.result.seen_ns / NS_PER_S;
        host.result.lost = format!("its agent was started again; the last second heard of was {at}");
        host.is_replaced = true;
        self.watcher.say(&format!("warning: {name} is lost: {}", host.result.lost));
        let reason = format!(
            "this agent was started again during run {run}: a part that was cut off is not continued, and {name} takes part \
             in the next run"
        );
        self.bus.say(&format!("to.{}", hello.instance), &Request::Refuse { reason }).await;
    }

    /// Late and lost hosts. While the server cannot be reached nobody is either: nothing could be heard.
    fn judge(&mut self) {
        let is_cut_off = !self.bus.is_connected();
        if is_cut_off != self.cut_off.is_some() {
            self.cut_off = is_cut_off.then(Instant::now);
            let now = if is_cut_off { "cannot be reached: the hosts go on" } else { "is back" };
            self.watcher.say(&format!("warning: the NATS server {now}"));
        }
        for host in self.hosts.iter_mut().filter(|host| !host.is_done()) {
            if is_cut_off {
                host.word = Instant::now();
                continue;
            }
            let silent = host.word.elapsed();
            let name = &host.result.hello.name;
            host.result.late_s_max = host.result.late_s_max.max(if silent > LATE { silent.as_secs() } else { 0 });
            if silent > self.patience.lost_after {
                let at = host.result.seen_ns / NS_PER_S;
                let silent = silent.as_secs();
                host.result.lost = format!("nothing heard for {silent} s; the last second heard of was {at}");
                self.watcher.say(&format!("warning: {name} is lost: {}", host.result.lost));
            } else if silent > LATE && !host.is_late {
                host.is_late = true;
                self.watcher.say(&format!("{name} is late: nothing heard for {} s", silent.as_secs()));
            }
        }
    }

    fn show(&mut self) {
        let told = self.ticks.told(|at| self.hosts[at].is_at_work());
        let hosts = self.hosts.iter().enumerate().map(|(at, host)| host.heard(self.ticks.sessions(at)));
        self.watcher.heard(hosts.collect(), &told);
        let running = self.hosts.iter().filter(|host| !host.is_lost() && !host.is_late).count();
        let all = self.hosts.len();
        let Some((_, now)) = told.into_iter().next_back() else {
            let is_begun = self.plan.start_ns > 0 && self.shown.at_ns == 0;
            if let Some(since_ns) = mono_ns().checked_sub(self.plan.start_ns).filter(|_| is_begun) {
                let since_s = since_ns / NS_PER_S;
                self.watcher.live(&format!("{since_s} s: {running} of {all} hosts{}", self.waited_for()));
            }
            return;
        };
        let before = std::mem::replace(&mut self.shown, now);
        let (at_ns, done) = (self.shown.at_ns, self.shown.driver.difference(&before.driver));
        let rate = done.ops_ended() as f64 * NS_PER_S as f64 / at_ns.saturating_sub(before.at_ns).max(1) as f64;
        let p99 = done.service().percentile_ns(0.99).map_or_else(String::new, |ns| format!(", p99 {} us", ns / 1000));
        let at_s = at_ns / NS_PER_S;
        self.watcher.live(&format!("{at_s} s: {running} of {all} hosts, {rate:.0} operations/s{p99}"));
    }

    /// Takes everything that is kept. A host may be lost after it kept its part.
    async fn gather(mut self, kept: &KeptRuns) -> Result<Gathered, FleetError> {
        let begun_ns = mono_ns();
        let run = self.plan.spec.run.clone();
        let places: Vec<String> =
            self.hosts.iter().map(|host| format!("{run}.{}", host.result.hello.instance)).collect();
        let fetched = join_all(places.iter().map(|place| gather::fetch(kept, place))).await;
        for (host, found) in self.hosts.iter_mut().zip(gather::read_all(fetched)) {
            let result = &mut host.result;
            match found {
                Ok(Some(found)) => {
                    result.dir = found.kept.dir;
                    result.remark = found.kept.remark;
                    let gate_ns = found.kept.gate_ns.map(|ns| result.offset.from_host(ns));
                    result.gate_ns = gate_ns.or(result.gate_ns);
                    result.lost = if found.data.is_some() { String::new() } else { found.kept.reason };
                    (result.data, result.series) = (found.data, found.series);
                }
                Ok(None) if result.lost.is_empty() => "nothing is kept of it".clone_into(&mut result.lost),
                Ok(None) => {}
                Err(error) => result.lost = error.to_string(),
            }
        }
        let gather_ns = mono_ns() - begun_ns;
        let hosts = self.hosts.into_iter().map(|host| host.result).collect();
        Ok(Gathered { plan: self.plan, hosts, strangers: self.strangers, gather_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;
    impl Watcher for Silent {
        fn say(&mut self, _line: &str) {}
        fn live(&mut self, _line: &str) {}
    }

    fn host(name: &str, machine: &str, version: &str) -> Hello {
        let [name, machine, version] = [name, machine, version].map(str::to_owned);
        Hello { instance: format!("{name}-{machine}"), name, machine, version, ..Hello::default() }
    }

    fn judged(found: Vec<Hello>, hosts: Option<usize>) -> Result<Vec<String>, String> {
        let asked = Asked {
            address: Address { fleet: "f".to_owned(), ..Address::default() },
            run: "1".to_owned(),
            version: "1".to_owned(),
            words: Vec::new(),
            seed: 1,
            hosts,
            wait: Duration::ZERO,
            lost_after: Duration::ZERO,
            dead_man: Duration::ZERO,
        };
        let found = fitting(found, &asked, &mut Silent).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|host| host.name).collect())
    }

    #[test]
    fn hosts_that_do_not_fit_together_are_refused_by_name() {
        let (a, b) = (host("a", "m1", "1"), host("b", "m2", "1"));
        assert_eq!(judged(vec![b.clone(), a.clone()], None), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(judged(vec![a.clone(), b.clone()], Some(1)), Ok(vec!["a".to_owned()]));
        assert_eq!(
            judged(vec![a.clone(), host("a", "m3", "1")], None),
            Ok(vec!["a".to_owned(), "a-2".to_owned()]),
            "two hosts of one name stay two rows"
        );
        let refused = |found, hosts| judged(found, hosts).expect_err("refused");
        assert!(refused(Vec::new(), None).contains("0 of 1 hosts answer in fleet f (nobody)"));
        assert!(refused(vec![a.clone()], Some(2)).contains("1 of 2 hosts answer in fleet f (a)"));
        assert!(refused(vec![a.clone(), host("c", "m1", "1")], None).contains("a and c are on one machine"));
        assert!(refused(vec![a.clone(), host("c", "m3", "2")], None).contains("this is assay 1, but c has 2"));
        let busy = Hello { run: Some("77".to_owned()), ..b };
        assert!(refused(vec![a, busy], None).contains("b is busy with run 77"));
    }
}
