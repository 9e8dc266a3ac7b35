//! The tables of `docs/reference` that only repeat the code: a test compares the pages with it, and rewrites them with
//! `INSTA_UPDATE=always cargo test -p assay --bin assay reference`.

use crate::exit::MEANINGS;
use crate::registry;
use assay_awr::record::build;
use assay_measure::config::{ParamDef, RUN_PARAMS};
use assay_measure::identity::number_of;
use assay_measure::kind::{attach_metrics, of};
use assay_measure::record::metric::{Better, stem};
use assay_measure::record::{Identity, Metric};
use assay_measure::rule::Rule;
use assay_measure::snapshot::RunData;
use assay_report::formats::{FORMATS, Format};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- from the code: begin -->\n";
const END: &str = "<!-- from the code: end -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Holds what stands between the two marks of a page to what was made.
fn check(page: &str, made: &str) {
    let path = root().join("docs/reference").join(page);
    let text = fs::read_to_string(&path).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("a beginning");
    let (kept, after) = rest.split_once(END).expect("an end");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        fs::write(&path, format!("{before}{BEGIN}\n{made}\n{END}{after}")).expect("written");
    } else {
        let again = "INSTA_UPDATE=always cargo test -p assay --bin assay reference";
        assert!(kept.trim() == made.trim(), "{page}: write it anew: {again}");
    }
}

fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    let rows = rows.iter().map(|cells| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        line(&cells)
    });
    line(&head) + &rule + &rows.collect::<String>()
}

fn parameters(defs: &[ParamDef]) -> String {
    let code = |text: &str| match text {
        "" => String::new(),
        text => format!("`{text}`"),
    };
    let row = |def: &ParamDef| {
        let others = def.aliases.iter().map(|alias| format!(", `{alias}`"));
        let names = format!("`{}`{}", def.name, others.collect::<String>());
        let flags = def.flag.iter().filter(|name| **name != "...");
        let flags = flags.map(|name| if name.len() == 1 { format!("`-{name}`") } else { format!("`--{name}`") });
        vec![names, flags.collect::<Vec<_>>().join(", "), code(def.default), def.kind.takes(), def.help.to_owned()]
    };
    let rows: Vec<Vec<String>> = defs.iter().map(row).collect();
    table(&["Parameter", "Flag", "Default", "Takes", "Meaning"], &rows)
}

#[test]
fn the_reference_of_parameters_is_their_tables() {
    let (run, slob) = (parameters(RUN_PARAMS), parameters(assay_slob::params::PARAMS));
    let mut made = format!("## The SLOB workload\n\n{slob}\n## Every run\n\n{run}");
    for target in registry::TARGETS.iter().filter(|target| !target.params().is_empty()) {
        let (name, params) = (target.name(), parameters(target.params()));
        made.push_str(&format!("\n## Target `{name}:`\n\n{params}"));
    }
    let others = registry::WORKLOADS
        .iter()
        .filter(|(name, _)| *name != assay_slob::NAME)
        .flat_map(|(workload, targets)| targets.iter().map(move |one| (workload, one)));
    for (workload, target) in others {
        let of_server = registry::find(target.name()).map_or(&[][..], |slob| slob.params());
        let own: Vec<_> = target.params().iter().filter(|def| !of_server.contains(def)).copied().collect();
        let name = target.name();
        made.push_str(&format!("\n## Workload `{workload}` on `{name}:`\n\n{}", parameters(&own)));
    }
    check("parameters.md", &made);
}

#[test]
fn the_reference_of_formats_is_their_list() {
    let row = |format: &Format| {
        let names = [&[format.name], format.also].concat();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        vec![names.join(", "), format.media_type.to_owned(), format.help.to_owned()]
    };
    let rows: Vec<Vec<String>> = FORMATS.iter().map(row).collect();
    check("formats.md", &table(&["format", "media type", "what it holds"], &rows));
}

#[test]
fn the_reference_of_exit_codes_is_their_meanings() {
    let rows = MEANINGS.map(|(code, _, meaning)| vec![(code as u8).to_string(), meaning.to_owned()]);
    check("exit-codes.md", &table(&["Code", "Meaning"], &rows));
}

#[test]
fn the_reference_of_findings_is_the_headings_of_the_rules() {
    let one = |rule: &Rule| {
        let texts = rule.headings().map(|(heading, text)| format!("**{heading}**: {text}\n\n")).concat();
        let weight = if rule.changes_figures { "It changes what the figures mean: a warning.\n\n" } else { "" };
        format!("## {}: {}\n\n{texts}{weight}", rule.id, rule.title)
    };
    check("findings.md", &registry::rules().iter().map(one).collect::<String>());
}

/// Records of every kind that assay measures: frozen ones, and those that the fuzzer edits.
fn records() -> Vec<PathBuf> {
    let names = |dir: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(root().join(dir)).expect("records");
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        found.sort();
        found
    };
    let frozen = names("testdata/frozen").into_iter().map(|dir| dir.join("record.json"));
    let edited = names("fuzz/records").into_iter();
    let all = frozen.chain(edited);
    all.filter(|path| path.extension().is_some_and(|end| end == "json") && path.is_file()).collect()
}

