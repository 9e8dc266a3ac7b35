//! The option table: name, value, effect and default of each option.
//!
//! It is the source for the command line, job files, help and `docs/design/io-options.md`.

mod clones;
mod files;
mod measure;
mod pace;
mod pattern;
mod payload;
mod refused;
mod ring;

use super::draft::Draft;
use super::number::Read;
use super::value::{Kind, Value};
use crate::spec::IoEngine;
use assay_measure::config::nearest;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Stores a value in a job.
pub(super) type Set = fn(&mut Draft, &Value<'_>) -> Read<()>;

/// What assay does with an option.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// It works as in fio.
    Works(Set),
    /// It is checked and then ignored, for this reason.
    Accepted(&'static str),
    /// It is refused; the text names an alternative or the reason.
    Refused(&'static str),
}

/// The category of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Jobs, clones and where they run.
    Clones,
    /// Files.
    Files,
    /// Offsets, lengths, directions.
    Pattern,
    /// What is written, and how it is verified.
    Payload,
    /// Depth, time, rates and when to stop.
    Pace,
    /// Figures and logs.
    Measure,
    /// Options of single engines.
    Engine,
    /// Options that assay does not support.
    Refused,
}

impl Category {
    /// All categories, in the order of help.
    pub const ALL: [Self; 8] = [
        Self::Clones,
        Self::Files,
        Self::Pattern,
        Self::Payload,
        Self::Pace,
        Self::Measure,
        Self::Engine,
        Self::Refused,
    ];

    /// The heading of the category.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Clones => "Jobs and clones",
            Self::Files => "Files",
            Self::Pattern => "Offsets, lengths and directions",
            Self::Payload => "What is written, and verification",
            Self::Pace => "Depth, time, rates and stops",
            Self::Measure => "Figures and logs",
            Self::Engine => "Options of single engines",
            Self::Refused => "Not supported",
        }
    }
}

/// An option of a job.
#[derive(Clone, Copy, Debug)]
pub struct OptionDef {
    /// Its name in reports.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// The values it takes.
    pub kind: Kind,
    /// Its default; empty if it has none.
    pub default: &'static str,
    /// Its category.
    pub category: Category,
    /// Whether it is supported, and how.
    pub usage: Use,
    /// One line of help.
    pub help: &'static str,
}

/// Entries of a table: `name = alias, kind, default, use, help`.
macro_rules! options {
    ($category:expr; $($name:literal $(= $alias:literal)*, $kind:expr, $default:literal, $usage:expr, $help:literal;)*) => {
        &[$($crate::language::table::OptionDef {
            name: $name,
            aliases: &[$($alias),*],
            kind: $kind,
            default: $default,
            category: $category,
            usage: $usage,
            help: $help,
        }),*]
    };
}
use options;

static TABLES: [&[OptionDef]; 8] = [
    clones::OPTIONS,
    files::OPTIONS,
    pattern::OPTIONS,
    payload::OPTIONS,
    pace::OPTIONS,
    measure::OPTIONS,
    ring::OPTIONS,
    refused::OPTIONS,
];

/// Every option, in the order of help.
pub fn all() -> impl Iterator<Item = &'static OptionDef> {
    TABLES.iter().copied().flatten()
}

/// The option with exactly this name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static OptionDef> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static OptionDef>> = LazyLock::new(|| {
        let named = |option: &'static OptionDef| {
            let names = std::iter::once(option.name).chain(option.aliases.iter().copied());
            names.map(move |name| (name, option))
        };
        // The first option with a name wins.
        let mut by_name = HashMap::new();
        for (name, option) in all().flat_map(named) {
            by_name.entry(name).or_insert(option);
        }
        by_name
    });
    BY_NAME.get(name).copied()
}

/// The names that start with this, including aliases.
pub fn beginning_with(start: &str) -> Vec<(&'static str, &'static OptionDef)> {
    all()
        .flat_map(|option| {
            std::iter::once(option.name).chain(option.aliases.iter().copied()).map(move |name| (name, option))
        })
        .filter(|(name, _)| name.starts_with(start))
        .collect()
}

/// The most similar name, as a suggestion.
#[must_use]
pub fn nearest_name(name: &str) -> Option<&'static str> {
    nearest(name, all().flat_map(|option| std::iter::once(option.name).chain(option.aliases.iter().copied())))
}

/// Engines that have this option; an empty list means all.
#[must_use]
pub fn engines_of(option: &OptionDef) -> &'static [IoEngine] {
    const RING: &[IoEngine] = &[IoEngine::IoUring, IoEngine::Nop];
    const AIO: &[IoEngine] = &[IoEngine::Libaio];
    const CALLS: &[IoEngine] = &[IoEngine::Pvsync2];
    const POLLING: &[IoEngine] = &[IoEngine::IoUring, IoEngine::Nop, IoEngine::Pvsync2];
    const RING_OR_AIO: &[IoEngine] = &[IoEngine::IoUring, IoEngine::Nop, IoEngine::Libaio];
    const ALL_THREE: &[IoEngine] = &[IoEngine::IoUring, IoEngine::Nop, IoEngine::Libaio, IoEngine::Pvsync2];
    match option.name {
        "hipri" | "uncached" => POLLING,
        "fixedbufs" | "registerfiles" | "sqthread_poll" | "sqthread_poll_cpu" | "nonvectored" | "force_async"
        | "cmd_type" => RING,
        "cmdprio_percentage" | "cmdprio_class" | "cmdprio" | "cmdprio_bssplit" => RING_OR_AIO,
        "userspace_reap" => AIO,
        "hipri_percentage" => CALLS,
        "nowait" => ALL_THREE,
        _ => &[],
    }
}
