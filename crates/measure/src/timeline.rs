//! Events on the time line: what was done to the run or to its platform, and when.

use crate::figures::figures;
use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimelineKind {
    /// A command the user planned for this instant.
    Command,
    /// The external script was called.
    Script,
    /// CPUs of the host went on or off line.
    OnlineCpus,
    /// The CPU quota of the control group changed.
    CpuQuota,
    /// The CPUs the driver threads may use changed.
    Affinity,
}

impl TimelineKind {
    /// For people, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Script => "external script",
            Self::OnlineCpus => "online CPUs",
            Self::CpuQuota => "CPU quota",
            Self::Affinity => "CPU affinity",
        }
    }
}

/// How a command ended.
#[figures]
#[derive(Eq)]
pub struct CommandEnd {
    /// `exit 0`, `killed by signal 9`, `could not be started: ...`.
    pub status: String,
    /// It ended by itself with 0.
    pub good: bool,
    /// From start to end, ns; to within 10 ms.
    pub took_ns: u64,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// Its number in the run, by which a later word on the same event is known.
    pub number: u64,
    /// Its instant, ns after the gate; 0 also for what came before.
    pub at_ns: u64,
    /// RFC 3339 wall time, a label only.
    #[serde(default)]
    pub wall: String,
    /// What happened.
    pub kind: TimelineKind,
    /// The command, or what changed, in words.
    pub text: String,
    /// The value before a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// File in the run directory that holds what a command said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// How a command ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<CommandEnd>,
}

/// Adds an event, or replaces the earlier word on the same one.
pub fn note(events: &mut Vec<TimelineEvent>, event: TimelineEvent) {
    match events.iter_mut().find(|old| old.number == event.number) {
        Some(old) => *old = event,
        None => events.push(event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_word_on_an_event_replaces_the_earlier() {
        let begun = TimelineEvent {
            number: 2,
            at_ns: 5,
            wall: String::new(),
            kind: TimelineKind::Command,
            text: "true".to_owned(),
            from: None,
            to: None,
            output: None,
            end: None,
        };
        let ended = TimelineEvent {
            end: Some(CommandEnd { status: "exit 0".to_owned(), good: true, took_ns: 1 }),
            ..begun.clone()
        };
        let other = TimelineEvent { number: 1, ..begun.clone() };
        let mut events = Vec::new();
        for event in [begun, other.clone(), ended.clone()] {
            note(&mut events, event);
        }
        assert_eq!(events, [ended, other]);
    }
}
