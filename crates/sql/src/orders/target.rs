//! The life cycle of a data set, the same on every server. Each server implements [`Life`].

use super::marker::Marker;
use super::{already, checked_lines, nothing, removed};
use crate::claim::Purpose;
use crate::place::{LOOK, Place};
use assay_measure::config::{Concern, ParamDef, Settings};
use assay_orders::checks::Checked;
use assay_orders::params::{heeds, partitions};
use assay_orders::workload::{OPERATIONS, OrderEntry};
use assay_run::engine::{DataSet, Engine, EngineError, Hosts, Line, Presence, Progress, Started, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

/// What was found in a place.
pub(crate) struct There<N> {
    pub(crate) names: N,
    /// The schema that contains the data set, as a bare name and as text for messages.
    pub(crate) schema: String,
    pub(crate) place: String,
    pub(crate) block_bytes: u64,
    pub(crate) found: Option<Marker>,
}

impl<N> There<N> {
    /// The data set, complete or not; an error if none exists.
    pub(crate) fn some(&self) -> Result<&Marker, EngineError> {
        self.found.as_ref().ok_or_else(|| nothing(&self.place))
    }
}

/// What each server does in its own way.
pub(crate) trait Life {
    /// Parameters of this server, of a run and of order entry that have no effect on order entry here, and those of SLOB that have one.
    const UNHEEDED: &'static [&'static str];
    const HEEDED: &'static [&'static str] = &[];

    /// The server as a SLOB target.
    type Slob: Target;
    /// Where a data set is or will be.
    type At;
    type Names;
    /// A claim; ends when dropped.
    type Claim: Send + 'static;

    /// The parameters of the server and of order entry.
    fn params() -> &'static [ParamDef];

    fn at(slob: &Self::Slob, location: &str, settings: &Settings, stop: &Stop) -> Result<Self::At, EngineError>;

    /// Schema of a data set on a throw-away server that does not run yet.
    fn schema(settings: &Settings) -> Result<String, EngineError> {
        partitions(settings)?;
        Ok(settings.text("ORDERS_SCHEMA").to_owned())
    }

    /// Starts a phase that must be short.
    fn brief(_at: &Self::At, _what: &'static str) {}

    fn look(at: &Self::At) -> Result<There<Self::Names>, EngineError>;

    /// Claims the place and inspects it.
    fn claim(at: &Self::At, purpose: Purpose) -> Result<(Self::Claim, There<Self::Names>), EngineError>;

    /// Threads that load here.
    fn load_threads(settings: &Settings) -> usize {
        super::load::threads(settings)
    }

    /// An additional plan line for this server.
    fn plan_more(_settings: &Settings) -> Result<Option<Line>, EngineError> {
        Ok(None)
    }

    /// Runs the checks, without a time limit; the claim keeps others from changing the data.
    fn check(at: &Self::At, claim: Self::Claim, names: &Self::Names) -> Result<Vec<Checked>, EngineError>;

    /// Drops the objects of the data set, by name.
    fn remove(at: &Self::At, claim: Self::Claim, there: &There<Self::Names>) -> Result<(), EngineError>;

    /// Converts the error of a command.
    fn failed(_at: &Self::At, error: EngineError) -> EngineError {
        error
    }
}

/// Loading a data set.
pub(crate) trait Loads: Life {
    fn prepare(
        at: &Self::At,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError>;
}

/// Opening a data set for a run.
pub(crate) trait Opens: Life {
    fn open(at: &Self::At, plan: &Plan, settings: &Settings, stop: &Stop) -> Result<Box<dyn Engine>, EngineError>;
}

/// Order entry on a server.
pub(crate) struct OrderEntryOn<L: Loads + Opens>(pub(crate) L::Slob);

impl<L: Loads + Opens> OrderEntryOn<L> {
    fn at(&self, location: &str, settings: &Settings) -> Result<L::At, EngineError> {
        L::at(&self.0, location, settings, &Stop::of_process())
    }

