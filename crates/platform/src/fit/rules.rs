//! What to heed of a fit.

use super::here::{FitStepRow, HELD};
use super::info::FitInfo;
use super::load::{CACHED, COMMITS, ELAPSED, MOSTLY_PCT, READS, REDO, WRITES};
use super::offer::MET;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::units::{fixed, short};

pub(super) const RULES: &Judges<FitInfo> = &[
    (MISSED, missed),
    (LONG, long),
    (DIFFERS, differs),
    (CELLS, cells),
    (MISSING, missing),
    (DISTURBED, disturbed),
    (KERNEL, kernel),
    (MEMORY, memory),
];

const MISSED: Rule = Rule {
    id: "F1",
    title: "This box does not hold the load",
    changes_figures: false,
    fires_when: || "At 1 x the rate was missed, or reads or commits took longer than there; always high".to_owned(),
    why: "The database would wait longer here than it did there.",
    what_to_do: "Read the limit of the step at 1 x; give the box what it says, and fit again.",
    cannot_judge_when: "Nothing was offered here: then the rule is silent.",
    source: "Decided here.",
};

fn missed(_: &Record, info: &FitInfo) -> Option<Advice> {
    let ratio = info.headroom_ratio.value().filter(|ratio| *ratio < 1.0)?;
    let step = info.steps.iter().find(|step| step.multiple == "1")?;
    let text = format!("At 1 x: {}.", step.missed);
    Some(MISSED.advise(true, text, &[("headroom_ratio", ratio)]))
}

/// From this interval on a mean hides the peak, s. Oracle's own interval is an hour.
const LONG_S: f64 = 2.0 * 3600.0;

const LONG: Rule = Rule {
    id: "F2",
    title: "The report's interval hides its peak",
    changes_figures: true,
    fires_when: || format!("The report is of more than {} hours; high from twice that", LONG_S / 3600.0),
    why: "The load is a mean: busy hours and quiet ones in one figure.",
    what_to_do: "Give the reports of the single hours: the peak is taken.",
    cannot_judge_when: "Every report says how long its interval is.",
    source: "Decided here: a repository usually has a snapshot an hour.",
};

fn long(_: &Record, info: &FitInfo) -> Option<Advice> {
    let seconds = value(info, ELAPSED).filter(|seconds| *seconds > LONG_S)?;
    let text = format!(
        "The report is of {} hours: the load is their mean, and the busiest hour had more.",
        fixed(seconds / 3600.0, 1)
    );
    Some(LONG.advise(seconds > 2.0 * LONG_S, text, &[("interval_s", seconds)]))
}

const DIFFERS: Rule = Rule {
    id: "F3",
    title: "The load that was offered is not the one that was derived",
    changes_figures: true,
    fires_when: || {
        format!(
            "A figure cannot be met with the rest, or at 1 x one differs here by more than {} %",
            fixed(100.0 * MET, 0)
        )
    },
    why: "The headroom is of the load that was offered.",
    what_to_do: "Look at the table of both; where less was offered than derived, take the headroom for less.",
    cannot_judge_when: "Nothing was offered here: then only what cannot be met is told.",
    source: "Decided here.",
};

fn differs(_: &Record, info: &FitInfo) -> Option<Advice> {
    let step = info.steps.iter().find(|step| step.multiple == "1" && step.held == HELD);
    // A figure that was met by plan and is another here; of a step that missed its rate everything is less.
    let here = info.sides.iter().filter(|row| step.is_some() && [READS, WRITES, COMMITS].contains(&row.side.as_str()));
    let here = here.filter(|row| row.ratio.value().is_some_and(|ratio| (ratio - 1.0).abs() > MET));
    let told = here.map(|row| {
        let of = |value: Option<f64>| value.map_or_else(|| "n/a".to_owned(), short);
        format!("{}: {} there, {} here", row.side, of(row.there_value.value()), of(row.here_value.value()))
    });
    let all: Vec<String> = info.unmet.iter().cloned().chain(told).collect();
    (!all.is_empty())
        .then(|| DIFFERS.advise(false, format!("{}.", all.join(". ")), &[("figures_count", all.len() as f64)]))
}

const CELLS: Rule = Rule {
    id: "F4",
    title: "The storage there worked for the database",
    changes_figures: false,
    fires_when: || "The report counts work of storage cells (offload, storage indexes, flash cache)".to_owned(),
    why: "Another storage filters nothing: the host reads all of it, and the latencies there are those of the cells' cache.",
    what_to_do: "Look at the table of what cannot be carried over; plan for the bytes that were eligible for the offload.",
    cannot_judge_when: "The report has no statistics of cells: then the rule is silent.",
    source: "Decided here.",
};

