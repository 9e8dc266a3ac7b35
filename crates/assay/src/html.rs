//! Pages with charts as files, and the plotting script that many of them share.

use crate::cli::{AssetsChoice, ReportArgs};
use crate::exit::Failure;
use crate::rundir::{self, RunDir};
use assay_report::html::{self, Assets, SHARED};
use assay_run::bounded;
use std::fs;
use std::path::{Path, PathBuf};

/// The script of `report.html` of a run. Where it lies beside it already, because runs lie below, or above the run
/// directory, because somebody asked for it there or the run is a step of a sweep, the page uses it.
pub(crate) fn beside(dir: &RunDir) -> Assets {
    let holds = |place: &Path| is_ours(&place.join(SHARED));
    match dir.path() {
        here if holds(here) => Assets::Shared(SHARED.to_owned()),
        here if here.parent().is_some_and(holds) => Assets::Shared(format!("../{SHARED}")),
        _ => Assets::Embedded,
    }
}

/// Puts the script where the pages of a directory and of all runs below it find it.
pub(crate) fn share_in(dir: &RunDir) -> Result<(), Failure> {
    share(&dir.path().join(SHARED))
}

/// The script for what `report` was asked; written where it has to be.
pub(crate) fn assets(args: &ReportArgs, run: Option<&Path>) -> Result<Assets, Failure> {
    if args.assets == AssetsChoice::Embed {
        return Ok(Assets::Embedded);
    }
    let Some(output) = &args.output else {
        return Err(Failure::usage(format!(
            "--assets shared: {SHARED} belongs beside a page, but stdout has no directory; name a file with -o FILE, \
             or use --assets embed"
        )));
    };
    let (script, source) = place(output, run);
    share(&script)?;
    Ok(Assets::Shared(source))
}

/// Where the script of a page is, and how the page names it: above the run directory for a page in it, so that all
/// runs beside it can use it, unless it is in it already; else beside the page.
fn place(output: &Path, run: Option<&Path>) -> (PathBuf, String) {
    let here = |path: &Path| if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_path_buf() };
    let beside = here(output.parent().unwrap_or(Path::new("")));
    let same = |run: &Path| {
        let (left, right) = (fs::canonicalize(&beside), fs::canonicalize(here(run)));
        matches!((left, right), (Ok(left), Ok(right)) if left == right)
    };
    let is_run = |dir: &Path| dir.join(rundir::RECORD).is_file();
    let is_there = is_ours(&beside.join(SHARED));
    if !is_there && run.is_some_and(|run| same(run) && is_run(run)) {
        (beside.join("..").join(SHARED), format!("../{SHARED}"))
    } else {
        (beside.join(SHARED), SHARED.to_owned())
    }
}

/// Writes the script unless it is there; another one of that name is never replaced.
pub(crate) fn share(path: &Path) -> Result<(), Failure> {
    if is_ours(path) {
        return Ok(());
    }
    if path.exists() {
        return Err(Failure::usage(format!(
            "{}: is not the script of this version of assay, and pages beside it may need it unchanged; remove it, \
             or use --assets embed",
            path.display()
        )));
    }
    rundir::write_file(path, html::script())
}

fn is_ours(path: &Path) -> bool {
    // The length first: a wrong one saves reading megabytes.
    let length = fs::metadata(path).map(|about| about.len());
    length.is_ok_and(|length| length == html::script().len() as u64)
        && bounded::read(path, bounded::PAGE).is_ok_and(|bytes| bytes == html::script().as_bytes())
}
