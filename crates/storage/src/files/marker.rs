//! The marker that identifies a file of ours.
//!
//! It is a line of text in the extended attribute `user.assay.io` or, if the file system has no such attributes, in a
//! hidden file next to it (`.NAME.assay`):
//!
//! ```text
//! assay-io 2 inode=N number=HEX bytes=B laying        a layout is in progress, or was killed
//! assay-io 2 inode=N number=HEX bytes=B open          a run writes to it, or was killed
//! assay-io 2 inode=N number=HEX bytes=B closed=NS,NS  in order: time of the last write, and of the marker
//! ```
//!
//! The inode number prevents a copy or a restored file from passing as ours. The marker cannot show what others did to
//! the file since: `cp` over it keeps inode and attributes. So a file is ours only if nobody can have touched it since
//! the marker was written (by the kernel's change time, which no program can set), or if its [content proves
//! it](super::proof). Every other file is foreign, and assay writes to foreign files only if `--destroy` names them.

use super::{cannot, proof};
use assay_run::engine::EngineError;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The attribute's name.
const NAME: &str = "user.assay.io";
/// Prefix of every marker of this version.
const BEGINS: &str = "assay-io 2 ";
/// Maximum length of our markers; anything longer is not ours.
const MOST_BYTES: usize = 256;
/// How far the kernel's file clock may lag behind, ns.
const BEHIND_NS: i128 = 10_000_000;
/// Maximum delay of writing a marker before it is written again, ns.
const AHEAD_NS: i128 = 2_000_000;
/// How often to rewrite a marker until its time is right.
const TRIES: usize = 20;

/// Who created a file and who changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Created by us, and nobody else has written to it.
    Ours,
    /// Created by us, and locked: another run is using it.
    Held,
    /// Created by us, but changed by someone else since.
    Changed,
    /// Created by us, but it is unknown whether another program has written to it since.
    Unproven,
    /// Not created by us.
    Foreign,
}

impl Whose {
    /// Whether no other run uses it, as far as this can be known without the lock.
    #[must_use]
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Ours | Self::Held)
    }
}

/// The content of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    inode: u64,
    /// The file number that its content [proves](super::proof).
    pub(super) number: u64,
    /// Current or intended length.
    bytes: u64,
    state: State,
}

/// What is happening to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its content is being written.
    Laying,
    /// Jobs may write to it.
    Open,
    /// No run of assay writes to it any more. Both times in ns since 1970.
    Closed { changed: i128, marked: i128 },
}

/// Decides who owns the file at `path` with the metadata `found`. `held` is the file if we have opened and locked it.
pub(super) fn whose(path: &Path, found: &Metadata, held: Option<&File>) -> Whose {
    let Some((text, in_attribute)) = text_of(path) else {
        return Whose::Foreign;
    };
    let Some(mark) = parse(&text).filter(|mark| mark.inode == found.ino()) else {
        // Markers of the first version prove nothing.
        return if text.starts_with("assay-io 1 ") { Whose::Unproven } else { Whose::Foreign };
    };
    if let State::Closed { changed, marked } = mark.state {
        if found.len() != mark.bytes || change_ns(found) != changed {
            return Whose::Changed;
        }
        // A marker in a separate file leaves no trace on the file itself.
        if in_attribute && is_moment_of(marked, found) {
            return Whose::Ours;
        }
    }
    let opened = match held {
        Some(held) => held.try_clone().ok(),
        None => proof::open(path, found),
    };
    match opened {
        Some(file) if held.is_none() && proof::is_locked(&file) => Whose::Held,
        Some(file) if proof::holds(&file, mark.number, mark.bytes) => Whose::Ours,
        _ => Whose::Unproven,
    }
}

/// The marker of a file of ours.
pub(super) fn of(path: &Path) -> Option<Mark> {
    parse(&text_of(path)?.0)
}

/// Writes the marker of an open file at `path`. `bytes` is the intended length.
///
/// # Errors
/// If neither the attribute nor the separate file can be written.
pub(super) fn put(path: &Path, file: &File, number: u64, bytes: u64, state: State) -> Result<(), EngineError> {
    let inode = examine(path, file)?.ino();
    let mark = Mark { inode, number, bytes, state };
    write(path, file, &print(mark))
}

