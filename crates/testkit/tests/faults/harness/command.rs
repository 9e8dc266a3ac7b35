//! The harness by words: what `cargo xtask faults` runs from the command line, and the tests in part.

use super::{BUGS, Base, Failure, Harness, Searched, Tally, WORKLOADS};
use assay_testkit::sim::FAULT_KINDS;
use std::fmt::Arguments;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Takes a line.
pub(crate) type Say<'a> = dyn FnMut(Arguments<'_>) + 'a;

const USAGE: &str = "\
usage: faults --seed N               run one seed and say what happens in it
       faults --seeds A..B           run seeds A to B-1 on all CPUs; each fault kind must hit
       faults --exhaustive [A..B]    every cut of the scripted workloads (0..50)
       faults --planted [MOST]       each planted bug must be found within MOST seeds (6000)";

/// Seeds that a thread takes at a time.
const SHARE: u64 = 50;

/// What the words ask for.
enum Task {
    One(u64),
    Campaign(Range<u64>),
    Exhaustive(Range<u64>),
    Planted(u64),
}

/// Does what the words ask for over data sets made below `dir`, and says what came of it, line by line; whether all is well.
///
/// # Errors
/// Words that mean nothing, with the usage, before anything is made; a directory that cannot be written.
pub(crate) fn command(dir: &Path, words: &[&str], say: &mut Say<'_>) -> Result<bool, String> {
    let task = task(words)?;
    let prepare = |log_block| {
        let path = dir.join(format!("log-block-{log_block}"));
        Base::prepare(&path, log_block).map_err(|error| error.to_string())
    };
    let bases = [prepare(512)?, prepare(4096)?];
    let harness = Harness::new(&bases);
    Ok(match task {
        Task::One(seed) => one(&harness, seed, say),
        Task::Campaign(seeds) => campaign(&harness, seeds, say),
        Task::Exhaustive(workloads) => exhaustive(&harness, workloads, say),
        Task::Planted(most) => planted(&harness, most, say),
    })
}

fn task(words: &[&str]) -> Result<Task, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is no number\n{USAGE}"));
    let range = |text: &str| {
        let (from, to) = text.split_once("..").ok_or(format!("`{text}` is no range A..B\n{USAGE}"))?;
        Ok::<_, String>(number(from)?..number(to)?)
    };
    Ok(match words {
        ["--seed", seed] => Task::One(number(seed)?),
        ["--seeds", seeds] => Task::Campaign(range(seeds)?),
        ["--exhaustive"] => Task::Exhaustive(0..WORKLOADS),
        ["--exhaustive", workloads] => Task::Exhaustive(range(workloads)?),
        ["--planted"] => Task::Planted(6000),
        ["--planted", most] => Task::Planted(number(most)?),
        _ => return Err(USAGE.to_owned()),
    })
}

fn one(harness: &Harness<'_>, seed: u64, say: &mut Say<'_>) -> bool {
    let outcome = harness.run(seed..seed + 1, true, &mut Tally::default());
    let (lines, good) = match outcome {
        Ok(lines) => (lines, true),
        Err(failure) => {
            let mut lines = failure.trace.clone();
            lines.push(format!("seed {seed} FAILED: {}", failure.text));
            (lines, false)
        }
    };
    for line in lines {
        say(format_args!("{line}"));
    }
    good
}

