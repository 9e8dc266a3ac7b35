//! The part of a target's URL after the server's scheme, or its `temp:` form.

use crate::patience::Patience;
use assay_measure::config::Settings;
use assay_run::engine::{DataSet, EngineError, Presence};
use assay_run::stop::Stop;
use std::time::Duration;

/// Prefix of the location of a server that [`Target::start`](assay_run::engine::Target::start) has started.
const STARTED: &str = "started:";

/// Shortest time limit for an answer.
const SHORTEST: Duration = Duration::from_secs(1);

/// Where the data set is, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `temp:NAME[:VERSION]`: a throw-away server that does not run yet.
    Temporary {
        /// Name of the place on the server.
        name: String,
        /// Requested version; `None` means the newest installed.
        version: Option<String>,
    },
    /// A running server.
    Server {
        /// `//user@host:port/db?...`
        url: String,
        /// Started for this command and removed with it: nothing in it needs protection.
        throw_away: bool,
        /// How long its answers may take.
        patience: Patience,
    },
}

/// The phase that finds out whether a data set exists, and which.
pub(crate) const LOOK: &str = "the inspection of the data set";

/// A throw-away server: its name after `temp:`, and the requested version.
pub(crate) type Temporary<'a> = (&'a str, Option<&'a str>);

impl Place {
    /// `None` for a running server.
    pub(crate) fn temporary(&self) -> Option<Temporary<'_>> {
        match self {
            Self::Temporary { name, version } => Some((name, version.as_deref())),
            Self::Server { .. } => None,
        }
    }

    /// Parses a location.
    pub(crate) fn new(location: &str) -> Result<Self, EngineError> {
        if let Some(url) = location.strip_prefix(STARTED) {
            return Ok(Self::Server { url: url.to_owned(), throw_away: true, patience: Patience::default() });
        }
        let Some(of) = location.strip_prefix("temp:") else {
            return Ok(Self::Server { url: location.to_owned(), throw_away: false, patience: Patience::default() });
        };
        let (name, version) = match of.split_once(':') {
            Some((name, version)) => (name, Some(version.to_owned())),
            None => (of, None),
        };
        Ok(Self::Temporary { name: name.to_owned(), version })
    }

    /// Sets the patience that this parameter asks for, with this request to stop.
    pub(crate) fn patient(mut self, settings: &Settings, timeout: &str, stop: &Stop) -> Self {
        if let Self::Server { patience, .. } = &mut self {
            let answer = Duration::from_nanos(settings.ns(timeout));
            *patience = Patience::new(answer.max(SHORTEST), stop);
        }
        self
    }

    /// Starts a phase that must be short: it has a deadline and ends at a request to stop.
    pub(crate) fn brief(&self, what: &'static str) -> &Self {
        if let Self::Server { patience, .. } = self {
            patience.phase(what, Some(patience.brief()));
        }
        self
    }

    /// Starts a phase without a deadline, for a claim that lasts as long as its holder.
    pub(crate) fn lasting(&self, what: &'static str) {
        if let Self::Server { patience, .. } = self {
            patience.phase(what, None);
        }
    }

    /// Returns `Interrupted` instead of `error` if the user has asked to stop and the server was given up.
    pub(crate) fn failed(&self, error: EngineError) -> EngineError {
        match self {
            Self::Server { patience, .. } => patience.failed(error),
            Self::Temporary { .. } => error,
        }
    }

    /// The location of a started server with this URL.
    pub(crate) fn started(url: &str) -> String {
        format!("{STARTED}{url}")
    }

    /// URL and patience of a running server.
    ///
    /// # Errors
    /// `Usage`: a temporary server, which runs only during a command.
    pub(crate) fn server(&self) -> Result<(&str, &Patience), EngineError> {
        match self {
            Self::Temporary { .. } => Err(EngineError::Usage(
                "a temporary server runs only during one command: it does not exist before or after the \
                 command"
                    .to_owned(),
            )),
            Self::Server { url, patience, .. } => Ok((url, patience)),
        }
    }

    /// Presence of the data set found.
    pub(crate) fn presence(&self, found: Option<DataSet>) -> Presence {
        let harmless = self.is_throw_away();
        found.map_or(Presence::Absent { harmless }, Presence::Present)
    }

    /// Whether the server was started for this command and is removed with it.
    pub(crate) fn is_throw_away(&self) -> bool {
        matches!(self, Self::Server { throw_away: true, .. })
    }
}
