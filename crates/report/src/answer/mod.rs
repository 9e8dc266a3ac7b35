//! The answer: what a command says first. How much, how steady, what limits it, how far to trust it, what next.
//!
//! One run or repeats of one run, of any kind: the words are the kind's headline. It stands alone on a terminal, before the
//! report and at the head of the page.

mod figures;
mod page;
mod trust;

#[cfg(test)]
mod tests;

pub(crate) use page::Page;
pub(crate) use trust::{TITLE as TRUST, clause};

use crate::kinds;
use assay_measure::facts::{self, FactKey};
use assay_measure::fleet::Fleet;
use assay_measure::kind::{Headline, HeadlineFigure};
use assay_measure::record::{Advice, Precision, Record};
use assay_measure::units::{fixed, readable, short};
use std::ops::RangeInclusive;

/// Most lines of an answer.
pub const LINES: usize = 40;
/// Most columns of a line where no terminal says how many it has.
pub const WIDTH: usize = 100;
/// Columns that an answer makes use of.
const WIDTHS: RangeInclusive<usize> = 80..=120;

/// Most columns of a finding.
const LONG: usize = 240;

/// How good a line's news is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// To be read with care.
    Doubtful,
    /// Not to be used.
    Bad,
}

impl Class {
    /// The word for it where a page is coloured.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "good",
            Self::Doubtful => "warn",
            Self::Bad => "bad",
        }
    }

    /// Text in the colour for it, as a terminal takes it; what matters most is bold.
    fn painted(self, text: &str, is_bold: bool) -> String {
        let colour = match self {
            Self::Plain => "",
            Self::Good => "32",
            Self::Doubtful => "33",
            Self::Bad => "31",
        };
        let codes = match (is_bold, colour) {
            (false, "") => return text.to_owned(),
            (true, "") => "1".to_owned(),
            (true, colour) => format!("1;{colour}"),
            (false, colour) => colour.to_owned(),
        };
        format!("\u{1b}[{codes}m{text}\u{1b}[0m")
    }
}

/// One line of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// What it is about; empty if it continues the previous line.
    pub title: &'static str,
    /// What is said of it.
    pub text: String,
    /// How good that is.
    pub class: Class,
    /// To be typed, so it is never wrapped.
    pub is_command: bool,
}

impl Said {
    pub(crate) fn new(title: &'static str, text: impl Into<String>) -> Self {
        Self { title, text: text.into(), ..Self::default() }
    }

    fn of_class(self, class: Class) -> Self {
        Self { class, ..self }
    }
}

/// What is known about a record besides its own content.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Where its files are, as they are named on a command line; empty where it is being written.
    pub run: String,
    /// Names of the report and the page in there; none where they are not written.
    pub files: Vec<String>,
    /// How it compares with the previous run of the same test, and whether that is good.
    pub previous: Option<(String, Class)>,
    /// Where there is none: what variation is normal there, and the age and use of the data.
    pub normal: Option<String>,
    /// What it is shown on.
    pub screen: Screen,
}

/// What an answer is shown on: by default no terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Whether it has colours and bold letters.
    pub is_coloured: bool,
    /// Columns of the terminal, if it says so.
    pub columns: Option<usize>,
    /// Rows of the terminal, if it says so.
    pub rows: Option<usize>,
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// What was measured on what, and the figure that matters most.
    pub first: String,
    /// Lines in another tool's words, as scripts read them.
    pub verbatim: Vec<String>,
    /// Everything else, in order.
    pub said: Vec<Said>,
    /// The command that repeats the test; empty where it is not known.
    pub rerun_command: String,
    /// What it is shown on.
    pub screen: Screen,
}

/// Which run it is: its id and label, what it did, and where.
pub(crate) fn title(record: &Record) -> String {
    let run = &record.run;
    let label = run.label.as_ref();
    let label = label.map_or_else(String::new, |label| format!(" \"{label}\""));
    // A run of the same workload is another thing.
    let is_told = kinds::stands_above_runs(record) && record.kind != run.workload;
    let kind = if is_told { format!(" {}", record.kind) } else { String::new() };
    // A probe has no engine of its own: what tells one from another is where it measured.
    let place = if run.engine == "probe" { place(record) } else { &run.engine };
    let on = if place.is_empty() { String::new() } else { format!(" on {place}") };
    format!("{}{label}: {}{kind}{on}", run.id, run.workload)
}

