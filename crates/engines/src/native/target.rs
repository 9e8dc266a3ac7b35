//! The native target as the registry sees it.

use super::bulk::Watch;
use super::check::check;
use super::control::{Control, ControlFile, State};
use super::destroy::{destroy, plan_destroy};
use super::engine;
use super::load_plan::{LoadPlan, in_use_error, loading_error, unclean_error};
use super::params::PARAMS;
use super::prepare::prepare;
use super::survey::{Found, directory, foreign_error, survey};
use assay_measure::config::{ParamDef, Settings};
use assay_run::engine::{DataSet, Engine, EngineError, Line, Presence, Progress, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

/// `native:DIR`: a small block engine on files of its own.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Target for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn about(&self) -> &'static str {
        "the database I/O path with no database: native:DIR"
    }

    fn params(&self) -> &'static [ParamDef] {
        PARAMS
    }

    fn inspect(&self, location: &str, _settings: &Settings) -> Result<Presence, EngineError> {
        let dir = directory(location)?;
        let control = match survey(&dir)? {
            Found::Absent | Found::Empty => return Ok(Presence::Absent { harmless: true }),
            Found::Foreign(names) => return Err(foreign_error(&dir, &names)),
            Found::Ours(control) => control,
        };
        match control.state {
            State::Clean => Ok(Presence::Present(data_set(&control))),
            _ if ControlFile::in_use(&dir)? => Err(in_use_error(&dir)),
            State::Open => Err(unclean_error(&dir)),
            // Nothing of it was ever whole, so starting over harms nobody.
            State::Loading if control.loaded_schemas == 0 => {
                Ok(Presence::Absent { harmless: true })
            }
            State::Loading => Err(loading_error(&dir)),
        }
    }

    fn plan_prepare(
        &self,
        location: &str,
        settings: &Settings,
        schemas: u32,
    ) -> Result<Vec<Line>, EngineError> {
        Ok(LoadPlan::new(&directory(location)?, settings, schemas)?.lines())
    }

    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let plan = LoadPlan::new(&directory(location)?, settings, schemas)?;
        prepare(&plan, settings, Watch { stop, progress })
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        check(&directory(location)?, settings, Watch { stop, progress })
    }

    fn plan_destroy(&self, location: &str, _settings: &Settings) -> Result<Vec<Line>, EngineError> {
        plan_destroy(&directory(location)?)
    }

    fn destroy(&self, location: &str, _settings: &Settings) -> Result<Vec<Line>, EngineError> {
        destroy(&directory(location)?)
    }

    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        engine::open(
            &directory(location)?,
            plan,
            settings,
            Watch { stop, progress },
        )
    }
}

fn data_set(control: &Control) -> DataSet {
    let g = &control.geometry;
    DataSet {
        schemas: control.loaded_schemas,
        scale_blocks: g.scale,
        scan_blocks: g.scan_blocks,
        block_bytes: u64::from(g.block_bytes),
        state: format!(
            "format {}, {}, seed {}, data set {:016x}",
            super::control::CONTROL_VERSION,
            control.state.word(),
            g.seed,
            control.data_set
        ),
    }
}
