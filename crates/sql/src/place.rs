//! What follows the scheme of a server in a target's URL, or the `temp:` form of it.

use crate::patience::Patience;
use assay_measure::config::Settings;
use assay_run::engine::{DataSet, EngineError, Presence};
use assay_run::stop::Stop;
use std::time::Duration;

/// Begins the location of a server that [`Target::start`](assay_run::engine::Target::start) has started.
const STARTED: &str = "started:";

/// No answer is given up sooner.
const SHORTEST: Duration = Duration::from_secs(1);

/// Where the data set is, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `temp:NAME[:VERSION]`: a throw-away server that does not run yet.
    Temporary {
        /// Its name in that place.
        name: String,
        /// Requested version; none: the newest installed.
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

/// What finds out whether a data set is there, and which.
pub(crate) const LOOK: &str = "the look at the data set";

impl Place {
    /// Reads a location.
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

    /// As this parameter has it, and with an ear for this request to stop.
    pub(crate) fn patient(mut self, settings: &Settings, timeout: &str, stop: &Stop) -> Self {
        if let Self::Server { patience, .. } = &mut self {
            let answer = Duration::from_nanos(settings.ns(timeout));
            *patience = Patience::new(answer.max(SHORTEST), stop);
        }
        self
    }

    /// What is done there now is never long: it has a deadline, and ends at a request to stop.
    pub(crate) fn brief(&self, what: &'static str) -> &Self {
        if let Self::Server { patience, .. } = self {
            patience.phase(what, Some(patience.brief()));
        }
        self
    }

    /// What is held there from now on lasts as long as its holder.
    pub(crate) fn lasting(&self, what: &'static str) {
        if let Self::Server { patience, .. } = self {
            patience.phase(what, None);
        }
    }

    /// The failure of a command that its user has asked to end is that end, once the server was given up.
    pub(crate) fn failed(&self, error: EngineError) -> EngineError {
        match self {
            Self::Server { patience, .. } => patience.failed(error),
            Self::Temporary { .. } => error,
        }
    }

    /// The location of a server that was started, by its URL.
    pub(crate) fn started(url: &str) -> String {
        format!("{STARTED}{url}")
    }

    /// Where a server runs, and how long its answers may take.
    ///
    /// # Errors
    /// `Usage`: it is a temporary one, which runs only during a command.
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

    /// What is there.
    pub(crate) fn presence(&self, found: Option<DataSet>) -> Presence {
        let harmless = self.is_throw_away();
        found.map_or(Presence::Absent { harmless }, Presence::Present)
    }

    /// It was started for this command and goes away with it.
    pub(crate) fn is_throw_away(&self) -> bool {
        matches!(self, Self::Server { throw_away: true, .. })
    }
}
