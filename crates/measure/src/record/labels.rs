//! What a record says about its test besides the measurements: known from the start.

use super::{HostInfo, PlanInfo, Record, RunInfo, SCHEMA};
use crate::facts;
use crate::snapshot::{RunData, Verdict};

impl Record {
    /// A record with a run's labels, settings and facts, but no measurement.
    #[must_use]
    pub fn labelled(data: &RunData) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            run: run_info(data),
            plan: PlanInfo { settings: data.settings.clone(), engine_facts: data.engine_facts.clone() },
            host: HostInfo { facts: data.host.clone() },
            ..Self::default()
        }
    }

    /// What was tested: `MariaDB 10.11.19`, or the name of the target if there is no server or it reports less.
    #[must_use]
    pub fn product(&self) -> String {
        let Some(server) = &self.instance.server else {
            return self.run.engine.clone();
        };
        let named = facts::ENGINE.find(&self.plan.engine_facts);
        let named = named.unwrap_or(&self.run.engine);
        // Behind it stand the names of who built it.
        let version = server.version.split([' ', '-']).next().unwrap_or_default();
        format!("{named} {version}").trim_end().to_owned()
    }
}

fn run_info(data: &RunData) -> RunInfo {
    let (verdict, verdict_reasons) = match &data.verdict {
        Verdict::Complete => ("complete", Vec::new()),
        Verdict::Incomplete(reason) => ("incomplete", vec![reason.clone()]),
        Verdict::Invalid(reasons) => ("invalid", reasons.clone()),
    };
    RunInfo {
        id: data.run_id.clone(),
        label: data.label.clone(),
        workload: data.workload.clone(),
        engine: data.engine.clone(),
        version: data.version.clone(),
        started: data.started.clone(),
        seed: data.seed,
        verdict: verdict.to_owned(),
        verdict_reasons,
        sessions: data.sessions,
        fixed_iterations: data.fixed_iterations,
    }
}