/// Marks the file as complete, with no run of ours writing to it any more. Changes by others are detectable once
/// [`rest`] has passed.
///
/// # Errors
/// As [`put`].
pub(super) fn close(path: &Path, file: &File, number: u64) -> Result<(), EngineError> {
    for _ in 0..TRIES {
        let found = examine(path, file)?;
        let marked = now_ns();
        let state = State::Closed { changed: change_ns(&found), marked };
        put(path, file, number, found.len(), state)?;
        if is_moment_of(marked, &examine(path, file)?) {
            break;
        }
        // Interrupted in between, or a clock of another machine: at worst the content must prove it.
    }
    Ok(())
}

/// Waits long enough that later changes to a closed file are visible against its marker.
pub(super) fn rest() {
    std::thread::sleep(Duration::from_nanos((BEHIND_NS + AHEAD_NS) as u64));
}

/// Whether the file's change time, which programs cannot set, matches that of a marker.
fn is_moment_of(marked: i128, found: &Metadata) -> bool {
    let touched = i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
    (marked - BEHIND_NS..=marked + AHEAD_NS).contains(&touched)
}

fn now_ns() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128)
}

fn examine(path: &Path, file: &File) -> Result<Metadata, EngineError> {
    file.metadata().map_err(|error| cannot("examine", path, error))
}

/// Removes the separate marker file, if it is ours.
pub(super) fn forget(path: &Path) {
    let beside = beside(path);
    let ours = text_in(&beside).is_some_and(|text| is_mark(&text));
    if ours {
        // At worst a few bytes stay behind that name a deleted inode.
        let _ = std::fs::remove_file(&beside);
    }
}

fn write(path: &Path, file: &File, text: &str) -> Result<(), EngineError> {
    match rustix::fs::fsetxattr(file, NAME, text.as_bytes(), XattrFlags::empty()) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::PERM | Errno::NOSPC | Errno::RANGE | Errno::INVAL) => write_beside(path, text),
        Err(error) => Err(cannot("mark", path, error)),
    }
}

fn write_beside(path: &Path, text: &str) -> Result<(), EngineError> {
    let beside = beside(path);
    let foreign = match std::fs::symlink_metadata(&beside) {
        Ok(found) => !found.is_file() || !text_in(&beside).is_some_and(|text| is_mark(&text)),
        Err(_) => false,
    };
    if foreign {
        return Err(EngineError::Unusable(format!(
            "assay cannot mark {} as its own: the file system has no extended attributes, and {} exists and is not a \
             mark of assay io; move it away or use another file system",
            path.display(),
            beside.display()
        )));
    }
    std::fs::write(&beside, format!("{text}\n")).map_err(|error| cannot("write", &beside, error))
}

/// The text of the marker, and whether it is in the attribute.
fn text_of(path: &Path) -> Option<(String, bool)> {
    let mut bytes = [0_u8; MOST_BYTES];
    match rustix::fs::getxattr(path, NAME, &mut bytes) {
        Ok(count) => {
            let text = String::from_utf8(bytes.get(..count)?.to_vec()).ok()?;
            Some((text, true))
        }
        Err(_) => Some((text_in(&beside(path))?, false)),
    }
}

fn text_in(beside: &Path) -> Option<String> {
    let found = std::fs::symlink_metadata(beside).ok()?;
    (found.is_file() && found.len() <= MOST_BYTES as u64).then(|| std::fs::read_to_string(beside).ok()).flatten()
}

/// Whether the text is a marker of this version or the one before.
fn is_mark(text: &str) -> bool {
    parse(text).is_some() || text.starts_with("assay-io 1 inode=")
}

/// Path of the marker file for file systems without extended attributes.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".assay");
    path.with_file_name(name)
}

fn change_ns(found: &Metadata) -> i128 {
    i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())
}

fn print(mark: Mark) -> String {
    let state = match mark.state {
        State::Laying => "laying".to_owned(),
        State::Open => "open".to_owned(),
        State::Closed { changed, marked } => format!("closed={changed},{marked}"),
    };
    let Mark { inode, number, bytes, .. } = mark;
    format!("{BEGINS}inode={inode} number={number:016x} bytes={bytes} {state}")
}

