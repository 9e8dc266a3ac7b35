//! pgio's output: the line with its rates, and the counters it read before and after.

use super::draft::Draft;
use super::lines::{PLAIN, Reader, Table};
use super::rows::load_row;
use assay_measure::record::Figure;

#[rustfmt::skip]
pub(super) const PGIO: Table = Table {
    format: "pgio text",
    layer: "engine",
    marks: &[(93, &["RIOPS >", "CACHE_HITS/s"])],
    lines: &[
        ("+", "Date: {^}"),
        ("", "Database connect string: {=}."),
        ("", "Shared buffers: {=}."),
        ("", "Testing {=test}."),
        ("", "BEFORE: {~before}... | {pgio_blocks_hit_count|blks_hit} | {pgio_blocks_read_count|blks_read} | {pgio_rows_returned_count|tup_returned} | {pgio_rows_fetched_count|tup_fetched} | {pgio_rows_updated_count|tup_updated}"),
        ("", "AFTER: {~after}... | {pgio_blocks_hit_count|blks_hit} | {pgio_blocks_read_count|blks_read} | {pgio_rows_returned_count|tup_returned} | {pgio_rows_fetched_count|tup_fetched} | {pgio_rows_updated_count|tup_updated}"),
        (".", "DBNAME: {=database}. {pgio_schemas_count|schemas} schema[s], {pgio_threads_per_schema_count|threads(each)} thread[s](each). Run time: {elapsed_s|Run time} seconds. RIOPS >{physical_read_blocks_per_s|RIOPS}< CACHE_HITS/s >{cache_hits_blocks_per_s|CACHE_HITS/s}<"),
    ],
    end,
    ..PLAIN
};

/// What was read and hit follows from the counters; logical reads are both.
fn end(reader: &mut Reader<'_>) {
    let draft = &mut *reader.draft;
    let number = |draft: &Draft, key: &str| draft.number("", key);
    let sessions = number(draft, "pgio_schemas_count").zip(number(draft, "pgio_threads_per_schema_count"));
    draft.record.run.sessions = sessions.map_or(0, |(schemas, threads)| (schemas * threads) as u64);
    let counted = |when: &str| draft.number(when, "pgio_blocks_read_count");
    if let Some((before, after)) = counted("before").zip(counted("after")).filter(|(before, after)| after >= before) {
        let row = load_row(draft, "Physical read (blocks)", "blocks");
        draft.record.instance.load_profile[row].total = Figure::Count((after - before) as u64);
    }
    // Misses of the database's cache: the page cache of the system may have had them.
    if let Some(at) = draft.at("", "physical_read_blocks_per_s") {
        draft.note(at, "RIOPS counts misses of the database's cache; the system's page cache answered some of them");
    }
    let rates = number(draft, "cache_hits_blocks_per_s").zip(number(draft, "physical_read_blocks_per_s"));
    if let Some((hits, reads)) = rates {
        let row = load_row(draft, "Logical read (blocks)", "blocks");
        draft.record.instance.load_profile[row].per_s = (hits + reads).into();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, survives, told};

    #[test]
    fn the_sample_is_read_as_frozen() {
        insta::assert_snapshot!(told(&imported("pgio.txt")));
    }

    #[test]
    fn reads_are_misses_and_logical_reads_are_both() {
        let record = imported("pgio.txt");
        let metrics = &record.metrics;
        let of = |key| assay_measure::record::metric::find(metrics, key).and_then(|metric| metric.value.value());
        assert_eq!(of("logical_reads_per_s"), Some(21_600.0));
        assert_eq!(of("physical_read_blocks_per_s"), Some(20_000.0));
        assert_eq!(record.run.sessions, 16);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX) {
            survives("pgio.txt", seed);
        }
    }
}
