//! Configuration: parameter tables, the file grammars, layers and effective values.
//!
//! Pure: text in, settings or problems out. Nothing here reads a file or the
//! environment, connects or executes anything.

mod banner;
mod file;
mod known;
mod layer;
mod line;
mod nearest;
mod pgio;
mod print;
mod resolve;
mod rules;
mod run;
mod secrets;
mod settings;
mod shell;
mod target;
mod toml_file;
mod value;

pub use file::{Format, format_of, parse, redact};
pub use known::{install, known_params};
pub use layer::{ENVIRONMENT_PREFIX, Given, Layer, command_line, environment};
pub use nearest::nearest;
pub use print::{given_lines, setting_lines, slob_conf};
pub use resolve::{Tables, WorkloadParams, all_params, is_secret, resolve};
pub use run::{RUN_PARAMS, SERVERS};
pub use secrets::{looks_secret, mask, mask_url_password};
pub use settings::{
    Concern, Effect, Effective, Origin, ParamDef, ParamKind, Problem, Resolved, Settings, Value, place_of,
};
pub use target::{Scheme, target};
pub use value::{duration_ns, seconds_text};
