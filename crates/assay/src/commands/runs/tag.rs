//! `runs tag`: words by which a run is found again.

use super::{directory_of, find, is_ours};
use crate::catalogue::{Change, change_tags, tags_of};
use crate::dir_handle::DirHandle;
use crate::exit::{Code, Failure};
use crate::ui;
use std::path::Path;

pub(super) fn tag(run: &str, words: &[String], dir: &Path) -> Result<Code, Failure> {
    let path = directory_of(&find(run, dir)?);
    let tags = changed(&path, words)?;
    let lines: String = tags.iter().map(|tag| format!("{tag}\n")).collect();
    ui::product(&lines)?;
    if tags.is_empty() {
        ui::say(&format!("{}: no tags", path.display()));
    }
    Ok(Code::Good)
}

/// Changes the tags of a run, as words of the command line say; the tags that it has then.
pub(in crate::commands) fn changed(path: &Path, words: &[String]) -> Result<Vec<String>, Failure> {
    let changes: Vec<Change> = words.iter().map(|word| Change::parse(word)).collect::<Result<_, _>>()?;
    if !DirHandle::open(path).is_ok_and(|held| is_ours(&held)) {
        return Err(Failure::usage(format!("{} contains no run of assay; it is not tagged", path.display())));
    }
    if changes.is_empty() { Ok(tags_of(path)) } else { change_tags(path, &changes) }
}
