//! `explain`: what a word of the reports means: a rule from its entry, anything else from the pages of the reference, which
//! are made from what they tell of.

use crate::cli::ExplainArgs;
use crate::exit::{Code, Failure};
use crate::{registry, ui};
use assay_measure::config::nearest;
use assay_measure::record::metric::stem;
use assay_report::answer::{Answer, Said};

const GLOSSARY: &str = include_str!("../../../../docs/GLOSSARY.md");

/// A page, what a row of its tables is called, and how well the first cell of a row fits a word: 0 best.
type Page = (&'static str, &'static str, fn(&str, &str) -> Option<u8>);

const PAGES: [Page; 5] = [
    ("Identity", include_str!("../../../../docs/reference/identities.md"), identity),
    ("Identity of imports", include_str!("../../../../docs/IMPORT.md"), identity),
    ("Exit code", include_str!("../../../../docs/reference/exit-codes.md"), exit_code),
    ("Parameter", include_str!("../../../../docs/reference/parameters.md"), parameter),
    ("Figure", include_str!("../../../../docs/reference/metrics.md"), figure),
];

pub(super) fn explain(args: &ExplainArgs) -> Result<Code, Failure> {
    let word = args.word.join(" ");
    let found = found(word.trim());
    if found.is_empty() {
        return Err(unknown(&word));
    }
    let texts: Vec<String> = found.iter().map(Answer::text).collect();
    ui::product(&texts.join("\n"))?;
    Ok(Code::Good)
}

/// A word may be of several places: `S4` is a rule of durable writes and an identity of a server.
fn found(word: &str) -> Vec<Answer> {
    let pages = PAGES.iter().filter_map(|page| in_page(page, word));
    rules(word).into_iter().chain(pages).chain(term(word)).collect()
}

fn unknown(word: &str) -> Failure {
    let rules = registry::rules();
    let ids = rules.iter().map(|rule| rule.id);
    let keys = PAGES.iter().flat_map(|(_, page, _)| rows(page)).filter_map(|row| row.cells[0].split('`').nth(1));
    let known = ids.chain(keys).chain(terms().flat_map(|(terms, _)| terms));
    let near = nearest(word, known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Failure::usage(format!(
        "{word}: no rule, identity, exit code, parameter, figure or word of the glossary has this name{near} (the lists are in \
         docs/reference and docs/GLOSSARY.md)"
    ))
}

fn answer(first: String, said: Vec<(&'static str, String)>) -> Answer {
    let said = said.into_iter().filter(|(_, text)| !text.is_empty());
    let said = said.map(|(title, text)| Said { title, text, ..Said::default() });
    let mut answer = Answer::default();
    (answer.first, answer.said) = (first, said.collect());
    // Several are printed below each other, without colours.
    answer.screen.columns = crate::ui::screen().columns;
    answer
}

/// An id may stand for two rules: R12 judges by a limit of the host, and by one that was bought.
fn rules(word: &str) -> Vec<Answer> {
    let found = registry::rules().into_iter().filter(|rule| rule.id.eq_ignore_ascii_case(word));
    let answers = found.map(|rule| {
        let weight = if rule.changes_figures { "It changes what the figures mean, so it is a warning." } else { "" };
        let said = rule.headings().into_iter().chain([("Weight", weight.to_owned())]);
        answer(format!("Rule {}: {}", rule.id, rule.title), said.collect())
    });
    answers.collect()
}

/// A row of a table of a page, below its headings.
struct Row {
    below: &'static str,
    heads: Vec<&'static str>,
    cells: Vec<&'static str>,
}

/// The rows of a page's tables; of a page made from the code, of what was made.
fn rows(page: &'static str) -> Vec<Row> {
    let made = page.split_once("<!-- from the code: begin -->").map_or(page, |(_, made)| made);
    let cells = |line: &'static str| -> Vec<&str> {
        let inner = line.trim_start_matches('|').trim_end_matches('|');
        // A mark within a cell has a stroke before it.
        inner.split(" | ").map(str::trim).collect()
    };
    let (mut below, mut heads, mut before) = ("", Vec::new(), "");
    let mut found = Vec::new();
    for line in made.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            below = heading;
        } else if line.starts_with("|---") {
            heads = cells(before);
        } else if line.starts_with("| ") && before.starts_with('|') {
            found.push(Row { below, heads: heads.clone(), cells: cells(line) });
        }
        before = line;
    }
    found
}

/// What a page has of a word: the rows that fit best, those that say the same of several things once.
fn in_page((what, page, fits): &Page, word: &str) -> Option<Answer> {
    let rows: Vec<(u8, Row)> =
        rows(page).into_iter().filter_map(|row| Some((fits(row.cells[0], word)?, row))).collect();
    let best = rows.iter().map(|(rank, _)| *rank).min()?;
    let mut told: Vec<(Row, Vec<&str>)> = Vec::new();
    for (_, row) in rows.into_iter().filter(|(rank, _)| *rank == best) {
        let below = row.below;
        match told.iter_mut().find(|(other, _)| other.cells == row.cells) {
            Some((_, all)) if all.contains(&below) => {}
            Some((_, all)) => all.push(below),
            None => told.push((row, vec![below])),
        }
    }
    let plain = |text: &str| text.replace('`', "").replace("\\|", "|");
    let said = told.iter().flat_map(|(row, below)| {
        let cells = row.heads.iter().zip(&row.cells).map(|(head, cell)| (*head, plain(cell)));
        cells.chain([("Stands in", plain(&below.join(", ")))])
    });
    Some(answer(format!("{what} {word}"), said.collect()))
}

