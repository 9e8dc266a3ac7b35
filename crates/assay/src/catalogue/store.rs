//! The index file: a line of what the figures are, then a line for each run.
//!
//! A line holds the time of the directory's last change, what lists show of its run, and its figures, which stay text
//! until one is needed. The file is only ever replaced as a whole. If two processes do so at once, the last one wins;
//! the next command reads again what the other had read.

use super::entry::{self, Entry, Found, Stamp};
use crate::dir_handle::{DirHandle, PARTIAL};
use crate::rundir::CATALOGUE;
use crate::ui;
use assay_measure::record::Figure;
use assay_measure::record::metric::{Better, Metric};
use assay_run::bounded;
use assay_run::host::random_u32;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Version of the lines; another one is read anew from the records.
const VERSION: u32 = 3;

/// What a metric is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyInfo {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) unit: String,
    /// `higher`, `lower` or `neither`.
    pub(crate) better: String,
}

impl KeyInfo {
    fn of(metric: &Metric, key: String) -> Self {
        let better = match metric.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "neither",
        };
        Self { key, name: metric.name.clone(), unit: metric.unit.clone(), better: better.to_owned() }
    }
}

/// A metric of one run, or why there is none.
pub(crate) type Value = Result<f64, String>;

/// What a metric is, and every run's value by the name of its directory.
pub(crate) type Values = (KeyInfo, BTreeMap<String, Value>);

/// The first line.
#[derive(Deserialize, Serialize)]
struct Head {
    /// Identifies the file and the form of its lines.
    assay_catalogue: u32,
    keys: Vec<KeyInfo>,
}

/// One run.
#[derive(Deserialize, Serialize)]
struct Row {
    entry: Entry,
    stamp: Stamp,
    /// Pairs of a key's place in the head and a figure.
    figures: Box<RawValue>,
}

/// What is known of the runs of a directory.
#[derive(Default)]
pub(super) struct Store {
    keys: Vec<KeyInfo>,
    /// By name of the directory.
    rows: BTreeMap<String, Row>,
}

impl Store {
    /// What the directory's file says. A file that is not there or of another version says nothing; one that is damaged, or
    /// somebody else's, is kept under another name. `None` where it cannot be read: then it is not replaced either.
    pub(super) fn load(dir: &DirHandle) -> Option<Self> {
        let parsed = match dir.read(CATALOGUE, bounded::CATALOGUE) {
            Ok(text) => Self::parse(&text).ok(),
            Err(error) if error.kind() == ErrorKind::InvalidData => None,
            Err(error) => return (error.kind() == ErrorKind::NotFound).then(Self::default),
        };
        if parsed.is_none() {
            set_aside(dir.path());
        }
        Some(parsed.unwrap_or_default())
    }

    fn parse(text: &str) -> serde_json::Result<Self> {
        let mut lines = text.lines();
        let head: Head = serde_json::from_str(lines.next().unwrap_or_default())?;
        if head.assay_catalogue != VERSION {
            return Ok(Self::default());
        }
        let rows = lines.map(|line| {
            let row: Row = serde_json::from_str(line)?;
            Ok((row.entry.name.clone(), row))
        });
        Ok(Self { keys: head.keys, rows: rows.collect::<serde_json::Result<_>>()? })
    }

    /// Replaces the directory's file.
    pub(super) fn save(&self, dir: &DirHandle) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(&Head { assay_catalogue: VERSION, keys: self.keys.clone() })?;
        for row in self.rows.values() {
            bytes.push(b'\n');
            serde_json::to_writer(&mut bytes, row)?;
        }
        bytes.push(b'\n');
        // A name of its own: two may write at once.
        dir.write_through(&format!("{CATALOGUE}.{:08x}{PARTIAL}", random_u32()), CATALOGUE, &bytes)
    }

    pub(super) fn stamp(&self, name: &str) -> Option<&Stamp> {
        self.rows.get(name).map(|row| &row.stamp)
    }

    /// Forgets the directories that are not there any more; tells whether there was one.
    pub(super) fn keep(&mut self, places: &[Found]) -> bool {
        let before = self.rows.len();
        self.rows.retain(|name, _| places.binary_search_by(|found| found.name.cmp(name)).is_ok());
        self.rows.len() < before
    }

    /// Reads the runs of directories that are new or changed.
    pub(super) fn update(&mut self, changed: &[&Found]) -> serde_json::Result<()> {
        let known = self.keys.iter().enumerate().map(|(at, info)| (info.key.clone(), at));
        let mut places: HashMap<String, usize> = known.collect();
        for found in changed {
            let (entry, metrics) = entry::read(found);
            let mut figures: Vec<(usize, &Figure)> = Vec::with_capacity(metrics.len());
            for metric in &metrics {
                let at = *places.entry(metric.full_key()).or_insert_with_key(|key| {
                    self.keys.push(KeyInfo::of(metric, key.clone()));
                    self.keys.len() - 1
                });
                figures.push((at, &metric.value));
            }
            let figures = serde_json::value::to_raw_value(&figures)?;
            self.rows.insert(found.name.clone(), Row { entry, stamp: found.stamp.clone(), figures });
        }
        Ok(())
    }

    /// Every run, by name of its directory.
    pub(super) fn entries(&self) -> Vec<Entry> {
        self.rows.values().map(|row| row.entry.clone()).collect()
    }

    pub(super) fn metric(&self, key: &str) -> Option<Values> {
        let at = self.keys.iter().position(|info| info.key == key)?;
        let value = |row: &Row| {
            let figures: Vec<(usize, Figure)> = serde_json::from_str(row.figures.get()).ok()?;
            let (_, figure) = figures.into_iter().find(|(of, _)| *of == at)?;
            Some(match &figure {
                Figure::Na(reason) => Err(reason.clone()),
                figure => Ok(figure.value()?),
            })
        };
        let values = self.rows.iter().filter_map(|(name, row)| Some((name.clone(), value(row)?)));
        Some((self.keys[at].clone(), values.collect()))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|info| info.key.as_str())
    }
}

/// A file that cannot be read is kept for whoever wants to look into it.
fn set_aside(dir: &Path) {
    let path = dir.join(CATALOGUE);
    let numbers = std::iter::once(String::new()).chain((2..100).map(|n| format!("-{n}")));
    let mut names = numbers.map(|n| path.with_file_name(format!("{CATALOGUE}.damaged{n}")));
    let free = names.find(|name| !name.exists());
    let moved = free.and_then(|name| fs::rename(&path, &name).ok().map(|()| name));
    let what = format!("notice: {}: it is damaged, or it is not a catalogue of assay", path.display());
    ui::say(&match moved {
        Some(name) => format!("{what}; assay kept it as {} and makes a new one", name.display()),
        None => what,
    });
}
