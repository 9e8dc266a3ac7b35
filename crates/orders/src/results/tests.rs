//! The results file as the field's script reads it.

use super::*;
use crate::part::{FromEngine, TxRow};
use assay_measure::record::{Figure, Latency};
use proptest::prelude::*;
use roxmltree::Document;

/// A record of one transaction with these times, us.
fn record(times_us: &[u64]) -> (Record, OrdersInfo) {
    let mut times = Histogram::new();
    times_us.iter().for_each(|us| times.record(us * 1000));
    let mut record = Record::default();
    record.interval.elapsed_s = Figure::decimal(10.0);
    "2026-01-02T16:34:08Z".clone_into(&mut record.run.started);
    record.run.label = Some("a < b & c".to_owned());
    record.driver.ops = vec![OpRow {
        kind: Tx::OrderProducts.key().to_owned(),
        count: times.count(),
        per_s: Figure::decimal(times.count() as f64 / 10.0),
        rows_count: 0,
        service: Latency::of(&times),
        response: Latency::of(&times),
    }];
    let info = OrdersInfo {
        known: FromEngine::default(),
        dropped: 0,
        transactions: vec![TxRow { kind: Tx::OrderProducts.key().to_owned(), weight: 40, ..TxRow::default() }],
    };
    (record, info)
}

fn number(document: &Document<'_>, name: &str) -> f64 {
    let node = document.descendants().find(|node| node.tag_name().name() == name);
    let text = node.and_then(|node| node.text()).unwrap_or_else(|| panic!("{name}"));
    text.parse().unwrap_or_else(|_| panic!("{name}: {text}"))
}

#[test]
fn every_element_that_the_script_needs_is_there() {
    let (record, info) = record(&[1000; 50_000]);
    let xml = file(&record, &info);
    let document = Document::parse(&xml).expect("XML");
    let names = [
        "BenchmarkName",
        "Comment",
        "TimeOfRun",
        "TotalRunTime",
        "TotalLogonTime",
        "TotalCompletedTransactions",
        "TotalFailedTransactions",
        "AverageTransactionsPerSecond",
        "MaximumTransactionRate",
        "NumberOfUsers",
        "MinimumInterThinkTime",
        "MaximumInterThinkTime",
        "MinimumIntraThinkTime",
        "MaximumIntraThinkTime",
        "ConnectString",
        "TimingsIn",
        "WaitTillAllLogon",
        "Driver",
        "SelectStatements",
        "RollbackStatements",
        "AverageResponse",
        "TenthPrecentile",
        "FiftythPercentile",
        "NinetiethPercentile",
        "TPSReadings",
    ];
    for name in names {
        assert!(document.descendants().any(|node| node.tag_name().name() == name), "{name}");
    }
    let result = document.descendants().find(|node| node.tag_name().name() == "Result").expect("a transaction");
    assert_eq!(result.attribute("id"), Some("Order Products"));
    assert!(xml.contains("<TimeOfRun>Jan 2, 2026 4:34:08 PM</TimeOfRun>") && xml.contains("a &lt; b &amp; c"));
    assert_eq!(number(&document, "AverageTransactionsPerSecond"), 5000.0);
    let table = table(&record, &info);
    let widths: Vec<usize> = table.lines().map(str::len).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
    assert!(table.contains("Minimum Intra TX Think Time") && table.contains("| Order Products"));
}

proptest! {
    #[test]
    fn percentiles_are_in_order_and_those_of_the_sorted_times(times in proptest::collection::vec(1_u64..3_000_000, 1..400)) {
        let (record, info) = record(&times);
        let xml = file(&record, &info);
        let document = Document::parse(&xml).expect("XML");
        let mut sorted = times.clone();
        sorted.sort_unstable();
        let mut last = number(&document, "MinimumResponse");
        for (name, q) in PERCENTILES {
            let found = number(&document, name);
            prop_assert!(found + 0.011 >= last, "{} {} {}", name, found, last);
            last = found;
            let rank = ((q * sorted.len() as f64).ceil() as usize).max(1) - 1;
            let exact = sorted[rank] as f64 / 1000.0;
            prop_assert!((found - exact).abs() <= 0.011 + exact * 0.02, "{} {} {}", name, found, exact);
        }
        let (mean, max) = (number(&document, "AverageResponse"), number(&document, "MaximumResponse"));
        prop_assert!(last <= max + 0.011 && mean <= max + 0.011);
        prop_assert!(number(&document, "GeometricMean") <= mean + 0.011);
    }
}
