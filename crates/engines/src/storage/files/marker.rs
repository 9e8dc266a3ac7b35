//! The mark by which a file of ours is known again.
//!
//! A line of text in the extended attribute `user.assay.io`, or, where the file system has none,
//! in a hidden file beside (`.NAME.assay`):
//!
//! ```text
//! assay-io 1 inode=N laying            a layout is under way, or was killed
//! assay-io 1 inode=N open              a run writes to it, or was killed
//! assay-io 1 inode=N closed=BYTES,NS   in order: its length and time of change at the end
//! ```
//!
//! The inode number keeps a copy or a restored file from passing for ours; length and time keep a
//! file from passing that somebody else has written to since (`cp` over it keeps inode and
//! attributes). A file that does not pass is foreign, and foreign files are only written to when
//! named by `--destroy`.

use super::cannot;
use assay_run::engine::EngineError;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The attribute's name.
const NAME: &str = "user.assay.io";
/// What every mark of this version begins with.
const BEGINS: &str = "assay-io 1 ";
/// Longer ones are nobody's of ours.
const MOST_BYTES: usize = 256;

/// Whose a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Made by us, and nobody else has written to it.
    Ours,
    /// Made by us, but changed by somebody else since.
    Changed,
    /// Not made by us.
    Foreign,
}

/// What a mark says of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Content is being made.
    Laying,
    /// Jobs may write to it.
    Open,
    /// Length in bytes and time of last change in ns since 1970.
    Closed(u64, i128),
}

/// Whose the file at `path` is, whose metadata are `found`.
pub(super) fn whose(path: &Path, found: &Metadata) -> Whose {
    let Some((inode, state)) = text_of(path).as_deref().and_then(parse) else {
        return Whose::Foreign;
    };
    if inode != found.ino() {
        return Whose::Foreign;
    }
    match state {
        State::Laying | State::Open => Whose::Ours,
        State::Closed(bytes, changed_ns)
            if bytes == found.len() && changed_ns == change_ns(found) =>
        {
            Whose::Ours
        }
        State::Closed(..) => Whose::Changed,
    }
}

/// Puts the mark on an open file, which lies at `path`.
///
/// # Errors
/// The file system takes neither the attribute nor the file beside.
pub(super) fn put(path: &Path, file: &File, laying: bool) -> Result<(), EngineError> {
    let found = file
        .metadata()
        .map_err(|error| cannot("examine", path, error))?;
    let state = if laying { State::Laying } else { State::Open };
    write(path, file, &print(found.ino(), state))
}

/// Notes that all is in order and nobody of ours writes to the file any more.
///
/// # Errors
/// As [`put`].
pub(super) fn close(path: &Path, file: &File) -> Result<(), EngineError> {
    let found = file
        .metadata()
        .map_err(|error| cannot("examine", path, error))?;
    let state = State::Closed(found.len(), change_ns(&found));
    write(path, file, &print(found.ino(), state))
}

/// Removes the file beside, where there is one of ours.
pub(super) fn forget(path: &Path) {
    let beside = beside(path);
    let ours = std::fs::read_to_string(&beside).is_ok_and(|text| parse(&text).is_some());
    if ours {
        // What stays behind is a few bytes that name an inode that is gone.
        let _ = std::fs::remove_file(&beside);
    }
}

fn write(path: &Path, file: &File, text: &str) -> Result<(), EngineError> {
    match rustix::fs::fsetxattr(file, NAME, text.as_bytes(), XattrFlags::empty()) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::PERM | Errno::NOSPC | Errno::RANGE | Errno::INVAL) => {
            write_beside(path, text)
        }
        Err(error) => Err(cannot("mark", path, error)),
    }
}

fn write_beside(path: &Path, text: &str) -> Result<(), EngineError> {
    let beside = beside(path);
    let foreign = match std::fs::symlink_metadata(&beside) {
        Ok(found) => !found.is_file() || text_in(&beside).as_deref().and_then(parse).is_none(),
        Err(_) => false,
    };
    if foreign {
        return Err(EngineError::Unusable(format!(
            "{} cannot be marked as ours: the file system has no extended attributes, and {} exists and is not a mark of assay io; move it away or use another file system",
            path.display(),
            beside.display()
        )));
    }
    std::fs::write(&beside, format!("{text}\n")).map_err(|error| cannot("write", &beside, error))
}

