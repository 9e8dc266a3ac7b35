//! The table of benches, `table.toml`: what is run, what is read from it, and what is asked for.

use super::figures::Figures;
use anyhow::{Context, Result};
use serde::Deserialize;

/// Words that are put into commands.
pub(super) type Words = Figures;

/// What a word is where its tool is absent: what uses it is left out.
const ABSENT: char = '\0';

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// What is computed of every shot: a name, and the expressions of which the first that is known and not 0 counts.
    pub(super) derived: Vec<Vec<String>>,
    /// Words of all benches.
    pub(super) words: Words,
    /// Lines of peers that print no JSON: the name of a figure, and where its number stands.
    pub(super) patterns: Figures,
    /// Programs that are not looked for in PATH.
    pub(super) tool: Vec<Tool>,
    /// In the order in which all are run.
    pub(super) bench: Vec<Bench>,
}

/// A program that may be absent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    /// Its word.
    pub(super) name: String,
    /// The bench that uses it.
    pub(super) of: String,
    /// A script that prints the word; nothing where the tool is absent.
    pub(super) find: String,
    /// What is said then.
    pub(super) missing: String,
}

/// One name on the command line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bench {
    /// Its name.
    pub(super) name: String,
    /// For the help.
    pub(super) about: String,
    /// Programs without which it is left out, and where they are found.
    #[serde(default)]
    pub(super) needs: Vec<[String; 2]>,
    /// Its words.
    #[serde(default)]
    pub(super) words: Words,
    /// In order.
    pub(super) measure: Vec<Measure>,
}

/// Runs taken in turn, round by round, and the tables that are printed of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub(super) struct Measure {
    /// The part that `--only` names.
    pub(super) only: String,
    /// Its words, used before those of the bench.
    pub(super) words: Words,
    /// A server for all runs, which says where it is in a line of JSON: that becomes words. Where it or the setup is another
    /// than before, both are made anew; where both are empty, what there is stays.
    pub(super) server: String,
    /// Commands run once, in an empty directory; their figures are those of shot 0.
    pub(super) setup: Vec<String>,
    /// Printed behind it.
    pub(super) say: String,
    /// Measured once with each of these sets of words; `full` names those that a smoke test leaves out.
    pub(super) each: Vec<Words>,
    /// Seconds that do not count, and the length of the window in which a run is looked at; none if empty.
    pub(super) watch: String,
    /// The contenders; who begins moves on from round to round.
    pub(super) run: Vec<Run>,
    /// They need each other: every round begins with the first.
    pub(super) in_order: bool,
    /// What is printed.
    pub(super) table: Vec<Shown>,
}

/// One contender.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Run {
    /// What tables call it.
    pub(super) name: String,
    /// For a shell; in a directory that has an empty one, `shot`.
    pub(super) command: String,
    /// Not measured; what it prints is subtracted from what `after` prints under the same name.
    pub(super) before: String,
    /// Not measured.
    pub(super) after: String,
    /// Listens on `{port}` while the command runs.
    pub(super) server: String,
    /// Killed after so many seconds.
    pub(super) kill: String,
    /// Figures that are known.
    pub(super) figures: Figures,
    /// Said at the end of its line.
    pub(super) goal: String,
}

/// One table of figures: pairs with their ratio, or a line for each run if it has columns.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Shown {
    /// Printed before.
    pub(super) title: String,
    /// Tells its rows from those of other tables of the bench.
    pub(super) part: String,
    /// Of ours and of theirs; the names of the runs if empty. One alone: there is nobody to compare with.
    pub(super) head: Vec<String>,
    /// The numbers of the two runs, from 1.
    pub(super) sides: [usize; 2],
    /// Name, goal, the expression of ours, and that of theirs if it is another.
    pub(super) rows: Vec<Vec<String>>,
    /// Head and expression.
    pub(super) columns: Vec<[String; 2]>,
    /// Printed although a run is absent.
    pub(super) alone: bool,
    /// Printed behind it, with the medians of expressions as `{= expression}`.
    pub(super) notes: Vec<String>,
}

impl Shown {
    /// All its texts put through `of`.
    pub(super) fn with(&self, of: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let all = |texts: &[String]| texts.iter().map(|text| of(text)).collect::<Result<Vec<_>>>();
        Ok(Self {
            title: of(&self.title)?,
            part: of(&self.part)?,
            head: all(&self.head)?,
            sides: self.sides,
            rows: self.rows.iter().map(|row| all(row)).collect::<Result<_>>()?,
            columns: self.columns.clone(),
            alone: self.alone,
            notes: all(&self.notes)?,
        })
    }
}