    fn look(&self, location: &str, settings: &Settings) -> Result<There<L::Names>, EngineError> {
        let at = self.at(location, settings)?;
        L::brief(&at, LOOK);
        L::look(&at)
    }
}

impl<L: Loads + Opens> Target for OrderEntryOn<L> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn form(&self) -> &'static str {
        self.0.form()
    }

    fn params(&self) -> &'static [ParamDef] {
        L::params()
    }

    fn operations(&self) -> &'static str {
        OPERATIONS
    }

    fn heeds(&self, name: &str) -> bool {
        !L::UNHEEDED.contains(&name) && (heeds(name, self.0.params()) || L::HEEDED.contains(&name))
    }

    fn hosts(&self) -> Hosts {
        self.0.hosts()
    }

    fn shape(&self, settings: &Settings, plan: &mut Plan) -> Result<(), EngineError> {
        OrderEntry::shape(settings, plan)
    }

    fn concerns(&self) -> &'static [Concern] {
        self.0.concerns()
    }

    fn temporary(&self) -> &'static [&'static str] {
        self.0.temporary()
    }

    fn server_params(&self) -> &'static [&'static str] {
        self.0.server_params()
    }

    fn start(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Option<Started>, EngineError> {
        self.0.start(location, settings, stop, progress)
    }

    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        let place = Place::new(location)?;
        if let Place::Temporary { .. } = place {
            return Ok(Presence::Absent { harmless: true });
        }
        let there = self.look(location, settings)?;
        let complete = there.found.filter(|found| found.complete);
        Ok(place.presence(complete.map(|found| DataSet {
            schemas: 1,
            scale_blocks: found.generator().counts().customers,
            scan_blocks: 0,
            block_bytes: there.block_bytes,
            state: format!("order entry, scale {}, seed {}", found.scale(), found.seed),
            unfinished: None,
        })))
    }

    fn refuse_again(&self, location: &str, settings: &Settings) -> Option<EngineError> {
        let there = self.look(location, settings).ok()?;
        Some(already(&there.place, &there.found?))
    }

    fn plan_prepare(&self, location: &str, settings: &Settings, _schemas: u32) -> Result<Vec<Line>, EngineError> {
        let mut schema = L::schema(settings)?;
        let mut found = None;
        if let Place::Server { .. } = Place::new(location)? {
            let there = self.look(location, settings)?;
            (schema, found) = (there.schema, there.found);
        }
        let mut lines = super::load::plan(found, &schema, (settings, L::load_threads(settings)))?;
        lines.extend(L::plan_more(settings)?);
        Ok(lines)
    }

    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        _schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let at = L::at(&self.0, location, settings, stop)?;
        L::prepare(&at, settings, stop, progress).map_err(|error| L::failed(&at, error))
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let at = L::at(&self.0, location, settings, stop)?;
        let check = || {
            let (claim, there) = L::claim(&at, Purpose::Check)?;
            let found = there.some()?;
            checked_lines(&there.place, found, L::check(&at, claim, &there.names)?)
        };
        check().map_err(|error| L::failed(&at, error))
    }

    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let there = self.look(location, settings)?;
        Ok(removed(&there.schema, there.some()?))
    }

    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let at = self.at(location, settings)?;
        let (claim, there) = L::claim(&at, Purpose::Destroy)?;
        let lines = removed(&there.schema, there.some()?);
        L::remove(&at, claim, &there)?;
        Ok(lines)
    }

    fn share(&self, location: &str, settings: &Settings) -> Result<Option<Box<dyn Send>>, EngineError> {
        let at = self.at(location, settings)?;
        L::brief(&at, LOOK);
        let (claim, there) = L::claim(&at, Purpose::Series)?;
        Marker::complete(there.found, &there.place, settings)?;
        Ok(Some(Box::new(claim)))
    }

    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let at = L::at(&self.0, location, settings, stop)?;
        L::brief(&at, "the set-up of the run");
        L::open(&at, plan, settings, stop).map_err(|error| L::failed(&at, error))
    }
}
