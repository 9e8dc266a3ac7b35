//! Identities between imported counters.

use super::{Must, Printed, Side, judge};
use assay_awr::identities::{COUNTERS, IdentityLine};
use assay_measure::identity::Scope;
use assay_measure::identity::formula::Formula;
use assay_measure::record::Identity;

/// Blocks that rode along without being counted: of genuine reports up to 4 % of all that did.
const ALONG_PPM: f64 = 100_000.0;

/// What the statistics of one snapshot may be apart: of genuine reports up to 300.
const SKEW_PPM: f64 = 500.0;

/// What the source may have read at two instants, of the left side in parts per million, and at least so many blocks; of the others
/// nothing. The statistics of a snapshot are read one after the other while the instance works on. On storage that answers part of
/// a request from its cache, blocks ride along that no statistic names.
const ALLOWED: [(&str, f64, f64); 6] = [
    ("I1", SKEW_PPM, 5.0),
    ("I2", SKEW_PPM, 5.0),
    ("I3", SKEW_PPM, 2.0),
    ("I4", SKEW_PPM, 2.0),
    ("I5", SKEW_PPM, 5.0),
    ("I6b", ALONG_PPM, 0.0),
];

/// No identity of ours: a server's writes need not be of blocks.
const WRITES: IdentityLine = (
    "I6c",
    Scope::Whole,
    "write requests of data <= physical writes",
    "physical_write_io_requests_count <= physical_writes_blocks",
);

pub(super) fn counters(p: &Printed<'_>, all: &mut Vec<Identity>) {
    let block = p.block().filter(|_| !p.has_several_block_sizes());
    let terms = |_: &str, name: &str| {
        let found = if name == "fact:block_bytes" { block.map(Side::exact) } else { p.total_of(name) };
        found.ok_or_else(|| "not printed".to_owned())
    };
    for (id, _, text, line) in COUNTERS.into_iter().chain([WRITES]) {
        let Some((formula, sides)) = Formula::of(line).and_then(|formula| Some((formula, formula.sides(&terms)?)))
        else {
            continue;
        };
        let (_, ppm, least) = ALLOWED.into_iter().find(|(of, ..)| *of == id).unwrap_or((id, 0.0, 0.0));
        let must = if formula.is_at_most { Must::NotAbove } else { Must::Equal };
        let unit = if line.contains("fact:block_bytes") { block.unwrap_or(0.0) } else { 1.0 };
        let allowed = sides.left.share(ppm).max(least * unit);
        judge(all, id, text, must, Some((sides.left, sides.right)), allowed);
    }
}
