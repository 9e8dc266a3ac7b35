//! Every parameter that the program knows, as its parts define them: what a setting in a record comes to is read here.

use super::settings::ParamDef;
use super::slob::PARAMS;
use std::sync::OnceLock;

/// The program's tables beside the workload's.
static TABLES: OnceLock<Vec<&'static [ParamDef]>> = OnceLock::new();

/// Makes the tables of targets and other workloads known; called once, before the first record is read.
pub fn install(tables: Vec<&'static [ParamDef]>) {
    TABLES.get_or_init(|| tables);
}

/// Each parameter once, those of the SLOB workload first. What several targets call by one name has one effect.
#[must_use]
pub fn known_params() -> Vec<&'static ParamDef> {
    let mut found: Vec<&ParamDef> = PARAMS.iter().collect();
    for def in TABLES.get().into_iter().flatten().copied().flatten() {
        if !found.iter().any(|other| other.name == def.name) {
            found.push(def);
        }
    }
    found
}
