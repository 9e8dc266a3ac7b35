//! The tables the benches print.

use super::figures::{self, Figures, median};
use super::spec::{Run, Shown};

/// The shots of every round: that of the setup, then one of each run; empty where a tool is absent.
pub(super) type Rounds = [Vec<Figures>];

fn computed(rounds: &Rounds, run: usize, expression: &str) -> Vec<f64> {
    rounds.iter().map(|shots| figures::compute(expression, run, shots)).collect()
}

/// One quantity of ours beside theirs, pair by pair.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// What it is, with its unit.
    pub(super) name: String,
    /// The ratio asked for, in words.
    pub(super) goal: String,
    /// Ours, in order of measurement.
    pub(super) ours: Vec<f64>,
    /// The yardstick's.
    pub(super) theirs: Vec<f64>,
}

impl Pairs {
    /// A row of a table: its name, its goal, the expression of ours, and that of theirs if it is another.
    pub(super) fn of(row: &[String], [ours, theirs]: [usize; 2], rounds: &Rounds) -> Self {
        let cell = |at: usize| row.get(at).map_or("", String::as_str);
        let other = if row.len() > 3 { 3 } else { 2 };
        Self {
            name: cell(0).to_owned(),
            goal: cell(1).to_owned(),
            ours: computed(rounds, ours, cell(2)),
            theirs: computed(rounds, theirs, cell(other)),
        }
    }

    /// Ours divided by theirs, pair by pair: drift of the machine falls out of it.
    pub(super) fn ratios(&self) -> Vec<f64> {
        self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours / theirs).collect()
    }
}

/// Prints a table; returns its rows if they are pairs.
pub(super) fn table(shown: &Shown, runs: &[Run], rounds: &Rounds) -> Vec<Pairs> {
    let rows: Vec<Pairs> = shown.rows.iter().map(|row| Pairs::of(row, shown.sides, rounds)).collect();
    if !shown.title.is_empty() {
        println!("{}", fill(&shown.title, rounds, figure));
    }
    let kept = match &shown.head[..] {
        _ if !shown.columns.is_empty() => {
            lines(shown, runs, rounds);
            Vec::new()
        }
        _ if rows.is_empty() => rows,
        [alone] => {
            println!("{:<48} {alone:>12}  goal", "median");
            rows.iter().for_each(|row| println!("{:<48} {:>12}  {}", row.name, figure(median(&row.ours)), row.goal));
            Vec::new()
        }
        head => {
            let [ours, theirs] = std::array::from_fn(|side| {
                head.get(side).map_or_else(|| runs[shown.sides[side] - 1].name.as_str(), String::as_str)
            });
            pairs([ours, theirs], &rows);
            // Where the yardstick is another program, it tells the mood of the machine.
            let (low, high) = range(&rows[0].theirs);
            if !runs[shown.sides[1] - 1].command.starts_with("{assay}") && low.is_finite() {
                println!("(mood of this machine, {} of {theirs}: {} to {})", rows[0].name, figure(low), figure(high));
            }
            rows
        }
    };
    shown.notes.iter().for_each(|note| println!("{}", fill(note, rounds, figure)));
    kept
}

/// Medians, the ratio with its spread over the pairs, and the goal.
fn pairs([ours, theirs]: [&str; 2], rows: &[Pairs]) {
    println!("{:<30} {ours:>14} {theirs:>14} {:>7} {:>15}  goal", "median", "ratio", "of the pairs");
    for row in rows {
        let ratios = row.ratios();
        let (low, high) = range(&ratios);
        println!(
            "{:<30} {:>14} {:>14} {:>7} {:>15}  {}",
            row.name,
            figure(median(&row.ours)),
            figure(median(&row.theirs)),
            figure(median(&ratios)),
            format!("{} - {}", figure(low), figure(high)),
            row.goal
        );
    }
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::NAN, f64::NAN), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// A line of medians for each run that has some.
fn lines(shown: &Shown, runs: &[Run], rounds: &Rounds) {
    let width = |head: &str| head.len().max(10);
    print!("{:<30}", shown.head.first().map_or("", String::as_str));
    shown.columns.iter().for_each(|[head, _]| print!(" {head:>0$}", width(head)));
    println!("{}", if runs.iter().any(|run| !run.goal.is_empty()) { "  goal" } else { "" });
    for (at, run) in runs.iter().enumerate().filter(|(_, run)| !run.name.is_empty()) {
        print!("{:<30}", run.name);
        for [head, expression] in &shown.columns {
            print!(" {:>1$}", figure(median(&computed(rounds, at + 1, expression))), width(head));
        }
        println!("{}{}", if run.goal.is_empty() { "" } else { "  " }, run.goal);
    }
}

/// Puts medians, or facts and constant counts as they were told, into a text: `{= expression}`.
pub(super) fn fill(text: &str, rounds: &Rounds, show: impl Fn(f64) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{= ") {
        let (expression, after) = behind.split_once('}').unwrap_or((behind, ""));
        let of = |shots: &Vec<Figures>| figures::named(expression, 1, shots).cloned();
        let fact = rounds.last().and_then(of);
        let is_constant = rounds.iter().all(|shots| of(shots) == fact);
        let is_count = |fact: &String| is_constant && fact.parse().is_ok_and(|count: u64| count < 1000);
        let value = fact.filter(|fact| fact.parse::<f64>().is_err() || is_count(fact));
        let value = value.unwrap_or_else(|| show(median(&computed(rounds, 1, expression))));
        out = out + before + &value;
        rest = after;
    }
    out + rest
}

/// Four significant digits or thousands separators.
pub(super) fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "n/a".to_owned();
    }
    if value.abs() < 1000.0 {
        return format!("{value:.3}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds() -> Vec<Vec<Figures>> {
        let shot = |value: &str| Figures::from([("x".to_owned(), value.to_owned())]);
        [["1", "2"], ["20", "20"], ["300", "200"]]
            .iter()
            .map(|[ours, theirs]| vec![shot("io_uring"), shot(ours), shot(theirs)])
            .collect()
    }

    #[test]
    fn the_ratio_is_taken_pair_by_pair_of_one_expression_or_of_two() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        assert_eq!(Pairs::of(&row(&["x", "", "x"]), [1, 2], &rounds()).ratios(), [0.5, 1.0, 1.5]);
        let two = Pairs::of(&row(&["x", ">= 1", "x", "x * 10"]), [2, 1], &rounds());
        assert_eq!((two.ours, two.theirs), (vec![2.0, 20.0, 200.0], vec![10.0, 200.0, 3000.0]));
        assert_eq!(two.goal, ">= 1");
    }

    #[test]
    fn a_text_is_filled_with_medians_and_facts() {
        assert_eq!(fill("{= x} and {= x@2 / 2}, {= x@0}{= y}", &rounds(), figure), "20.000 and 10.000, io_uringn/a");
        assert_eq!(fill("{= x}", &rounds()[1..2], figure), "20");
    }

    #[test]
    fn figures_are_grouped_by_thousands() {
        assert_eq!(figure(1_234_567.4), "1,234,567");
        assert_eq!(figure(999.5), "999.500");
        assert_eq!(figure(f64::NAN), "n/a");
    }
}
