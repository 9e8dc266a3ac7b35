//! Effective settings: every parameter with its typed value and its origin.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// How a parameter's text is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// Whole number from the smallest to the largest legal value.
    Int(u64, u64),
    /// Blocks: a bare number counts blocks, a suffix K M G T counts bytes (binary).
    Blocks,
    /// Mebibytes, decimals allowed (`CACHE_MB=160`); a suffix K M G T overrides.
    Mebibytes,
    /// Seconds, decimals allowed; `30s 5m 1h` too.
    Seconds,
    /// TRUE or FALSE, any case.
    Bool,
    /// One of these words, any case; stored as written here.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// Any text, never shown.
    Secret,
}

/// One parameter an engine or a workload understands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamDef {
    /// Upper-case name as in slob.conf.
    pub name: &'static str,
    /// Grammar.
    pub kind: ParamKind,
    /// Default as text; empty means unset.
    pub default: &'static str,
    /// Other spellings, accepted with a deprecation notice.
    pub aliases: &'static [&'static str],
    /// One line: meaning, unit, range.
    pub help: &'static str,
    /// Its flag without dashes: the long word, then a letter or other words; with `...` it may be repeated. Empty if it has none.
    pub flag: &'static [&'static str],
    /// The commands that have this flag, such as `run sweep`.
    pub commands: &'static str,
    /// What a difference in it does to a comparison.
    pub effect: Effect,
    /// Another parameter and its value under which this one has no effect.
    pub idle_with: Option<(&'static str, &'static str)>,
    /// The targets that heed it, where not all do.
    pub concerns: Option<Concern>,
}

/// Some of the targets, by what they are called together. Each target says to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Concern(pub &'static str);

/// What a parameter changes, and so what a difference in it does to a comparison of two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Effect {
    /// The work that is measured: a difference makes it another test. What it decides, in a word or two; may be empty.
    Work(&'static str),
    /// The platform under test, or how it is driven: a difference is told and tolerated.
    Platform,
    /// Neither; or a condition of its own tells of it (sessions, window, cache to data).
    #[default]
    Presentation,
}

impl ParamDef {
    /// Whether it has no effect beside these settings.
    pub fn is_idle<'a>(&self, setting: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.idle_with.is_some_and(|(other, idle)| setting(other) == Some(idle))
    }

    /// What it decides, with its name.
    #[must_use]
    pub fn title(&self) -> String {
        match self.effect {
            Effect::Work(what) if !what.is_empty() => format!("{what} ({})", self.name),
            _ => self.name.to_owned(),
        }
    }
}

/// Lines of a table of parameters: `name = alias, kind, default, help, flag [words], of commands, only concern => effect, idle with
/// name = value`, of which the first name, kind, default and help are needed.
#[macro_export]
macro_rules! params {
    (@flag) => { &[] };
    (@flag $flag:expr) => { &$flag };
    (@effect) => { $crate::config::Effect::Presentation };
    (@effect $effect:expr) => { $effect };
    (@only) => { None };
    (@only $concern:expr) => { Some($concern) };
    (@idle) => { None };
    (@idle $other:literal $idle:literal) => { Some(($other, $idle)) };
    ($($name:literal $(= $alias:literal)*, $kind:expr, $default:literal, $help:literal
        $(, flag $flag:expr, of $commands:literal)? $(, only $concern:expr)? $(=> $effect:expr $(, idle with $other:literal = $idle:literal)?)?;)*) => {
        &[$($crate::config::ParamDef {
            name: $name,
            kind: $kind,
            default: $default,
            aliases: &[$($alias),*],
            help: $help,
            flag: $crate::params!(@flag $($flag)?),
            commands: concat!($($commands)?),
            effect: $crate::params!(@effect $($effect)?),
            idle_with: $crate::params!(@idle $($($other $idle)?)?),
            concerns: $crate::params!(@only $($concern)?),
        }),*]
    };
}

/// Where an effective value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default.
    Default,
    /// `path:line`.
    File(String, usize),
    /// `ASSAY_<NAME>`.
    Environment,
    /// An option or `--set`.
    CommandLine,
    /// Read from the target (block size, loaded schemas).
    Target,
    /// Implied by another setting (named).
    Implied(String),
}

/// A typed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Not set and no default.
    Unset,
    /// Int.
    Int(u64),
    /// A number of blocks given as blocks, or bytes still to be divided by the block size.
    Blocks(u64),
    /// Bytes (of Blocks with a unit, or Mebibytes).
    Bytes(u64),
    /// Nanoseconds of a Seconds value.
    Ns(u64),
    /// Bool.
    Bool(bool),
    /// Choice or Text.
    Text(String),
    /// Secret.
    Secret(String),
}

