//! `explain`: what a word of the reports means, from the place that defines it.

use crate::cli::ExplainArgs;
use crate::exit::{Code, Failure, MEANINGS};
use crate::{registry, ui};
use assay_awr::unjudged_identities;
use assay_measure::config::{ParamDef, SLOB_PARAMS, nearest};
use assay_measure::record::metric::stem;
use assay_measure::rule::Rule;
use assay_report::answer::{Answer, Said};
use std::collections::BTreeSet;

const GLOSSARY: &str = include_str!("../../../../docs/GLOSSARY.md");
const METRICS: &str = include_str!("../../../../docs/reference/metrics.md");

pub(super) fn explain(args: &ExplainArgs) -> Result<Code, Failure> {
    let word = args.word.join(" ");
    let places = [rule, identity, exit_code, parameter, metric, term];
    let found: Vec<Answer> = places.iter().filter_map(|of| of(&word)).collect();
    if found.is_empty() {
        return Err(unknown(&word));
    }
    let texts: Vec<String> = found.iter().map(Answer::text).collect();
    ui::product(&texts.join("\n"))?;
    Ok(Code::Good)
}

fn unknown(word: &str) -> Failure {
    let rules = registry::rules();
    let ids = rules.iter().map(|rule| rule.id);
    let parameters: BTreeSet<&str> = parameters().map(|def| def.name).collect();
    let known =
        ids.chain(parameters).chain(keys().flat_map(|(_, row)| row.keys())).chain(terms().flat_map(|(terms, _)| terms));
    let near = nearest(word, known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Failure::usage(format!(
        "{word}: no rule, identity, exit code, parameter, figure or word of the glossary has this name{near} The lists are in \
         docs/reference and docs/GLOSSARY.md"
    ))
}

fn answer(first: String, said: Vec<(&'static str, String)>) -> Answer {
    let said = said.into_iter().filter(|(_, text)| !text.is_empty());
    let said = said.map(|(title, text)| Said { title, text, ..Said::default() });
    let mut answer = Answer::default();
    (answer.first, answer.said) = (first, said.collect());
    answer
}

/// An id that stands for two rules prints both.
fn rule(word: &str) -> Option<Answer> {
    let rules = registry::rules().into_iter().filter(|rule| rule.id.eq_ignore_ascii_case(word)).collect::<Vec<Rule>>();
    let first = rules.first()?;
    let mut said = Vec::new();
    for rule in &rules {
        let other = if rule.title == first.title { "" } else { rule.title };
        let weight = if rule.changes_figures { "It changes what the figures mean, so it is a warning." } else { "" };
        said.push(("Also", other.to_owned()));
        said.extend(rule.headings());
        said.push(("Weight", weight.to_owned()));
    }
    Some(answer(format!("Rule {}: {}", first.id, first.title), said))
}

/// One that has parts, `I6a` and `I6b`, by its number too.
fn identity(word: &str) -> Option<Answer> {
    let all = unjudged_identities();
    let is_it = |id: &str| {
        let rest = id.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word)).map(|_| &id[word.len()..]);
        rest.is_some_and(|rest| rest.chars().all(char::is_alphabetic))
    };
    let found: Vec<_> = all.iter().filter(|identity| is_it(&identity.id)).collect();
    let first = found.first()?;
    let mut said: Vec<(&str, String)> = Vec::new();
    for identity in &found {
        let lead = if found.len() > 1 { format!("{}: ", identity.id) } else { String::new() };
        said.push(("What must hold", format!("{lead}{} ({})", identity.rule, identity.scope)));
    }
    let weight = if first.exact {
        "It is exact: a violation is a bug of assay. An imported record is judged within what its printing rounds away."
    } else {
        "It allows for what is read at different instants, so a violation is no bug by itself."
    };
    said.push(("Weight", weight.to_owned()));
    Some(answer(format!("Identity {word}"), said))
}

fn exit_code(word: &str) -> Option<Answer> {
    let number = word.strip_prefix("exit ").unwrap_or(word).parse::<u8>().ok()?;
    let (_, _, meaning) = MEANINGS.into_iter().find(|(code, _, _)| *code as u8 == number)?;
    Some(answer(format!("Exit code {number}"), vec![("Meaning", meaning.to_owned())]))
}

/// Of the workload, and of every target.
fn parameters() -> impl Iterator<Item = &'static ParamDef> {
    let targets = registry::TARGETS.iter().chain(registry::OF_WORKLOADS);
    SLOB_PARAMS.iter().chain(targets.flat_map(|target| target.params()))
}

fn parameter(word: &str) -> Option<Answer> {
    let is_it = |name: &&str| name.eq_ignore_ascii_case(word);
    let def = parameters().find(|def| is_it(&def.name) || def.aliases.iter().any(is_it))?;
    let said = vec![
        ("Meaning", format!("{}.", def.help.trim_end_matches('.'))),
        ("Takes", def.kind.takes()),
        ("Default", def.default.to_owned()),
        ("Also written", def.aliases.join(", ")),
    ];
    Some(answer(format!("Parameter {}", def.name), said))
}

/// A row of a table of figures: `| key endings | unit | better | layer | what |`.
#[derive(Clone, Copy)]
struct Row<'a>(&'a str);

