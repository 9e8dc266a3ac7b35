use super::*;
use assay_testkit::conformance::probe_suite;
use std::any::Any;

struct Silent;

impl Steps for Silent {
    fn step(&self, _: usize, _: usize, _: &str) {}
}

fn measured(words: &[&str], ms: u64) -> Box<MemoryReadings> {
    let request = Request {
        time: Duration::from_millis(ms),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        ..Request::default()
    };
    let aimed = (SPEC.aim)(&request).unwrap();
    let readings: Box<dyn Any> = aimed.measure(&Stop::new(), &Silent).unwrap();
    readings.downcast().unwrap()
}

#[test]
fn it_passes_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    let violations = probe_suite(&SPEC, dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn memory_04_a_short_measurement_moves_nothing_wrong_and_measures_every_part() {
    let readings = measured(&[], 300);
    let info = &readings.info;
    assert_eq!(info.verification_errors, Vec::<String>::new());
    let counts = Placement::here().counts();
    assert_eq!(info.bandwidth.len(), counts.len() * bandwidth::combinations().len());
    for row in &info.bandwidth {
        assert!(row.passes_count >= 10, "{row:?}");
        let (middle, best) = (row.gb_per_s_p50.value(), row.gb_per_s_max.value());
        assert!(middle.unwrap() > 0.0 && best >= middle, "{row:?}");
        assert!(row.bus_gb_per_s_p50.value() >= middle, "{row:?}");
    }
    assert!(info.ladder.iter().all(|row| row.ns_p50.value().unwrap() > 0.0));
    assert_eq!(info.chains.len(), 8);
    assert_eq!(info.loaded.len(), counts.len());
    // Small pages stay small, whatever the kernel likes.
    let small = info.got.iter().find(|row| row.pages == "4k").unwrap();
    assert_eq!(small.huge_pct, Figure::decimal(0.0));
    let of_fresh = info.faults.iter().find(|row| row.pages == "4k").unwrap();
    assert!(of_fresh.page_faults_per_s.value().unwrap() > 0.0);
    assert!(!info.arrays.is_met && info.arrays.why.contains("--time"), "{:?}", info.arrays);
}

#[test]
fn memory_02_a_load_verifies_what_it_wrote_and_counts_pages() {
    let readings = measured(&["soak=2", "soak-bytes=8M"], 300);
    let soak = readings.info.soak.as_ref().unwrap();
    assert_eq!(readings.info.verification_errors_count, 0);
    assert!(soak.ops_count > 2048, "{soak:?}");
    let soaked = readings.info.soaked.as_ref().unwrap();
    assert_eq!(soaked.total_bytes, 16 << 20);
}

#[test]
fn memory_15_a_flipped_bit_makes_the_record_invalid() {
    // Long enough for one sweep of writes and one of reads, also where a thread has a tenth of a CPU.
    let readings = measured(&["soak=1", "soak-bytes=1M", "flip-bit"], 4000);
    assert_eq!(readings.info.verification_errors_count, 1);
    let record = readings.record(&RunData::default()).unwrap();
    assert_eq!(record.run.verdict, "invalid");
    assert!(record.run.verdict_reasons[0].contains("xor 0x20"), "{:?}", record.run.verdict_reasons);
    let wrong = record.doubts().next();
    assert!(wrong.is_some_and(|(_, text)| text.contains("has a fault")), "{:?}", record.advice);
}

#[test]
fn a_load_beyond_the_host_is_refused_before_anything_is_taken() {
    let request = Request {
        time: Duration::from_secs(1),
        words: vec!["soak=1000".to_owned(), "soak-bytes=1T".to_owned()],
        ..Request::default()
    };
    let refused = (SPEC.aim)(&request).err().unwrap();
    assert!(matches!(refused, EngineError::Unusable(_)), "{refused}");
}