fn text_of(path: &Path) -> Option<String> {
    let mut bytes = [0_u8; MOST_BYTES];
    match rustix::fs::getxattr(path, NAME, &mut bytes) {
        Ok(count) => String::from_utf8(bytes.get(..count)?.to_vec()).ok(),
        Err(_) => text_in(&beside(path)),
    }
}

fn text_in(beside: &Path) -> Option<String> {
    let found = std::fs::symlink_metadata(beside).ok()?;
    (found.is_file() && found.len() <= MOST_BYTES as u64)
        .then(|| std::fs::read_to_string(beside).ok())
        .flatten()
}

/// Where the mark is kept when the file system has no extended attributes.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".assay");
    path.with_file_name(name)
}

fn change_ns(found: &Metadata) -> i128 {
    i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())
}

fn print(inode: u64, state: State) -> String {
    let state = match state {
        State::Laying => "laying".to_owned(),
        State::Open => "open".to_owned(),
        State::Closed(bytes, ns) => format!("closed={bytes},{ns}"),
    };
    format!("{BEGINS}inode={inode} {state}")
}

fn parse(text: &str) -> Option<(u64, State)> {
    let (inode, state) = text.trim_end().strip_prefix(BEGINS)?.split_once(' ')?;
    let inode = inode.strip_prefix("inode=")?.parse().ok()?;
    let state = match state {
        "laying" => State::Laying,
        "open" => State::Open,
        other => {
            let (bytes, ns) = other.strip_prefix("closed=")?.split_once(',')?;
            State::Closed(bytes.parse().ok()?, ns.parse().ok()?)
        }
    };
    Some((inode, state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mark_reads_back_as_it_was_written(inode in any::<u64>(), bytes in any::<u64>(), ns in any::<i64>(), kind in 0..3) {
            let state = match kind { 0 => State::Laying, 1 => State::Open, _ => State::Closed(bytes, i128::from(ns)) };
            let text = print(inode, state);
            prop_assert!(text.len() < MOST_BYTES);
            prop_assert_eq!(parse(&text), Some((inode, state)));
            prop_assert_eq!(parse(&format!("{text}\n")), Some((inode, state)));
        }

        #[test]
        fn nothing_else_passes_for_a_mark(text in ".{0,80}") {
            prop_assume!(!text.starts_with(BEGINS));
            prop_assert_eq!(parse(&text), None);
        }
    }

    fn whose_now(path: &Path) -> Whose {
        whose(path, &std::fs::metadata(path).unwrap())
    }

    #[test]
    fn a_file_is_ours_until_somebody_else_writes_to_it_or_copies_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ours");
        let file = File::create_new(&path).unwrap();
        assert_eq!(whose_now(&path), Whose::Foreign);
        put(&path, &file, true).unwrap();
        assert_eq!(whose_now(&path), Whose::Ours);
        std::fs::write(&path, b"written by a job").unwrap();
        assert_eq!(whose_now(&path), Whose::Ours);
        close(&path, &file).unwrap();
        assert_eq!(whose_now(&path), Whose::Ours);
        let copy = place.path().join("copy");
        let copied = std::process::Command::new("cp")
            .args(["-a", "--preserve=all"])
            .args([&path, &copy])
            .status();
        assert!(copied.unwrap().success());
        assert_eq!(whose_now(&copy), Whose::Foreign);
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(&path, b"somebody's own").unwrap();
        assert_eq!(whose_now(&path), Whose::Changed);
    }

    #[test]
    fn without_attributes_a_hidden_file_beside_holds_the_mark_and_a_foreign_one_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        std::fs::write(&path, b"x").unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino();
        write_beside(&path, &print(inode, State::Open)).unwrap();
        assert_eq!(whose_now(&path), Whose::Ours);
        write_beside(&path, &print(inode + 1, State::Open)).unwrap();
        assert_eq!(whose_now(&path), Whose::Foreign);
        forget(&path);
        assert!(!beside(&path).exists());
        std::fs::write(beside(&path), b"somebody's").unwrap();
        assert!(write_beside(&path, &print(inode, State::Open)).is_err());
        forget(&path);
        assert_eq!(std::fs::read(beside(&path)).unwrap(), b"somebody's");
    }
}