fn cells(_: &Record, info: &FitInfo) -> Option<Advice> {
    let rows: Vec<String> =
        info.not_carried.iter().map(|row| format!("{}: {}, here {}", row.there, row.amount, row.here)).collect();
    (!rows.is_empty())
        .then(|| CELLS.advise(false, format!("{}.", rows.join("; ")), &[("rows_count", rows.len() as f64)]))
}

const MISSING: Rule = Rule {
    id: "F5",
    title: "The report lacks a figure of the load",
    changes_figures: false,
    fires_when: || {
        "Reads, writes, commits or redo per second are n/a; high where nothing can be offered without it".to_owned()
    },
    why: "Nothing is put in the place of a figure that is missing.",
    what_to_do: "Give the whole report, as text or HTML, not a part of it.",
    cannot_judge_when: "It always judges.",
    source: "Decided here.",
};

fn missing(_: &Record, info: &FitInfo) -> Option<Advice> {
    let lacking = |name: &&str| value(info, name).is_none();
    let names: Vec<&str> = [READS, WRITES, COMMITS, REDO].into_iter().filter(lacking).collect();
    let text = || format!("The report lacks {}.", names.join(", "));
    (!names.is_empty()).then(|| MISSING.advise(info.offer.is_empty(), text(), &[("figures_count", names.len() as f64)]))
}

fn value(info: &FitInfo, name: &str) -> Option<f64> {
    info.load.iter().find(|row| row.figure == name)?.derived_value.value()
}

const DISTURBED: Rule = Rule {
    id: "F6",
    title: "Others used this host while the load was offered",
    changes_figures: true,
    fires_when: || {
        "Other processes or the hypervisor took much of the CPUs during a step; high at the load as it is".to_owned()
    },
    why: "Rates and latencies are of what they left: an idle box holds more.",
    what_to_do: "Fit again when the host is quiet.",
    cannot_judge_when: "The kernel does not tell who used the CPUs: then the rule is silent.",
    source: "The limits are those of every record.",
};

fn disturbed(_: &Record, info: &FitInfo) -> Option<Advice> {
    let steps: Vec<_> = info.steps.iter().filter(|step| !step.disturbed.is_empty()).collect();
    let told: Vec<String> = steps.iter().map(|step| format!("at {} x {}", step.multiple, step.disturbed)).collect();
    let is_high = steps.iter().any(|step| step.multiple == "1");
    let text = || format!("While the load was offered, {}.", told.join(", "));
    (!told.is_empty()).then(|| DISTURBED.advise(is_high, text(), &[("steps_count", steps.len() as f64)]))
}

const KERNEL: Rule = Rule {
    id: "F7",
    title: "The page cache of the kernel answered the reads there",
    changes_figures: true,
    fires_when: || format!("At least {MOSTLY_PCT} % of the bytes read there came from no device"),
    why: "The server counts what it asks of the kernel; the device there saw less, and the device here is asked for all of it.",
    what_to_do: "Take the headroom for a box with no memory to spare; one with as much as there has more.",
    cannot_judge_when: "The report does not tell, and reads there took as long as a device's.",
    source: "Decided here.",
};

fn kernel(_: &Record, info: &FitInfo) -> Option<Advice> {
    let pct = value(info, CACHED).filter(|pct| *pct >= MOSTLY_PCT)?;
    let reads = value(info, READS).map_or_else(String::new, |reads| format!(" of {} reads/s", short(reads)));
    let text =
        format!("The page cache answered {} %{reads} there; here all of them are asked of the device.", fixed(pct, 0));
    Some(KERNEL.advise(false, text, &[("page_cache_pct", pct)]))
}

const MEMORY: Rule = Rule {
    id: "F8",
    title: "The page cache of this box answered the reads",
    changes_figures: true,
    fires_when: || format!("Of a step, at least {MOSTLY_PCT} % of the bytes read came from no device; always high"),
    why: "The headroom is of this box's memory: storage was hardly asked.",
    what_to_do: "Give a --size beyond this box's memory; or leave --target out, since the native target reads past the page cache.",
    cannot_judge_when: "The server runs on another host: then nobody tells.",
    source: "Decided here.",
};

fn memory(_: &Record, info: &FitInfo) -> Option<Advice> {
    let cached = |step: &FitStepRow| step.page_cache_pct.value().filter(|pct| *pct >= MOSTLY_PCT);
    let (step, pct) = info.steps.iter().find_map(|step| Some((step, cached(step)?)))?;
    let text = format!(
        "At {} x the page cache here answered {} % of the bytes read, and no device.",
        step.multiple,
        fixed(pct, 0)
    );
    Some(MEMORY.advise(true, text, &[("page_cache_pct", pct)]))
}
