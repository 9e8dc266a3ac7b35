//! Records of this schema are read for good: real ones of every kind, and every face that the commands make of them, in
//! this process. A face that changes on purpose is written anew (`INSTA_UPDATE=always`) and looked at as a difference.

use super::{compare, cost, report};
use crate::cli::format::ANSWER;
use crate::cli::{Cli, Command};
use crate::registry;
use crate::rundir::RECORD;
use assay_measure::plain::plain;
use assay_report::answer::Screen;
use clap::Parser;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Faces of one record by the names of `--format`.
const FACES: &[&str] = &["text", "html", "answer", "csv", "metrics-csv", "openmetrics", "summary", "pgio"];

fn frozen() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/frozen")
}

/// The frozen runs whose names begin so, in order.
fn names(beginning: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(frozen())
        .expect("the frozen records")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .filter(|name| name.starts_with(beginning))
        .filter(|name| frozen().join(name).join(RECORD).exists())
        .collect();
    names.sort();
    assert!(!names.is_empty(), "{beginning}: nothing is frozen");
    names
}

#[test]
fn a_figure_that_a_probe_can_follow_is_in_its_records() {
    registry::install();
    for probe in registry::probes().filter(|probe| !probe.follows.is_empty()) {
        let of_kind =
            |record: &assay_measure::record::Record| record.kind == probe.kind.name() && record.import.is_none();
        let records = names("").into_iter().map(|name| crate::stored::read(&frozen().join(name).join(RECORD)));
        let records: Vec<_> = records.map(|read| read.expect("a frozen record")).filter(of_kind).collect();
        for (name, keys) in probe.follows {
            let has =
                |key: &&str| records.iter().any(|of| assay_measure::record::metric::find(&of.metrics, key).is_some());
            assert!(keys.iter().any(has), "{}: {name} {keys:?}", probe.name);
        }
    }
}

/// A short name of a long text whose every byte counts (FNV-1a, 64 bits).
fn digest(text: &str) -> String {
    let fold = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// What a page shows, a line a block and a bar between cells; the data of a drawing by its digest.
fn visible(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some((text, after)) = rest.split_once('<') {
        out.push_str(text);
        let (tag, behind) = after.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '\n', '/']).next().unwrap_or_default();
        rest = behind;
        match name {
            "script" | "style" => {
                let end = format!("</{name}>");
                let (inside, behind) = rest.split_once(&end).expect("an end");
                rest = behind;
                if tag.contains("json") {
                    out.push_str(&format!("\n[drawing {}]\n", digest(inside)));
                }
            }
            "td" | "th" => out.push_str(" | "),
            "a" | "span" | "strong" | "b" | "code" | "time" => {}
            _ => out.push('\n'),
        }
    }
    out.push_str(rest);
    let lines = out.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// A line for each family of an exposition, or for a table: its name, how many values, and a digest of all of them.
fn condensed(text: &str) -> String {
    let mut families: Vec<(&str, usize, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("# HELP")) {
        let word = line.strip_prefix("# TYPE ").unwrap_or(line);
        // A family begins with its type, a table with its heading.
        if families.is_empty() || line != word {
            let name = word.split(' ').next().unwrap_or_default();
            families.push((name, 0, String::new()));
        }
        if let Some((_, n, all)) = families.last_mut() {
            *n += 1;
            all.push_str(line);
            all.push('\n');
        }
    }
    let row = |(name, n, all): &(&str, usize, String)| format!("{name}: {n} lines {}", digest(all));
    families.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// What a command makes for these words, given among the records; or the errors it ends with.
fn made(words: &[&str]) -> Result<String, String> {
    registry::install();
    let dir = format!("{}/", frozen().display());
    let words = ["assay"].iter().chain(words).copied().chain(["--dir", &dir]);
    let made = match Cli::try_parse_from(words).expect("a command line").command {
        Command::Report(args) => report::rendered(&args, Screen::default()),
        Command::Compare(args) => {
            let made = compare::comparison(&args, &[]);
            made.map(|made| compare::face(&args, &made, args.format.unwrap_or(ANSWER), Screen::default()))
        }
        Command::Cost(args) => {
            let prices = assay_report::cost::parse("prices.toml", assay_report::cost::EXAMPLE).expect("an example");
            let costs = cost::of_runs(&prices, &args);
            costs.map(|costs| assay_report::cost::render(&costs.iter().collect::<Vec<_>>()))
        }
        other => panic!("{other:?} makes no face"),
    };
    made.map_err(|failure| {
        let lines = failure.lines.iter().map(|line| format!("error: {}\n", line.replace(&dir, "")));
        lines.collect()
    })
}

/// `page` is where a page would be written, and its script is.
fn face(run: &str, format: &str, page: &str) -> String {
    let mut words = vec!["report", run, "--format", format];
    if format == "html" {
        words.extend(["--assets", "shared", "-o", page]);
    }
    match made(&words) {
        Ok(page) if format == "html" => visible(&page),
        Ok(text) if ["csv", "openmetrics"].contains(&format) => condensed(&text),
        Ok(text) => text,
        Err(errors) => format!("exit 2: {errors}"),
    }
}

fn check(name: &str, face: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(frozen().join(name));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(face, text));
}

