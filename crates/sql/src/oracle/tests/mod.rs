//! Settings as a user would give them.
use assay_measure::config::Settings;
pub(super) fn settings(_said: &[(&str, &str)]) -> Settings {
    unreachable!()
}
