//! A fleet: agents that dial out to a NATS server, and a controller that gives each its share of a run.
//!
//! | subject, below the fleet's name | from, to | what |
//! |---|---|---|
//! | `all.hello` | controller, agents | who is there; each answers with its [`Hello`](message::Hello) |
//! | `all.beat` | controller, agents | each second of a run; each answers with its [`Beat`](message::Beat) |
//! | `all.stop` | controller, agents | end the run, save, keep |
//! | `to.INSTANCE` | controller, an agent | a [`Request`](message::Request): clock, prepare, start of the run or of a step, refuse |
//! | `from.INSTANCE` | an agent, controller | [`News`](message::News): a second's figures, a greeting |
//! | `kept.RUN.plan` | controller, JetStream | the run, so that another controller can take it |
//! | `kept.RUN.INSTANCE.PART.N` | an agent, JetStream | what a host measured, in pieces below the server's largest payload |
//!
//! An agent starts the run as a process and tells it when to begin; both ends of that pipe are in [`worker`]. All instants are
//! of `CLOCK_MONOTONIC`; the wall clock of a host is only reported.
//!
//! The steps of a plan begin together, too: a host whose process waits for one says so in its beats, and when no host that is
//! heard of is at work, the controller orders the next step as it ordered the start. Nobody keeps more of it than the beats
//! tell, so another controller goes on with it; a host that missed a step takes part in the next.

pub mod agent;
pub mod bus;
pub mod clock;
pub mod controller;
mod gather;
pub mod manifest;
pub mod merge;
pub mod message;
pub mod pairs;
pub mod record;
pub mod server;
pub mod ssh;
mod ticks;
pub mod worker;

/// Why a fleet does not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The request is wrong, or the hosts do not fit together: nothing was started.
    #[error("{0}")]
    Refused(String),
    /// The server or a host cannot serve.
    #[error("{0}")]
    Unusable(String),
    /// Stopped before the start.
    #[error("interrupted before the start")]
    Interrupted,
}

/// Controller and agents are a thread each: they say a few words a second.
fn runtime() -> Result<tokio::runtime::Runtime, FleetError> {
    let made = tokio::runtime::Builder::new_current_thread().enable_all().build();
    made.map_err(|error| FleetError::Unusable(format!("the event loop cannot be started: {error}")))
}
