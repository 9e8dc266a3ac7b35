//! A test between two hosts over a fleet: each pair alone, one after the other.
//!
//! A host serves, and each of those behind it in the list runs the test against it, in a process like a part of any run. Who
//! serves and who asks know the same secret, which is made for this and never leaves the bus.

mod record;

pub use record::{KIND, PairsInfo};

use super::FleetError;
use super::bus::{Bus, KeptRuns};
use super::controller::{self, Asked, Watcher};
use super::message::{Answer, Beat, Hello, Kept, Phase, Request, Spec, Stop as StopRun};
use assay_measure::record::Record;
use assay_run::stop::Stop;
use futures_util::StreamExt;
use std::time::{Duration, Instant};

/// How often a pair is asked how far it is: its server must hear of somebody.
const LOOK: Duration = Duration::from_millis(500);
/// How long agents may take to answer that.
const ANSWER: Duration = Duration::from_secs(2);
/// Until a host serves, and until a process that was stopped has ended.
const STEP: Duration = Duration::from_secs(20);

/// A test of pairs.
#[derive(Clone, Debug)]
pub struct PairsAsked<'a> {
    /// Who, and how patiently; its words are the test and its options.
    pub asked: &'a Asked,
    /// What both ends know.
    pub secret: String,
    /// How long a pair takes; it may take [`STEP`] more.
    pub time: Duration,
}

/// One pair.
#[derive(Debug)]
pub struct Pair {
    /// Who served, by its place among the hosts.
    pub server: usize,
    /// Who asked.
    pub client: usize,
    /// The record of who asked, or why there is none.
    pub outcome: Result<Box<Record>, String>,
}

/// Tests all pairs.
///
/// # Errors
/// Hosts are missing or do not fit together: nothing was tested.
pub fn run(of: &PairsAsked<'_>, stop: &Stop, watcher: &mut dyn Watcher) -> Result<(Vec<Hello>, Vec<Pair>), FleetError> {
    super::runtime()?.block_on(async {
        let asked = of.asked;
        let bus = Bus::connect(&asked.address, "controller").await?;
        let kept = bus.kept().await?;
        let hosts = controller::find(&bus, asked, stop, watcher).await?;
        if hosts.len() < 2 {
            return Err(FleetError::Unusable(format!("{} is alone, and a pair needs two hosts", hosts[0].name)));
        }
        let all = hosts.len() * (hosts.len() - 1) / 2;
        let each_s = of.time.as_secs() + 1;
        watcher.say(&format!(
            "{} hosts, {all} pairs, one after the other: about {} s",
            hosts.len(),
            all as u64 * each_s
        ));
        let mut table = Table { of, bus, kept, hosts, watcher, stop, pairs: Vec::with_capacity(all), all };
        for server in 0..table.hosts.len() - 1 {
            table.row(server).await;
        }
        Ok((table.hosts, table.pairs))
    })
}

/// The controller at work.
struct Table<'a> {
    of: &'a PairsAsked<'a>,
    bus: Bus,
    kept: KeptRuns,
    hosts: Vec<Hello>,
    watcher: &'a mut dyn Watcher,
    stop: &'a Stop,
    pairs: Vec<Pair>,
    all: usize,
}

