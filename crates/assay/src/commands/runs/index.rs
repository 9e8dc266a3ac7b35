//! `runs list --format html`: a page over the runs, with links to theirs.

use crate::catalogue::{Entry, path_of};
use crate::rundir::{RECORD, REPORT_HTML};
use crate::stored;
use assay_report::html::{Assets, Listed, SHARED, index};
use assay_run::bounded;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// Bytes of a page in which its title stands.
const HEAD: u64 = 1 << 14;

/// The page as it stands in `output`, or in the directory of the runs.
pub(super) fn page(dir: &Path, entries: &[Entry], output: Option<&Path>) -> String {
    let here = match output.map(|file| file.parent().unwrap_or(Path::new(""))) {
        None => dir.to_path_buf(),
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_path_buf(),
    };
    let link = |path: &Path| relative(&here, path);
    let page = |run: &Entry| Some(path_of(dir, run).join(REPORT_HTML)).filter(|page| page.is_file());
    let runs: Vec<Listed> = entries.iter().map(|run| listed(dir, run, page(run).map(|page| link(&page)))).collect();
    let assets = Assets::Shared(SHARED.to_owned());
    index(&title(dir), &runs, &beside(dir, output, &link), &assets)
}

/// What a server lists, which has pages of all runs, with their tags.
pub(crate) fn served(dir: &Path, entries: &[Entry]) -> Vec<Listed> {
    let run = |run: &Entry| {
        let words = std::iter::once(&run.label).chain(&run.tags).filter(|word| !word.is_empty());
        let label = words.cloned().collect::<Vec<_>>().join(", ");
        Listed { label, ..listed(dir, run, Some(format!("/run/{}", escaped(&run.name)))) }
    };
    entries.iter().map(run).collect()
}

pub(crate) fn title(dir: &Path) -> String {
    match dir.file_name().and_then(|name| name.to_str()) {
        Some(name) => format!("Runs in {name}"),
        None => "Runs".to_owned(),
    }
}

fn listed(dir: &Path, run: &Entry, page: Option<String>) -> Listed {
    let place = path_of(dir, run);
    let listed = Listed {
        started: run.started.replace('T', " "),
        page,
        kind: run.kind.clone(),
        label: run.label.clone(),
        verdict: run.verdict.clone(),
        place: run.engine.clone(),
        ..Listed::default()
    };
    match stored::read(&place.join(RECORD)) {
        Ok(record) => listed.answered(&record),
        Err(_) => listed,
    }
}

/// Pages of comparisons and trends that lie beside the runs, by name.
fn beside(dir: &Path, output: Option<&Path>, link: &dyn Fn(&Path) -> String) -> Vec<(String, String)> {
    let is_ours = |path: &PathBuf| {
        let mut head = Vec::new();
        let read = bounded::open(path, bounded::CONTENT).and_then(|file| file.take(HEAD).read_to_end(&mut head));
        let head = String::from_utf8_lossy(&head);
        let is_titled = |title: &str| head.contains(&format!("<title>{title}: "));
        read.is_ok() && (is_titled("Comparison") || is_titled("Trend"))
    };
    let above = output.and_then(Path::parent);
    let above = above.filter(|above| above.as_os_str() != dir.as_os_str());
    let files = [Some(dir), above].into_iter().flatten().flat_map(fs::read_dir);
    let files = files.flatten().flatten().map(|entry| entry.path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "html");
    let mut pages: Vec<PathBuf> = files.filter(is_page).filter(is_ours).collect();
    pages.sort();
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    pages.iter().map(|path| (link(path), name(path))).collect()
}

/// The way from a directory to a file, as a link.
fn relative(from: &Path, to: &Path) -> String {
    let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (from, to) = (whole(from), whole(to));
    let (from, to): (Vec<Component>, Vec<Component>) = (from.components().collect(), to.components().collect());
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - same);
    let down = to[same..].iter().map(|part| escaped(&part.as_os_str().to_string_lossy()));
    up.chain(down).collect::<Vec<_>>().join("/")
}

/// A name in a link: what has a meaning there is written by its number.
pub(crate) fn escaped(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_page_to_the_run_and_hold_no_sign_of_a_link() {
        let place = tempfile::tempdir().expect("a directory");
        let run = place.path().join("runs/a b#1");
        fs::create_dir_all(&run).expect("made");
        fs::create_dir(place.path().join("pages")).expect("made");
        let way = |from: &str| relative(&place.path().join(from), &run);
        assert_eq!(way("runs"), "a%20b%231");
        assert_eq!(way("pages"), "../runs/a%20b%231");
        assert_eq!(way("."), "runs/a%20b%231");
    }
}
