//! SLOB as a target on any server.

use super::job::Jobs;
use crate::claim::{Purpose, settled};
use crate::marked::{Marked, Own};
use crate::place::{LOOK, Place, Temporary};
use assay_measure::config::{Concern, ParamDef, SERVERS, Settings};
use assay_run::dataset::lines::text;
use assay_run::engine::{Engine, EngineError, Hosts, Line, Presence, Progress, Started, Target, Watched};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_slob::params::SQL;

/// What each server does in its own way.
pub(crate) trait Dialect: Jobs + std::fmt::Debug + Sync {
    /// Scheme and form of the URL.
    const NAME: &'static str;
    const FORM: &'static str;
    const PARAMS: &'static [ParamDef];
    /// As [`Target::concerns`].
    const CONCERNS: &'static [Concern] = &[SQL, SERVERS];
    /// The parameter that limits the time of an answer.
    const ANSWER_TIMEOUT: &'static str;
    /// As [`Target::temporary`] and [`Target::server_params`].
    const TEMPORARY: &'static [&'static str] = &[];
    const SERVER_PARAMS: &'static [&'static str] = &[];
    /// Parameters that a running server refuses, each with the value that says nothing.
    const THROW_AWAY_ONLY: &'static [(&'static str, &'static str)] = &[];

    /// Marker values that only its data sets have.
    type Own: Own;
    /// A data set that was found.
    type Found: AsRef<Marked<Self::Own>>;
    /// A claim with the session that works under it; ends when dropped.
    type Held: Send + 'static;
    /// The full plan of a load.
    type LoadPlan;

    /// As [`Target::hosts`].
    const HOSTS: Hosts = Hosts::OneServer;

    /// Starts a throw-away server.
    fn start(
        _server: Temporary<'_>,
        _settings: &Settings,
        _stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Started, EngineError> {
        Err(without_throw_away(Self::NAME))
    }

    /// What a load would do on a throw-away server that does not run yet.
    fn imagine(_server: Temporary<'_>, _settings: &Settings, _schemas: u32) -> Result<Vec<Line>, EngineError> {
        Err(without_throw_away(Self::NAME))
    }

    fn at(&self, place: &Place, settings: &Settings) -> Result<Self::At, EngineError>;

    fn open(at: &Self::At) -> Result<Self::Session, EngineError>;

    /// `None` if nothing can be claimed.
    fn claim(at: &Self::At, purpose: Purpose) -> Result<Option<Self::Held>, EngineError>;

    fn session(held: &mut Self::Held) -> &mut Self::Session;

    /// What of a claim lasts as long as a series of runs.
    fn series(held: Self::Held) -> Box<dyn Send> {
        Box::new(held)
    }

    /// Closes a session on servers that expect a proper logoff.
    fn leave(session: Self::Session) {
        drop(session);
    }

    /// Ends a claim in the same way.
    fn end(held: Self::Held) {
        drop(held);
    }

    /// The data set in this place, after checking that assay supports the server.
    fn find(session: &mut Self::Session, at: &Self::At) -> Result<Option<Self::Found>, EngineError>;

    /// The error for a place without a data set.
    fn nothing(at: &Self::At) -> EngineError;

    fn plan(
        session: &mut Self::Session,
        at: &Self::At,
        settings: &Settings,
        schemas: u32,
    ) -> Result<Self::LoadPlan, EngineError>;

    /// Lines for text and JSON output.
    fn plan_lines(plan: &Self::LoadPlan) -> Vec<Line>;

    fn load(
        at: &Self::At,
        plan: Self::LoadPlan,
        keeper: &mut Self::Session,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError>;

    /// Checks all its SLOB schemas.
    fn check(
        at: &Self::At,
        found: &Self::Found,
        keeper: &mut Self::Session,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError>;

    /// What a destroy removes, and what stays.
    fn going(session: &mut Self::Session, at: &Self::At, found: &Self::Found) -> Result<Vec<Line>, EngineError>;

    fn remove(at: &Self::At, held: Self::Held, found: &Self::Found) -> Result<(), EngineError>;

    /// As [`Target::watch`].
    fn watch(_at: &Self::At) -> Result<Box<dyn Watched>, EngineError> {
        Err(EngineError::Usage(format!("target {} cannot be watched: give a report of the server", Self::NAME)))
    }

    /// Opens it for a run.
    fn run(
        at: Self::At,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError>;
}

fn without_throw_away(name: &str) -> EngineError {
    EngineError::Usage(format!("target {name} has no throw-away server"))
}

/// SLOB on a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlobOn<D>(pub(crate) D);

impl<D: Dialect> SlobOn<D> {
    /// The place a location names, with the patience of the settings and this request to stop.
    pub(crate) fn at(&self, location: &str, settings: &Settings, stop: &Stop) -> Result<(Place, D::At), EngineError> {
        let place = Place::new(location)?.patient(settings, D::ANSWER_TIMEOUT, stop);
        let at = self.0.at(&place, settings)?;
        Ok((place, at))
    }

    /// The same, in a phase that must be short.
    fn brief(&self, location: &str, settings: &Settings, what: &'static str) -> Result<(Place, D::At), EngineError> {
        let (place, at) = self.at(location, settings, &Stop::of_process())?;
        place.brief(what);
        Ok((place, at))
    }

    fn look(&self, location: &str, settings: &Settings) -> Result<(D::At, D::Session), EngineError> {
        let (_, at) = self.brief(location, settings, LOOK)?;
        let session = D::open(&at)?;
        Ok((at, session))
    }
}

/// Reads a data set that this command has not claimed.
fn unclaimed<D: Dialect, T>(at: &D::At, read: impl FnMut() -> Result<T, EngineError>) -> Result<T, EngineError> {
    settled(read, || D::claim(at, Purpose::Series))
}

fn claimed<D: Dialect>(at: &D::At, purpose: Purpose) -> Result<D::Held, EngineError> {
    D::claim(at, purpose)?.ok_or_else(|| D::nothing(at))
}

fn ours<D: Dialect>(session: &mut D::Session, at: &D::At) -> Result<D::Found, EngineError> {
    D::find(session, at)?.ok_or_else(|| D::nothing(at))
}

impl<D: Dialect> Target for SlobOn<D> {
    fn name(&self) -> &'static str {
        D::NAME
    }

    fn form(&self) -> &'static str {
        D::FORM
    }

    fn params(&self) -> &'static [ParamDef] {
        D::PARAMS
    }

    fn concerns(&self) -> &'static [Concern] {
        D::CONCERNS
    }

    fn temporary(&self) -> &'static [&'static str] {
        D::TEMPORARY
    }

    fn server_params(&self) -> &'static [&'static str] {
        D::SERVER_PARAMS
    }

    fn start(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Option<Started>, EngineError> {
        if let Some(server) = Place::new(location)?.temporary() {
            return D::start(server, settings, stop, progress).map(Some);
        }
        let given = |(name, unsaid): &&(&str, &str)| settings.text(name) != *unsaid;
        let Some((name, _)) = D::THROW_AWAY_ONLY.iter().find(given) else {
            return Ok(None);
        };
        let servers: Vec<String> = D::TEMPORARY.iter().map(|name| format!("temp:{name}")).collect();
        Err(EngineError::Usage(format!(
            "{name}={}: applies only to a throw-away server ({}); this server already has its settings",
            settings.text(name),
            servers.join(", ")
        )))
    }

    fn hosts(&self) -> Hosts {
        D::HOSTS
    }

    fn watch(&self, location: &str, settings: &Settings) -> Result<Box<dyn Watched>, EngineError> {
        D::watch(&self.brief(location, settings, LOOK)?.1)
    }

    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        if let Place::Temporary { .. } = Place::new(location)? {
            return Ok(Presence::Absent { harmless: true });
        }
        let (place, at) = self.brief(location, settings, LOOK)?;
        let mut session = D::open(&at)?;
        let found = unclaimed::<D, _>(&at, || D::find(&mut session, &at));
        D::leave(session);
        Ok(place.presence(found?.and_then(|found| found.as_ref().data_set())))
    }

    fn plan_prepare(&self, location: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
        if let Some(server) = Place::new(location)?.temporary() {
            return D::imagine(server, settings, schemas);
        }
        let (at, mut session) = self.look(location, settings)?;
        let plan = unclaimed::<D, _>(&at, || D::plan(&mut session, &at, settings, schemas));
        D::leave(session);
        Ok(D::plan_lines(&plan?))
    }

    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let (place, at) = self.at(location, settings, stop)?;
        let prepare = || {
            let mut held = claimed::<D>(&at, Purpose::Prepare)?;
            let keeper = D::session(&mut held);
            let plan = D::plan(keeper, &at, settings, schemas)?;
            let lines = D::load(&at, plan, keeper, stop, progress)?;
            D::end(held);
            Ok(lines)
        };
        prepare().map_err(|error| place.failed(error))
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let (place, at) = self.at(location, settings, stop)?;
        let check = || {
            let mut held = claimed::<D>(&at, Purpose::Check)?;
            let keeper = D::session(&mut held);
            let found = ours::<D>(keeper, &at)?;
            let mut lines = D::check(&at, &found, keeper, settings, stop, progress)?;
            let foreign = &found.as_ref().foreign;
            if !foreign.is_empty() {
                lines.push(text("foreign", "Not of this data set", foreign.join(", ")));
            }
            D::end(held);
            Ok(lines)
        };
        check().map_err(|error| place.failed(error))
    }

    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let (at, mut session) = self.look(location, settings)?;
        let found = unclaimed::<D, _>(&at, || ours::<D>(&mut session, &at))?;
        let lines = D::going(&mut session, &at, &found)?;
        D::leave(session);
        Ok(lines)
    }

    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let (_, at) = self.at(location, settings, &Stop::of_process())?;
        let mut held = claimed::<D>(&at, Purpose::Destroy)?;
        let session = D::session(&mut held);
        let found = ours::<D>(session, &at)?;
        let lines = D::going(session, &at, &found)?;
        D::remove(&at, held, &found)?;
        Ok(lines)
    }

    fn share(&self, location: &str, settings: &Settings) -> Result<Option<Box<dyn Send>>, EngineError> {
        let (place, at) = self.brief(location, settings, LOOK)?;
        let held = claimed::<D>(&at, Purpose::Series)?;
        place.lasting(LOOK);
        Ok(Some(D::series(held)))
    }

    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let (place, at) = self.at(location, settings, stop)?;
        place.brief("the set-up of the run");
        D::run(at, plan, settings, stop, progress).map_err(|error| place.failed(error))
    }
}
