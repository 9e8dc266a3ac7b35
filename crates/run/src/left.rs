//! What a killed assay leaves behind, and how the next one knows.
//!
//! A command that makes something temporary (a server's directory, a scratch file) first puts a **mark** beside it,
//! `NAME.mark`, and removes the mark last of all. The mark is locked (`flock`) as long as its maker lives: an unlocked
//! mark was left by a killed command, at whatever instant that was. Marks of other users, and things that do not match
//! their mark, are left alone.

use crate::lock::Locked;
use crate::owned;
use assay_measure::plain::shell_word;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Ends the name of a mark.
const SUFFIX: &str = ".mark";
/// Longer ones are nobody's of ours.
const MOST_BYTES: u64 = 4096;
/// Nobody takes that long from making a mark to locking and writing it.
const NEWBORN: Duration = Duration::from_secs(60);

/// What is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory with all that is in it.
    Directory,
}

impl Kind {
    /// What a mark of `name` says: nothing in it is believed that is not so by itself.
    fn text(self, name: &str) -> String {
        let kind = match self {
            Self::File => "file",
            Self::Directory => "directory",
        };
        format!(
            "assay mark 1: {kind} {name}\nWhile this is locked an assay works there; else it was killed, and both may be removed.\n"
        )
    }
}

/// The mark of something that this process makes and will remove.
///
/// Dropped, it stays, and counts as left behind: only [`Mark::take_away`] removes it.
#[derive(Debug)]
pub struct Mark {
    directory: OwnedFd,
    name: String,
    _locked: Locked,
}

impl Mark {
    /// Makes the mark of `path`, which must not exist yet.
    ///
    /// # Errors
    /// There is already a mark of that name, or it cannot be written.
    pub fn put(path: &Path, kind: Kind) -> io::Result<Self> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Self::put_in(owned::hold_directory(directory)?, path, kind)
    }

    /// The same, in a directory that is held already; of `path` the last part counts.
    ///
    /// # Errors
    /// As [`Mark::put`].
    pub fn put_in(directory: OwnedFd, path: &Path, kind: Kind) -> io::Result<Self> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8");
        let thing = path.file_name().and_then(|name| name.to_str());
        let thing = thing.ok_or_else(invalid)?;
        let name = format!("{thing}{SUFFIX}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = File::from(openat(&directory, name.as_str(), flags, mode)?);
        // Somebody may be looking at it just now, which takes no time.
        let written = Locked::awaited(file).and_then(|locked| {
            (&*locked).write_all(kind.text(thing).as_bytes())?;
            Ok(locked)
        });
        match written {
            Ok(locked) => Ok(Self { directory, name, _locked: locked }),
            Err(error) => {
                // The error that led here is the one to tell.
                let _ = unlinkat(&directory, name.as_str(), AtFlags::empty());
                Err(error)
            }
        }
    }

    /// Removes the mark, once the marked thing is removed or is to stay.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn take_away(self) -> io::Result<()> {
        unlinkat(&self.directory, self.name.as_str(), AtFlags::empty())?;
        Ok(())
    }
}

/// Something left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// What was made, if it still exists, and how to remove it.
    thing: Option<(PathBuf, Kind)>,
    mark: PathBuf,
}

/// What killed ones of this user left in `directory`, by name. Looks without touching.
#[must_use]
pub fn found(directory: &Path) -> Vec<Left> {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
    let entries = std::fs::read_dir(&directory).into_iter().flatten();
    let mut found: Vec<Left> = entries.filter_map(|entry| look(&entry.ok()?.path())).collect();
    found.sort_by(|one, other| one.mark.cmp(&other.mark));
    found
}

/// What a killed command of this user left under this name.
#[must_use]
pub fn of(path: &Path) -> Option<Left> {
    let mut mark = std::path::absolute(path).ok()?.into_os_string();
    mark.push(SUFFIX);
    look(Path::new(&mark))
}

