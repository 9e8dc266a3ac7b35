//! What follows for a database, in plain words.

use super::costs::PAGE_BYTES;
use super::info::{Cut, DurabilityInfo, POWER};
use super::verdict::{self, LYING, VOLATILE};
use crate::rules::{of_one_host, one_host};
use crate::sync::{LEAST_US, PLATTER_US};
use assay_measure::record::{Advice, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::units::{fixed, many, size};

/// The rules with what judges them, in the order in which findings are read.
pub(super) const RULES: &Judges<DurabilityInfo> = &[
    (MISSING, missing),
    (KEEPS_NOTHING, keeps_nothing),
    (HERE, |_, info| one_host(&HERE, info.is_here)),
    (PLATTER, platter),
    (CACHED, cached),
    (TEARS, tears),
    (WHOLE, whole),
];

const HERE: Rule = of_one_host(
    "D7",
    "A cut of this host takes the journal of the witness along: only a kill of the writer can be judged.",
);

const MISSING: Rule = Rule {
    id: "D1",
    title: "Acknowledged writes are missing",
    changes_figures: false,
    fires_when: || {
        "A stamp whose sync had returned, and that the witness has, is lost, torn or not in its place; always high"
            .to_owned()
    },
    why: "A database on it loses commits that it had confirmed.",
    what_to_do: "Turn the write cache of the device or controller off, or take storage with power-loss protection, and cut again.",
    cannot_judge_when: "No stamps were read back.",
    source: "Each stamp is written, synced and acknowledged before the next.",
};

fn missing(_: &Record, info: &DurabilityInfo) -> Option<Advice> {
    let sum = |of: fn(&Cut) -> u64| info.cuts.iter().map(of).sum::<u64>();
    let (lost, torn, reordered) =
        (sum(|cut| cut.lost_count), sum(|cut| cut.torn_count), sum(|cut| cut.reordered_count));
    let overtaken = match sum(|cut| cut.overtaken_count) {
        0 => String::new(),
        some => format!(" ({some} of them older than one that is there: the order of writes was not kept)"),
    };
    let text = format!(
        "Acknowledged stamps are missing: {lost} lost{overtaken}, {torn} torn, {reordered} in another's place, of {}.",
        sum(|cut| cut.acknowledged_count)
    );
    let evidence = [("lost_count", lost as f64), ("torn_count", torn as f64), ("reordered_count", reordered as f64)];
    (lost + torn + reordered > 0).then(|| MISSING.explain(true, text, &evidence))
}

const KEEPS_NOTHING: Rule = Rule {
    id: "D2",
    title: "The storage does not keep what it acknowledges",
    changes_figures: false,
    fires_when: || {
        format!(
            "The verdict is volatile or lying without a missing stamp: the file lies in memory, the file system is mounted without barriers, a \
             sync takes less than {LEAST_US} us, or (not under a hypervisor) the device says that it rotates with a volatile cache and a sync takes \
             less than {PLATTER_US} us; always high"
        )
    },
    why: "A power cut takes the last commits.",
    what_to_do: "Put no log there that must survive.",
    cannot_judge_when: "Direct I/O was refused: then speed says nothing.",
    source: "As rule S1.",
};

fn keeps_nothing(_: &Record, info: &DurabilityInfo) -> Option<Advice> {
    let is_it =
        [VOLATILE, LYING].contains(&info.durability.as_str()) && info.missing_count.value().unwrap_or(0.0) == 0.0;
    is_it.then(|| KEEPS_NOTHING.explain(true, format!("The storage is {}: {}.", info.durability, info.because), &[]))
}

const PLATTER: Rule = Rule {
    id: "D3",
    title: "Faster than the disk that it says it is",
    changes_figures: false,
    fires_when: || {
        format!(
            "The kernel reports a rotating disk, a sync takes less than {PLATTER_US} us, and the verdict is not made of that (D2)"
        )
    },
    why: "Most virtual disks claim to rotate, and a hypervisor or a controller may answer from its cache: speed cannot tell whether that is safe.",
    what_to_do: "Look up the cache mode of the hypervisor or controller, and cut the power of the host, not of the guest.",
    cannot_judge_when: "The device does not say whether it rotates.",
    source: "A platter of 15,000 revolutions a minute needs 4 ms for a turn, one of 5,400 11 ms.",
};

fn platter(_: &Record, info: &DurabilityInfo) -> Option<Advice> {
    let us = info.commit_us_p50.value().filter(|_| verdict::outruns_its_platter(info) && info.durability != LYING)?;
    let text =
        format!("The device says that it rotates, and a sync takes {} us: no platter answers so soon.", fixed(us, 0));
    Some(PLATTER.explain(false, text, &[("commit_us_p50", us)]))
}

const CACHED: Rule = Rule {
    id: "D4",
    title: "The cuts left a cache with power",
    changes_figures: false,
    fires_when: || "Stamps were read back after resets, nothing is missing, and no cut was of the power".to_owned(),
    why: "A reset of this system, or of a virtual machine, leaves the caches of the drive and of the hypervisor powered.",
    what_to_do: "Cut the power of the host, and read back with --cut power.",
    cannot_judge_when: "Never: what a cut was is the user's word.",
    source: "Decided here.",
};

fn cached(_: &Record, info: &DurabilityInfo) -> Option<Advice> {
    let cuts = info.cuts_count.value().filter(|cuts| *cuts > 0.0)?;
    let is_it = info.ends(POWER) == 0 && info.missing_count.value() == Some(0.0);
    is_it.then(|| {
        let text = format!("Nothing is missing after {}.", many(cuts as u64, "reset"));
        CACHED.explain(false, text, &[("cuts_count", cuts)])
    })
}

/// Whether pages of 8 KiB are announced never to tear.
pub(super) fn is_whole(info: &DurabilityInfo) -> bool {
    let enough =
        |figure: &assay_measure::record::Figure| figure.value().is_some_and(|bytes| bytes >= PAGE_BYTES as f64);
    enough(&info.atomic_write_bytes) && enough(&info.extent_alignment_bytes)
}

fn has_torn(info: &DurabilityInfo) -> bool {
    info.cuts.iter().any(|cut| cut.torn_count > 0 || cut.under_way == super::stamps::TORN)
}

const TEARS: Rule = Rule {
    id: "D5",
    title: "A database page may tear",
    changes_figures: false,
    fires_when: || {
        format!(
            "File or device announce an atomic write smaller than {}, or pages of this size do not lie aligned and in one piece; or a stamp of \
             this size was torn, which is high",
            size(PAGE_BYTES)
        )
    },
    why: "Half of a page may be old after a cut.",
    what_to_do: "Keep full_page_writes (PostgreSQL) and the doublewrite buffer (InnoDB) on.",
    cannot_judge_when: "Neither kernel nor file system tells: then only a torn stamp makes it fire.",
    source: "PostgreSQL's pages have 8 KiB, InnoDB's 16 KiB.",
};

fn tears(_: &Record, info: &DurabilityInfo) -> Option<Advice> {
    let price = match (info.page_image_cost_pct.value(), info.page_image_shared_cost_pct.value()) {
        (Some(one), Some(shared)) => format!(
            " An image beside each small record costs {} % of the commits/s of one session here, and {} % where 32 share a sync.",
            fixed(one, 0),
            fixed(shared, 0)
        ),
        _ => String::new(),
    };
    if has_torn(info) {
        return Some(TEARS.explain(true, format!("A stamp of {} was torn.{price}", size(PAGE_BYTES)), &[]));
    }
    let unit = info.atomic_write_bytes.value()?;
    let why = match info.extent_alignment_bytes.value() {
        Some(aligned) if unit >= PAGE_BYTES as f64 && aligned < PAGE_BYTES as f64 => {
            format!("pages lie aligned to {} only", size(aligned as u64))
        }
        _ if unit >= PAGE_BYTES as f64 => return None,
        _ if unit > 0.0 => format!("only writes of {} are announced as atomic", size(unit as u64)),
        _ => "no atomic write is announced".to_owned(),
    };
    Some(TEARS.explain(
        false,
        format!("A page of {} may tear: {why}.{price}", size(PAGE_BYTES)),
        &[("atomic_write_bytes", unit)],
    ))
}

const WHOLE: Rule = Rule {
    id: "D6",
    title: "Page images may be turned off",
    changes_figures: false,
    fires_when: || {
        format!(
            "File and device announce atomic writes of {} or more, pages lie aligned, and after cuts of the power nothing was missing or torn",
            size(PAGE_BYTES)
        )
    },
    why: "The announcement holds for writes that ask for it (RWF_ATOMIC, or direct writes where the provider says so).",
    what_to_do: "Check that the database writes its pages so, then turn full_page_writes or the doublewrite buffer off and measure the gain.",
    cannot_judge_when: "Nothing is announced, or no power was cut.",
    source: "The kernel's documentation of atomic writes.",
};

fn whole(_: &Record, info: &DurabilityInfo) -> Option<Advice> {
    let is_it = is_whole(info) && info.ends(POWER) > 0 && info.missing_count.value() == Some(0.0) && !has_torn(info);
    let unit = info.atomic_write_bytes.value().filter(|_| is_it)?;
    let text = format!(
        "Atomic writes of {} are announced, and {} tore nothing.",
        size(unit as u64),
        many(info.ends(POWER), "power cut")
    );
    Some(WHOLE.explain(false, text, &[("atomic_write_bytes", unit)]))
}
