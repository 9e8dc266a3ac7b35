//! The native target as the registry sees it.

use super::audit::audit;
use super::bulk::Watch;
use super::check::check;
use super::control::{Control, State};
use super::control_file::ControlFile;
use super::destroy::{destroy, plan_destroy};
use super::device;
use super::engine;
use super::load_plan::{LoadPlan, in_use_error};
use super::memory;
use super::params::PARAMS;
use super::paths::Asked;
use super::prepare::prepare;
use super::recovery::ensure_clean;
use super::survey::{Found, is_unfinished, survey};
use assay_measure::config::{ParamDef, Settings};
use assay_run::engine::{DataSet, Engine, EngineError, Hosts, Line, Presence, Progress, RowStamps, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

/// `native:DIR[,DIR2...]`: a small block engine on its own files.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Target for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn hosts(&self) -> Hosts {
        Hosts::Each
    }

    fn form(&self) -> &'static str {
        "native:DIR[,DIR2...]"
    }

    fn params(&self) -> &'static [ParamDef] {
        PARAMS
    }

    fn memory(&self, settings: &Settings) -> Vec<(&'static str, u64)> {
        // One session at least: how many there are is the plan's to say.
        memory::parts(settings, 1, settings.int("BLOCK_SZ").max(1))
    }

    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        let asked = Asked::new(location, settings)?;
        // A run never takes a device by itself.
        let harmless = !asked.all().iter().any(|path| device::is_device(path));
        let ours = match survey(&asked, settings.overwritable())? {
            Found::Nothing => return Ok(Presence::Absent { harmless }),
            Found::Ours(ours) => ours,
        };
        let (control, home) = (&ours.control, ours.places.home());
        match control.state {
            State::Clean => Ok(Presence::Present(data_set(control))),
            _ if ControlFile::in_use(home)? => Err(in_use_error(home)),
            // Whoever opens it recovers it first.
            State::Open => Ok(Presence::Present(data_set(control))),
            // Nothing of it was ever whole, so starting over harms nobody.
            State::Loading if is_unfinished(control) => Ok(Presence::Absent { harmless }),
            // Whoever opens it takes the addition back first.
            State::Loading => Ok(Presence::Present(data_set(control))),
        }
    }

    fn plan_prepare(&self, location: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
        Ok(LoadPlan::new(&Asked::new(location, settings)?, settings, schemas)?.lines())
    }

    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let asked = Asked::new(location, settings)?;
        let watch = Watch { stop, progress };
        recover_if_open(&asked, settings, watch)?;
        let plan = LoadPlan::new(&asked, settings, schemas)?;
        prepare(&plan, settings, watch)
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        check(&Asked::new(location, settings)?, settings, Watch { stop, progress })
    }

    fn audit(
        &self,
        location: &str,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
        rows: RowStamps<'_>,
    ) -> Result<(), EngineError> {
        audit(&Asked::new(location, settings)?, settings, Watch { stop, progress }, rows)
    }

    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        plan_destroy(&Asked::new(location, settings)?)
    }

    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        destroy(&Asked::new(location, settings)?)
    }

    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        engine::open(&Asked::new(location, settings)?, plan, settings, Watch { stop, progress })
    }
}

/// A data set that was not closed is recovered before schemas are added to it.
fn recover_if_open(asked: &Asked, settings: &Settings, watch: Watch<'_>) -> Result<(), EngineError> {
    match survey(asked, settings.overwritable())? {
        Found::Ours(ours) if ours.control.state == State::Open => {
            let mut control = ControlFile::open_locked(ours.places.home())?;
            let _claims = device::claim(&ours.places)?;
            ensure_clean(&ours.places, &mut control, settings, watch).map(drop)
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
            super::control_format::CONTROL_VERSION,
            match control.state {
                State::Open => "not closed: needs recovery",
                State::Loading => "an addition was interrupted: will be undone",
                State::Clean => control.state.word(),
            },
            g.seed,
            control.data_set
        ),
        unfinished: (control.state == State::Loading).then_some(g.schemas),
    }
}
