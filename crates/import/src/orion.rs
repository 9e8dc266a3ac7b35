//! Orion, Oracle's I/O calibration: the summary on the screen and in `_summary.txt`, and the matrices `_iops.csv`,
//! `_mbps.csv`, `_lat.csv`, a row for each number of large I/Os in flight, a column for each number of small ones.

use super::lines::{PLAIN, Reader, Table};
use super::number;
use super::text::At;

#[rustfmt::skip]
pub(super) const ORION: Table = Table {
    format: "Orion text",
    layer: "syscall",
    marks: &[
        (92, &["^ORION"]),
        (90, &["Maximum Small IOPS="]),
        (90, &["Maximum Large MBPS="]),
        (85, &["^Large/Small,"]),
    ],
    lines: &[
        ("+", "ORION VERSION {#}"),
        ("+", "ORION: ORacle IO Numbers -- Version {#}"),
        ("+", "ORION: ORacle IO Numbers -- Version RDBMS_{#}..."),
        ("+", "Test: {=}"),
        ("", "Small IO size: {=}"),
        ("", "Large IO size: {=}"),
        ("", "IO types: {=}"),
        ("", "IO Types: {=}"),
        ("", "Sequential stream pattern: {=}"),
        ("", "Simulated Array Type: {=}"),
        ("", "Write[s]: {=}"),
        ("", "Cache size: {=}"),
        ("", "Cache Size: {=}"),
        ("", "Duration for each data point: {=}"),
        ("", "Duration for each Data Point: {=}"),
        ("", "Small Columns:, {=}"),
        ("", "Large Columns:, {=}"),
        ("", "Total Data Points: {=}"),
        ("", "Name: {=} Size: {}"),
        ("", "{} FILEs found."),
        ("", "{} files found."),
        ("", "ORION: ... will take ..."),
        ("", "Test will take approximately ..."),
        ("", "Calibration will take approximately ..."),
        (". >maximum", "Maximum Large MBPS={large_mb_per_s} @ Small={large_mb_small_count|Small} and Large={large_mb_large_count|Large}"),
        (". >maximum", "Maximum Small IOPS={small_ios_per_s} @ Small={small_ios_small_count|Small} and Large={small_ios_large_count|Large}"),
        // Up to 11.1 it is printed without its unit, ms.
        (". >minimum", "Minimum Small Latency={small_us_avg:?} @ Small={small_us_small_count|Small} and Large={small_us_large_count|Large}"),
        (". >minimum", "Minimum Small Latency={small_us_avg:ms} @ Small={small_us_small_count|Small} and Large={small_us_large_count|Large}"),
        ("maximum", "Small Read Latency: {~maximum}avg={small_read_us_avg:us} us, min={small_read_us_min:us} us, max={small_read_us_max:us} us, std dev={small_read_us_stddev:us} us @ ..."),
        ("maximum", "Small Write Latency: {~maximum}avg={small_write_us_avg:us} us, min={small_write_us_min:us} us, max={small_write_us_max:us} us, std dev={small_write_us_stddev:us} us @ ..."),
        ("minimum", "Small Read Latency: {~minimum}avg={small_read_us_avg:us} us, min={small_read_us_min:us} us, max={small_read_us_max:us} us, std dev={small_read_us_stddev:us} us @ ..."),
        ("minimum", "Small Write Latency: {~minimum}avg={small_write_us_avg:us} us, min={small_write_us_min:us} us, max={small_write_us_max:us} us, std dev={small_write_us_stddev:us} us @ ..."),
        ("", "Small Read / Write Latency Histogram @ ..."),
        (">microseconds", "... in microseconds..."),
    ],
    other: matrix,
    ..PLAIN
};

/// A row of a matrix. The files do not say their figure: large I/Os begin with a column of no small ones, and rates of
/// small ones are whole.
fn matrix(reader: &mut Reader<'_>, at: At, text: &str) -> bool {
    if let Some(columns) = text.strip_prefix("Large/Small,") {
        columns.clone_into(&mut reader.op);
        return true;
    }
    let cells: Vec<&str> = text.split(',').map(str::trim).collect();
    let Some((large, figures)) = cells.split_first().filter(|_| !reader.op.is_empty()) else {
        return false;
    };
    let columns: Vec<String> = reader.op.split(',').map(|cell| cell.trim().to_owned()).collect();
    let is_figure = |cell: &&str| number::measure(cell).is_some();
    if large.parse::<u32>().is_err() || figures.len() > columns.len() || !figures.iter().all(is_figure) {
        return false;
    }
    for (small, cell) in columns.iter().zip(figures) {
        let (key, us) = match (columns[0].as_str(), cell.contains('.'), reader.section) {
            ("0", ..) => ("large_mb_per_s", 1.0),
            (_, false, _) => ("small_ios_per_s", 1.0),
            (_, true, "microseconds") => ("small_us_avg", 1.0),
            // Up to 11.1.
            (_, true, _) => ("small_us_avg", 1e3),
        };
        if let Some(printed) = number::measure(cell) {
            let printed = if us == 1.0 { printed } else { printed.scaled(us) };
            reader.put(at, key, "Large/Small", &format!("small {small}, large {large}"), printed, None);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, record_of, survives, told};
    use assay_measure::identity::violated;

    const SAMPLES: [&str; 4] = ["orion-11.1.txt", "orion-12.2.txt", "orion-iops.csv", "orion-lat.csv"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn a_rate_and_the_latency_at_it_are_what_was_in_flight() {
        let record = imported("orion-12.2.txt");
        assert_eq!(number(&record, "", "small_us_avg"), 98.5);
        assert_eq!(number(&imported("orion-11.1.txt"), "", "small_us_avg"), 260.0);
        assert_eq!(number(&imported("orion-lat.csv"), "small 2, large 0", "small_us_avg"), 450.0);
        assert!(violated(&record).is_empty());
        let wrong = super::super::testing::sample("orion-12.2.txt").replace("IOPS=50000", "IOPS=70000");
        assert!(violated(&record_of("wrong", &wrong)).iter().any(|identity| identity.id == "OR1"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
