//! How the program ends: one enum of exit codes, one failure type that carries one.

use assay_measure::config::Problem;
use assay_run::engine::EngineError;

/// Exit codes; scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// As asked.
    Good = 0,
    /// A mistake in this program.
    Bug = 1,
    /// Usage or configuration.
    Usage = 2,
    /// The target or the host cannot serve.
    Unusable = 3,
    /// The run's figures are not to be trusted.
    Invalid = 4,
    /// A gate of `compare --fail-if` fired.
    Regression = 5,
    /// The record or the product could not be written.
    Output = 6,
    /// Stopped by a signal.
    Interrupted = 130,
}

/// What each code means: in few words, and as the reference says it.
pub(crate) const MEANINGS: [(Code, &str, &str); 8] = [
    (Code::Good, "good", "good"),
    (Code::Bug, "bug", "a bug in assay"),
    (Code::Usage, "usage or configuration", "usage or configuration"),
    (Code::Unusable, "target or host unusable", "target or host unusable"),
    (
        Code::Invalid,
        "run invalid",
        "the run is invalid: do not use its figures (missed rate, lost sessions, errors over the limit, a violated \
         check); or a gate, or a figure of `accept`, could not be judged: its limit may be passed; \
         or the figure of `--until` is not measurable now: the time passed, or its level changed",
    ),
    (
        Code::Regression,
        "regression found",
        "regression found: a gate of `compare --fail-if` fired, a figure is worse than the passport of `accept`, or the box does not hold \
         the load of `fit`",
    ),
    (Code::Output, "output not written", "output not written"),
    (Code::Interrupted, "interrupted", "interrupted (INT, TERM, HUP)"),
];

/// All codes in one line of the help.
pub(crate) fn codes() -> String {
    MEANINGS.map(|(code, short, _)| format!("{} {short}", code as u8)).join(", ")
}

/// Why a command did not end well. Its lines are for stderr, without prefix.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What the shell is told.
    pub(crate) code: Code,
    /// What the user is told, one mistake a line; may be empty if all was said.
    pub(crate) lines: Vec<String>,
}

impl Failure {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, lines: vec![text.into()] }
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Code::Usage, text)
    }

    pub(crate) fn output(text: impl Into<String>) -> Self {
        Self::new(Code::Output, text)
    }

    /// A failure whose story was told already.
    pub(crate) fn said(code: Code) -> Self {
        Self { code, lines: Vec::new() }
    }

    /// All errors among problems, each with its place.
    pub(crate) fn problems(problems: &[Problem]) -> Self {
        Self {
            code: Code::Usage,
            lines: problems
                .iter()
                .filter(|problem| problem.error)
                .map(|problem| format!("{}: {}", problem.place, problem.text))
                .collect(),
        }
    }
}

/// The code an engine's failure ends with.
pub(crate) fn code_of(error: &EngineError) -> Code {
    match error {
        EngineError::Usage(_) => Code::Usage,
        EngineError::Interrupted => Code::Interrupted,
        EngineError::SessionLost(_) => Code::Invalid,
        _ => Code::Unusable,
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::new(code_of(&error), error.to_string())
    }
}
