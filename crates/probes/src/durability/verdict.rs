//! Durable, volatile, lying or unknown: what follows from cuts, from what the storage says of itself, and from speed that no medium has.

use super::info::{DurabilityInfo, POWER, PROCESS, RESET};
use crate::sync::{LEAST_US, PLATTER_US};
use assay_measure::units::{fixed, many};

pub(super) const DURABLE: &str = "durable";
pub(super) const VOLATILE: &str = "volatile";
pub(super) const LYING: &str = "lying";
pub(super) const UNKNOWN: &str = "unknown";

/// Devices in memory, by the kernel's name for them.
const IN_MEMORY: [&str; 2] = ["ram", "zram"];

/// Why the storage keeps nothing by its own word.
fn volatile(info: &DurabilityInfo) -> Option<String> {
    if info.is_memory {
        Some("the file lies in memory, tmpfs".to_owned())
    } else if IN_MEMORY.iter().any(|name| info.disk.starts_with(name)) {
        Some(format!("the device {} is in memory", info.disk))
    } else if info.is_without_barriers {
        Some("the file system is mounted without barriers: it asks for no flush of the cache".to_owned())
    } else {
        None
    }
}

/// The device says that it rotates, and no platter could answer so soon.
pub(super) fn outruns_its_platter(info: &DurabilityInfo) -> bool {
    info.rotates == "yes" && info.commit_us_p50.value().is_some_and(|us| us < PLATTER_US)
}

/// The verdict and what it rests on. Speed alone never makes anything durable.
pub(super) fn of(info: &DurabilityInfo) -> (&'static str, String) {
    let missing: u64 = info.cuts.iter().map(super::info::Cut::missing).sum();
    let said = volatile(info);
    if missing > 0 {
        let ends = info.cuts.iter().filter(|cut| cut.missing() > 0).count() as u64;
        let of = many(info.cuts.len() as u64, "end");
        let what = format!("{} missing after {ends} of {of}", many(missing, "acknowledged stamp"));
        return match said {
            Some(why) => (VOLATILE, format!("{what}; {why}")),
            None => (LYING, format!("{what}, though each sync had returned")),
        };
    }
    if let Some(why) = said {
        return (VOLATILE, why);
    }
    let (power, resets) = (info.ends(POWER), info.ends(RESET));
    let most = info.loss_per_cut_most_pct.value().map_or_else(String::new, |pct| {
        let cut = if power > 0 { "power cut" } else { "reset" };
        format!("; with 95 % confidence a {cut} loses something in at most {} % of cases", fixed(pct, 0))
    });
    if power > 0 {
        let resets = if resets > 0 { format!(" and {}", many(resets, "reset")) } else { String::new() };
        return (DURABLE, format!("nothing lost in {}{resets}{most}", many(power, "power cut")));
    }
    let us = info.commit_us_p50.value().filter(|_| info.is_direct);
    if let Some(us) = us.filter(|us| *us < LEAST_US && !info.disk.starts_with("pmem")) {
        let why =
            format!("a sync takes {} us, faster than a bus carries a write to a medium: memory answers", fixed(us, 1));
        return (VOLATILE, why);
    }
    if let Some(us) = us.filter(|_| outruns_its_platter(info) && info.write_cache == "write back" && !info.is_virtual) {
        let why = format!(
            "the device says that it rotates and that its cache is volatile, yet a sync takes {} us, less than half a turn",
            fixed(us, 0)
        );
        return (LYING, why);
    }
    if resets > 0 {
        return (
            DURABLE,
            format!(
                "across {} only, which leave caches below this system powered; nothing lost{most}",
                many(resets, "reset")
            ),
        );
    }
    let killed = info.ends(PROCESS);
    let kills =
        if killed > 0 { format!(", {} lost nothing", many(killed, "kill of the writer")) } else { String::new() };
    (UNKNOWN, format!("no cut seen{kills}"))
}

/// Upper 95 % bound on the chance that a cut loses something, after so many that lost nothing, %: 1 - 0.05^(1/n), near the rule of three.
pub(super) fn most_pct(cuts: u64) -> f64 {
    100.0 * (1.0 - 0.05_f64.powf(1.0 / cuts as f64))
}