#[test]
fn every_finding_of_a_kept_record_has_its_rule() {
    let rules = registry::rules();
    for path in records() {
        for found in crate::stored::read(&path).expect("a record").advice {
            assert!(rules.iter().any(|rule| rule.id == found.id), "{}: {}", path.display(), found.id);
        }
    }
}

/// Where and by whom an identity is judged.
#[derive(Default)]
struct Judged {
    kinds: BTreeSet<String>,
    is_exact: BTreeSet<bool>,
}

/// One row a rule: of a run that did nothing, by which nothing is judged, and of the records that are kept.
#[test]
fn the_reference_of_identities_is_what_records_are_judged_by() {
    let kept = records().into_iter().map(|path| crate::stored::read(&path).expect("a record"));
    let mut nothing = build(&RunData::default());
    "slob".clone_into(&mut nothing.kind);
    // Kept records of runs may have words of earlier versions.
    let words: BTreeMap<(String, String), String> = {
        let of = |identity: &Identity| ((identity.id.clone(), identity.scope.clone()), identity.rule.clone());
        nothing.integrity.iter().map(of).collect()
    };
    let mut found: BTreeMap<(String, u32, String, [String; 2]), Judged> = BTreeMap::new();
    for record in kept.filter(|record| record.import.is_none()).chain([nothing]) {
        for identity in record.integrity {
            let letters = identity.id.trim_end_matches(|c: char| !c.is_ascii_uppercase()).to_owned();
            let of_run = [assay_slob::NAME, assay_orders::workload::NAME].contains(&record.kind.as_str());
            let now = words.get(&(identity.id.clone(), identity.scope.clone())).filter(|_| of_run);
            let rule = now.cloned().unwrap_or(identity.rule);
            let key = (letters, number_of(&identity.id), identity.id, [rule, identity.scope]);
            let judged = found.entry(key).or_default();
            judged.kinds.insert(record.kind.clone());
            judged.is_exact.insert(identity.exact);
        }
    }
    let rows = found.into_iter().map(|((_, _, id, [rule, scope]), judged)| {
        let weight = match (judged.is_exact.first(), judged.is_exact.last()) {
            (Some(true), _) => "exact",
            (_, Some(true)) => "exact, but of a server's counters",
            _ => "allows for its readings",
        };
        let kinds: Vec<String> = judged.kinds.into_iter().collect();
        vec![id, rule, scope, weight.to_owned(), kinds.join(", ")]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    check("identities.md", &table(&["Id", "What must hold", "Over", "Weight", "Kinds"], &rows));
}

/// Figures that differ in their statistic alone, as one row.
struct Row {
    metric: Metric,
    stem: String,
    endings: Vec<String>,
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let scope = if self.metric.scope.is_empty() { "" } else { "*." };
        let key = match self.endings.as_slice() {
            [one] => format!("`{scope}{}{one}`", self.stem),
            [first, more @ ..] => {
                let more: String = more.iter().map(|ending| format!(" `{ending}`")).collect();
                format!("`{scope}{}{first}`{more}", self.stem)
            }
            [] => String::new(),
        };
        let better = match self.metric.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "",
        };
        // What they have in common goes without the statistic of the first.
        let first = self.endings[0].trim_start_matches('_');
        let name = match self.metric.name.strip_suffix(first) {
            Some(common) if self.endings.len() > 1 => common.trim_end(),
            _ => &self.metric.name,
        };
        vec![key, self.metric.unit.clone(), better.to_owned(), self.metric.layer.clone(), name.to_owned()]
    }
}

#[test]
fn the_reference_of_metrics_is_what_the_kinds_list() {
    let kinds = registry::kinds();
    registry::install();
    let mut found: Vec<(&str, Vec<Row>)> = Vec::new();
    for path in records() {
        let mut record = crate::stored::read(&path).expect("a record");
        let Some(kind) = of(&kinds, &record).filter(|_| record.import.is_none()) else {
            continue;
        };
        attach_metrics(kind, &mut record);
        let at = found.iter().position(|(name, _)| *name == kind.name());
        let at = at.unwrap_or_else(|| {
            found.push((kind.name(), Vec::new()));
            found.len() - 1
        });
        for metric in record.metrics {
            let stem = stem(&metric.key).to_owned();
            let ending = metric.key[stem.len()..].to_owned();
            let rows = &mut found[at].1;
            match rows.iter_mut().find(|row| row.stem == stem && row.metric.group == metric.group) {
                Some(row) if row.endings.contains(&ending) => {}
                Some(row) => row.endings.push(ending),
                None => rows.push(Row { metric, stem, endings: vec![ending] }),
            }
        }
    }
    let mut made = String::new();
    found.sort_by_key(|(name, _)| kinds.iter().position(|kind| kind.name() == *name));
    for (name, mut rows) in found {
        rows.sort_by_key(|row| row.metric.group);
        let rows: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
        let head = ["Key", "Unit", "Better", "Layer", "Meaning"];
        made.push_str(&format!("## Kind `{name}`\n\n{}\n", table(&head, &rows)));
    }
    check("metrics.md", &made);
}
