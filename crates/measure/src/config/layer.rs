//! The assignments of one source as given, before they are interpreted.

use super::settings::{Origin, Problem};

/// One assignment.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// Name as written (command line, environment and TOML: upper case).
    pub name: String,
    /// Value with quotes and comment removed; may be a secret.
    pub text: String,
    /// Where it stands.
    pub origin: Origin,
    /// The same for messages: `slob.conf:12`, `--set`, `environment`.
    pub place: String,
    /// TOML table that contains it (`native`, `slob`); `None` outside of any.
    pub scope: Option<String>,
}

impl std::fmt::Debug for Given {
    /// Shows no value: it may be a secret, and messages are built before types are known.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.name, self.place)
    }
}

/// One source of settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// Assignments in their order.
    pub given: Vec<Given>,
    /// Errors and notices about the text itself.
    pub problems: Vec<Problem>,
}

impl Layer {
    /// The last value of a name in this layer, if any.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<&Given> {
        self.given.iter().rev().find(|given| given.name == name)
    }

    pub(super) fn error(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.problems.push(Problem { error: true, place: place.into(), text: text.into() });
    }

    pub(super) fn notice(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.problems.push(Problem { error: false, place: place.into(), text: text.into() });
    }
}

/// The prefix of environment variables that set parameters.
pub const ENVIRONMENT_PREFIX: &str = "ASSAY_";

/// The layer of the environment: every variable `ASSAY_<NAME>`, nothing else.
pub fn environment(variables: impl IntoIterator<Item = (String, String)>) -> Layer {
    let mut given: Vec<Given> = variables
        .into_iter()
        .filter_map(|(variable, text)| {
            let name = variable.strip_prefix(ENVIRONMENT_PREFIX)?.to_uppercase();
            Some(Given {
                name,
                text,
                origin: Origin::Environment,
                place: format!("environment {variable}"),
                scope: None,
            })
        })
        .collect();
    given.sort_by(|a, b| a.name.cmp(&b.name));
    Layer { given, problems: Vec::new() }
}

/// The layer of the command line: options and `--set NAME=VALUE`, as
/// (option as typed, parameter name, value).
pub fn command_line(options: impl IntoIterator<Item = (String, String, String)>) -> Layer {
    Layer {
        given: options
            .into_iter()
            .map(|(option, name, text)| Given {
                name: name.to_uppercase(),
                text,
                origin: Origin::CommandLine,
                place: option,
                scope: None,
            })
            .collect(),
        problems: Vec::new(),
    }
}