/// Every face of every frozen run whose name begins so.
fn faces_of(beginning: &str) {
    let place = tempfile::tempdir().expect("a directory");
    let page = place.path().join("page.html");
    let page = page.to_str().expect("a plain name");
    for name in names(beginning) {
        for format in FACES {
            check(&name, format, &face(&name, format, page));
        }
    }
}

#[test]
fn runs_on_native_look_as_frozen() {
    faces_of("native-");
}

#[test]
fn runs_on_postgres_look_as_frozen() {
    faces_of("postgres-");
}

#[test]
fn storage_probes_look_as_frozen() {
    faces_of("io-");
}

#[test]
fn probes_look_as_frozen() {
    // Records of storage have names of their own.
    let kinds = registry::probes().map(|probe| probe.kind.name()).filter(|name| *name != "storage");
    kinds.for_each(faces_of);
}

#[test]
fn order_entry_looks_as_frozen() {
    faces_of("orders");
}

#[test]
fn pairs_of_hosts_look_as_frozen() {
    faces_of("pairs");
}

#[test]
fn every_kind_has_a_frozen_record_whose_kept_figures_are_those_of_its_kind() {
    registry::install();
    let mut missing: BTreeSet<&str> = registry::kinds().iter().map(|kind| kind.name()).collect();
    for name in names("") {
        let kept = crate::stored::read(&frozen().join(&name).join(RECORD)).expect("a record");
        let mut drawn = kept.clone();
        assay_report::kinds::attach_metrics(&mut drawn);
        assert_eq!(kept.metrics, drawn.metrics, "{name}");
        missing.remove(kept.kind.as_str());
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn recovery_looks_as_frozen() {
    faces_of("recovery");
}

#[test]
fn a_load_looks_as_frozen() {
    faces_of("load");
}

#[test]
fn a_platform_looks_as_frozen() {
    faces_of("platform");
}

#[test]
fn an_acceptance_looks_as_frozen() {
    faces_of("passport");
}

#[test]
fn a_fit_looks_as_frozen() {
    faces_of("fit");
}

#[test]
fn a_sweep_looks_as_frozen() {
    faces_of("sweep");
}

#[test]
fn imports_look_as_frozen() {
    faces_of("import-");
}

#[test]
fn comparisons_look_as_frozen() {
    for (name, runs) in [
        ("updates", ["native-updates", "native-updates-2"]),
        ("servers", ["postgres-15", "postgres-18"]),
        ("probes", ["io-groups", "io-steady"]),
        ("kinds", ["io-steady", "sync"]),
        ("imports", ["import-awr-11_2-txt", "import-awr-19c-txt"]),
    ] {
        for format in ["answer", "text", "json", "html"] {
            let text = match made(&["compare", runs[0], runs[1], "--format", format]) {
                Ok(page) if format == "html" => visible(&page),
                // Half a megabyte each, and no figure that the page does not show.
                Ok(text) if format == "json" => digest(&text),
                Ok(text) => text,
                Err(errors) => format!("exit 2: {errors}"),
            };
            check("compare", &format!("{name}.{format}"), &text);
        }
    }
}

#[test]
fn costs_look_as_frozen() {
    for platform in ["cloud A", "our own server"] {
        let mut all = String::new();
        for name in names("") {
            let made = made(&["cost", &name, "--prices", "prices.toml", "--platform", platform]);
            let (Ok(said) | Err(said)) = made;
            all.push_str(&format!("== {name}\n{}", plain(&said)));
        }
        check("cost", &platform.replace(' ', "-"), &all);
    }
}
