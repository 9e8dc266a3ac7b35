//! Swingbench's three outputs.

use super::super::testing::{imported, number, sample, survives, told, value};
use super::super::{Source, Tool, import, recognise};

const SAMPLES: [&str; 4] = [
    "swingbench-charbench.txt",
    "swingbench-oewizard-scale5.txt",
    "swingbench-results-table.txt",
    "swingbench-results.xml",
];

#[test]
fn every_sample_is_recognised_and_read_as_frozen() {
    for name in SAMPLES {
        assert_eq!(recognise(&sample(name)), Some(Tool::Swingbench), "{name}");
        insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
    }
}

#[test]
fn the_generator_tells_rows_and_times() {
    let record = imported("swingbench-oewizard-scale5.txt");
    assert_eq!(number(&record, "", "load_data_generation_s"), 178.752);
    assert_eq!(number(&record, "", "load_rows_count"), 75_779_407.0);
    assert_eq!(number(&record, "", "load_data_mb_per_s"), 33.9);
}

#[test]
fn the_published_table_gives_its_figures() {
    let record = imported("swingbench-results-table.txt");
    assert_eq!((record.run.sessions, record.interval.elapsed_s.value()), (128, Some(600.0)));
    let metrics = &record.metrics;
    for key in ["transactions_per_s", "ops_per_s"] {
        let metric = assay_measure::record::metric::find(metrics, key).expect(key);
        assert_eq!(metric.value.value(), Some(7796.54));
    }
    let avg = value(&record, "", "order_products_us_avg");
    assert_eq!((avg.value.value(), avg.line), (Some(28_240.0), 22));
    assert_eq!(record.driver.ops.len(), 6);
    assert_eq!(record.driver.ops[0].service.us_p90.value(), Some(10_000.0));
}

#[test]
fn the_results_file_has_more() {
    let record = imported("swingbench-results.xml");
    let orders = &record.driver.ops[1];
    assert_eq!((orders.kind.as_str(), orders.count), ("order_products", 100_000));
    assert_eq!(orders.service.us_max.value(), Some(980_000.0));
    assert_eq!(number(&record, "", "browse_products_us_p20"), 6_000.0);
    let rates = &record.series.metrics["commits_count_per_s"];
    assert_eq!(rates.len(), 4);
    assert_eq!(rates[3].value(), Some(1005.0));
}

#[test]
fn the_progress_of_charbench_is_a_series() {
    let record = imported("swingbench-charbench.txt");
    assert_eq!(record.run.sessions, 100);
    let rates = &record.series.metrics["commits_count_per_s"];
    let rates: Vec<Option<f64>> = rates.iter().map(|rate| rate.value()).collect();
    assert_eq!(rates, [Some(1830.0), Some(2050.0), Some(2081.0)]);
}

#[test]
fn a_torn_results_file_says_where() {
    let whole = sample("swingbench-results.xml");
    let source = Source { path: "results.xml".to_owned(), text: whole[..whole.len() / 2].to_owned() };
    let error = import(&[source]).expect_err("torn").to_string();
    assert!(error.starts_with("results.xml:") && error.contains("incomplete"), "{error}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
    #[test]
    fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
        survives(SAMPLES[which], seed);
    }
}
