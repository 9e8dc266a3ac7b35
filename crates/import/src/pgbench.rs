//! pgbench, 9.x to 18: totals, progress lines, scripts, statements, failures.

use super::lines::{PLAIN, Reader, Table};
use super::number::{self, Printed};
use super::rows::{is_of, operations_are_transactions};
use super::text::At;
use assay_measure::record::Figure;

#[rustfmt::skip]
pub(super) const PGBENCH: Table = Table {
    format: "pgbench text",
    op: "transaction",
    part: "script",
    marks: &[
        (92, &["number of transactions actually processed", "^tps = "]),
        (75, &["^progress: ", " tps, lat "]),
    ],
    lines: &[
        ("+", "pgbench ([PostgreSQL] {#}..."),
        ("+", "starting vacuum..."),
        ("+", "progress: {@} s, {transactions_per_s>commits_count_per_s} tps, lat[ avg] {transaction_us_avg>op_us_avg:ms} ms[ stddev {transaction_us_stddev>op_us_stddev:ms}][ ms][, {failed_count>failed_count_in_step} failed][, lag {schedule_lag_us_avg:ms} ms][, {skipped_count>skipped_count_in_step} skipped][, {retried_count>retried_count_in_step} retried][, {retries_count>retries_count_in_step} retries]"),
        ("+", "transaction type: {=}"),
        ("+", "scaling factor: {pgbench_scale_count}"),
        ("", "query mode: {=}"),
        ("", "partition method: {=}"),
        ("", "partitions: {=}"),
        ("", "number of clients: {sessions_count}"),
        ("", "number of threads: {threads_count}"),
        ("", "maximum number of tries: {=}"),
        ("", "number of transactions per client: {transactions_per_client_count}"),
        ("", "duration: {elapsed_s} s"),
        ("", "number of transactions actually processed: {transactions_count}[/{}]"),
        ("", "[{-}] number of failed transactions: {failed_transactions_count} ..."),
        ("", "[{-}] number of serialization failures: {serialization_failures_count} ..."),
        ("", "[{-}] number of deadlock failures: {deadlock_failures_count} ..."),
        ("", "[{-}] number of other failures: {other_failures_count} ..."),
        ("", "[{-}] number of transactions retried: {transactions_retried_count} ..."),
        ("", "[{-}] total number of retries: {retries_count}"),
        ("", "[{-}] number of transactions skipped: {transactions_skipped_count} ..."),
        ("", "[{-}] number of transactions above the ... ms latency limit: {transactions_late_count}[/{}] ..."),
        ("", "[{-}] latency average[:][ =] {$_us_avg:?}[ (including failures)]"),
        ("", "[{-}] latency stddev[:][ =] {$_us_stddev:?}"),
        ("", "rate limit schedule lag: avg {schedule_lag_us_avg:ms|schedule lag avg} (max {schedule_lag_us_max:ms|schedule lag max}) ms"),
        ("", "initial connection time = {connect_us:?}"),
        ("", "average connection time = {connect_us_avg:?}"),
        ("", "tps = {transactions_with_connecting_per_s|tps including connections} (including ..."),
        (".", "tps = {transactions_per_s} ..."),
        ("", "SQL script ...: <[builtin:]{%}>"),
        ("", "SQL script ...: {%}"),
        ("", "- weight: ..."),
        ("", "{-} {$_count|transactions} transactions ({}% of total[, tps = {$_per_s}])"),
        (">statements", "[{-}] statement latencies ..."),
        ("!", "[pgbench: ]ERROR: ..."),
        ("!", "[pgbench: ]FATAL: ..."),
        ("!", "[pgbench: ]error: ..."),
        ("!", "[pgbench: ]fatal: ..."),
    ],
    other: statement,
    end,
    ..PLAIN
};

/// `0.192           0           0  BEGIN;`: mean, failures, retries, the statement.
fn statement(reader: &mut Reader<'_>, at: At, text: &str) -> bool {
    let (mut rest, mut numbers) = (text, Vec::<Printed>::new());
    while let Some((token, tail)) = rest.trim_start().split_once(char::is_whitespace)
        && let Some(printed) = number::measure(token).filter(|_| numbers.len() < 3)
    {
        numbers.push(printed);
        rest = tail;
    }
    if numbers.is_empty() || reader.section != "statements" {
        return false;
    }
    reader.count += 1;
    let short: String = rest.trim().chars().take(60).collect();
    let scope = format!("{} {}: {short}", reader.scope, reader.count);
    let names = [
        ("statement_us_avg", "statement latency", 1e3),
        ("statement_failures_count", "statement_failures_count", 1.0),
        ("statement_retries_count", "statement_retries_count", 1.0),
    ];
    for ((key, name, unit), printed) in names.into_iter().zip(numbers) {
        if unit != 1.0 {
            reader.put(at, key, name, scope.trim_start(), printed.scaled(unit), None);
        } else if let Some(count) = number::count(&printed.text).filter(|count| count.number() != Some(0.0)) {
            reader.put(at, key, name, scope.trim_start(), count, None);
        }
    }
    true
}

/// Where a number of transactions was asked for, the time follows.
fn end(reader: &mut Reader<'_>) {
    let draft = &mut *reader.draft;
    is_of(draft, "Transactions", "transaction");
    operations_are_transactions(draft);
    let mut rows = draft.record.instance.load_profile.iter();
    if let Some(row) = rows.find(|row| row.name == "Transactions")
        && let (Some(total), Some(per_s)) = (row.total.value(), row.per_s.value())
        && per_s > 0.0
        && draft.record.interval.elapsed_s.value().is_none()
    {
        draft.record.interval.elapsed_s = Figure::decimal(total / per_s);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, survives, told};

    const SAMPLES: [&str; 6] = [
        "pgbench-15-progress.txt",
        "pgbench-15-statements.txt",
        "pgbench-15-transactions.txt",
        "pgbench-15-scripts.txt",
        "pgbench-15-failures.txt",
        "pgbench-12.txt",
    ];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn a_script_whose_title_was_cut_keeps_its_rate() {
        survives("pgbench-15-scripts.txt", 1_968_222_908_452_670_136);
    }

    #[test]
    fn compare_finds_transactions_and_operations() {
        let record = imported("pgbench-15-progress.txt");
        let metrics = &record.metrics;
        for key in ["transactions_per_s", "ops_per_s", "transaction_per_s"] {
            let metric = assay_measure::record::metric::find(metrics, key).expect(key);
            assert_eq!(metric.value.value(), Some(854.275_682), "{key}");
        }
        assert_eq!(record.series.metrics["commits_count_per_s"].len(), 4);
        assert_eq!((record.run.sessions, record.driver.threads_count), (4, 2));
        let op = &record.driver.ops[0];
        assert_eq!((op.count, op.service.us_avg.value()), (3414, Some(4671.0)));
    }

    #[test]
    fn both_rates_of_older_versions_are_kept_apart() {
        let record = imported("pgbench-12.txt");
        assert_eq!(number(&record, "", "transactions_with_connecting_per_s"), 1_998.25);
        assert_eq!(number(&record, "", "transactions_per_s"), 2_000.125);
    }

    #[test]
    fn scripts_have_operations_of_their_own() {
        let record = imported("pgbench-15-scripts.txt");
        let kinds: Vec<&str> = record.driver.ops.iter().map(|op| op.kind.as_str()).collect();
        assert_eq!(kinds, ["transaction", "simple_update", "select_only"]);
        assert_eq!(record.driver.ops[2].count, 59);
        assert_eq!(record.driver.ops[2].service.us_avg.value(), Some(856.0));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