fn parse(text: &str) -> Option<Mark> {
    let mut words = text.trim_end().strip_prefix(BEGINS)?.split(' ');
    let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
    let inode = value("inode")?.parse().ok()?;
    let number = u64::from_str_radix(value("number")?, 16).ok()?;
    let bytes = value("bytes")?.parse().ok()?;
    let state = match words.next()? {
        "laying" => State::Laying,
        "open" => State::Open,
        other => {
            let (changed, marked) = other.strip_prefix("closed=")?.split_once(',')?;
            State::Closed { changed: changed.parse().ok()?, marked: marked.parse().ok()? }
        }
    };
    let mark = Mark { inode, number, bytes, state };
    words.next().is_none().then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::FileExt;

    proptest! {
        #[test]
        fn a_mark_reads_back_as_it_was_written(inode in any::<u64>(), number in any::<u64>(), bytes in any::<u64>(), changed in any::<i64>(), marked in any::<i64>(), kind in 0..3) {
            let (changed, marked) = (i128::from(changed), i128::from(marked));
            let state = match kind { 0 => State::Laying, 1 => State::Open, _ => State::Closed { changed, marked } };
            let mark = Mark { inode, number, bytes, state };
            let text = print(mark);
            prop_assert!(text.len() < MOST_BYTES);
            prop_assert_eq!(parse(&text), Some(mark));
            prop_assert_eq!(parse(&format!("{text}\n")), Some(mark));
        }

        #[test]
        fn nothing_else_passes_for_a_mark(text in ".{0,80}") {
            prop_assume!(!text.starts_with(BEGINS));
            prop_assert_eq!(parse(&text), None);
        }
    }

    fn whose_now(path: &Path) -> Whose {
        whose(path, &std::fs::metadata(path).unwrap(), None)
    }

    #[test]
    fn a_closed_file_is_ours_until_somebody_else_writes_to_it_or_copies_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ours");
        let file = File::create_new(&path).unwrap();
        assert_eq!(whose_now(&path), Whose::Foreign);
        std::fs::write(&path, b"written by a job").unwrap();
        close(&path, &file, 5).unwrap();
        rest();
        assert_eq!(whose_now(&path), Whose::Ours);
        let copy = place.path().join("copy");
        let copied = std::process::Command::new("cp").args(["-a", "--preserve=all"]).args([&path, &copy]).status();
        assert!(copied.unwrap().success());
        assert_eq!(whose_now(&copy), Whose::Foreign);
        std::fs::write(&path, b"somebody's own").unwrap();
        assert_eq!(whose_now(&path), Whose::Changed);
        // Resetting the time and matching the length does not help either.
        let modified = std::fs::metadata(&copy).unwrap().modified().unwrap();
        std::fs::write(&path, b"written by a Bob").unwrap();
        file.set_modified(modified).unwrap();
        assert_eq!(whose_now(&path), Whose::Unproven);
    }

    #[test]
    fn a_file_that_was_not_closed_is_ours_by_its_content_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        let file = File::create_new(&path).unwrap();
        let mut content = vec![1; 1 << 20];
        crate::payload::proof::stamp(5, &mut content, 0, 0);
        for state in [State::Laying, State::Open] {
            put(&path, &file, 5, 1 << 20, state).unwrap();
            file.write_all_at(&content, 0).unwrap();
            assert_eq!(whose_now(&path), Whose::Ours);
            file.write_all_at(b"somebody", 12_345).unwrap();
            assert_eq!(whose_now(&path), Whose::Ours, "a few bytes of a sector of ours");
            file.write_all_at(&[7; 512], 512 << 10).unwrap();
            assert_eq!(whose_now(&path), Whose::Unproven);
            file.set_len(0).unwrap();
            file.set_len(1 << 20).unwrap();
            assert_eq!(whose_now(&path), Whose::Unproven, "holes prove nothing");
        }
        file.write_all_at(&content, 0).unwrap();
        put(&path, &file, 6, 1 << 20, State::Open).unwrap();
        assert_eq!(whose_now(&path), Whose::Unproven, "that of another file");
        // Markers of the first version did not record what the content proves.
        let inode = file.metadata().unwrap().ino();
        write(&path, &file, &format!("assay-io 1 inode={inode} open")).unwrap();
        assert_eq!(whose_now(&path), Whose::Unproven);
    }

    #[test]
    fn without_attributes_a_hidden_file_beside_holds_the_mark_and_a_foreign_one_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        let mut content = vec![1; 4096];
        crate::payload::proof::stamp(5, &mut content, 0, 0);
        std::fs::write(&path, content).unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino();
        let mark = |inode| print(Mark { inode, number: 5, bytes: 4096, state: State::Open });
        write_beside(&path, &mark(inode)).unwrap();
        assert_eq!(whose_now(&path), Whose::Ours);
        write_beside(&path, &mark(inode + 1)).unwrap();
        assert_eq!(whose_now(&path), Whose::Foreign);
        forget(&path);
        assert!(!beside(&path).exists());
        std::fs::write(beside(&path), b"somebody's").unwrap();
        assert!(write_beside(&path, &mark(inode)).is_err());
        forget(&path);
        assert_eq!(std::fs::read(beside(&path)).unwrap(), b"somebody's");
    }
}
