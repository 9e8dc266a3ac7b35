//! The workload, as the driver loop sees it.

use crate::NAME;
use crate::session::Session;
use assay_run::plan::Plan;
use assay_run::work::Op;
use assay_run::workload::{Steps, Workload};

/// The SLOB workload.
#[derive(Clone, Copy, Debug)]
pub struct Slob;

impl Workload for Slob {
    fn name(&self) -> &'static str {
        NAME
    }

    fn kinds(&self) -> &'static [&'static str] {
        Op::KINDS
    }

    fn session(&self, plan: &Plan, session: u32, home: u32) -> Box<dyn Steps> {
        Box::new(Session::new(plan, session, home))
    }

    fn rows_expected(&self, plan: &Plan, op: &Op) -> Option<u64> {
        Some(plan.rows_expected(op))
    }
}
