//! `runs tag`: words by which a run is found again.

use super::{directory_of, find, is_ours};
use crate::catalogue::{Change, change_tags, tags_of};
use crate::dir_handle::DirHandle;
use crate::exit::{Code, Failure};
use crate::ui;
use std::path::Path;

pub(super) fn tag(run: &str, words: &[String], dir: &Path) -> Result<Code, Failure> {
    let changes: Vec<Change> = words.iter().map(|word| Change::parse(word)).collect::<Result<_, _>>()?;
    let path = directory_of(&find(run, dir)?);
    if !DirHandle::open(&path).is_ok_and(|held| is_ours(&held)) {
        return Err(Failure::usage(format!("{} contains no run of assay; it is not tagged", path.display())));
    }
    let tags = if changes.is_empty() { tags_of(&path) } else { change_tags(&path, &changes)? };
    let lines: String = tags.iter().map(|tag| format!("{tag}\n")).collect();
    ui::product(&lines)?;
    if tags.is_empty() {
        ui::say(&format!("{}: no tags", path.display()));
    }
    Ok(Code::Good)
}
