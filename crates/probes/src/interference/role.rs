//! The roles by name, and the order of their slices.

use assay_measure::prng::SplitMix64;
use assay_measure::units::MIB;

/// Bytes of a commit, of a page and of a piece of a sequential read.
pub(super) const COMMIT_BYTES: u64 = 4096;
pub(super) const PAGE_BYTES: u64 = 8192;
pub(super) const PIECE_BYTES: u64 = MIB;
/// Pages of a checkpoint's burst.
pub(super) const BURST_PAGES: u64 = 64;

/// A role, in the words of a DBA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) name: &'static str,
    /// Its line in the answer.
    pub(super) title: &'static str,
    /// One of its operations.
    pub(super) operation: &'static str,
    /// Bytes that an operation reads and that it writes.
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// As what slows others, which may be several, and as what is slowed.
    pub(super) slows: &'static str,
    pub(super) are_several: bool,
    pub(super) slowed: &'static str,
}

// Places in the list.
pub(super) const LOG: usize = 0;
pub(super) const READS: usize = 1;
pub(super) const SCAN: usize = 2;
pub(super) const CHECKPOINT: usize = 3;
pub(super) const BACKUP: usize = 4;

pub(super) const ROLES: [Role; 5] = [
    Role {
        name: "log writer",
        title: "Commits",
        operation: "4 KiB write + fdatasync",
        read_bytes: 0,
        written_bytes: COMMIT_BYTES,
        slows: "commits",
        are_several: true,
        slowed: "commits",
    },
    Role {
        name: "point reads",
        title: "Point reads",
        operation: "8 KiB random read, 4 sessions",
        read_bytes: PAGE_BYTES,
        written_bytes: 0,
        slows: "point reads",
        are_several: true,
        slowed: "point reads",
    },
    Role {
        name: "scan",
        title: "Scan",
        operation: "1 MiB sequential read, 4 in flight",
        read_bytes: PIECE_BYTES,
        written_bytes: 0,
        slows: "a scan",
        are_several: false,
        slowed: "the reads of a scan",
    },
    Role {
        name: "checkpoint",
        title: "Checkpoint",
        operation: "64 random 8 KiB writes + fdatasync",
        read_bytes: 0,
        written_bytes: BURST_PAGES * PAGE_BYTES,
        slows: "a checkpoint",
        are_several: false,
        slowed: "the bursts of a checkpoint",
    },
    Role {
        name: "backup copy",
        title: "Backup copy",
        operation: "1 MiB read and written to a new file, 4 in flight",
        read_bytes: PIECE_BYTES,
        written_bytes: PIECE_BYTES,
        slows: "a backup copy",
        are_several: false,
        slowed: "the pieces of a backup copy",
    },
];

/// How often a role works alone in a round: all others are held against that.
const ALONE: usize = 2;

/// The slices of a round: each role alone, and every two together.
pub(super) fn combinations() -> Vec<Vec<usize>> {
    let alone = (0..ROLES.len()).flat_map(|role| std::iter::repeat_n(vec![role], ALONE));
    let pairs = (0..ROLES.len()).flat_map(|one| (one + 1..ROLES.len()).map(move |other| vec![one, other]));
    alone.chain(pairs).collect()
}

/// Round after round, each with every combination in an order by chance: whatever drifts hits all alike.
pub(super) fn order(rounds: u32, seed: u64) -> Vec<(u32, Vec<usize>)> {
    let mut random = SplitMix64(seed);
    let round = |round| {
        let mut slices = combinations();
        for last in (1..slices.len()).rev() {
            slices.swap(last, random.below(last as u64 + 1) as usize);
        }
        slices.into_iter().map(move |roles| (round, roles))
    };
    (0..rounds).flat_map(round).collect()
}

/// The roles of a slice in words.
pub(super) fn told(roles: &[usize]) -> String {
    match roles {
        [one] => format!("{} alone", ROLES[*one].name),
        _ => roles.iter().map(|role| ROLES[*role].name).collect::<Vec<_>>().join(" beside "),
    }
}