impl Table<'_> {
    /// The pairs that a host serves.
    async fn row(&mut self, server: usize) {
        if self.stop.requested() {
            return;
        }
        let run = format!("{}-{server}", self.of.asked.run);
        let serves = match self.begin(&run, server, "server").await {
            Ok(()) => self.until(&run, server, Phase::Ready, STEP).await,
            Err(why) => Err(why),
        };
        for client in server + 1..self.hosts.len() {
            if self.stop.requested() {
                break;
            }
            let [who, whom] = [client, server].map(|host| self.hosts[host].name.clone());
            self.watcher.live(&format!("pair {} of {}: {who} to {whom}", self.pairs.len() + 1, self.all));
            let outcome = match &serves {
                Ok(()) => self.pair(&run, server, client).await,
                Err(why) => Err(format!("{whom} does not serve: {why}")),
            };
            if let Err(why) = &outcome {
                self.watcher.say(&format!("warning: {who} to {whom}: {why}"));
            }
            self.pairs.push(Pair { server, client, outcome });
        }
        self.bus.say("all.stop", &StopRun { run: run.clone() }).await;
        // A server that does not end keeps the host busy, which the next pair of it says.
        let _ = self.until(&run, server, Phase::Kept, STEP).await;
        let _ = self.kept.forget(&run).await;
    }

    async fn pair(&self, run: &str, server: usize, client: usize) -> Result<Box<Record>, String> {
        self.begin(run, client, &self.hosts[server].address).await?;
        if let Err(why) = self.until(run, client, Phase::Kept, self.of.time + STEP).await {
            self.bus.say("all.stop", &StopRun { run: run.to_owned() }).await;
            return Err(why);
        }
        let place = format!("{run}.{}", self.hosts[client].instance);
        self.record(&place).await.map_err(|error| error.to_string())?
    }

    /// Has a host get its part ready, or begin with it: `with` is the other end.
    async fn begin(&self, run: &str, host: usize, with: &str) -> Result<(), String> {
        let asked = self.of.asked;
        let (test, options) = asked.words.split_first().ok_or("no test is named")?;
        let hello = &self.hosts[host];
        let mut words = vec![test.clone(), with.to_owned()];
        if with == "server" {
            words.push(format!("--bind={}", hello.address));
            words.extend(options.iter().filter(|word| word.starts_with("--port=")).cloned());
        } else {
            words.extend_from_slice(options);
        }
        let spec = Spec {
            run: run.to_owned(),
            version: asked.version.clone(),
            words,
            seed: asked.seed,
            hosts: vec![hello.instance.clone()],
            secret: self.of.secret.clone(),
        };
        let hash = spec.hash();
        let request = Request::Prepare { spec, hash, dead_man_s: asked.dead_man.as_secs() };
        match self.bus.ask(&format!("to.{}", hello.instance), &request).await {
            Ok(Answer::Accepted { .. }) => Ok(()),
            Ok(Answer::Refused { reason }) => Err(reason),
            Ok(Answer::Clock { .. }) => Err("it answers something else".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Waits until a host is so far with its part.
    async fn until(&self, run: &str, host: usize, phase: Phase, patience: Duration) -> Result<(), String> {
        let begun = Instant::now();
        let mut silent = Instant::now();
        loop {
            if let Some(beat) = self.beat(run, host).await {
                silent = Instant::now();
                if beat.phase >= phase && (phase == Phase::Kept || beat.phase < Phase::Ended) {
                    return Ok(());
                }
                if beat.phase >= Phase::Ended && phase < Phase::Ended {
                    return Err(beat.problem.unwrap_or_else(|| "its process ended".to_owned()));
                }
            }
            if silent.elapsed() > self.of.asked.lost_after {
                return Err(format!("lost: nothing heard for {} s", silent.elapsed().as_secs()));
            }
            if begun.elapsed() > patience {
                return Err(format!("it is not done within {} s", patience.as_secs()));
            }
            // The far end of a pair that was stopped keeps what it has.
            if self.stop.requested() {
                self.bus.say("all.stop", &StopRun { run: run.to_owned() }).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How far a host is with a run. All hosts are asked, since those that serve must hear of somebody too.
    async fn beat(&self, run: &str, host: usize) -> Option<Beat> {
        let inbox = self.bus.client().new_inbox();
        let mut answers = self.bus.client().subscribe(inbox.clone()).await.ok()?;
        let asked = serde_json::to_vec(&StopRun { run: run.to_owned() }).ok()?;
        self.bus.client().publish_with_reply(self.bus.subject("all.beat"), inbox, asked.into()).await.ok()?;
        let instance = &self.hosts[host].instance;
        let found = async {
            while let Some(message) = answers.next().await {
                let beat = serde_json::from_slice::<Beat>(&message.payload);
                if let Ok(beat) = beat
                    && beat.instance == *instance
                {
                    return Some(beat).filter(|beat| beat.run.as_deref() == Some(run));
                }
            }
            None
        };
        tokio::time::timeout(ANSWER, found).await.ok()?
    }

    /// What a host kept: its record, or why there is none.
    async fn record(&self, place: &str) -> Result<Result<Box<Record>, String>, FleetError> {
        let unreadable =
            |error: serde_json::Error| FleetError::Unusable(format!("what it kept cannot be read: {error}"));
        let Some(end) = self.kept.get(&format!("{place}.end")).await? else {
            return Ok(Err("nothing is kept of it".to_owned()));
        };
        let end: Kept = serde_json::from_slice(&end).map_err(unreadable)?;
        let Some(part) = end.parts.iter().find(|part| part.name == "data") else {
            return Ok(Err(end.reason));
        };
        let bytes = self.kept.part(place, part, None).await?;
        part.refuse_damaged(&bytes)?;
        Ok(Ok(Box::new(serde_json::from_slice(&bytes).map_err(unreadable)?)))
    }
}
