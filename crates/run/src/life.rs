//! The life cycle of a data set: what the program calls on a target, in which order.
//!
//! The commands and the tests of every target use this module, so that tests make the same calls as the program: a
//! target whose `inspect` fails can be neither prepared nor checked, whatever its `prepare` would do.

use crate::engine::{DataSet, EngineError, Line, LineValue, Presence, Progress, Target};
use crate::stop::Stop;
use assay_measure::config::{Origin, Settings, Value};
use assay_measure::units::many;

/// Schemas prepared and used by default.
pub const DEFAULT_SCHEMAS: u32 = 4;

/// A target, the place of a data set and its name for people.
#[derive(Clone, Copy)]
pub struct Life<'a> {
    /// The target.
    pub target: &'a dyn Target,
    /// Its place, as the target's calls take it.
    pub location: &'a str,
    /// `scheme:place` without secrets, for messages.
    pub shown: &'a str,
}

/// What `prepare` has decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Schemas there will be.
    pub schemas: u32,
    /// What it will do.
    pub plan: Vec<Line>,
    /// Notices about the settings.
    pub notice: Option<String>,
}

impl Life<'_> {
    /// What is there; a look that fails after a request to stop has ended as asked.
    fn look(&self, settings: &Settings) -> Result<Presence, EngineError> {
        let found = self.target.inspect(self.location, settings);
        found.map_err(|error| if Stop::of_process().requested() { EngineError::Interrupted } else { error })
    }

    /// The existing data set, or `None` if a run may make one by itself.
    ///
    /// # Errors
    /// `Unusable` if there is none and only `prepare` may make it; as [`Target::inspect`].
    pub fn data_set(&self, settings: &Settings) -> Result<Option<DataSet>, EngineError> {
        match self.look(settings)? {
            Presence::Present(data) => Ok(Some(data)),
            Presence::Absent { harmless: true } => Ok(None),
            Presence::Absent { harmless: false } => Err(self.nothing_here("")),
        }
    }

    /// The data set, which must exist; `hint` follows its name in the message if it does not.
    ///
    /// # Errors
    /// `Unusable` where there is none; as [`Target::inspect`].
    pub fn existing(&self, settings: &Settings, hint: &str) -> Result<DataSet, EngineError> {
        match self.look(settings)? {
            Presence::Present(data) => Ok(data),
            Presence::Absent { .. } => Err(self.nothing_here(hint)),
        }
    }

    fn nothing_here(&self, hint: &str) -> EngineError {
        EngineError::Unusable(format!(
            "{0}{hint} has no completely loaded data set; `assay prepare --target {0}` makes one",
            self.shown
        ))
    }

    /// The message about a prepare that did not finish.
    #[must_use]
    pub fn unfinished(&self, data: &DataSet) -> Option<String> {
        let whole = match data.schemas {
            1 => "schema 1 is".to_owned(),
            n => format!("schemas 1 to {n} are"),
        };
        data.unfinished.map(|goal| {
            format!(
                "a prepare of {} did not finish: {whole} complete and can be used; `assay prepare \
                 --target {} -s {goal}` loads the rest",
                many(goal.into(), "schema"),
                self.shown
            )
        })
    }

    /// Plans what `prepare` loads; takes settings that the user did not give from the existing data set.
    ///
    /// # Errors
    /// `Usage` if it already has that many schemas; as [`Target::inspect`] and [`Target::plan_prepare`].
    pub fn plan_prepare(&self, settings: &mut Settings) -> Result<Load, EngineError> {
        let schemas = schemas_asked(settings).unwrap_or(DEFAULT_SCHEMAS);
        let mut notice = None;
        if let Presence::Present(data) = self.look(settings)? {
            if let Some(refusal) = self.target.refuse_again(self.location, settings) {
                return Err(refusal);
            }
            if schemas <= data.schemas {
                return Err(EngineError::Usage(format!(
                    "{} already has {} of {} blocks; load more with -s {}, or run `assay destroy` first to \
                     load other schemas",
                    self.shown,
                    many(data.schemas.into(), "schema"),
                    data.scale_blocks,
                    data.unfinished.unwrap_or(data.schemas + 1)
                )));
            }
            notice = adopt(settings, &data);
        }
        let plan = self.target.plan_prepare(self.location, settings, schemas)?;
        Ok(Load { schemas, plan, notice })
    }

    /// Loads as planned; returns the summary.
    ///
    /// # Errors
    /// As [`Target::prepare`].
    pub fn prepare(
        &self,
        settings: &Settings,
        load: &Load,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        self.target.prepare(self.location, settings, load.schemas, stop, progress)
    }

    /// Plans what a run prepares by itself where [`Life::data_set`] found nothing.
    ///
    /// # Errors
    /// As [`Target::plan_prepare`].
    pub fn plan_first(&self, settings: &Settings) -> Result<Load, EngineError> {
        let schemas = imagined(settings).schemas;
        let plan = self.target.plan_prepare(self.location, settings, schemas)?;
        Ok(Load { schemas, plan, notice: None })
    }

    /// Verifies the data set; returns what was checked.
    ///
    /// # Errors
    /// As [`Life::existing`] and [`Target::check`].
    pub fn check(
        &self,
        settings: &Settings,
        hint: &str,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let data = self.existing(settings, hint)?;
        let mut lines = self.target.check(self.location, settings, stop, progress)?;
        lines.extend(self.unfinished(&data).map(|what| Line {
            key: "unfinished",
            label: "Incompletely loaded".to_owned(),
            value: LineValue::Text(what),
        }));
        Ok(lines)
    }

    /// What `destroy` would remove.
    ///
    /// # Errors
    /// As [`Target::plan_destroy`].
    pub fn plan_destroy(&self, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        self.target.plan_destroy(self.location, settings)
    }

    /// Removes the data set.
    ///
    /// # Errors
    /// As [`Target::plan_destroy`] and [`Target::destroy`].
    pub fn destroy(&self, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        self.plan_destroy(settings)?;
        self.target.destroy(self.location, settings)
    }
}

