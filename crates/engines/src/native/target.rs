//! The native target as the registry sees it.

use super::bulk::Watch;
use super::check::check;
use super::control::{Control, ControlFile, State};
use super::destroy::{destroy, plan_destroy};
use super::engine;
use super::load_plan::{LoadPlan, in_use_error, loading_error};
use super::params::PARAMS;
use super::prepare::prepare;
use super::recovery::ensure_clean;
use super::survey::{Found, directory, foreign_error, survey};
use assay_measure::config::{ParamDef, Settings};
use assay_run::engine::{DataSet, Engine, EngineError, Line, Presence, Progress, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::path::Path;

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
            // Whoever opens it recovers it first.
            State::Open => Ok(Presence::Present(data_set(&control))),
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
        let dir = directory(location)?;
        let watch = Watch { stop, progress };
        recover_if_open(&dir, settings, watch)?;
        let plan = LoadPlan::new(&dir, settings, schemas)?;
        prepare(&plan, settings, watch)
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

/// A data set that was not closed is recovered before schemas are added to it.
fn recover_if_open(dir: &Path, settings: &Settings, watch: Watch<'_>) -> Result<(), EngineError> {
    match survey(dir)? {
        Found::Ours(control) if control.state == State::Open => {
            let mut control = ControlFile::open_locked(dir)?;
            ensure_clean(dir, &mut control, settings, watch).map(drop)
        }
        _ => Ok(()),
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
            if control.state == State::Open {
                "not closed: to be recovered"
            } else {
                control.state.word()
            },
            g.seed,
            control.data_set
        ),
    }
}
