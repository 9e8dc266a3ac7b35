//! The one page a manager reads: what was tested, the rate, the 99th percentile at that rate, whether it was steady, what limits
//! it, whether to trust it, and what it costs.
//!
//! At most [`LINES`] lines of [`WIDTH`] columns, of any kind of record. Reads records and a cost; no figure of its own but
//! medians over repeats and the sums of `price`.

mod figures;
mod price;

#[cfg(test)]
mod tests;

use crate::cost::Cost;
use crate::kinds;
use assay_measure::facts::{self, FactKey};
use assay_measure::kind::Headline;
use assay_measure::record::{Advice, Record, Truth};
use assay_measure::units::{fixed, shorten};

/// Most lines of a page.
pub const LINES: usize = 60;
/// Most columns of a line.
pub const WIDTH: usize = 100;

/// Findings shown in full.
const FINDINGS: usize = 2;
/// Most columns of a finding or a reason.
const LONG: usize = 420;

/// Renders the page of a run, or of repeats of one run: then a figure is the median with its range.
///
/// Empty for no record.
#[must_use]
pub fn render(records: &[&Record], cost: Option<&Cost>) -> String {
    let Some(first) = records.first() else {
        return String::new();
    };
    let headlines: Vec<Headline> = records
        .iter()
        .map(|record| kinds::of(record).headline(record))
        .collect();
    let mut page = Page::default();
    title(&mut page, records, first);
    page.part("What was tested", &tested(records, first, &headlines));
    for (title, text) in figures::rows(&headlines) {
        page.item(title, &text);
    }
    page.part("Steadiness", &steadiness(&headlines));
    page.line("");
    limits(&mut page, records, cost);
    page.part("Can it be trusted", &trust(records));
    match cost {
        Some(cost) => price::section(&mut page, cost),
        None => page.part(
            "Price",
            "n/a (no prices were given: --cost prices.toml; `assay cost --example` prints such a file)",
        ),
    }
    page.finish()
}

/// Lines within the page's width.
#[derive(Default)]
struct Page {
    lines: Vec<String>,
}

/// The title of the findings.
const LIMITS: &str = "What limits it";
/// Width of the left column.
const LEFT: usize = 18;

impl Page {
    fn line(&mut self, text: &str) {
        self.lines
            .push(plain_words(&shorten(text.trim_end(), WIDTH)));
    }

    /// A title at the left, its sentences wrapped at the right.
    fn part(&mut self, title: &str, text: &str) {
        self.line("");
        self.item(title, text);
    }

    fn item(&mut self, title: &str, text: &str) {
        let mut line = format!("{title:<LEFT$}");
        let mut is_empty = true;
        for word in text.split_whitespace() {
            let word = shorten(word, WIDTH - LEFT);
            if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line = " ".repeat(LEFT);
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(&word);
            is_empty = false;
        }
        if !line.trim().is_empty() {
            self.line(&line);
        }
    }

    /// The whole page; what is beyond its last line is said to be missing.
    fn finish(mut self) -> String {
        if self.lines.len() > LINES {
            self.lines.truncate(LINES - 1);
            self.line("(cut here; `assay report RUN` and `assay cost RUN` have the rest)");
        }
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }
}

/// A page never carries the name of a council's metric: a run of ours, or of a tool alike, is not one of theirs.
fn plain_words(line: &str) -> String {
    const NAMES: [(&str, &str); 6] = [
        ("tpmc", "new orders/min"),
        ("qphh", "queries/h"),
        ("qphds", "queries/h"),
        ("spc-1", "storage"),
        ("tpc-", "public-"),
        ("tpse", "transactions/s"),
    ];
    let mut line = line.to_owned();
    for (name, ours) in NAMES {
        while let Some(at) = line.to_ascii_lowercase().find(name) {
            line.replace_range(at..at + name.len(), ours);
        }
    }
    line
}

fn title(page: &mut Page, records: &[&Record], first: &Record) {
    let run = &first.run;
    let label = run
        .label
        .as_ref()
        .map_or_else(String::new, |label| format!(" \"{label}\""));
    let which = match records.len() {
        1 => format!("run {}{label}", run.id),
        repeats => format!("{repeats} repeats{label}, first run {}", run.id),
    };
    let day = run
        .started
        .get(..10)
        .filter(|day| !day.is_empty())
        .unwrap_or("date n/a");
    let line = format!("BRIEF  {} on {}, {which}, {day}", run.workload, run.engine);
    page.line(&line);
    page.line(&"=".repeat(shorten(&line, WIDTH).chars().count()));
}

