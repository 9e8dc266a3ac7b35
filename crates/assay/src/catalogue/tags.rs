//! Tags of a run, a line each in a small file of its directory: `name` or `key=value`.

use crate::dir_handle::DirHandle;
use crate::exit::Failure;
use crate::rundir::{self, TAGS};
use assay_run::bounded;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

/// What is to be done to the tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// `+name`
    Add(String),
    /// `-name`: a tag, or the value of a key.
    Remove(String),
    /// `key=value`: in place of the key's value before.
    Set(String, String),
}

impl Change {
    /// Reads one word of the command line.
    pub(crate) fn parse(word: &str) -> Result<Self, Failure> {
        let bad = |what: &str| Failure::usage(format!("{word}: {what}; give +NAME, -NAME or KEY=VALUE"));
        let name = |name: &str| {
            if is_name(name) {
                Ok(name.to_owned())
            } else {
                Err(bad("a tag consists of letters, digits and - _ . : /"))
            }
        };
        if let Some(added) = word.strip_prefix('+') {
            return Ok(Self::Add(name(added)?));
        }
        if let Some(removed) = word.strip_prefix('-') {
            return Ok(Self::Remove(name(removed)?));
        }
        let (key, value) = word.split_once('=').ok_or_else(|| bad("it begins neither with + nor with -"))?;
        if value.is_empty() || value.chars().any(char::is_control) {
            return Err(bad("a value must be one line of text"));
        }
        Ok(Self::Set(name(key)?, value.trim().to_owned()))
    }

    fn apply(&self, tags: &mut BTreeSet<String>) {
        let drop_key = |tags: &mut BTreeSet<String>, key: &str| {
            tags.retain(|tag| tag.split_once('=').is_none_or(|(of, _)| of != key));
        };
        match self {
            Self::Add(name) => {
                tags.insert(name.clone());
            }
            Self::Remove(name) => {
                tags.remove(name);
                drop_key(tags, name);
            }
            Self::Set(key, value) => {
                drop_key(tags, key);
                tags.insert(format!("{key}={value}"));
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || "-_.:/".contains(c);
    !name.is_empty() && name.chars().all(fits)
}

/// The tags of a run directory; none where there is no file.
pub(crate) fn read(dir: &Path) -> Vec<String> {
    let text = DirHandle::open(dir).and_then(|dir| dir.read(TAGS, bounded::TAGS));
    of_text(&text.unwrap_or_default())
}

fn of_text(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let tags: BTreeSet<String> = lines.map(str::to_owned).collect();
    tags.into_iter().collect()
}

/// Changes them; two processes that do so at once change them one after the other.
pub(crate) fn change(dir: &Path, changes: &[Change]) -> Result<Vec<String>, Failure> {
    let dir = rundir::claim_for_tags(dir)?;
    let before = match dir.held().read(TAGS, bounded::TAGS) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        // What cannot be read is not replaced.
        read => read.map_err(|error| rundir::cannot(&dir.path().join(TAGS), &error))?,
    };
    let mut tags: BTreeSet<String> = of_text(&before).into_iter().collect();
    for change in changes {
        change.apply(&mut tags);
    }
    let text: String = tags.iter().map(|tag| format!("{tag}\n")).collect();
    dir.write(TAGS, &text)?;
    Ok(tags.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(tags: &[&str], words: &[&str]) -> Vec<String> {
        let mut tags: BTreeSet<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        for word in words {
            Change::parse(word).expect("a change").apply(&mut tags);
        }
        tags.into_iter().collect()
    }

    #[test]
    fn names_are_added_and_removed_and_a_key_has_one_value() {
        assert_eq!(changed(&["a"], &["+b", "-a", "-c"]), ["b"]);
        assert_eq!(changed(&["disk=old"], &["disk=nvme 2 TB"]), ["disk=nvme 2 TB"]);
        assert_eq!(changed(&["disk=old", "disks"], &["-disk"]), ["disks"]);
    }

    #[test]
    fn what_is_no_change_is_refused_with_the_way_out() {
        for word in ["plain", "+", "-", "+a b", "k=", "a b=c", "k=a\nb"] {
            let failure = Change::parse(word).expect_err(word);
            assert!(failure.lines[0].contains("+NAME"), "{word}");
        }
    }

    #[test]
    fn tags_are_kept_in_the_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(read(dir.path()).is_empty());
        let changes = [Change::Add("b".to_owned()), Change::Add("a".to_owned())];
        change(dir.path(), &changes).expect("written");
        assert_eq!(read(dir.path()), ["a", "b"]);
    }

    #[test]
    fn no_tag_is_lost_when_several_are_set_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        std::thread::scope(|scope| {
            for tag in 0..4 {
                let added = [Change::Add(tag.to_string())];
                scope.spawn({
                    let dir = dir.path();
                    move || change(dir, &added).expect("written")
                });
            }
        });
        assert_eq!(read(dir.path()).concat(), "0123");
    }
}