/// What `-s` or its parameter came to, if given.
#[must_use]
pub fn schemas_asked(settings: &Settings) -> Option<u32> {
    settings.whole("SCHEMAS").and_then(|n| u32::try_from(n).ok())
}

/// The data set that a run would make of these settings.
#[must_use]
pub fn imagined(settings: &Settings) -> DataSet {
    let block_bytes = settings.int("BLOCK_SZ");
    DataSet {
        schemas: schemas_asked(settings).unwrap_or(DEFAULT_SCHEMAS),
        scale_blocks: settings.blocks("SCALE", block_bytes).unwrap_or(0),
        scan_blocks: settings.blocks("SCAN_TABLE_SZ", block_bytes).unwrap_or(0),
        block_bytes,
        state: "not there yet".to_owned(),
        unfinished: None,
    }
}

/// Takes settings that the user did not give from a data set; returns notices about given settings without effect.
pub fn adopt(settings: &mut Settings, data: &DataSet) -> Option<String> {
    let scan = settings.get("SCAN_TABLE_SZ");
    let asked = settings.blocks("SCAN_TABLE_SZ", data.block_bytes);
    let idle = scan.origin == Origin::CommandLine && asked != Some(data.scan_blocks);
    let notice = idle.then(|| {
        format!(
            "SCAN_TABLE_SZ={} has no effect: the data set was loaded with scan tables of {} blocks",
            scan.text, data.scan_blocks
        )
    });
    let schemas = u64::from(data.schemas);
    let from_data = [
        ("SCHEMAS", Value::Int(schemas), schemas),
        ("SCALE", Value::Blocks(data.scale_blocks), data.scale_blocks),
        ("SCAN_TABLE_SZ", Value::Blocks(data.scan_blocks), data.scan_blocks),
        ("BLOCK_SZ", Value::Int(data.block_bytes), data.block_bytes),
    ];
    for (name, value, number) in from_data {
        // A value of a file or option stays: the plan compares it with the data set.
        // The scan table is what was loaded, whatever a file says.
        if name == "SCAN_TABLE_SZ" || !settings.is_given(name) {
            settings.put(name, value, number.to_string(), Origin::Target);
        }
    }
    notice
}
