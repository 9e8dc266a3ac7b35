//! The null target: `null:` stores nothing and answers at once. A run on it shows what the load generator itself costs
//! and how many operations it could ever drive. It is here and not beside the other targets because every run on any of
//! them measures that cost.

mod engine;

pub use engine::NullEngine;

use crate::engine::{DataSet, Engine, EngineError, Hosts, Line, Presence, Progress, Target};
use crate::life::imagined;
use crate::plan::Plan;
use crate::stop::Stop;
use crate::workload::Workload;
use assay_measure::clock::Clock;
use assay_measure::config::{ParamDef, Settings};

/// `null:`, whatever follows, for a workload.
#[derive(Clone, Copy, Debug)]
pub struct Null(pub &'static dyn Workload);

fn nothing(what: &str) -> EngineError {
    EngineError::Usage(format!("the null target stores nothing, so there is nothing to {what}"))
}

impl Target for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn hosts(&self) -> Hosts {
        Hosts::Each
    }

    fn form(&self) -> &'static str {
        "null:"
    }

    fn params(&self) -> &'static [ParamDef] {
        &[]
    }

    /// As large as the settings say: nothing was loaded that could contradict them.
    fn inspect(&self, _location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        Ok(Presence::Present(DataSet { state: "nothing stored".to_owned(), ..imagined(settings) }))
    }

    fn plan_prepare(&self, _: &str, _: &Settings, _: u32) -> Result<Vec<Line>, EngineError> {
        Err(nothing("prepare"))
    }

    fn prepare(
        &self,
        _location: &str,
        _settings: &Settings,
        _schemas: u32,
        _stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        Err(nothing("prepare"))
    }

    fn check(
        &self,
        _location: &str,
        _settings: &Settings,
        _stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        Err(nothing("check"))
    }

    fn plan_destroy(&self, _: &str, _: &Settings) -> Result<Vec<Line>, EngineError> {
        Err(nothing("destroy"))
    }

    fn destroy(&self, _: &str, _: &Settings) -> Result<Vec<Line>, EngineError> {
        Err(nothing("destroy"))
    }

    fn open(
        &self,
        _: &str,
        plan: &Plan,
        _: &Settings,
        _: &Stop,
        _: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        Ok(Box::new(NullEngine::new(plan, self.0, &Clock::real())))
    }
}

#[cfg(test)]
mod tests {
    use assay_measure::clock::Clock;
    use assay_measure::config::{Settings, Tables, command_line, resolve};
    use assay_run::engine::{EngineError, Presence, Target};
    use assay_run::null::{Null, NullEngine};
    use assay_slob::Slob;
    use assay_testkit::conformance::{Ground, Subject, claims_suite_of_nothing, suite};

    const NULL: Null = Null(&Slob);

    fn settings(given: &[(&str, &str)]) -> Settings {
        let tables = Tables {
            target: "null",
            params: NULL.params(),
            workload: &assay_slob::SETTINGS,
            concerns: &[],
            others: &[],
        };
        let options = given.iter().map(|(name, value)| ("--set".to_owned(), (*name).to_owned(), (*value).to_owned()));
        resolve(&tables, &[command_line(options)]).settings
    }

    #[test]
    fn it_is_as_large_as_asked() {
        let settings = settings(&[("SCALE", "5000"), ("SCHEMAS", "7")]);
        let Ok(Presence::Present(data)) = NULL.inspect("", &settings) else {
            panic!("it is always there");
        };
        assert_eq!((data.schemas, data.scale_blocks), (7, 5000));
        assert!(assay_slob::plan::from_settings(&settings, &data, 1).is_ok());
    }

    #[test]
    fn without_settings_it_has_the_default_schemas_and_nothing_to_prepare() {
        let settings = settings(&[]);
        let Ok(Presence::Present(data)) = NULL.inspect("", &settings) else {
            panic!("it is always there");
        };
        assert_eq!((data.schemas, data.scale_blocks), (4, 32_768));
        let refused = NULL.plan_prepare("", &settings, 4);
        assert!(matches!(refused, Err(EngineError::Usage(_))));
    }

    #[test]
    fn its_runs_go_together_and_there_is_nothing_to_claim() {
        let violations =
            claims_suite_of_nothing(Ground { target: &NULL, location: "", settings: &settings(&[]), runs_share: true });
        assert!(violations.is_empty(), "{violations:#?}");
    }

    #[test]
    fn it_passes_the_suite() {
        let violations = suite(&mut |plan| Subject {
            engine: Box::new(NullEngine::new(plan, &Slob, &Clock::real())),
            clock: Clock::real(),
        });
        assert!(violations.is_empty(), "{violations:#?}");
    }
}
