//! What controller and agents say to each other, as JSON.

use super::FleetError;
use super::clock::Offset;
use assay_measure::snapshot::{DriverReading, Mark};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Who an agent is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Name of the host, as reports have it.
    pub name: String,
    /// Of the machine: two agents with one are the same host under two addresses.
    pub machine: String,
    /// Of this process: it changes when the agent is started again.
    pub instance: String,
    /// assay's version.
    pub version: String,
    /// CPUs the agent may use.
    pub cpus: u64,
    /// The run it has a part of.
    pub run: Option<String>,
    /// By which the other hosts reach it.
    pub address: String,
}

/// A run as all its hosts must have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The run's id.
    pub run: String,
    /// assay's version.
    pub version: String,
    /// The command after `assay`, for every host.
    pub words: Vec<String>,
    /// The seed of all random streams.
    pub seed: u64,
    /// Its hosts, by instance, in the order of their shares.
    pub hosts: Vec<String>,
    /// What both ends of a test between hosts know; empty of others.
    pub secret: String,
}

impl Spec {
    /// The hash that every agent must find itself.
    ///
    /// # Panics
    /// Never: a spec is plain data.
    #[must_use]
    pub fn hash(&self) -> String {
        let text = serde_json::to_vec(self).expect("a spec is plain data");
        hex(&text)
    }
}

/// SHA-256 of bytes.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Of one agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// What its clocks say now.
    Clock,
    /// Get ready.
    Prepare {
        /// The run.
        spec: Spec,
        /// Its [`Spec::hash`].
        hash: String,
        /// The agent ends the run when it has heard nothing from a controller for so long, s.
        dead_man_s: u64,
    },
    /// Begin at an instant.
    Start {
        /// The run.
        run: String,
        /// When, by the agent's clock.
        begin: Begin,
    },
    /// It has no part in a run that it had one of before.
    Refuse {
        /// Why.
        reason: String,
    },
}

/// A start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// By `CLOCK_MONOTONIC` of the host, ns.
    pub at_ns: u64,
    /// Whether this host reads what its server counts for the run; another one does where it does not.
    pub reads_server: bool,
    /// What begins: 0 is the run, the others are steps of its plan.
    pub step: u64,
}

/// To a [`Request`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The agent's clocks.
    Clock {
        /// Monotonic, ns.
        mono_ns: u64,
        /// Wall clock, ns since 1970.
        wall_ns: u64,
    },
    /// As asked; the hash the agent found.
    Accepted {
        /// [`Spec::hash`]; empty for a start.
        hash: String,
    },
    /// Not done, and why.
    Refused {
        /// In a sentence.
        reason: String,
    },
}

/// Ends a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stop {
    /// Which.
    pub run: String,
}

/// How far a host is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It has no part in the run.
    #[default]
    Idle,
    /// Its process prepares and connects.
    Preparing,
    /// It waits for the start.
    Ready,
    /// It has been told when to begin.
    Running,
    /// Its process has ended; what it measured is on its way to JetStream.
    Ended,
    /// What it measured is in JetStream.
    Kept,
}

/// An agent's answer to a beat.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Beat {
    /// Whose.
    pub instance: String,
    /// The run it has a part of.
    pub run: Option<String>,
    /// How far it is.
    pub phase: Phase,
    /// Instant of its gate by its clock, ns.
    pub gate_ns: Option<u64>,
    /// What it waits to begin, by [`Begin::step`].
    pub waits: Option<u64>,
    /// Which server it can read, once it is ready.
    pub server: Option<String>,
    /// What its run said last that went wrong.
    pub problem: Option<String>,
    /// Exit code of its process, once that ended.
    pub code: Option<i32>,
}

/// What an agent says unasked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum News {
    /// It has just begun to listen.
    Hello(Hello),
    /// A second of its run.
    Tick {
        /// Which run.
        run: String,
        /// What was done.
        tick: Box<Tick>,
    },
}

/// What a host did up to a second of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// ns after the gate.
    pub at_ns: u64,
    /// Why it is told.
    pub mark: Mark,
    /// Operations ended since the gate.
    pub ops: u64,
    /// What its load generator counted since the tick before; responses that took as long as the service are left out.
    pub driver: DriverReading,
}

/// What JetStream has of one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Instant of its gate by its clock, ns.
    pub gate_ns: Option<u64>,
    /// Exit code of its process; `None` after a signal.
    pub code: Option<i32>,
    /// Why there is no data, or what was said at its end.
    pub reason: String,
    /// What the agent did to the run by itself.
    pub remark: String,
    /// Directory of its own record, on the host.
    pub dir: String,
    /// Its parts.
    pub parts: Vec<KeptPart>,
}

/// One part in pieces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptPart {
    /// `data` or `series`.
    pub name: String,
    /// Pieces.
    pub pieces: u64,
    /// SHA-256 of the whole.
    pub hash: String,
}

impl KeptPart {
    /// # Errors
    /// These bytes are not what was kept.
    pub fn refuse_damaged(&self, bytes: &[u8]) -> Result<(), FleetError> {
        let damaged = || FleetError::Unusable(format!("what was kept of {} is damaged", self.name));
        if hex(bytes) == self.hash { Ok(()) } else { Err(damaged()) }
    }
}

/// A run as another controller finds it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunPlan {
    /// The run.
    pub spec: Spec,
    /// Its hosts with their clocks, in the order of their shares.
    pub hosts: Vec<(Hello, Offset)>,
    /// The instant agreed on, by the controller's clock, ns.
    pub start_ns: u64,
    /// Hosts that read what a server counts for all, by instance: one for each server.
    #[serde(default)]
    pub readers: Vec<String>,
    /// Wall time of the start.
    pub started: String,
}
