//! What tests of several servers share.

use crate::running::{Attachment, OnServer, Running};
use crate::watch::Cancel;
use assay_measure::config::{self, ParamDef, Settings, Tables};
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Doing, Remarks};
use std::time::{Duration, Instant};

/// Waits until `seen`, whatever that takes: the time is only a net.
pub(crate) fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !seen() {
        assert!(begun.elapsed() < Duration::from_secs(180), "in vain waited for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Settings of a target with these parameters, as a command line that may name a password would give them.
pub(crate) fn settings_of(target: &'static str, params: &'static [ParamDef], said: &[(&str, &str)]) -> Settings {
    let tables = Tables { target, params, workload: &assay_slob::SETTINGS, concerns: &[], others: &[] };
    let said = said.iter().map(|(name, value)| {
        let option = format!("--set {name}");
        (option, (*name).to_owned(), (*value).to_owned())
    });
    let resolved = config::resolve(&tables, &[config::command_line(said)]);
    assert!(!resolved.has_errors(), "{:?}", resolved.problems);
    resolved.settings
}

/// What a session without a server is attached to: nobody asks it for anything.
#[derive(Clone)]
pub(crate) struct Nowhere;

impl Cancel for Nowhere {
    fn cancel(&self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Attachment for Nowhere {
    type Token = Self;

    fn running(&self) -> &Running<Self> {
        unreachable!("nothing runs")
    }

    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    fn remarks(&self) -> Remarks {
        Remarks::default()
    }

    fn sample(&self) -> StatSet {
        unreachable!("nothing runs")
    }

    fn look(&self, _sessions: &mut [Doing]) -> bool {
        false
    }
}

impl OnServer for Nowhere {
    type On = Self;

    fn on(&self) -> &Self {
        self
    }
}
