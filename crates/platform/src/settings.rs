//! Settings of databases that follow from what was measured: printed with their formula, applied by nobody.

use crate::finished::Finished;
use crate::info::SettingRow;
use crate::plan::{DEPTHS, READS, STREAMS, WRITES};
use assay_measure::record::Figure;

/// A page of the reads, MiB.
const PAGE_MIB: f64 = 8.0 / 1024.0;
/// From this share of the best rate on a depth is enough. Decided here: what more depth brings beyond is noise and waiting.
const ENOUGH: f64 = 0.9;

/// Settings for this disk.
pub(crate) fn rows(finished: &[Finished]) -> Vec<SettingRow> {
    let value = |test: &str, key: &str, scope: &str| {
        Finished::of(finished, test).and_then(|test| test.value(key, scope).value())
    };
    let row = |setting: &str, value: Option<f64>, formula: &str| SettingRow {
        setting: setting.to_owned(),
        setting_value: Figure::known(value, "a figure of the formula is missing"),
        formula: formula.to_owned(),
    };
    let random_us = value(READS, "read_lat_us_avg", "depth 1");
    let page_us = value(STREAMS, "read_mib_per_s", "read").filter(|rate| *rate > 0.0).map(|rate| PAGE_MIB / rate * 1e6);
    let by_depth: Vec<(u32, f64)> = DEPTHS
        .into_iter()
        .filter_map(|depth| Some((depth, value(READS, "read_ios_per_s", &format!("depth {depth}"))?)))
        .collect();
    let best = by_depth.iter().map(|(_, per_s)| *per_s).reduce(f64::max);
    let enough = best.and_then(|best| by_depth.iter().find(|(_, per_s)| *per_s >= ENOUGH * best));
    let writes = value(WRITES, "writes_per_s", "");
    vec![
        row(
            "random_page_cost (PostgreSQL), with seq_page_cost 1, uncached",
            random_us.zip(page_us).map(|(random, page)| random / page),
            "mean of a random read of 8 KiB at depth 1, over 8 KiB at the rate of sequential reads at depth 8; divide it \
             where most pages are cached",
        ),
        row(
            "effective_io_concurrency (PostgreSQL)",
            enough.map(|(depth, _)| f64::from(*depth)),
            "the least depth with 90 % of the most reads/s",
        ),
        row("innodb_io_capacity_max (MariaDB, MySQL)", writes, "random writes of 16 KiB per second at depth 32"),
        row("innodb_io_capacity (MariaDB, MySQL)", writes.map(|writes| writes / 2.0), "half of innodb_io_capacity_max"),
    ]
}