/// Letters and number of an id, `AWR` and 12 of `AWR12a`; nothing of another word.
fn numbered(id: &str) -> Option<(String, u32)> {
    let letters = id.split(|c: char| !c.is_ascii_alphabetic()).next()?;
    let rest = &id[letters.len()..];
    let digits = rest.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_one = !letters.is_empty() && rest.len() <= digits.len() + 1;
    Some((letters.to_ascii_uppercase(), digits.parse().ok().filter(|_| is_one)?))
}

/// Of `I6a`, of `AWR1, AWR2` and of `AWR3 to AWR6`.
fn identity(cell: &str, word: &str) -> Option<u8> {
    if cell.split(", ").any(|id| id.eq_ignore_ascii_case(word)) {
        return Some(0);
    }
    let wanted = numbered(word)?;
    let is_in = |part: &str| match part.split_once(" to ").and_then(|(a, b)| numbered(a).zip(numbered(b))) {
        Some((from, to)) => from.0 == wanted.0 && (from.1..=to.1).contains(&wanted.1),
        None => numbered(part).as_ref() == Some(&wanted),
    };
    cell.split(", ").any(is_in).then_some(1)
}

/// `4`, `exit 4` and `exit code 4`.
fn exit_code(cell: &str, word: &str) -> Option<u8> {
    let mut words: Vec<String> = word.split_whitespace().map(str::to_lowercase).collect();
    let number = words.pop()?;
    let is_all = words.iter().all(|word| ["exit", "code"].contains(&word.as_str()));
    (is_all && cell == number && number.parse::<u8>().is_ok()).then_some(0)
}

fn parameter(cell: &str, word: &str) -> Option<u8> {
    let mut names = cell.split('`').skip(1).step_by(2);
    names.any(|name| name.eq_ignore_ascii_case(word)).then_some(0)
}

/// A figure by its key, with its subject before it or not; else another statistic of it.
fn figure(cell: &str, word: &str) -> Option<u8> {
    let of = |key: &str| key.rsplit('.').next().unwrap_or(key).to_lowercase();
    let mut keys = cell.split('`').skip(1).step_by(2);
    let (wanted, first) = (of(word), of(keys.next()?));
    let is_it = wanted == first || keys.any(|ending| wanted == format!("{}{ending}", stem(&first)));
    let is_like_it = || stem(&wanted) == stem(&first);
    if is_it { Some(0) } else { is_like_it().then_some(1) }
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
    use std::collections::BTreeSet;

    #[test]
    fn every_name_of_a_report_has_its_place() {
        for (word, places) in [
            ("r14", &[("Rule R14", "standard deviation")][..]),
            ("R12", &[("Rule R12: A configured", "limit"), ("Rule R12", "price")]),
            ("I13a", &[("Identity I13a", "by function"), ("Identity of imports", "TOTAL")]),
            ("i6", &[("Identity i6", "I6b"), ("Identity of imports", "I6, I7")]),
            ("S4", &[("Rule S4", "method"), ("Identity S4", "commits")]),
            ("K1", &[("Identity K1", "steps of every size")]),
            ("IO3", &[("Identity IO3", "block size")]),
            ("awr5", &[("Identity of imports awr5", "Read+Write")]),
            ("AWR12b", &[("Identity of imports", "wait class")]),
            ("I28b", &[("Identity I28b", "allows"), ("Identity of imports", "share of DB time")]),
            ("4", &[("Exit code 4", "invalid")]),
            ("Exit code 4", &[("Exit code", "invalid")]),
            ("work_unit", &[("Parameter work_unit", "Takes")]),
            ("COMMIT_MODE", &[("Parameter", "Target postgres")]),
            ("4_sessions.op_us_p99", &[("Figure 4_sessions.op_us_p99", "sweep")]),
            ("READS_PER_S", &[("Figure READS_PER_S", "higher")]),
            ("rtt_us_mdev", &[("Figure rtt_us_mdev", "us")]),
            ("average active sessions", &[("average active sessions", "elapsed")]),
            ("a", &[]),
            ("as", &[]),
            ("", &[]),
            ("\u{e4}\u{df}", &[]),
        ] {
            let texts: Vec<String> = found(word).iter().map(Answer::text).collect();
            assert_eq!(texts.len(), places.len(), "{word}: {texts:?}");
            for (text, (begin, said)) in texts.iter().zip(places) {
                assert!(text.starts_with(begin) && text.contains(said), "{word}: {text}");
            }
        }
    }

    #[test]
    fn a_word_that_nobody_knows_is_told_its_nearest() {
        assert!(unknown("WORK_UNTI").lines[0].contains("has this name; did you mean WORK_UNIT? (the lists"));
        assert!(unknown("xyzzyxyzzy").lines[0].contains("has this name (the lists"));
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
            for entry in text.split(": Rule =").skip(1) {
                let field = |name: &str| entry.split(name).nth(1)?.split('"').nth(1);
                // A rule that several probes have begins with its id, and its title is theirs.
                let of_its_own = entry.starts_with(" Rule {");
                let id = if of_its_own { field("id: ") } else { entry.split('"').nth(1) }.expect("an id");
                let title = of_its_own.then(|| field("title: ").expect("a title"));
                let mut known = rules.iter().filter(|rule| title.is_none_or(|title| rule.title == title));
                assert!(known.any(|rule| rule.id == id), "{id}: {title:?} is in no list");
                found += 1;
            }
        }
        assert_eq!(found, rules.len());
    }
}
