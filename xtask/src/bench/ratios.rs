//! Ratios kept in a file, and this machine's ratios beside those of another day: a slow-down is seen.
//!
//! Only ratios are kept, each pair by itself: the device and the clock of the day are in both of their terms.

use super::figures::median;
use super::print::{Pairs, figure};
use anyhow::{Context, Result, bail, ensure};
use assay_measure::statistics::{ALPHA, Difference, Sample, holm};
use serde::{Deserialize, Serialize};
use std::path::Path;

const FORMAT: &str = "assay-bench/1";
/// The power for which the smallest visible change is told.
const POWER: f64 = 0.8;

/// The ratios of one row of a table.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Ratios {
    /// The bench, its part and the quantity with its unit.
    row: String,
    /// The ratio asked for, in words; empty where none is.
    goal: String,
    /// Ours divided by theirs, pair by pair.
    ratios: Vec<f64>,
    /// The yardstick's median: the mood of the machine.
    peer: f64,
}

/// What `--save` writes.
#[derive(Debug, Deserialize, Serialize)]
struct File {
    format: String,
    rows: Vec<Ratios>,
}

impl Ratios {
    /// Those of a row of a bench or a part of one; `None` where a figure is missing.
    pub(crate) fn of((place, pairs): &(String, Pairs)) -> Option<Self> {
        let ratios = pairs.ratios();
        let sound = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
        (!ratios.is_empty() && ratios.iter().all(sound)).then(|| Self {
            row: format!("{place}: {}", pairs.name),
            goal: pairs.goal.clone(),
            ratios,
            peer: median(&pairs.theirs),
        })
    }

    /// Whether a larger ratio is the better one, as far as the goal says.
    fn larger_is_better(&self) -> Option<bool> {
        match self.goal.get(..2) {
            Some(">=") => Some(true),
            Some("<=") => Some(false),
            _ => None,
        }
    }
}

/// Reads what `--save` wrote.
///
/// # Errors
/// A file that cannot be read, or is none of these.
pub(crate) fn read(path: &Path) -> Result<Vec<Ratios>> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(name)?;
    let file: File = serde_json::from_str(&text).with_context(name)?;
    ensure!(file.format == FORMAT, "{}: the format is `{}`, and this reads `{FORMAT}`", name(), file.format);
    Ok(file.rows)
}

/// Writes a new file.
///
/// # Errors
/// A file that is there already or cannot be written.
pub(crate) fn save(path: &Path, rows: &[Ratios]) -> Result<()> {
    let file = File { format: FORMAT.to_owned(), rows: rows.to_vec() };
    let out = std::fs::File::create_new(path).with_context(|| path.display().to_string())?;
    serde_json::to_writer_pretty(out, &file)?;
    Ok(())
}

/// What became of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    NoChangeSeen,
    Better,
    Worse,
    /// Changed, and no goal says which way is the better one.
    Changed,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::NoChangeSeen => "no change seen",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Changed => "changed",
        }
    }
}

/// One row then and now.
struct Change<'a> {
    then: &'a Ratios,
    now: &'a Ratios,
    /// Of the logarithms of the ratios: a factor up weighs as much as the same factor down.
    difference: Difference,
}

impl Change<'_> {
    fn verdict(&self, corrected_p: f64) -> Verdict {
        if corrected_p >= ALPHA {
            return Verdict::NoChangeSeen;
        }
        match self.now.larger_is_better() {
            None => Verdict::Changed,
            Some(larger) if larger == (self.difference.estimate > 0.0) => Verdict::Better,
            Some(_) => Verdict::Worse,
        }
    }
}

/// Rows that both have with at least two pairs: with fewer there is no spread.
fn changes<'a>(then: &'a [Ratios], now: &'a [Ratios]) -> Vec<Change<'a>> {
    let logarithms = |row: &Ratios| -> Vec<f64> { row.ratios.iter().map(|ratio| ratio.ln()).collect() };
    let pair = |now: &'a Ratios| {
        let then = then.iter().find(|then| then.row == now.row)?;
        (then.ratios.len() > 1 && now.ratios.len() > 1).then(|| Change {
            then,
            now,
            difference: Difference::welch(
                &Sample::independent(&logarithms(then)),
                &Sample::independent(&logarithms(now)),
            ),
        })
    };
    now.iter().filter_map(pair).collect()
}