/// The answer of a run, or of repeats of one run: then a figure is the median with its range.
///
/// Nothing for no record.
#[must_use]
pub fn of(records: &[&Record], context: &Context) -> Answer {
    let Some(first) = records.first() else {
        return Answer::default();
    };
    let headlines: Vec<Headline> = records.iter().map(|record| kinds::of(record).headline(record)).collect();
    let mut said = vec![Said::new("Tested", tested(records, first, &headlines))];
    let rows = figures::rows(&headlines);
    said.extend(records.iter().filter_map(|record| record.precision.as_ref()).flat_map(precision));
    said.extend(rows.into_iter().map(|(title, text)| Said::new(title, text)));
    let fleets = records.iter().filter_map(|record| record.parts.get::<Fleet>());
    said.extend(fleets.map(|fleet| Said::new("Hosts", fleet.summary() + ".")));
    said.extend(limits(records, &headlines));
    let steadiness = steadiness(&headlines);
    let is_unsteady = steadiness.class == Class::Doubtful;
    said.push(steadiness);
    said.push(trust::of(records, is_unsteady));
    if let Some((text, class)) = &context.previous {
        said.push(Said::new("Before", text.clone()).of_class(*class));
    }
    said.extend(context.normal.iter().map(|text| Said::new("Normal here", text.clone())));
    if !context.files.is_empty() {
        let text = format!("{} in {}", context.files.join(" and "), context.run);
        said.push(Said::new("Whole report", text));
    }
    let is_fleet = first.parts.get::<Fleet>().is_some();
    if !is_fleet {
        said.extend(next(&headlines[0]));
    }
    // The hosts are asked by another command, with the same words behind it.
    let rerun_command = &headlines[0].rerun_command;
    let rerun_command = match rerun_command.strip_prefix("assay ").filter(|_| is_fleet) {
        Some(words) => format!("assay fleet run -- {words}"),
        None => rerun_command.clone(),
    };
    Answer {
        screen: context.screen,
        first: lead(records, first, &headlines),
        verbatim: headlines[0].verbatim.clone(),
        rerun_command,
        said,
    }
}

impl Answer {
    /// An empty page as wide as what is said on it.
    pub(crate) fn page(&self) -> Page {
        Page::new(self.screen.columns.map_or(WIDTH, |columns| columns.clamp(*WIDTHS.start(), *WIDTHS.end())))
    }

    /// As text of at most [`LINES`] lines, in the columns of the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        self.text_before("")
    }

    /// The same with more below it. Where that is more than the rows of the terminal, its first line is its last one again.
    #[must_use]
    pub(crate) fn text_before(&self, more: &str) -> String {
        let mut page = self.page();
        page.paragraph(&self.first);
        let head: Vec<String> = page.lines().iter().map(|line| self.bold(line)).collect();
        page.line("");
        for line in &self.verbatim {
            page.verbatim(line);
        }
        if !self.verbatim.is_empty() {
            page.line("");
        }
        for said in &self.said {
            if said.is_command { page.command(said.title, &said.text) } else { page.item(said.title, &said.text) }
        }
        let text = page.finish(LINES, "(cut here; see the report for the rest)");
        let mut lines = head.clone();
        lines.extend(self.painted(text.lines().skip(head.len())));
        lines.extend(more.lines().map(str::to_owned));
        // The last row is the shell's.
        if self.screen.rows.is_some_and(|rows| lines.len() >= rows) {
            lines.push(String::new());
            lines.extend(head);
        }
        lines.join("\n") + "\n"
    }

    fn bold(&self, line: &str) -> String {
        Class::Plain.painted(line, self.screen.is_coloured)
    }

    /// Lines with their titles in the colours of their classes, and how far to trust the figures in bold letters.
    fn painted<'a>(&self, lines: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut titled = self.said.iter().filter(|said| self.screen.is_coloured && !said.title.is_empty()).peekable();
        let paint = |line: &str| {
            let Some(said) = titled.next_if(|said| line.starts_with(said.title)) else {
                return line.to_owned();
            };
            let is_trust = said.title == trust::TITLE;
            let to = line.find(':').filter(|_| is_trust).unwrap_or(said.title.len());
            let (first, rest) = line.split_at(to);
            format!("{}{rest}", said.class.painted(first, is_trust))
        };
        lines.map(paint).collect()
    }

    /// How far the figures can be trusted.
    #[must_use]
    pub fn trust(&self) -> Class {
        let trust = self.said.iter().find(|said| said.title == trust::TITLE);
        trust.map_or(Class::Plain, |said| said.class)
    }
}

