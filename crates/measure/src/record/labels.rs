//! A record before anything is measured: what is known of a test from the start.

use super::{HostInfo, PlanInfo, Record, RunInfo, SCHEMA};
use crate::snapshot::{RunData, Verdict};

impl Record {
    /// A record with what a run's labels, settings and facts say, and no measurement.
    #[must_use]
    pub fn labelled(data: &RunData) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            run: run_info(data),
            plan: PlanInfo {
                settings: data.settings.clone(),
                engine_facts: data.engine_facts.clone(),
            },
            host: HostInfo {
                facts: data.host.clone(),
            },
            ..Self::default()
        }
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
