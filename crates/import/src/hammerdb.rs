//! HammerDB: the log of a test and its job's results as JSON; the time profile of both.
//!
//! Its JSON is a list of the log's lines, or one object per procedure. Both are read word by word: JSON commas and
//! braces end a line, and quotes are left out.

use super::lines::{PLAIN, Table};
use super::rows::operations_are_transactions;

#[rustfmt::skip]
pub(super) const HAMMERDB: Table = Table {
    format: "HammerDB log",
    part: "procedure",
    marks: &[
        (93, &["TEST RESULT : System achieved"]),
        (88, &["NEWORD", "CALLS: ", "RATIO: "]),
        (88, &["NEWORD", "\"calls\"", "\"ratio_pct\""]),
    ],
    lines: &[
        ("+", "HammerDB CLI v{#}"),
        ("+", "Beginning rampup time of {=rampup_minutes} minute[s]"),
        ("+", "Timing test period of {elapsed_s:min|Timing test period} in minutes"),
        ("", "{}  ...,"),
        ("+", "{sessions_count|Active Virtual Users} Active Virtual Users configured"),
        (".", "TEST RESULT : System achieved {new_orders_per_min|NOPM} NOPM from {transactions_per_s:/min|TPM} {*} TPM"),
        (".", "TEST RESULT : System achieved {transactions_per_s:/min|TPM} {*} TPM at {new_orders_per_min|NOPM} NOPM"),
        ("!", "FINISHED FAILED ..."),
        ("", ">>>>> SUMMARY OF {} ACTIVE VIRTUAL USERS ..."),
        ("", "[>>>>>] PROC: {%}"),
        ("", "CALLS: {$_count}"),
        ("", "MIN: {$_us_min:ms}ms"),
        ("", "AVG: {$_us_avg:ms}ms"),
        ("", "MAX: {$_us_max:ms}ms"),
        ("", "TOTAL: {$_us_sum:ms}ms"),
        ("", "P{&}: {$_us_p&:ms|P&}ms"),
        ("", "SD: ..."),
        ("", "RATIO: {$_time_pct}%"),
        ("", "elapsed_ms: ..."),
        ("", "calls: {$_count}"),
        ("", "min_ms: {$_us_min:ms}"),
        ("", "avg_ms: {$_us_avg:ms}"),
        ("", "max_ms: {$_us_max:ms}"),
        ("", "total_ms: {$_us_sum:ms}"),
        ("", "p{&}_ms: {$_us_p&:ms|p&_ms}"),
        // In us in some versions and in ms in others.
        ("", "sd: ..."),
        ("", "ratio_pct: {$_time_pct}"),
        ("", "{%}:"),
    ],
    parts: Some(parts),
    end: |reader| operations_are_transactions(reader.draft),
    ..PLAIN
};

/// What a line says: one thing of a log, several of JSON and of a time profile.
fn parts(line: &str) -> Vec<String> {
    let said = match line.trim().strip_prefix("Vuser ") {
        Some(rest) => rest.split_once(':').map_or(rest, |(_, said)| said),
        None => line,
    };
    let is_json = said.contains('"');
    let is_profile = ["CALLS: ", "P99: "].iter().any(|begin| said.starts_with(begin));
    if is_profile {
        let words: Vec<&str> = said.split_whitespace().collect();
        return words.chunks(2).map(|pair| pair.join(" ")).collect();
    }
    let parts = said.split(|c: char| is_json && ",{}[]".contains(c));
    parts.map(|part| part.replace('"', "").trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, record_of, survives, told};

    const SAMPLES: [&str; 3] = ["hammerdb.log", "hammerdb-result.json", "hammerdb-timing.json"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn both_orders_of_the_result_are_read() {
        let line = "Vuser 1:TEST RESULT : System achieved 61200 SQL Server TPM at 26500 NOPM\n";
        let record = record_of("old", line);
        assert_eq!(number(&record, "", "new_orders_per_min"), 26_500.0);
        assert_eq!(number(&record, "", "transactions_per_s"), 1020.0);
        assert_eq!(record.run.engine, "sql server");
        let record = imported("hammerdb.log");
        assert_eq!((record.run.sessions, record.interval.elapsed_s.value()), (16, Some(300.0)));
        assert_eq!(number(&record, "", "neword_us_p95"), 4_100.0);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
