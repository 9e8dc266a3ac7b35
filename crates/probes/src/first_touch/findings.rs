//! What follows from the first reads, in plain words.

use super::estimate::{BESIDE, CHANCE, EVERYWHERE, LEAST_PAIRS, MOST_NOISE, SLOW_TIMES, SLOW_US};
use super::info::FirstTouchInfo;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::units::{fixed, many, size, thousands};

/// Cold from this part on is high, %. Decided here: then more than one first read in a hundred is slow, which is a p99.
const HIGH_PCT: f64 = 1.0;

/// The rules with what judges them, in the order in which findings are read.
pub(super) const RULES: &Judges<FirstTouchInfo> = &[(COLD, cold), (UNKNOWN, unknown), (PARTLY, partly)];

pub(super) const COLD: Rule = Rule {
    id: "FT1",
    title: "Blocks are cold: their first read is slow",
    changes_figures: false,
    fires_when: || {
        format!(
            "Of three reads (a block, the same block, one beside it) the first is slow (more than {SLOW_TIMES} times the median second read of the \
             region, and {SLOW_US} us more than it) so much more often than the last that noise, which may make it half as often again, explains it with a chance below {CHANCE}; high where \
             more than {HIGH_PCT} % is cold"
        )
    },
    why: "A volume restored from a snapshot is fetched as it is read; a thin or tiered one is filled or promoted. Until that is done, queries \
          wait, and tests measure the restore instead of the disk.",
    what_to_do: "Read the cold part in advance with --hydrate RATE, or wait until the provider has; then measure.",
    cannot_judge_when: "FT2 fires.",
    source: "Decided here.",
};

fn cold(_: &Record, info: &FirstTouchInfo) -> Option<Advice> {
    let pct = info.cold_pct.value().filter(|_| info.is_cold())?;
    let text = format!(
        "{}: of {} blocks {} were slow when they were first read and quick afterwards; {} were the other way round, which is noise.",
        info.how_much(),
        thousands(info.blocks_count),
        thousands(info.as_cold_count),
        thousands(info.reversed_count)
    );
    let evidence = [("cold_pct", pct)];
    // Nothing is left to do about what has been read.
    Some(if info.is_hydrated() {
        COLD.finding(false, text, &evidence)
    } else {
        COLD.explain(pct > HIGH_PCT, text, &evidence)
    })
}

pub(super) const UNKNOWN: Rule = Rule {
    id: "FT2",
    title: "Whether anything is cold cannot be told",
    changes_figures: true,
    fires_when: || {
        format!(
            "Nothing can be read, or not past the page cache; fewer than {LEAST_PAIRS} blocks were read; more than {} % of the second reads were \
             slow; or {} % of the first reads were slow, and so were more than {} % of the blocks beside; always high",
            fixed(100.0 * MOST_NOISE, 0),
            fixed(100.0 * EVERYWHERE, 0),
            fixed(100.0 * BESIDE, 0)
        )
    },
    why: "A cache that answers second reads looks like coldness, and so does noise.",
    what_to_do: "Where the host is busy, try again when it is quiet. Where all first reads are slow, read a part in advance, wait until \
                 caches have lost it, and test that part again: what is quick then was cold.",
    cannot_judge_when: "Never: the reads tell.",
    source: "Decided here.",
};

fn unknown(_: &Record, info: &FirstTouchInfo) -> Option<Advice> {
    let evidence = [("blocks_count", info.blocks_count as f64)];
    info.is_unknown().then(|| {
        // Nothing came from a device: neither noise nor a cache is the matter.
        if info.blocks_count == info.cached_count {
            let text = format!("Nothing was read from a device: {}. Name a block device, or files on one, as a user who may read them.", info.why);
            return UNKNOWN.finding(true, text, &evidence);
        }
        UNKNOWN.explain(true, format!("{}: {}.", info.path, info.why), &evidence)
    })
}

const PARTLY: Rule = Rule {
    id: "FT3",
    title: "Not all files were looked into",
    changes_figures: true,
    fires_when: || {
        "Files could not be opened, or there are more than are opened at once (the largest ones are)".to_owned()
    },
    why: "What is said holds for the files that were read.",
    what_to_do: "Name the block device, or a directory further down; run as a user who may read them.",
    cannot_judge_when: "Never: the files are counted.",
    source: "Decided here.",
};

fn partly(_: &Record, info: &FirstTouchInfo) -> Option<Advice> {
    let (files, bytes) = (info.files_left_out, info.left_out_bytes);
    let text = format!("{} of {} were not read.", many(files, "file"), size(bytes));
    (files > 0).then(|| PARTLY.explain(bytes > info.data_bytes, text, &[("files_left_out", files as f64)]))
}
