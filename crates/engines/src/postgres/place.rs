//! What follows `postgres:` in a target's URL, or the `temp:` form of it.

use super::conninfo::{self, ConnectOptions};
use assay_run::engine::EngineError;

/// Begins the location of a server that [`Target::start`](assay_run::engine::Target::start) has started.
const STARTED: &str = "started:";

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
    },
}

impl Place {
    /// Reads a location.
    pub(super) fn new(location: &str) -> Result<Self, EngineError> {
        if let Some(url) = location.strip_prefix(STARTED) {
            return Ok(Self::Server {
                url: url.to_owned(),
                throw_away: true,
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
            }),
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
                "a temporary server runs only within one command: nothing is there before and after it".to_owned(),
            )),
            Self::Server { url, .. } => conninfo::options(url, &conninfo::ThisHost)
                .map_err(|text| EngineError::Usage(format!("target postgres: {text}"))),
        }
    }
}