/// Does `share` with pieces of the range on all CPUs until one fails.
fn on_all_cpus<T: Default + Send>(
    range: &Range<u64>,
    step: u64,
    share: impl Fn(Range<u64>, &mut T) -> Result<(), Failure> + Sync,
    add: impl Fn(&mut T, &T) + Sync,
) -> (T, Option<Failure>) {
    let next = AtomicU64::new(range.start);
    let sum = Mutex::new((T::default(), None::<Failure>));
    let locked = || sum.lock().unwrap_or_else(PoisonError::into_inner);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                loop {
                    let from = next.fetch_add(step, Ordering::Relaxed);
                    if from >= range.end || locked().1.is_some() {
                        return;
                    }
                    let mut mine = T::default();
                    let outcome = share(from..range.end.min(from + step), &mut mine);
                    let mut sum = locked();
                    add(&mut sum.0, &mine);
                    if let Err(failure) = outcome {
                        sum.1.get_or_insert(failure);
                    }
                }
            });
        }
    });
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn campaign(harness: &Harness<'_>, seeds: Range<u64>, say: &mut Say<'_>) -> bool {
    let begun = Instant::now();
    let (tally, failure) =
        on_all_cpus(&seeds, SHARE, |seeds, tally: &mut Tally| harness.run(seeds, false, tally).map(drop), Tally::add);
    say(format_args!("fault                  hits"));
    for (kind, hits) in FAULT_KINDS.iter().zip(tally.hits) {
        say(format_args!("{:<20} {hits:>6}", kind.name()));
    }
    say(format_args!(
        "\n{} runs of the engine: {} closed, {} stopped by an error, the rest cut; {} recoveries, {} more cut off",
        tally.runs, tally.closed, tally.stopped, tally.recoveries, tally.recoveries_cut
    ));
    say(format_args!(
        "{} acknowledged transactions: all there but {} of COMMIT_MODE=none; {} in doubt, {} of them whole, the others absent",
        tally.acknowledged, tally.lost_unwaited, tally.in_doubt, tally.in_doubt_kept
    ));
    say(format_args!(
        "destroyed bytes: {} times named, {} times harmless or repaired; beyond knowledge: {} stale homes of misdirected writes, {} last log writes",
        tally.detected, tally.harmless, tally.stale_homes, tally.last_flushes
    ));
    let seconds = begun.elapsed().as_secs_f64();
    say(format_args!(
        "{} data sets also judged by `check`; {} seeds in {seconds:.1} s, {:.0} seeds/s",
        tally.checked,
        tally.seeds,
        tally.seeds as f64 / seconds
    ));
    if let Some(failure) = failure {
        say(format_args!("seed {} FAILED: {}", failure.seed, failure.text));
        say(format_args!("say it again with: cargo xtask faults --seed {}", failure.seed));
        return false;
    }
    let missed = FAULT_KINDS.iter().zip(tally.hits).filter(|(_, hits)| *hits == 0);
    let missed: Vec<&str> = missed.map(|(kind, _)| kind.name()).collect();
    if !missed.is_empty() {
        say(format_args!("FAILED: never hit: {}", missed.join(", ")));
    }
    missed.is_empty()
}

fn exhaustive(harness: &Harness<'_>, workloads: Range<u64>, say: &mut Say<'_>) -> bool {
    let begun = Instant::now();
    let (searched, failure) = on_all_cpus(
        &workloads,
        1,
        |workloads, searched: &mut Searched| harness.search(workloads, searched),
        Searched::add,
    );
    say(format_args!(
        "{} workloads, the power cut at {} instants, {} subsets of up to {} un-synced sectors recovered and judged in {:.1} s",
        searched.workloads,
        searched.instants,
        searched.cuts,
        searched.most_units,
        begun.elapsed().as_secs_f64()
    ));
    let Some(failure) = failure else { return true };
    let number = failure.seed;
    say(format_args!("workload {number} FAILED: {}", failure.text));
    say(format_args!("say it again with: cargo xtask faults --exhaustive {number}..{}", number + 1));
    false
}

fn planted(harness: &Harness<'_>, most: u64, say: &mut Say<'_>) -> bool {
    say(format_args!("planted bug              found by seed"));
    let mut all = true;
    for bug in BUGS {
        let name = format!("{bug:?}");
        match harness.hunt(bug, 0..most) {
            Some(failure) => {
                let text: String = failure.text.chars().take(100).collect();
                say(format_args!("{name:<24} {:>6}  {text}", failure.seed));
            }
            None => {
                say(format_args!("{name:<24} NOT FOUND in {most} seeds"));
                all = false;
            }
        }
    }
    all
}
