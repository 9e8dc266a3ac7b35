//! What is known about the runs in a directory, in `catalogue.jsonl` beside them.
//!
//! It is only a cache: the directories are the truth. Each time it is opened it checks the name, time and size of every
//! run's record and reads new or changed ones again, so that you may add, move and remove runs by hand. Without a place
//! to write to it stays in memory. It is an index file and not a database: its only queries are a whole list, or one
//! figure of every run. Each run directory also keeps its own tags.

mod entry;
mod filter;
mod store;
mod tags;

#[cfg(test)]
mod tests;

pub(crate) use entry::{Entry, Found, card, look_at, places};
pub(crate) use filter::{Filter, IMPORT, IMPORTED, instant};
pub(crate) use store::Value;
pub(crate) use tags::{Change, change as change_tags, read as tags_of};

use crate::dir_handle::DirHandle;
use crate::exit::{Code, Failure};
use crate::rundir::CATALOGUE;
use crate::ui;
use assay_measure::config;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use store::Store;

/// Reading so many records takes long enough to say so.
const MANY: usize = 200;

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
        // Where it cannot be opened there are no runs either, or `places` had told why.
        let held = DirHandle::open(dir).ok();
        let known = held.as_ref().and_then(Store::load);
        let may_save = known.is_some();
        let mut store = known.filter(|_| !anew).unwrap_or_default();
        let is_changed = refresh(&mut store, &places)?;
        if let Some(held) = held.filter(|_| is_changed && may_save) {
            match store.save(&held) {
                // The answer does not depend on it.
                Err(error) if !is_unwritable(&error) => {
                    ui::say(&format!("notice: {}: {error}", dir.join(CATALOGUE).display()));
                }
                _ => {}
            }
        }
        Ok(Self { dir: dir.to_path_buf(), entries: store.entries(), store })
    }

    /// Every run's value of one metric, by the name of its directory; an unknown metric is refused with those that are near.
    pub(crate) fn metric(&self, key: &str) -> Result<store::Values, Failure> {
        self.store.metric(key).ok_or_else(|| self.unknown(key))
    }

    fn unknown(&self, key: &str) -> Failure {
        let names = || self.store.keys();
        let dir = self.dir.display();
        if names().next().is_none() {
            return Failure::usage(format!("{key}: no run in {dir} has a metric"));
        }
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
        let hint = if near.is_empty() {
            "`assay report RUN --format metrics-csv` lists the metrics of a run".to_owned()
        } else {
            format!("near it: {}", near.join(", "))
        };
        Failure::usage(format!("no run in {dir} has a metric {key}; {hint}"))
    }
}

/// Brings the store up to date with the directories; tells whether anything changed.
fn refresh(store: &mut Store, places: &[entry::Found]) -> Result<bool, Failure> {
    let is_gone = store.keep(places);
    let changed: Vec<&entry::Found> =
        places.iter().filter(|found| store.stamp(&found.name) != Some(&found.stamp)).collect();
    if changed.len() >= MANY {
        ui::say(&format!("reading {} records", changed.len()));
    }
    store.update(&changed).map_err(|error| Failure::new(Code::Bug, format!("catalogue: {error}")))?;
    Ok(is_gone || !changed.is_empty())
}

/// Whether nothing may be written there, which is nobody's fault.
fn is_unwritable(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// Where a run of the directory is.
pub(crate) fn path_of(dir: &Path, entry: &Entry) -> PathBuf {
    dir.join(&entry.name)
}