/// One parameter as it will be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// Its definition.
    pub def: ParamDef,
    /// Its value.
    pub value: Value,
    /// The text as given (`***` for secrets).
    pub text: String,
    /// Where from.
    pub origin: Origin,
}

/// A mistake or a notice, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Errors stop the program; notices are shown and the run continues.
    pub error: bool,
    /// `slob.conf:12`, `--set`, `environment`.
    pub place: String,
    /// What is wrong with which value, and the remedy.
    pub text: String,
}

/// All effective parameters by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, Effective>,
    overwritable: Vec<PathBuf>,
}

impl Settings {
    /// Adds or replaces one.
    pub fn set(&mut self, effective: Effective) {
        self.values.insert(effective.def.name, effective);
    }

    /// Gives a parameter another value.
    pub fn put(&mut self, name: &str, value: Value, text: impl Into<String>, origin: Origin) {
        let def = self.get(name).def;
        self.set(Effective { def, value, text: text.into(), origin });
    }

    /// Gives a parameter the value that follows from another setting, `by`.
    pub fn imply(&mut self, name: &str, value: Value, text: impl Into<String>, by: &str) {
        self.put(name, value, text, Origin::Implied(by.to_owned()));
    }

    /// Records what the command line allows assay to overwrite (`--destroy`). It is not a parameter: no file and no
    /// environment variable can set it, and it is never saved.
    pub fn allow_overwriting(&mut self, paths: Vec<PathBuf>) {
        self.overwritable = paths;
    }

    /// What may be overwritten, as it was spelled.
    #[must_use]
    pub fn overwritable(&self) -> &[PathBuf] {
        &self.overwritable
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Effective> {
        self.values.values()
    }

    /// One parameter.
    ///
    /// # Panics
    /// If no table defines `name`: a bug in this program, not a mistake of its user.
    #[must_use]
    pub fn get(&self, name: &str) -> &Effective {
        self.values.get(name).unwrap_or_else(|| panic!("parameter {name} is in no table"))
    }

    /// Whether the user set it (its origin is not the default).
    #[must_use]
    pub fn is_given(&self, name: &str) -> bool {
        self.get(name).origin != Origin::Default
    }

    /// An Int.
    #[must_use]
    pub fn int(&self, name: &str) -> u64 {
        self.whole(name).unwrap_or_else(|| panic!("parameter {name} is {:?}, not a number", self.get(name).value))
    }

    /// An Int that may be unset.
    #[must_use]
    pub fn whole(&self, name: &str) -> Option<u64> {
        match self.get(name).value {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    /// A Bool.
    #[must_use]
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.get(name).value, Value::Bool(true))
    }

    /// A Choice or Text; empty if unset.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        match &self.get(name).value {
            Value::Text(text) => text,
            _ => "",
        }
    }

    /// Nanoseconds of a Seconds value; 0 if unset.
    #[must_use]
    pub fn ns(&self, name: &str) -> u64 {
        match self.get(name).value {
            Value::Ns(ns) => ns,
            _ => 0,
        }
    }

    /// Bytes of a Mebibytes value; 0 if unset.
    #[must_use]
    pub fn bytes(&self, name: &str) -> u64 {
        match self.get(name).value {
            Value::Bytes(bytes) => bytes,
            _ => 0,
        }
    }

    /// Blocks of a Blocks value for this block size (truncated); `None` if unset.
    #[must_use]
    pub fn blocks(&self, name: &str, block_bytes: u64) -> Option<u64> {
        match self.get(name).value {
            Value::Blocks(blocks) => Some(blocks),
            Value::Bytes(bytes) => Some(bytes / block_bytes),
            _ => None,
        }
    }
}

/// The result of resolving.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// Every parameter; broken ones hold their default.
    pub settings: Settings,
    /// Errors and notices in the order of the lines they concern.
    pub problems: Vec<Problem>,
    /// Names whose given value could not be used.
    pub broken: BTreeSet<&'static str>,
}

impl Resolved {
    /// Adds an error or a notice about a setting, with its place.
    pub fn problem(&mut self, error: bool, name: &str, text: impl Into<String>) {
        let setting = self.settings.get(name);
        if error {
            self.broken.insert(setting.def.name);
        }
        self.problems.push(Problem { error, place: place_of(&setting.origin), text: text.into() });
    }

    /// Whether any error forbids continuing.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.error)
    }
}

/// How a message names the place of a setting.
#[must_use]
pub fn place_of(origin: &Origin) -> String {
    match origin {
        Origin::File(path, line) => format!("{path}:{line}"),
        Origin::Environment => "environment".to_owned(),
        Origin::CommandLine => "command line".to_owned(),
        Origin::Default => "default".to_owned(),
        Origin::Target => "data set".to_owned(),
        Origin::Implied(by) => by.clone(),
    }
}
