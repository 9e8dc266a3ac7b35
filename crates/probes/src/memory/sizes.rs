//! How much memory each part may take, decided before memory is touched.

use super::info::ArrayRule;
use assay_measure::record::Figure;
use assay_measure::units::size;
use assay_run::engine::EngineError;
use assay_run::host::memory::Room;
use std::time::Duration;

/// The rule for arrays: so many times all last-level caches.
pub(super) const TIMES_LAST_LEVEL: u64 = 4;
pub(super) const ARRAY_LEAST: u64 = 64 << 20;
/// A ladder wants so many times all last-level caches, up to `LADDER_MOST`.
const LADDER_TIMES: u64 = 8;
const LADDER_MOST: u64 = 4 << 30;
const LADDER_LEAST: u64 = 64 << 20;
/// What arrays together may have of the memory that is left, and what a ladder may: a database may live here.
const ARRAYS_SHARE: u64 = 2;
const LADDER_SHARE: u64 = 4;
/// More than this for each second of the time would be spent on making data, not on measuring.
const BYTES_PER_S: f64 = (256_u64 << 20) as f64;
/// The same for each ladder, whose every line is linked.
const LADDER_BYTES_PER_S: f64 = (64_u64 << 20) as f64;
/// No measurement of less means anything; it is taken whatever else holds.
const FLOOR: u64 = 3 << 20;

/// Bytes of each part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sizes {
    pub(super) arrays: ArrayRule,
    /// The largest step of a ladder.
    pub(super) ladder_bytes: u64,
    /// Why that is less than eight times the last-level caches; empty where it is not.
    pub(super) ladder_why: String,
    /// Fresh memory that is touched for the first time.
    pub(super) fresh_bytes: u64,
}

/// What a part gets, and why that is less than it wants.
fn capped(wanted: u64, room: u64, of: &str, by_time: u64, time: Duration) -> (u64, String) {
    match wanted {
        _ if wanted <= room.min(by_time) => (wanted, String::new()),
        _ if room <= by_time => (room, format!("{of} of the available memory is {}", size(room))),
        _ => (
            by_time,
            format!(
                "{} s are enough for {}; --time {}s would do",
                time.as_secs_f64(),
                size(by_time),
                (wanted as f64 / by_time as f64 * time.as_secs_f64()).ceil()
            ),
        ),
    }
}

impl Sizes {
    /// Of a host with such caches and so much room.
    pub(super) fn of(
        last_level: Option<u64>,
        room: Option<&Room>,
        time: Duration,
        array: Option<u64>,
    ) -> Result<Self, EngineError> {
        let free = room.map_or(u64::MAX, |room| room.free_bytes);
        let by_time = (time.as_secs_f64() * BYTES_PER_S) as u64;
        let cache = last_level.unwrap_or(0);
        let wanted = (TIMES_LAST_LEVEL.saturating_mul(cache)).max(ARRAY_LEAST);
        let (bytes, why) = match array {
            Some(bytes) => asked(bytes, wanted, free)?,
            None => capped(wanted, free / ARRAYS_SHARE / 3, "a sixth", by_time / 3, time),
        };
        let ladder = LADDER_TIMES.saturating_mul(cache).clamp(LADDER_LEAST, LADDER_MOST).next_power_of_two();
        let (ladder_bytes, ladder_why) =
            capped(ladder, free / LADDER_SHARE, "a quarter", (time.as_secs_f64() * LADDER_BYTES_PER_S) as u64, time);
        Ok(Self {
            arrays: ArrayRule {
                last_level_bytes: Figure::known(last_level, crate::conditions::NOT_EXPOSED),
                wanted_bytes: wanted,
                bytes: bytes.max(FLOOR),
                is_met: bytes >= wanted,
                why,
            },
            ladder_bytes: ladder_bytes.max(FLOOR),
            ladder_why,
            fresh_bytes: (256 << 20).min(free / 16).min(by_time / 8).max(FLOOR),
        })
    }
}

/// A size that somebody asked for: the rule holds for it (conformance item 11), and so does what is left.
fn asked(bytes: u64, wanted: u64, free: u64) -> Result<(u64, String), EngineError> {
    if bytes < wanted {
        return Err(EngineError::Usage(format!(
            "--array {}: each array needs at least {} on this host ({TIMES_LAST_LEVEL} times all last-level caches, and {}), \
             otherwise assay would measure the caches; leave --array out, and assay uses what memory and time allow \
             and says so",
            size(bytes),
            size(wanted),
            size(ARRAY_LEAST)
        )));
    }
    if bytes.saturating_mul(3) > free {
        return Err(EngineError::Unusable(format!(
            "--array {}: three arrays are {}, but only {} of memory are available",
            size(bytes),
            size(bytes.saturating_mul(3)),
            size(free)
        )));
    }
    Ok((bytes, String::new()))
}