/// What a mark says, if it is one, is ours, and nobody locks it.
fn look(mark: &Path) -> Option<Left> {
    let thing = mark.to_str()?.strip_suffix(SUFFIX)?;
    let name = Path::new(thing).file_name()?.to_str()?;
    let uid = rustix::process::geteuid().as_raw();
    let mut file = owned::open_file(mark, uid).ok()?;
    let about = file.metadata().ok()?;
    if about.len() > MOST_BYTES || about.mode() & 0o022 != 0 {
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let kinds = [Kind::File, Kind::Directory];
    let kind = kinds.into_iter().find(|kind| kind.text(name) == text);
    let is_old = || about.modified().ok()?.elapsed().ok();
    // Written only under the lock: what is not whole is being made, or its maker was killed before anything else was.
    let newborn = kind.is_none()
        && !(kinds.iter().any(|kind| kind.text(name).starts_with(&text)) && is_old().is_some_and(|age| age > NEWBORN));
    if newborn || Locked::exclusive(file).is_err() {
        return None;
    }
    let thing = PathBuf::from(thing);
    let is = |kind| {
        std::fs::symlink_metadata(&thing).is_ok_and(|about| {
            about.uid() == uid
                && match kind {
                    Kind::File => about.is_file(),
                    Kind::Directory => about.is_dir(),
                }
        })
    };
    Some(Left { thing: kind.filter(|kind| is(*kind)).map(|kind| (thing, kind)), mark: mark.to_path_buf() })
}

/// One line for a shell that removes all of it, the marks only after the rest; `None` if nothing is left.
#[must_use]
pub fn command(left: &[Left]) -> Option<String> {
    let words = |paths: &mut dyn Iterator<Item = &PathBuf>| {
        let each = paths.map(|path| shell_word(&path.display().to_string()));
        each.collect::<Vec<_>>().join(" ")
    };
    let things = || left.iter().filter_map(|left| left.thing.as_ref());
    // A program that was killed a moment ago may take its own files away meanwhile: what is gone is no failure.
    let recursive = if things().any(|(_, kind)| *kind == Kind::Directory) { " -rf" } else { "" };
    let things = words(&mut things().map(|(path, _)| path));
    let marks = words(&mut left.iter().map(|left| &left.mark));
    match (things.is_empty(), marks.is_empty()) {
        (_, true) => None,
        (true, _) => Some(format!("rm -- {marks}")),
        (false, _) => Some(format!("rm{recursive} -- {things} && rm -- {marks}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Runs the command in a shell.
    fn remove(left: &[Left]) {
        let command = command(left).expect("something is left");
        let ran = std::process::Command::new("sh").args(["-c", &command]).status();
        assert!(ran.expect("a shell").success(), "{command}");
    }

    /// A place whose name a shell would take apart.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("it's a $(place)\n*");
        fs::create_dir(&place).expect("made");
        (dir, place)
    }

    #[test]
    fn what_is_left_at_any_instant_is_named_and_the_command_removes_it() {
        for made in 0..3 {
            for kind in [Kind::File, Kind::Directory] {
                let (_dir, place) = place();
                let thing = place.join("-r assay-x");
                let mark = Mark::put(&thing, kind).expect("a mark");
                match (made, kind) {
                    (0, _) => {}
                    (_, Kind::File) => fs::write(&thing, "x").expect("written"),
                    (_, Kind::Directory) => fs::create_dir_all(thing.join("in/it")).expect("made"),
                }
                fs::write(place.join("other"), "stays").expect("written");
                assert_eq!(found(&place), [], "its maker lives");
                if made == 2 {
                    mark.take_away().expect("removed");
                    assert_eq!(found(&place), []);
                    continue;
                }
                drop(mark);
                let left = found(&place);
                assert_eq!(left.len(), 1);
                assert_eq!(left[0].thing.is_some(), made == 1);
                remove(&left);
                assert_eq!(found(&place), []);
                let names: Vec<_> = fs::read_dir(&place).expect("it is there").collect();
                assert_eq!(names.len(), 1, "{names:?}");
            }
        }
    }

    #[test]
    fn a_mark_that_lies_names_nothing_but_itself() {
        let (_dir, place) = place();
        for (name, kind) in [("a", Kind::File), ("b", Kind::Directory)] {
            drop(Mark::put(&place.join(name), kind).expect("a mark"));
        }
        // Moved to the name of something else; of another kind; a link; by somebody else.
        fs::rename(place.join("a.mark"), place.join("precious.mark")).expect("moved");
        fs::write(place.join("precious"), "x").expect("written");
        fs::write(place.join("b"), "x").expect("written");
        let left = found(&place);
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(left[0].thing, None, "a file is no directory");
        remove(&left);
        assert!(place.join("b").exists() && place.join("precious").exists());
    }

    #[test]
    fn an_empty_mark_is_newborn_for_a_while() {
        let (_dir, place) = place();
        let mark = place.join("x.mark");
        fs::write(&mark, "").expect("written");
        fs::set_permissions(&mark, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("its mode");
        assert_eq!(found(&place), []);
        let old = std::time::SystemTime::now() - 2 * NEWBORN;
        let file = File::options().append(true).open(&mark).expect("there");
        file.set_modified(old).expect("set");
        let left = found(&place);
        assert_eq!(left.len(), 1);
        remove(&left);
        assert!(!mark.exists());
    }
}
