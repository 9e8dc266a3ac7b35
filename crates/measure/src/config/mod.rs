//! Configuration: parameter tables, the file grammars, layers and effective values.
//!
//! Pure: text in, settings or problems out. Nothing here reads a file or the
//! environment, connects or executes anything.

mod settings;

pub use settings::{Effective, Origin, ParamDef, ParamKind, Problem, Settings, Value};