/// One paragraph.
fn tested(records: &[&Record], record: &Record, headlines: &[Headline]) -> String {
    let mut text = headlines
        .first()
        .map_or_else(String::new, |headline| headline.tested.clone());
    if let [_, _, ..] = records {
        text.push_str(&format!(
            " It was run {} times; figures are the median of the repeats with their range.",
            records.len()
        ));
    }
    if let Some(import) = &record.import {
        text.push_str(&format!(
            " Figures were read from the output of {} ({}), not measured here.",
            import.tool, import.format
        ));
    }
    let fact = |key: FactKey| {
        let found = key.find(&record.host.facts);
        found.or_else(|| key.find(&record.plan.engine_facts))
    };
    let memory = fact(facts::MEMORY_BYTES).and_then(|bytes| bytes.parse::<u64>().ok());
    let host = [
        fact(facts::HOSTNAME).map(str::to_owned),
        fact(facts::PRODUCT).map(str::to_owned),
        fact(facts::CPUS).map(|cpus| format!("{cpus} CPUs")),
        fact(facts::CPU_MODEL).map(str::to_owned),
        memory.map(|bytes| format!("{} GiB of memory", fixed(bytes as f64 / 1_073_741_824.0, 1))),
        fact(facts::VIRTUALISATION).map(|kind| format!("virtualisation {kind}")),
        fact(facts::DISK_MODEL)
            .or(fact(facts::DISK))
            .map(|disk| format!("disk {disk}")),
    ];
    let host: Vec<String> = host.into_iter().flatten().collect();
    if !host.is_empty() {
        text.push_str(&format!(" Host: {}.", host.join(", ")));
    }
    text
}

/// The verdict on steadiness, and how it was reached.
fn steadiness(headlines: &[Headline]) -> String {
    let mut texts: Vec<&str> = headlines
        .iter()
        .map(|headline| headline.steadiness.as_str())
        .collect();
    let Some(first) = texts.first().copied() else {
        return String::new();
    };
    let good = texts
        .iter()
        .filter(|text| text.starts_with("steady"))
        .count();
    texts.dedup();
    match texts.len() {
        1 => first.to_owned(),
        _ => format!(
            "{good} of {} repeats were steady. First: {first}",
            headlines.len()
        ),
    }
}

/// The weightiest findings; of repeats those of the first run that has any, and in how many they are.
fn limits(page: &mut Page, records: &[&Record], cost: Option<&Cost>) {
    let mut found: Vec<Advice> = cost.map_or_else(Vec::new, |cost| crate::cost::findings(&[cost]));
    for record in records {
        for advice in &record.advice {
            if !found.iter().any(|other| other.id == advice.id) {
                found.push(advice.clone());
            }
        }
    }
    found.sort_by_key(|advice| advice.severity != "high");
    if found.is_empty() {
        page.item(
            LIMITS,
            "No rule found a limit; a sweep (assay sweep) shows where throughput stops to rise.",
        );
    }
    for (at, advice) in found.iter().take(FINDINGS).enumerate() {
        let having = records
            .iter()
            .filter(|record| record.advice.iter().any(|other| other.id == advice.id))
            .count();
        let often = match records.len() {
            1 => String::new(),
            repeats => format!(" (in {having} of {repeats} repeats)"),
        };
        let text = format!("{}: {}{often}", advice.id, shorten(&advice.text, LONG));
        page.item(if at == 0 { LIMITS } else { "" }, &text);
    }
    let more: Vec<&str> = found
        .iter()
        .skip(FINDINGS)
        .map(|advice| advice.id.as_str())
        .collect();
    if !more.is_empty() {
        page.item(
            "",
            &format!("Also: {}; the report has them.", more.join(", ")),
        );
    }
}

/// Verdict, identities, length, warnings.
fn trust(records: &[&Record]) -> String {
    let mut parts = Vec::new();
    let mut verdicts: Vec<&str> = records
        .iter()
        .map(|record| record.run.verdict.as_str())
        .collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    let reasons: Vec<&str> = (records.iter())
        .flat_map(|record| record.run.verdict_reasons.iter().map(String::as_str))
        .collect();
    let why = match reasons.first() {
        Some(reason) => format!(" ({})", shorten(reason, 160)),
        None => String::new(),
    };
    parts.push(format!("Verdict: {}{why}.", verdicts.join(", ")));
    let count = |is: fn(&Truth) -> bool| {
        let all = records.iter().flat_map(|record| &record.integrity);
        all.filter(|identity| is(&identity.ok)).count()
    };
    let (held, violated) = (
        count(|ok| *ok == Truth::Holds),
        count(|ok| *ok == Truth::Violated),
    );
    let first = records
        .iter()
        .flat_map(|record| assay_measure::identity::violated(record))
        .next();
    parts.push(match (held + violated, first) {
        (0, _) => "Its numbers could not be checked against each other.".to_owned(),
        (_, None) => format!("{held} checks of its numbers against each other hold, none is violated."),
        (_, Some(identity)) => format!(
            "{violated} of {} checks of its numbers against each other are violated, first {} ({}): do not quote figures they name.",
            held + violated,
            identity.id,
            shorten(&identity.rule, 80)
        ),
    });
    let seconds: f64 = records
        .iter()
        .filter_map(|record| record.interval.elapsed_s.value())
        .fold(f64::INFINITY, f64::min);
    if seconds.is_finite() && seconds < 300.0 {
        parts.push(format!(
            "The window of {} s is short: it shows what the platform can do, not what it does all day.",
            fixed(seconds, 0)
        ));
    }
    if records.len() == 1 {
        parts.push("One run: how much it differs from the next is not known.".to_owned());
    }
    let warnings: usize = records.iter().map(|record| record.warnings.len()).sum();
    let first = records.iter().flat_map(|record| &record.warnings).next();
    if let Some(first) = first {
        parts.push(format!(
            "{warnings} warning(s), first: {}",
            shorten(first, 220)
        ));
    }
    parts.join(" ")
}
