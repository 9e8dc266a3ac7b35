//! The index of many runs: a row each with its answer in few words, and the way to its page.

use super::from_sections::{Block, Shown};
use super::page::{Control, Page};
use super::script::Assets;
use super::spark;
use super::table::{Cell, Table};
use crate::answer::{self, Class, Context};
use assay_measure::record::{Figure, Record};

/// A run of the index.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// When it started, for people.
    pub started: String,
    /// Its page, as a link; none where it has none.
    pub page: Option<String>,
    /// Its kind, or what else its directory holds.
    pub kind: String,
    /// As it was given.
    pub label: String,
    /// How it ended.
    pub verdict: String,
    /// What was tested: a target, a path.
    pub place: String,
    /// The figures of its first line.
    pub figure: String,
    /// The first of its 99th percentiles.
    pub p99: String,
    /// The verdict on steadiness.
    pub steady: String,
    /// How far to trust it, in few words.
    pub trust: String,
    /// How good that is.
    pub class: Class,
    /// Its first metric, for the course over alike runs; none where it has none.
    pub main: Option<f64>,
}

impl Listed {
    /// The run with what its record answers.
    #[must_use]
    pub fn answered(self, record: &Record) -> Self {
        let answer = answer::of(&[record], &Context::default());
        let figures = answer::figures(record);
        let first = figures.first();
        let p99 = figures.iter().find(|(title, _)| title.starts_with("p99"));
        let verdict_of = |title: &str| {
            let said = answer.said.iter().find(|said| said.title == title);
            let text = said.map_or("", |said| said.text.as_str());
            text.split([':', '(', ';']).next().unwrap_or_default().trim().to_owned()
        };
        let text = |row: Option<&(&str, String)>| row.map_or_else(String::new, |(_, text)| text.clone());
        Self {
            place: answer::place(record).to_owned(),
            figure: text(first),
            p99: text(p99).split(';').next().unwrap_or_default().to_owned(),
            steady: verdict_of("Steadiness"),
            trust: verdict_of("Trust"),
            class: answer.trust(),
            main: record.metrics.first().and_then(|metric| Figure::value(&metric.value)),
            ..self
        }
    }

    /// Whether both are the same kind of test of the same place.
    fn is_alike(&self, other: &Self) -> bool {
        (&self.kind, &self.place, &self.label) == (&other.kind, &other.place, &other.label)
    }
}

/// The page of these runs, oldest first; `comparisons` are pages beside them, by link and name.
#[must_use]
pub fn index(title: &str, runs: &[Listed], comparisons: &[(String, String)], assets: &Assets) -> String {
    // Nothing is plotted here, so there is no script to embed.
    page(title, runs, comparisons).render(assets)
}

/// The page as a server sends it, which offers what a file cannot: comparisons, courses, and where it is allowed, runs.
#[must_use]
pub fn served_index(title: &str, runs: &[Listed], control: Option<Control>) -> String {
    let choice =
        |run: &Listed| Some((run.page.clone()?, format!("{} {} {} {}", run.started, run.label, run.place, run.figure)));
    let choices = runs.iter().rev().filter_map(choice).collect();
    Page { choices, control, ..page(title, runs, &[]) }.render(&Assets::Served)
}

fn page(title: &str, runs: &[Listed], comparisons: &[(String, String)]) -> Page {
    let columns =
        ["Started (UTC)", "Main figure", "Course", "p99", "Steady", "Trust", "Kind", "Label", "Place", "Verdict"];
    let rows = runs.iter().enumerate().rev();
    let table = Table::new("Runs, newest first", &columns);
    let table = table.with(rows.map(|(at, run)| row(run, &runs[..=at])).collect(), "no runs");
    let mut sections = vec![section("runs", "Runs", table)];
    if !comparisons.is_empty() {
        let link = |(link, name): &(String, String)| vec![Cell::words(name).linked(link)];
        let rows = comparisons.iter().map(link).collect();
        let table = Table::new("Pages beside the runs", &["Page"]).with(rows, "");
        sections.push(section("comparisons", "Comparisons and trends", table));
    }
    Page {
        title: title.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sections,
        can_be_searched: true,
        ..Page::default()
    }
}

fn section(id: &str, title: &str, table: Table) -> Shown {
    Shown {
        id: id.to_owned(),
        title: title.to_owned(),
        blocks: vec![Block::Table { table, folded: String::new() }],
        ..Shown::default()
    }
}

/// A run's cells; the course is that of all runs so far that are alike.
fn row(run: &Listed, so_far: &[Listed]) -> Vec<Cell> {
    let alike = so_far.iter().filter(|other| other.is_alike(run));
    let course: Vec<Option<f64>> = alike.map(|other| other.main).collect();
    let started = Cell::words(&run.started);
    vec![
        match &run.page {
            Some(page) => started.linked(page),
            None => started,
        },
        Cell::words(&run.figure),
        Cell { spark: spark::line(&course, "over the runs of this test"), ..Cell::default() },
        Cell::words(&run.p99),
        Cell::words(&run.steady),
        Cell { class: run.class.word(), ..Cell::words(&run.trust) },
        Cell::words(&run.kind),
        Cell::words(&run.label),
        Cell::words(&run.place),
        Cell::words(&run.verdict),
    ]
}