impl Bench {
    /// What `--only` may name.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        self.measure.iter().flat_map(Measure::parts)
    }
}

impl Measure {
    /// Those of its sets of words, or its own.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        let each = self.each.iter().filter_map(|each| each.get("only"));
        each.chain([&self.only]).map(String::as_str).filter(|part| !part.is_empty())
    }
}

impl Default for Shown {
    fn default() -> Self {
        Self {
            title: String::new(),
            part: String::new(),
            head: Vec::new(),
            sides: [1, 2],
            rows: Vec::new(),
            columns: Vec::new(),
            alone: false,
            notes: Vec::new(),
        }
    }
}

/// The table of this program.
///
/// # Errors
/// When it cannot be read: a mistake in the file.
pub(super) fn table() -> Result<Table> {
    toml::from_str(include_str!("table.toml")).context("table.toml")
}

/// Puts words into a text: `{name}`, and `{full|small}` by the size asked for. Other braces stay. `None` if it needs a
/// tool that is absent.
pub(super) fn expand(text: &str, words: &Words, smoke: bool) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        out.push_str(before);
        let (inside, after) = behind.split_once('}').unwrap_or(("", behind));
        let value = match inside.split_once('|') {
            // A blank begins a block of a script.
            Some((full, small)) if !inside.starts_with(' ') => Some(if smoke { small } else { full }),
            _ => words.get(inside).map(String::as_str),
        };
        match value {
            Some(value) => {
                out.push_str(&expand(value, words, smoke)?);
                rest = after;
            }
            None => {
                out.push('{');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    (!out.contains(ABSENT)).then_some(out)
}

/// The word of a tool by what its script printed.
pub(super) fn found(printed: &str) -> String {
    if printed.is_empty() { ABSENT.to_string() } else { printed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_are_put_in_by_name_and_size_and_other_braces_stay() {
        let words = Words::from([("a".to_owned(), "[{b}]".to_owned()), ("b".to_owned(), "{2G|64M}".to_owned())]);
        assert_eq!(expand("x {a} {c} { print $1 }", &words, false).unwrap(), "x [2G] {c} { print $1 }");
        assert_eq!(expand("f() { {a} } {", &words, true).unwrap(), "f() { [64M] } {");
        let absent = Words::from([("tool".to_owned(), found(""))]);
        assert_eq!(expand("exec {tool} -x", &absent, false), None);
    }

    /// Names and operators of an expression, alternating.
    fn operators(expression: &str) -> BTreeSet<&str> {
        expression.split_whitespace().skip(1).step_by(2).collect()
    }

    #[test]
    fn every_word_of_the_table_is_known_and_every_row_is_of_runs_and_operators_that_exist() {
        let table = table().unwrap();
        let known = BTreeSet::from(["*", "/", "+", "-", "~", "min", "max"]);
        let derived = table.derived.iter().flat_map(|words| &words[1..]);
        derived.for_each(|expression| assert!(operators(expression).is_subset(&known), "{expression}"));
        for (bench, measure) in table.bench.iter().flat_map(|bench| bench.measure.iter().map(move |m| (bench, m))) {
            let mut words = table.words.clone();
            let told = ["assay", "xtask", "dir", "here", "memory", "port", "server", "server_url", "server_directory"];
            words.extend(told.into_iter().chain(["server_programs"]).map(|word| (word.to_owned(), "told".to_owned())));
            words.extend(table.tool.iter().map(|tool| (tool.name.clone(), "found".to_owned())));
            words.extend(bench.words.iter().chain(&measure.words).map(|(name, word)| (name.clone(), word.clone())));
            words.extend(measure.each.first().cloned().unwrap_or_default());
            let filled = |text: &str| {
                let text = expand(text, &words, false).unwrap();
                let unknown = text.split('{').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
                assert!(!unknown, "{}: {text}", bench.name);
                Ok(text)
            };
            let commands = measure.run.iter().flat_map(|run| [&run.command, &run.before, &run.after, &run.server]);
            commands.chain(&measure.setup).chain([&measure.server]).for_each(|text| drop(filled(text)));
            for shown in measure.table.iter().map(|shown| shown.with(filled).unwrap()) {
                assert!(shown.sides.iter().all(|side| (1..=measure.run.len()).contains(side)), "{}", bench.name);
                let rows = shown.rows.iter().flat_map(|row| &row[2..]);
                for expression in rows.chain(shown.columns.iter().map(|[_, expression]| expression)) {
                    assert!(operators(expression).is_subset(&known), "{}: {expression}", bench.name);
                }
            }
        }
    }
}