impl<'a> Row<'a> {
    fn cell(self, at: usize) -> &'a str {
        self.0.split(" | ").nth(at).unwrap_or_default().trim_matches(['|', ' '])
    }

    /// The keys, those after the first in full.
    fn keys(self) -> impl Iterator<Item = &'a str> {
        self.cell(0).split('`').filter(|part| part.contains(char::is_alphanumeric)).take(1)
    }
}

/// Every figure with the kind that has it.
fn keys() -> impl Iterator<Item = (&'static str, Row<'static>)> {
    let mut kind = "";
    METRICS.lines().filter_map(move |line| {
        kind = line.strip_prefix("## Kind ").map_or(kind, |name| name.trim_matches('`'));
        line.starts_with("| `").then_some((kind, Row(line))).filter(|_| !kind.is_empty())
    })
}

/// A figure by its key, with its subject before it or not, in any of its statistics.
fn metric(word: &str) -> Option<Answer> {
    let of = |key: &str| stem(key.rsplit('.').next().unwrap_or(key)).to_owned();
    let wanted = of(word);
    let is_it = |row: &Row<'_>| row.keys().any(|key| of(key) == wanted);
    let found: Vec<_> = keys().filter(|(_, row)| is_it(row)).collect();
    let (_, first) = found.first()?;
    let kinds: Vec<&str> = found.iter().map(|(kind, _)| *kind).collect();
    let better = match first.cell(2) {
        "" => "neither way".to_owned(),
        better => format!("the {better} the better"),
    };
    let said = vec![
        ("Meaning", first.cell(4).to_owned()),
        ("Keys", first.cell(0).replace('`', "")),
        ("Unit", format!("{}; {better}", first.cell(1))),
        ("Layer", first.cell(3).to_owned()),
        ("Kinds", kinds.join(", ")),
    ];
    Some(answer(format!("Figure {word}"), said))
}

/// The paragraphs of the glossary, each with what it defines.
fn terms() -> impl Iterator<Item = (Vec<&'static str>, &'static str)> {
    let paragraphs = GLOSSARY.split("\n\n").filter(|text| text.starts_with("**"));
    paragraphs.map(|text| (text.split("**").skip(1).step_by(2).collect(), text))
}

fn term(word: &str) -> Option<Answer> {
    let (_, text) = terms().find(|(terms, _)| terms.iter().any(|term| term.eq_ignore_ascii_case(word)))?;
    Some(answer(word.to_owned(), vec![("Meaning", text.replace("**", "").replace('`', ""))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_report_has_its_place() {
        for (word, place, said) in [
            ("r14", "Rule R14", "standard deviation"),
            ("I13", "Identity I13", ""),
            ("i6", "Identity i6", "I6b"),
            ("4", "Exit code 4", "invalid"),
            ("work_unit", "Parameter WORK_UNIT", "Takes"),
            ("4_sessions.op_us_p99", "Figure 4_sessions.op_us_p99", "sweep"),
            ("reads_per_s", "Figure reads_per_s", "the higher the better"),
            ("Active session", "Active session", "inside an operation"),
            ("average active sessions", "average active sessions", "elapsed"),
        ] {
            let places = [rule, identity, exit_code, parameter, metric, term];
            let found: Vec<String> = (places.iter()).filter_map(|of| Some(of(word)?.text())).collect();
            let [text] = found.as_slice() else { panic!("{word}: {found:?}") };
            assert!(text.starts_with(place) && text.contains(said), "{word}: {text}");
        }
    }

    #[test]
    fn a_word_that_nobody_knows_is_told_its_nearest() {
        let failure = unknown("WORK_UNTI");
        assert!(failure.lines[0].contains("did you mean WORK_UNIT?"), "{:?}", failure.lines);
    }

    /// But for R12, which a price file has too.
    #[test]
    fn rules_have_numbers_of_their_own() {
        let rules = registry::rules();
        let ids: BTreeSet<&str> = rules.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len() + 1, rules.len());
        assert_eq!(rules.iter().filter(|rule| rule.id == "R12").count(), 2);
    }

    /// Whoever adds a rule adds it to the list of its kind: each that a source defines is known here.
    #[test]
    fn every_rule_of_the_sources_is_known() {
        let rules = registry::rules();
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = 0;
        let mut look = vec![crates];
        while let Some(place) = look.pop() {
            if place.is_dir() {
                let entries = std::fs::read_dir(&place).expect("a folder");
                look.extend(entries.map(|entry| entry.expect("an entry").path()));
                continue;
            }
            let is_source = place.extension().is_some_and(|end| end == "rs") && !place.ends_with("explain.rs");
            let text = if is_source { std::fs::read_to_string(&place).expect("a source") } else { String::new() };
            for entry in text.split(": Rule = Rule {").skip(1) {
                let field = |name: &str| entry.split(name).nth(1)?.split('"').nth(1);
                let (id, title) = (field("id: ").expect("an id"), field("title: ").expect("a title"));
                assert!(rules.iter().any(|rule| (rule.id, rule.title) == (id, title)), "{id}: {title} is in no list");
                found += 1;
            }
        }
        assert_eq!(found, rules.len());
    }
}
