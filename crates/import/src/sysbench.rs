//! sysbench 0.4.12, 0.5, 1.0 and 1.1: SQL, file I/O, CPU, memory, threads, mutex; interval lines and histogram.

use super::lines::{PLAIN, Reader, Table};
use super::rows::{is_of, load_row, op_row, operations_are_transactions};
use super::text::At;

#[rustfmt::skip]
pub(super) const SYSBENCH: Table = Table {
    format: "sysbench text",
    op: "event",
    marks: &[
        (91, &["^sysbench ", "General statistics:"]),
        (91, &["^sysbench ", "Test execution summary:"]),
        (84, &["General statistics:", "total number of events:"]),
        (84, &["Test execution summary:", "total number of events:"]),
        (84, &["Threads fairness:", "total number of events:"]),
        (70, &["s ] thds: ", "lat (ms,"]),
        (70, &["s] threads: ", "response time: "]),
        (70, &["s ] reads: ", "latency (ms,"]),
    ],
    lines: &[
        ("+ >head", "sysbench {#}: ..."),
        ("+ >head", "sysbench {#} (..."),
        ("+ $transaction", "[[ {@}s ] thds: {} tps: {transactions_per_s>commits_count_per_s} qps: {queries_per_s>queries_count_per_s} (r/w/o: {queries_read_per_s|r}/{queries_write_per_s|w}/{queries_other_per_s|o}) lat (ms,{&}%): {$_us_p&>op_us_p&:ms|lat}[ err/s: {errors_per_s>errors_count_per_s}] ..."),
        ("+", "[[ {@}s ] thds: {} eps: {events_per_s>ops_count_per_s} lat (ms,{&}%): {$_us_p&>op_us_p&:ms|lat}"),
        ("+ $transaction", "[[ {@}s] threads: {}, tps: {transactions_per_s>commits_count_per_s}, reads[/s]: {}, writes[/s]: {}, response time: {$_us_p&>op_us_p&:ms|lat}ms ({&}%)[, errors: {errors_per_s>errors_count_per_s}] ..."),
        ("+ /storage", "[[ {@}s ] reads: {file_read_mib_per_s|reads} MiB/s writes: {file_write_mib_per_s|writes} MiB/s fsyncs: {fsyncs_per_s>fsyncs_count_per_s|fsyncs}/s latency (ms,{&}%): {$_us_p&>op_us_p&:ms|lat}"),
        ("+ /storage", "[[ {@}s] reads: {file_read_mib_per_s|reads} MB/s writes: {file_write_mib_per_s|writes} MB/s fsyncs: {fsyncs_per_s>fsyncs_count_per_s|fsyncs}/s response time: {$_us_p&>op_us_p&:ms|lat}ms ({&}%)"),
        ("+ /memory", "[[ {@}s ] {memory_mib_per_s} MiB/sec"),
        ("+ >head", "Running the test with following options:"),
        ("+", "Number of threads: {sessions_count}"),
        ("", "Report intermediate results every ..."),
        ("/cpu", "Prime numbers limit: {=}"),
        ("", "block size: {=}"),
        ("", "total size: {=}"),
        ("", "operation: {=}"),
        ("", "scope: {=}"),
        ("", "Block size {=}"),
        ("", "Extra file open flags: {=}"),
        ("", "{=files} files, {=file size} each"),
        ("", "{=total file size} total file size"),
        ("", "Doing {=test} test[.]"),
        ("", "Using {=I/O mode} I/O mode"),
        ("", "Number of IO requests: {=}"),
        ("", "Read/Write ratio for combined random IO test: {=}"),
        (">histogram", "Latency histogram ..."),
        ("+ >head", "SQL statistics:"),
        ("+ >head", "OLTP test statistics:"),
        (">queries", "queries performed:"),
        ("queries", "read: {queries_read_count}"),
        ("queries", "write: {queries_write_count}"),
        ("queries", "other: {queries_other_count}"),
        ("queries", "total: {queries_total_count}"),
        ("$transaction", "transactions: {transactions_count} ({transactions_per_s} per sec.)"),
        ("", "queries: {queries_count} ({queries_per_s} per sec.)"),
        ("", "read/write requests: {read_write_requests_count} ({read_write_requests_per_s} per sec.)"),
        ("", "other operations: {other_operations_count} ({other_operations_per_s} per sec.)"),
        ("", "deadlocks: {deadlocks_count} ({deadlocks_per_s} per sec.)"),
        ("", "ignored errors: {ignored_errors_count} ({ignored_errors_per_s} per sec.)"),
        ("", "reconnects: {reconnects_count} ({reconnects_per_s} per sec.)"),
        ("+ /cpu >head", "CPU speed:"),
        ("", "events per second: {ops_per_s}"),
        ("", "events/s (eps): {ops_per_s}"),
        ("/memory", "Total operations: {ops_count} ({ops_per_s} per second)"),
        ("", "Operations performed: {ops_count} ({ops_per_s} ops/sec)"),
        ("/memory", "{memory_moved_mib|transferred} M[i]B transferred ({memory_mib_per_s|transferred} M[i]B/sec)"),
        ("+ /storage >head", "File operations:"),
        ("", "reads/s: {read_io_requests_per_s}"),
        ("", "writes/s: {write_io_requests_per_s}"),
        ("", "fsyncs/s: {fsyncs_per_s}"),
        (">head", "Throughput:"),
        ("/storage", "read: IOPS={read_io_requests_per_s} {file_read_mib_per_s|read} MiB/s (..."),
        ("/storage", "write: IOPS={write_io_requests_per_s} {file_write_mib_per_s|write} MiB/s (..."),
        ("", "fsync: IOPS={fsyncs_per_s}"),
        ("", "read, MiB/s: {file_read_mib_per_s|read, MiB/s}"),
        ("", "written, MiB/s: {file_write_mib_per_s|written, MiB/s}"),
        ("+ /storage", "Operations performed: {read_io_requests_count|Read} Read, {write_io_requests_count|Write} Write, {other_operations_count|Other} Other = {operations_count|Total} Total"),
        ("/storage", "Read ... Total transferred ... ({file_mib_per_s|Total transferred}Mb/sec)"),
        ("", "{requests_per_s} Requests/sec executed"),
        ("+ >head", "General statistics:"),
        ("+ >head", "Test execution summary:"),
        ("", "time elapsed: {elapsed_s:?}"),
        ("", "total time: {elapsed_s:?}"),
        (".", "total number of events: {events_count}"),
        ("", "total time taken by event execution: {$_us_sum:s}[s]"),
        (">latency", "Latency (ms):"),
        (">latency", "per-request statistics:"),
        (">latency", "response time:"),
        ("latency", "min: {$_us_min:ms}[ms]"),
        ("latency", "avg: {$_us_avg:ms}[ms]"),
        ("latency", "max: {$_us_max:ms}[ms]"),
        ("latency", "sum: {$_us_sum:ms}[ms]"),
        ("latency", "[approx.] {&}[th] percentile: {$_us_p&:ms|&th percentile}[ms]"),
        (">fairness", "Threads fairness:"),
        ("fairness", "events (avg/stddev): {session_events_count_avg}/{}"),
        ("fairness", "execution time (avg/stddev): {session_execution_s_avg}/{}"),
        ("!", "FATAL: ..."),
        ("!", "ALERT: ..."),
    ],
    other: bucket,
    end,
    ..PLAIN
};

