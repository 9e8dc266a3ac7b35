//! Order entry over a stand-in for a server (`fake`), and its words as golden text that independent parsers read (`golden`).

mod golden;

use super::*;

fn settings(given: &[(&str, &str)]) -> Settings {
    crate::oracle::tests::settings_of(&ALL_PARAMS, given)
}
