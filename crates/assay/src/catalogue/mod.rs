//! What is known of the runs in a directory, in `catalogue.sqlite` beside them.
//!
//! Only a cache: the directories are the truth. Each time it is opened it looks at the name, time and size of every
//! run's record and reads again what is new or changed, so that runs may be added, moved and removed by hand. Without
//! a place to write to it lives in memory. Tags are not in it alone: each run directory keeps its own.

mod entry;
mod filter;
mod store;
mod tags;

#[cfg(test)]
mod tests;

pub(crate) use entry::{Entry, card, places};
pub(crate) use filter::{Filter, IMPORT, IMPORTED, instant};
pub(crate) use store::Value;
pub(crate) use tags::{Change, change as change_tags, read as tags_of};

use crate::exit::Failure;
use crate::rundir::CATALOGUE;
use crate::ui;
use assay_measure::config;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::Store;

/// Reading so many records takes long enough to say so.
const MANY: usize = 200;
/// Records read before they are written down.
const PART: usize = 100;

/// The runs of one directory.
pub(crate) struct Catalogue {
    dir: PathBuf,
    store: Store,
    /// By name of the directory, which is by time.
    pub(crate) entries: Vec<Entry>,
}

impl Catalogue {
    /// What is there now.
    pub(crate) fn open(dir: &Path) -> Result<Self, Failure> {
        Self::with(dir, false)
    }

    /// The same from the records alone.
    pub(crate) fn rebuild(dir: &Path) -> Result<Self, Failure> {
        Self::with(dir, true)
    }

    fn with(dir: &Path, anew: bool) -> Result<Self, Failure> {
        let places = entry::places(dir)?;
        let (store, entries) = match stored(dir, &places, anew) {
            Ok(found) => found,
            Err(error) => {
                // Locked for long, or a disk that is full: the answer does not depend on it.
                if !store::is_unwritable(&error) {
                    ui::say(&format!(
                        "notice: {}: {error}; assay reads the runs from their records",
                        dir.join(CATALOGUE).display()
                    ));
                }
                let mut store = Store::in_memory().map_err(|error| bug(&error))?;
                let entries = refresh(&mut store, &places, true).map_err(|error| bug(&error))?;
                (store, entries)
            }
        };
        Ok(Self { dir: dir.to_path_buf(), store, entries })
    }

    /// Every run's value of one metric, by the run's number; an unknown metric is refused with those that are near.
    pub(crate) fn metric(&self, key: &str) -> Result<store::Metric, Failure> {
        match self.store.metric(key).map_err(|error| bug(&error))? {
            Some(found) => Ok(found),
            None => Err(self.unknown(key)),
        }
    }

    fn unknown(&self, key: &str) -> Failure {
        let keys = self.store.keys().unwrap_or_default();
        let dir = self.dir.display();
        if keys.is_empty() {
            return Failure::usage(format!("{key}: no run in {dir} has a metric"));
        }
        let names = || keys.iter().map(String::as_str);
        let mut near: Vec<&str> = names().filter(|name| name.contains(key)).take(8).collect();
        near.extend(config::nearest(key, names()).filter(|name| !near.contains(name)));
        if near.is_empty() {
            // Words of the key, longest first, say what was meant more often than its letters.
            let mut words: Vec<&str> = key.split('_').filter(|word| word.len() > 2).collect();
            words.sort_by_key(|word| std::cmp::Reverse(word.len()));
            let holding = |word: &&str| names().any(|name| name.contains(*word));
            let word = words.into_iter().find(holding);
            near.extend(names().filter(|name| word.is_some_and(|w| name.contains(w))).take(8));
        }
        let hint = match near.is_empty() {
            true => "`assay report RUN --format csv-summary` lists the metrics of a run".to_owned(),
            false => format!("near it: {}", near.join(", ")),
        };
        Failure::usage(format!("no run in {dir} has a metric {key}; {hint}"))
    }
}

/// The file's store, up to date. One that is damaged is set aside and made again.
fn stored(dir: &Path, places: &[entry::Found], anew: bool) -> Result<(Store, Vec<Entry>), rusqlite::Error> {
    let try_once = || {
        let mut store = Store::open(dir, places.is_empty())?;
        let entries = refresh(&mut store, places, anew)?;
        Ok((store, entries))
    };
    match try_once() {
        Err(error) if store::is_damage(&error) => {
            store::set_aside(&dir.join(CATALOGUE), &error);
            try_once()
        }
        found => found,
    }
}

/// Brings the store up to date with the directories.
fn refresh(store: &mut Store, places: &[entry::Found], anew: bool) -> Result<Vec<Entry>, rusqlite::Error> {
    let known = match anew {
        true => BTreeMap::new(),
        false => store.stamps()?,
    };
    let changed: Vec<&entry::Found> =
        places.iter().filter(|found| known.get(&found.name) != Some(&found.stamp)).collect();
    let gone: Vec<&String> =
        known.keys().filter(|name| places.binary_search_by(|found| found.name.cmp(name)).is_err()).collect();
    if anew || !changed.is_empty() || !gone.is_empty() {
        if changed.len() >= MANY {
            ui::say(&format!("reading {} records", changed.len()));
        }
        store.forget(anew, &gone)?;
        // A part at a time: the figures of thousands of runs need not be in memory together.
        for part in changed.chunks(PART) {
            store.update(part)?;
        }
    }
    store.entries()
}

fn bug(error: &rusqlite::Error) -> Failure {
    Failure::new(crate::exit::Code::Bug, format!("catalogue in memory: {error}"))
}

/// Where a run of the directory is.
pub(crate) fn path_of(dir: &Path, entry: &Entry) -> PathBuf {
    dir.join(&entry.name)
}