/// The figures of a record's headline, each line with its title; a line without one continues the previous line.
#[must_use]
pub fn figures(record: &Record) -> Vec<(&'static str, String)> {
    figures::rows(&[kinds::of(record).headline(record)])
}

/// What was measured on what, with its main figure and how sure that is.
fn lead(records: &[&Record], record: &Record, headlines: &[Headline]) -> String {
    let run = &record.run;
    let label = run.label.as_ref();
    let label = label.map_or_else(String::new, |label| format!(" \"{label}\""));
    let what = match &record.import {
        Some(import) => format!("{}, imported", import.tool),
        None => match place(record) {
            "" => run.workload.clone(),
            place => format!("{} on {}", run.workload, place.trim_end_matches(':')),
        },
    };
    let rows = figures::rows(headlines);
    let main = headlines.first().and_then(|headline| {
        let mut told = headline.rows.iter().flat_map(|line| &line.told);
        let told = told.find(|told| told.value.value().is_some())?;
        Some((told.clone(), figures::one(told.value.value()?, &told.unit, figures::number_of(&told.value))))
    });
    let verdict = headlines.first().map_or("", |headline| headline.verdict.as_str());
    let precision = record.precision.as_ref().map(Precision::brief);
    let figure = match (records.len(), main, rows.first()) {
        (1, ..) if precision.is_some() => format!(": {}", precision.unwrap_or_default()),
        (1, ..) if !verdict.is_empty() => format!(": {verdict}"),
        (1, Some((value, text)), _) => format!(": {text}{}", interval(record, &value)),
        (_, _, Some((_, text))) => format!(": {text}"),
        _ => String::new(),
    };
    format!("{what}{label}{figure}")
}

/// How well the figure of `--until` is known; where it is not, what it was from batch to batch.
fn precision(found: &Precision) -> Vec<Said> {
    let class = if found.is_reached() { Class::Good } else { Class::Doubtful };
    let mut said = vec![Said::new("Precision", found.sentence()).of_class(class)];
    if !found.is_reached() && !found.batches.is_empty() {
        said.push(Said::new("", found.series()));
    }
    said
}

/// Where it was measured: the target, the place of a probe.
#[must_use]
pub fn place(record: &Record) -> &str {
    let mut settings = record.plan.settings.iter();
    let place = settings.find(|line| ["TARGET", "PATH"].contains(&line.name.as_str()));
    let told = place.map(|line| line.value.as_str());
    let told = told.filter(|value| !value.is_empty() && !value.starts_with('('));
    told.unwrap_or(match record.run.engine.as_str() {
        "probe" => "",
        engine => engine,
    })
}

/// The 95 % interval of the metric that has this value, in the unit that the value is told in.
fn interval(record: &Record, told: &HeadlineFigure) -> String {
    let metric = record.metrics.iter().find(|metric| metric.value == told.value);
    let interval = metric.and_then(|metric| metric.interval);
    let (factor, _) = readable(told.value.value().unwrap_or_default(), &told.unit);
    interval.map_or_else(String::new, |(low, high)| {
        format!(" (95 % interval {} to {})", short(low / factor), short(high / factor))
    })
}