/// `       0.797 |****                                     2` of the histogram.
fn bucket(reader: &mut Reader<'_>, _: At, text: &str) -> bool {
    let Some((ms, rest)) = text.split_once('|').filter(|_| reader.section == "histogram") else {
        return false;
    };
    let count = rest.split_whitespace().last().and_then(|token| token.parse::<u64>().ok());
    let ms = ms.trim().parse::<f64>().ok().filter(|ms| ms.is_finite() && *ms >= 0.0);
    if let (Some(ms), Some(count)) = (ms, count) {
        let row = op_row(reader.draft, &reader.op);
        let histogram = &mut reader.draft.record.driver.ops[row].service.hist_ns;
        histogram.record_n((ms * 1e6).round() as u64, count);
    }
    true
}

fn end(reader: &mut Reader<'_>) {
    let draft = &mut *reader.draft;
    is_of(draft, "Transactions", "transaction");
    // Where no rate is printed it follows from the events, but for file I/O: its events are requests and syncs.
    let known = draft.number("", "events_count").zip(draft.record.interval.elapsed_s.value());
    let has_rate = ["ops_per_s", "transactions_per_s"].iter().any(|key| draft.has("", key));
    if let Some((events, elapsed_s)) =
        known.filter(|(_, elapsed_s)| *elapsed_s > 0.0 && !has_rate && draft.record.kind != "storage")
    {
        let row = load_row(draft, "Operations", "count");
        draft.record.instance.load_profile[row].per_s = (events / elapsed_s).into();
    }
    is_of(draft, "Operations", "event");
    operations_are_transactions(draft);
    let number = |key: &str| draft.number("", key);
    // A text without its head has no number of threads: it follows.
    let threads = number("events_count").zip(number("session_events_count_avg")).map(|(all, each)| all / each);
    if let Some(threads) = threads.filter(|threads| *threads >= 1.0 && (threads - threads.round()).abs() < 1e-3)
        && draft.record.run.sessions == 0
    {
        draft.record.run.sessions = threads.round() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, survives, told};

    const SAMPLES: [&str; 8] = [
        "sysbench-1.0-oltp.txt",
        "sysbench-1.0-fileio.txt",
        "sysbench-1.0-cpu.txt",
        "sysbench-1.0-memory.txt",
        "sysbench-1.0-threads.txt",
        "sysbench-0.4-oltp.txt",
        "sysbench-0.4-fileio.txt",
        "sysbench-0.5-oltp.txt",
    ];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn compare_finds_transactions_and_operations() {
        let record = imported("sysbench-1.0-oltp.txt");
        let metrics = &record.metrics;
        for key in ["transactions_per_s", "ops_per_s"] {
            let metric = assay_measure::record::metric::find(metrics, key).expect(key);
            assert_eq!(metric.value.value(), Some(258.68), "{key}");
        }
        let op = &record.driver.ops[0];
        assert_eq!(op.service.hist_ns.count(), 780);
        assert_eq!(op.service.us_p99.value(), Some(38_940.0));
        assert_eq!(record.series.metrics["commits_count_per_s"].len(), 3);
        assert_eq!(record.series.metrics["op_us_p99"][1].value(), Some(71_830.0));
    }

    #[test]
    fn both_layouts_give_the_same_keys() {
        let (old, new) = (imported("sysbench-0.4-oltp.txt"), imported("sysbench-1.0-oltp.txt"));
        for key in ["transactions_per_s", "transaction_us_avg", "elapsed_s", "sessions_count", "events_count"] {
            assert!(number(&old, "", key) > 0.0 && number(&new, "", key) > 0.0, "{key}");
        }
        assert_eq!(number(&old, "", "transaction_us_p95"), 12_500.0);
        let files = imported("sysbench-1.0-fileio.txt");
        assert_eq!(number(&files, "", "read_io_requests_per_s"), 10_534.71);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }

    #[test]
    fn sums_of_file_io_are_of_storage_and_keep_what_any_import_has() {
        let record = imported("sysbench-1.0-fileio.txt");
        assert_eq!(record.kind, "storage");
        let mut drawn = Vec::new();
        assay_report::kinds::of(&record).charts(&record, &mut |chart| drawn.push(chart));
        assert!(!drawn.is_empty(), "charts, or why each is none");
        let answer = assay_report::answer::of(&[&record], &Default::default()).text();
        assert!(!answer.contains("database: ."), "{answer}");
        assert_eq!(imported("sysbench-1.0-cpu.txt").kind, "cpu");
        assert_eq!(imported("sysbench-1.0-memory.txt").kind, "memory");
        assert_eq!(imported("sysbench-1.0-oltp.txt").kind, "transactions");
    }
}
