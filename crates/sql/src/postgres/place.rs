//! What follows `postgres:` in a target's URL, or the `temp:` form of it.

use super::conninfo::{self, ConnectOptions};
use super::patience::Patience;
use assay_measure::config::Settings;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::time::Duration;

/// Begins the location of a server that [`Target::start`](assay_run::engine::Target::start) has started.
const STARTED: &str = "started:";

/// No answer is given up sooner.
const SHORTEST: Duration = Duration::from_secs(1);

/// Where the data set is, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// `temp:postgres[:VERSION]`: a throw-away server that does not run yet.
    Temporary {
        /// Major version asked for; none: the newest installed.
        version: Option<String>,
    },
    /// A server that runs.
    Server {
        /// `//user@host:port/db?...`
        url: String,
        /// It was started for this command and goes away with it: nothing in it can be harmed.
        throw_away: bool,
        /// How long its answers may take.
        patience: Patience,
    },
}

impl Place {
    /// Reads a location.
    pub(super) fn new(location: &str) -> Result<Self, EngineError> {
        if let Some(url) = location.strip_prefix(STARTED) {
            return Ok(Self::Server {
                url: url.to_owned(),
                throw_away: true,
                patience: Patience::default(),
            });
        }
        match location.strip_prefix("temp") {
            Some("") => Ok(Self::Temporary { version: None }),
            Some(version) if version.starts_with(':') => Ok(Self::Temporary {
                version: Some(version[1..].to_owned()),
            }),
            _ => Ok(Self::Server {
                url: location.to_owned(),
                throw_away: false,
                patience: Patience::default(),
            }),
        }
    }

    /// As PG_ANSWER_TIMEOUT has it, and with an ear for this request to stop.
    pub(super) fn patient(mut self, settings: &Settings, stop: &Stop) -> Self {
        if let Self::Server { patience, .. } = &mut self {
            let answer = Duration::from_nanos(settings.ns("PG_ANSWER_TIMEOUT"));
            *patience = Patience::new(answer.max(SHORTEST), stop);
        }
        self
    }

    /// The failure of a command that its user has asked to end is that end, once the server was given up.
    pub(super) fn failed(&self, error: EngineError) -> EngineError {
        match self {
            Self::Server { patience, .. } if patience.is_over() && patience.hurries() => {
                EngineError::Interrupted
            }
            _ => error,
        }
    }

    /// The location of a server that was started, by its URL.
    pub(super) fn started(url: &str) -> String {
        format!("{STARTED}{url}")
    }

    /// How to connect to it.
    pub(super) fn connect_options(&self) -> Result<ConnectOptions, EngineError> {
        match self {
            Self::Temporary { .. } => Err(EngineError::Usage(
                "a temporary server runs only during one command: it does not exist before or after the \
                 command".to_owned(),
            )),
            Self::Server { url, patience, .. } => {
                let options = conninfo::options(url, &conninfo::ThisHost)
                    .map_err(|text| EngineError::Usage(format!("target postgres: {text}")))?;
                Ok(ConnectOptions {
                    patience: patience.clone(),
                    ..options
                })
            }
        }
    }
}
