//! The judgements of a run: identities and advice rules.

use super::{Figure, Truth};
use crate::figures::figures;
use std::collections::BTreeMap;

/// One identity of awr-statistics 2.3, evaluated.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Identity {
    /// `I1` ... `I44`, with a letter where one identity has several parts.
    pub id: String,
    /// What must hold, in the field's names.
    pub rule: String,
    /// `whole run` (gate to drained) or `window` (begin to end).
    pub scope: String,
    /// A violation is a bug in assay, not a property of the platform.
    pub exact: bool,
    /// The outcome.
    pub ok: Truth,
    /// Left side.
    pub lhs: Figure,
    /// Right side.
    pub rhs: Figure,
    /// (left - right) / the larger of both.
    pub rel_err: Figure,
    /// Allowed difference, in the sides' own unit.
    pub tolerance: Figure,
    /// The outcome in a sentence.
    pub sentence: String,
}

/// One finding of the advice rules.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advice {
    /// The number of its rule, `R14`.
    pub id: String,
    /// `note` or `high`.
    pub severity: String,
    /// Whether it says that figures mean something else than they seem to: then it is a warning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changes_figures: bool,
    /// The finding with its numbers.
    pub text: String,
    /// The numbers, by name with unit last.
    #[serde(deserialize_with = "super::spelling::keys")]
    pub evidence: BTreeMap<String, Figure>,
}