/// Prints each row then and now with its verdict.
///
/// # Errors
/// Nothing to compare, or a row that became worse.
pub(crate) fn compare(path: &Path, then: &[Ratios], now: &[Ratios]) -> Result<()> {
    println!("\n== ratios against {}", path.display());
    let changes = changes(then, now);
    if changes.is_empty() {
        bail!("no row with at least two pairs is in both: --pairs 5 of the same benches");
    }
    let p_values: Vec<f64> = changes.iter().map(|c| c.difference.p_value()).collect();
    println!(
        "{:<72} {:>7} {:>7} {:>8} {:>19} {:>8}  {:<15} peer then, now",
        "median ratio", "then", "now", "change", "95 % interval", "visible", "verdict"
    );
    let mut worse = 0;
    for (change, corrected_p) in changes.iter().zip(holm(&p_values)) {
        let verdict = change.verdict(corrected_p);
        worse += usize::from(verdict == Verdict::Worse);
        print_change(change, verdict);
    }
    println!(
        "(Welch's test of the logarithms of the ratios, Holm's correction over {} rows, {ALPHA} in all; \"visible\" is the \
         change of one row alone that would be seen in {:.0} of 100 tries)",
        changes.len(),
        100.0 * POWER
    );
    if worse > 0 {
        bail!("{worse} of {} ratios became worse", changes.len());
    }
    Ok(())
}

fn print_change(change: &Change<'_>, verdict: Verdict) {
    let pct = |logarithm: f64| 100.0 * logarithm.exp_m1();
    let difference = &change.difference;
    let (low, high) = difference.interval(1.0 - ALPHA);
    println!(
        "{:<72} {:>7.3} {:>7.3} {:>+7.1}% {:>19} {:>7.1}%  {:<15} {}, {}",
        change.now.row,
        median(&change.then.ratios),
        median(&change.now.ratios),
        pct(difference.estimate),
        format!("{:+.1}% to {:+.1}%", pct(low), pct(high)),
        pct(difference.detectable(ALPHA, POWER)),
        verdict.word(),
        figure(change.then.peer),
        figure(change.now.peer)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(goal: &str, ratios: &[f64]) -> Ratios {
        Ratios { row: "physical: reads/s".to_owned(), goal: goal.to_owned(), ratios: ratios.to_vec(), peer: 50_000.0 }
    }

    fn verdict(goal: &str, then: &[f64], now: &[f64]) -> Verdict {
        let (then, now) = ([row(goal, then)], [row(goal, now)]);
        let changes = changes(&then, &now);
        changes[0].verdict(changes[0].difference.p_value())
    }

    const ABOUT_ONE: [f64; 5] = [1.00, 1.02, 0.98, 1.01, 0.99];
    const TENTH_LESS: [f64; 5] = [0.90, 0.92, 0.88, 0.91, 0.89];

    #[test]
    fn a_slow_down_beyond_the_spread_is_seen_and_judged_by_the_goal() {
        assert_eq!(verdict(">= 0.97", &ABOUT_ONE, &TENTH_LESS), Verdict::Worse);
        assert_eq!(verdict("<= 1.0", &ABOUT_ONE, &TENTH_LESS), Verdict::Better);
        assert_eq!(verdict("", &ABOUT_ONE, &TENTH_LESS), Verdict::Changed);
        let shaken = [0.5, 1.6, 0.7, 1.2, 0.9];
        assert_eq!(verdict(">= 0.97", &shaken, &TENTH_LESS), Verdict::NoChangeSeen);
    }

    #[test]
    fn one_pair_is_not_compared_and_nothing_in_common_is_an_error() {
        let (then, now) = ([row("", &[1.0])], [row("", &ABOUT_ONE)]);
        assert!(changes(&then, &now).is_empty());
        assert!(compare(Path::new("then.json"), &then, &now).is_err());
        let worse = [row(">= 1", &TENTH_LESS)];
        let error = compare(Path::new("then.json"), &now, &worse).unwrap_err();
        assert_eq!(error.to_string(), "1 of 1 ratios became worse");
    }

    #[test]
    fn what_is_saved_is_read_back_and_never_overwritten() {
        let dir = std::env::temp_dir().join(format!("assay-ratios-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("ratios.json");
        let rows = [row(">= 0.97", &ABOUT_ONE)];
        save(&path, &rows).unwrap();
        assert_eq!(read(&path).unwrap(), rows);
        assert!(save(&path, &rows).is_err());
        std::fs::write(&path, r#"{"format":"other/1","rows":[]}"#).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("other/1"), "{error}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_row_is_named_by_bench_part_and_quantity_and_needs_all_its_figures() {
        let (name, goal) = ("MB/s".to_owned(), ">= 0.9".to_owned());
        let mut pairs = Pairs { name, goal, ours: vec![2.0, 3.0], theirs: vec![1.0, 4.0] };
        let of = |pairs: &Pairs| Ratios::of(&("scan, depth 1".to_owned(), pairs.clone()));
        let row = of(&pairs).unwrap();
        assert_eq!(row.row, "scan, depth 1: MB/s");
        assert_eq!(row.ratios, [2.0, 0.75]);
        pairs.theirs[0] = f64::NAN;
        assert_eq!(of(&pairs), None);
    }
}
