//! Every parameter that the program knows, as its parts define them: what a setting in a record comes to is read here.

use super::run::RUN_PARAMS;
use super::settings::ParamDef;
use std::sync::OnceLock;

/// The program's tables, in the order of its lists.
static TABLES: OnceLock<Vec<&'static [ParamDef]>> = OnceLock::new();

/// Makes the tables of workloads, runs and targets known; called once, before the first record is read.
pub fn install(tables: Vec<&'static [ParamDef]>) {
    TABLES.get_or_init(|| tables);
}

/// Each parameter once, in the order of the tables. What several targets call by one name has one effect.
#[must_use]
pub fn known_params() -> Vec<&'static ParamDef> {
    let mut found: Vec<&ParamDef> = Vec::new();
    for def in TABLES.get().into_iter().flatten().copied().flatten().chain(RUN_PARAMS) {
        if !found.iter().any(|other| other.name == def.name) {
            found.push(def);
        }
    }
    found
}
