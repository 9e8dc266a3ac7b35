//! The target without the library of SQLite: its URL and its parameters are known, and each use says how to build a program that has it.

mod params;

use assay_measure::config::{ParamDef, Settings};
use assay_run::engine::{Engine, EngineError, Line, Presence, Progress, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

/// `sqlite:FILE`, which cannot be used.
#[derive(Clone, Copy, Debug)]
pub struct Sqlite;

impl Sqlite {
    /// SQLite as a SLOB target.
    pub const TARGET: &dyn Target = &Self;
}

pub mod orders {
    //! Order entry in a database of SQLite.
    pub use super::Sqlite as SqliteOrders;
}

fn absent<T>() -> Result<T, EngineError> {
    Err(EngineError::Unusable(
        "this assay was built without SQLite; build it with `cargo build --release --features full`".to_owned(),
    ))
}

impl Target for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn form(&self) -> &'static str {
        "sqlite:FILE"
    }

    fn params(&self) -> &'static [ParamDef] {
        params::PARAMS
    }

    fn inspect(&self, _: &str, _: &Settings) -> Result<Presence, EngineError> {
        absent()
    }

    fn plan_prepare(&self, _: &str, _: &Settings, _: u32) -> Result<Vec<Line>, EngineError> {
        absent()
    }

    fn prepare(&self, _: &str, _: &Settings, _: u32, _: &Stop, _: &dyn Progress) -> Result<Vec<Line>, EngineError> {
        absent()
    }

    fn check(&self, _: &str, _: &Settings, _: &Stop, _: &dyn Progress) -> Result<Vec<Line>, EngineError> {
        absent()
    }

    fn plan_destroy(&self, _: &str, _: &Settings) -> Result<Vec<Line>, EngineError> {
        absent()
    }

    fn destroy(&self, _: &str, _: &Settings) -> Result<Vec<Line>, EngineError> {
        absent()
    }

    fn open(
        &self,
        _: &str,
        _: &Plan,
        _: &Settings,
        _: &Stop,
        _: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        absent()
    }
}
