//! Identities of the samples, and what they say of changed ones.

mod mutation;

use super::percent_of;
use crate::testing::{imported, record_of, sample};
use assay_measure::identity::violated;
use assay_measure::record::{Identity, Record, Truth};

fn of(record: &Record, id: &str) -> Identity {
    let found = super::identities(record).into_iter();
    let mut found = found.filter(|identity| identity.id == id);
    found.next().unwrap_or_else(|| panic!("no {id}"))
}

fn holds(name: &str, id: &str) {
    let identity = of(&imported(name), id);
    assert_eq!(identity.ok, Truth::Holds, "{name} {id}: {}", identity.sentence);
}

fn is_violated(record: &Record, id: &str) -> Identity {
    let identity = of(record, id);
    assert_eq!(identity.ok, Truth::Violated, "{id}: {}", identity.sentence);
    identity
}

#[test]
fn percents_are_read_from_keys() {
    for (digits, percent) in [("1", 1.0), ("50", 50.0), ("995", 99.5), ("9999", 99.99), ("0_1", 0.1)] {
        assert_eq!(percent_of(digits), Some(percent));
    }
    assert_eq!(percent_of("x"), None);
}

#[test]
fn identity_i27_in_flight_of_published_runs() {
    for name in ["fio-3.7-randread-4k-qd256.txt", "fio-2.1.txt", "vdbench-summary.txt", "fio-3.33-mixed.txt"] {
        holds(name, "I27");
    }
    let wrong = sample("fio-3.7-randread-4k-qd256.txt").replace("avg=70791.09", "avg=7791.09");
    is_violated(&record_of("wrong", &wrong), "I27");
}

#[test]
fn identity_i30_throughput_is_rate_times_size() {
    for name in ["fio-3.7-randread-4k-qd256.txt", "fio-2.1.txt", "fio-3.33-mixed.json", "vdbench-two-runs.txt"] {
        holds(name, "I30");
    }
    let wrong = sample("fio-3.7-randread-4k-qd256.txt").replace("BW=56.5MiB/s (59.2MB/s)", "BW=65.5MiB/s (68.7MB/s)");
    is_violated(&record_of("wrong", &wrong), "I30");
}

#[test]
fn a_group_is_the_sum_of_its_jobs() {
    holds("fio-2.1.txt", "IO12");
    holds("fio-3.33-two-groups.txt", "IO12");
    let wrong = sample("fio-2.1.txt").replace("READ: io=4687.8MB", "READ: io=4887.8MB");
    is_violated(&record_of("wrong", &wrong), "IO12");
}

#[test]
fn identity_i37_the_published_percentiles_cannot_be() {
    let identity = is_violated(&imported("swingbench-results-table.txt"), "I37");
    assert!(identity.sentence.starts_with("6 of 6"), "{}", identity.sentence);
    assert!(identity.sentence.contains("are all 6,000 us while the mean is 18,190 us"), "{}", identity.sentence);
    for name in ["swingbench-results.xml", "fio-3.33-mixed.txt", "fio-3.33-two-groups.txt", "fio-2.1.txt"] {
        holds(name, "I37");
    }
    let wrong = sample("fio-2.1.txt").replace("99.00th=[13376]", "99.00th=[ 9000]");
    is_violated(&record_of("wrong", &wrong), "I37");
}

#[test]
fn identity_i38_a_closed_loop_gives_its_mean() {
    let identity = of(&imported("swingbench-results-table.txt"), "I38");
    assert_eq!(identity.ok, Truth::Holds);
    assert!(identity.sentence.starts_with("16,418 us lies between"), "{}", identity.sentence);
    for name in ["swingbench-results.xml", "pgbench-15-progress.txt", "sysbench-1.0-oltp.txt", "sysbench-0.4-oltp.txt"]
    {
        holds(name, "I38");
    }
    for name in ["pgbench-15-failures.txt", "pgbench-15-scripts.txt"] {
        assert!(matches!(of(&imported(name), "I38").ok, Truth::Na(_)), "{name}");
    }
    let wrong = sample("sysbench-0.4-oltp.txt").replace("9.99ms", "4.99ms");
    is_violated(&record_of("wrong", &wrong), "I38");
}

#[test]
fn identity_i39_a_synchronous_stream() {
    holds("oratcptest-0.txt", "I39");
    let wrong = sample("oratcptest-0.txt").replace("1.547 Mbytes/s", "2.547 Mbytes/s");
    is_violated(&record_of("wrong", &wrong), "I39");
}

#[test]
fn sums_of_the_network_and_of_stressors() {
    for name in ["iperf3-tcp.txt", "iperf3-3.12-parallel.txt", "iperf3-3.12-bidir.json", "iperf3-3.12-udp.txt"] {
        holds(name, "NET1");
    }
    holds("ping-bsd.txt", "NET2");
    for name in ["stress-ng-cpu.txt", "stress-ng-0.15-metrics.txt", "stress-ng-0.15.yaml"] {
        holds(name, "CPU1");
    }
    holds("pgio.txt", "PG1");
    let wrong = sample("stress-ng-cpu.txt").replace("4494.50", "5494.50");
    is_violated(&record_of("wrong", &wrong), "CPU1");
    let wrong = sample("pgio.txt").replace("RIOPS >20000<", "RIOPS >60000<");
    is_violated(&record_of("wrong", &wrong), "PG1");
}

/// Samples as people passed them on: what is absent, cut off or an upper bound is not judged.
#[test]
fn what_is_cut_off_or_only_an_upper_bound_is_not_judged() {
    let field = |name: &str| {
        let path = format!("{}/../../testdata/field/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("a sample")
    };
    for name in ["fio-paced-depth8.txt", "fio-cut-histogram.txt", "fio-cache-answered.txt"] {
        let record = record_of(name, &field(name));
        let broken = violated(&record).into_iter().map(|identity| format!("{} {}", identity.id, identity.sentence));
        assert_eq!(broken.collect::<Vec<_>>(), Vec::<String>::new(), "{name}");
    }
    // With its depth kept it is judged as before.
    let kept =
        field("fio-paced-depth8.txt").replace("1=100.0%, 2=0.0%, 4=0.0%, 8=0.0%", "1=0.0%, 2=0.0%, 4=0.0%, 8=100.0%");
    let record = record_of("kept.txt", &kept);
    assert!(violated(&record).into_iter().any(|identity| identity.id == "I27"));
    // All classes are there: the sum is judged.
    let whole = field("fio-cut-histogram.txt").replace("max=9000", "max=499").replace("max=9002", "max=499");
    let record = record_of("whole.txt", &whole);
    assert!(violated(&record).into_iter().any(|identity| identity.id == "IO16"));
}