/// Sizes of the steps of a ladder, two for each doubling from 4 KiB.
pub(super) fn steps(most: u64) -> Vec<u64> {
    let octaves = std::iter::successors(Some(4096_u64), |bytes| bytes.checked_mul(2));
    let all = octaves.flat_map(|bytes| [bytes, bytes + bytes / 2]);
    all.take_while(|bytes| *bytes <= most).collect()
}

/// Refuses a load that the host cannot spare, before any of it is taken: what is left less 5 % of all, at least 512 MiB.
pub(super) fn check_load(total: u64, room: Option<&Room>) -> Result<(), EngineError> {
    let Some(room) = room else { return Ok(()) };
    let spare = (room.limit_bytes / 20).max(512 << 20);
    let most = room.free_bytes.saturating_sub(spare);
    if total <= most {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "the load asks for {} of memory, but only {} can be spared ({} available below the limit of {}, less a reserve \
         of {}): ask for less with --soak-bytes, or give --force",
        size(total),
        size(most),
        size(room.free_bytes),
        room.by.display(),
        size(spare)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(free: u64, limit: u64) -> Room {
        Room { free_bytes: free, limit_bytes: limit, by: "memory.max".into() }
    }

    const GIB: u64 = 1 << 30;
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn memory_11_arrays_follow_the_rule_and_smaller_ones_are_refused() {
        let of = |cache, free, time, array| Sizes::of(Some(cache), Some(&room(free, free)), time, array);
        let usual = of(32 << 20, 64 * GIB, LONG, None).unwrap();
        assert_eq!((usual.arrays.bytes, usual.arrays.is_met), (128 << 20, true));
        assert_eq!((usual.ladder_bytes, usual.ladder_why.as_str()), (256 << 20, ""));
        let small = of(1 << 20, 64 * GIB, LONG, None).unwrap();
        assert_eq!(small.arrays.bytes, 64 << 20);
        // The cache of a whole host, seen by a small guest: neither memory nor a short time is enough.
        let guest = of(480 << 20, 8 * GIB, LONG, None).unwrap();
        assert_eq!(guest.arrays.bytes, 8 * GIB / 6);
        assert!(!guest.arrays.is_met);
        assert!(guest.arrays.why.starts_with("a sixth"), "{}", guest.arrays.why);
        let short = of(480 << 20, 64 * GIB, Duration::from_secs(10), None).unwrap();
        assert!(!short.arrays.is_met);
        assert!(short.arrays.why.contains("--time 23s"), "{}", short.arrays.why);
        let refused = of(480 << 20, 64 * GIB, LONG, Some(GIB)).unwrap_err();
        assert!(refused.to_string().contains(&size(1920 << 20)), "{refused}");
        assert!(of(480 << 20, 64 * GIB, LONG, Some(2 * GIB)).unwrap().arrays.is_met);
        assert!(of(1 << 20, GIB, LONG, Some(GIB)).is_err());
    }

    #[test]
    fn memory_03_a_load_above_the_limit_is_refused_with_both_numbers() {
        check_load(GIB, Some(&room(2 * GIB, 4 * GIB))).unwrap();
        let Err(EngineError::Unusable(why)) = check_load(2 * GIB, Some(&room(2 * GIB, 4 * GIB))) else {
            panic!("it is taken");
        };
        assert!(why.contains("asks for 2 GiB") && why.contains("1.5 GiB can be"), "{why}");
        // Of a large host 5 % are kept.
        assert!(check_load(95 * GIB, Some(&room(100 * GIB, 100 * GIB))).is_ok());
        assert!(check_load(96 * GIB, Some(&room(100 * GIB, 100 * GIB))).is_err());
    }

    #[test]
    fn steps_are_two_an_octave_of_whole_lines() {
        assert_eq!(steps(17_000), [4096, 6144, 8192, 12288, 16384]);
        assert!(steps(4 << 30).iter().all(|bytes| bytes % 64 == 0));
        assert_eq!(steps(4 << 30).len(), 41);
    }
}