/// One paragraph.
pub(crate) fn tested(records: &[&Record], record: &Record, headlines: &[Headline]) -> String {
    let mut text = headlines.first().map_or_else(String::new, |headline| headline.tested.clone());
    if let [_, _, ..] = records {
        text.push_str(&format!(
            " The test was run {} times; each figure is the median of the repeats, with their range.",
            records.len()
        ));
    }
    if let Some(import) = &record.import {
        text.push_str(&format!(
            " The figures come from the output of {} ({}); assay did not measure them.",
            import.tool, import.format
        ));
    }
    let host = host(record);
    if !host.is_empty() {
        text.push_str(&format!(" Host: {}.", host.join(", ")));
    }
    text
}

fn host(record: &Record) -> Vec<String> {
    let fact = |key: FactKey| {
        let found = key.find(&record.host.facts);
        found.or_else(|| key.find(&record.plan.engine_facts))
    };
    let memory = fact(facts::MEMORY_BYTES).and_then(|bytes| bytes.parse::<u64>().ok());
    let host = [
        fact(facts::HOSTNAME).map(str::to_owned),
        fact(facts::PRODUCT).map(str::to_owned),
        fact(facts::CPUS).map(|cpus| if cpus == "1" { "1 CPU".to_owned() } else { format!("{cpus} CPUs") }),
        fact(facts::CPU_MODEL).map(str::to_owned),
        memory.map(|bytes| format!("{} GiB of memory", fixed(bytes as f64 / 1_073_741_824.0, 1))),
        fact(facts::VIRTUALISATION).map(|kind| format!("virtualisation {kind}")),
        fact(facts::DISK_MODEL).or(fact(facts::DISK)).map(|disk| format!("disk {disk}")),
    ];
    host.into_iter().flatten().collect()
}

/// What kept the figures from being better, and the weightiest finding that says something else.
fn limits(records: &[&Record], headlines: &[Headline]) -> Vec<Said> {
    let mut all = Vec::new();
    let told: Vec<&Headline> = headlines.iter().filter(|headline| !headline.limit.what.is_empty()).collect();
    let often = |what: &str| told.iter().filter(|headline| headline.limit.what == what).count();
    let most = told.iter().max_by_key(|headline| often(&headline.limit.what));
    match most.or(headlines.first().as_ref()) {
        None => {}
        Some(headline) => {
            let limit = &headline.limit;
            let count = match headlines.len() {
                1 => String::new(),
                repeats => format!(" (in {} of {repeats} repeats)", often(&limit.what)),
            };
            let text = match limit.what.as_str() {
                "" => limit.evidence.clone(),
                what => format!("{what}{count}. {}", limit.evidence),
            };
            all.push(Said::new("Limited by", text));
        }
    }
    let is_news = |advice: &&Advice| {
        let is_said = |headline: &Headline| headline.limit.evidence.contains(&advice.text);
        advice.severity == "high" && !headlines.iter().any(is_said)
    };
    let high = |record: &&Record| record.hints().find(is_news).cloned();
    let found: Option<Advice> = records.iter().find_map(high);
    if let Some(advice) = found {
        let text = trust::clause(&advice.text, LONG);
        let text = format!("{}: {}.", advice.id, text.trim_end_matches('.'));
        all.push(Said::new("Finding", text));
    }
    all
}

/// The verdict on steadiness, and how it was reached.
fn steadiness(headlines: &[Headline]) -> Said {
    let is_good = |text: &str| text.starts_with("steady");
    let mut texts: Vec<&str> = headlines.iter().map(|headline| headline.steadiness.as_str()).collect();
    let good = texts.iter().filter(|text| is_good(text)).count();
    let class = match (good == texts.len(), texts.first()) {
        (true, _) => Class::Good,
        (_, Some(text)) if text.starts_with("n/a") => Class::Plain,
        _ => Class::Doubtful,
    };
    texts.dedup();
    let text = match texts.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, ..] => format!("{good} of {} repeats were steady. First: {first}", headlines.len()),
    };
    Said::new("Steadiness", text).of_class(class)
}

/// Commands worth trying, each on a line of its own.
fn next(headline: &Headline) -> Vec<Said> {
    let titles = std::iter::once("Next").chain(std::iter::repeat(""));
    let said = titles.zip(&headline.next);
    said.map(|(title, next)| Said {
        is_command: true,
        ..Said::new(title, format!("{}   # {}", next.command, next.why))
    })
    .collect()
}
