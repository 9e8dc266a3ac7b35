use super::bench::{REPETITIONS, Step, steps};
use super::reading::PairKind;
use super::*;
use assay_testkit::conformance::probe_suite;
use std::any::Any;

struct Silent;

impl Steps for Silent {
    fn step(&self, _: usize, _: usize, _: &str) {}
}

fn request(words: &[&str], ms: u64) -> Request {
    Request {
        time: Duration::from_millis(ms),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        ..Request::default()
    }
}

fn measured(words: &[&str], ms: u64) -> Box<CpuReadings> {
    let aimed = (SPEC.aim)(&request(words, ms)).unwrap();
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
fn repetitions_are_interleaved_and_every_number_of_threads_has_its_place() {
    let placement = Placement { cpus: vec![0, 2, 1, 3], cores: Some(2) };
    let kernels: Vec<&Kernel> = KERNELS.iter().take(6).collect();
    let all = steps(&kernels, &placement);
    let of = |wanted: &str, repetition: u32| -> Vec<usize> {
        let mut found = Vec::new();
        for step in &all {
            if let Step::Shot(name, threads, at) = step
                && (*name, *at) == (wanted, repetition)
            {
                found.push(*threads);
            }
        }
        found
    };
    for repetition in 0..REPETITIONS {
        assert_eq!(of("add-dep", repetition), [1, 4]);
        assert_eq!(of("btree-16m", repetition), [1, 2, 4]);
    }
    // Never the same kernel twice in a row with the same threads.
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    let lines = all.iter().filter(|step| matches!(step, Step::Pair(PairKind::Line, ..)));
    assert_eq!(lines.count(), 6);
}

#[test]
fn cpu_04_a_short_measurement_computes_nothing_wrong_and_every_thread_counts_for_itself() {
    let readings = measured(&[], 300);
    assert_eq!(readings.wrong, Vec::<String>::new());
    let placement = Placement::here();
    assert_eq!(readings.cpus, placement.cpus);
    for shot in &readings.shots {
        assert!(!shot.threads.is_empty());
        for (thread, cpu) in shot.threads.iter().zip(&placement.cpus) {
            assert_eq!(thread.cpu, *cpu, "{}", shot.kernel);
            assert!(thread.calls > 0 && thread.elapsed_ns > 0 && thread.mhz > 1.0);
        }
    }
    for kernel in KERNELS.iter().filter(|kernel| !LARGE.contains(&kernel.name)) {
        let repetitions = readings.shots.iter().filter(|shot| shot.kernel == kernel.name && shot.threads.len() == 1);
        let left_out = readings.left_out.iter().any(|(name, _)| *name == kernel.name);
        let wanted = if left_out { 0 } else { REPETITIONS as usize };
        assert!(repetitions.count() >= wanted, "{}", kernel.name);
    }
    assert!(readings.pairs.iter().all(|pair| pair.ns > 0.0 && pair.ns_min <= pair.ns));
}

#[test]
fn cpu_02_user_and_system_time_are_those_of_the_process() {
    let readings = measured(&["soak=2"], 300);
    let soak = readings.soak.unwrap();
    assert_eq!((soak.workers, soak.errors), (2, 0));
    assert!(soak.ops > 0 && soak.real_ns >= 300_000_000);
    // Other tests of this process may work meanwhile: no less than the workers', whose time can be no more than theirs.
    let usable = readings.cpus.len() as u64 * readings.host.elapsed_ns;
    assert!(soak.user_ns + soak.system_ns > 0);
    assert!(soak.user_ns + soak.system_ns <= usable + usable / 10);
    assert_eq!(soak.seconds.len(), 1);
    assert!(soak.seconds[0].ops <= soak.ops);
}

#[test]
fn cpu_15_a_flipped_bit_is_an_error_with_its_place_and_makes_the_record_invalid() {
    let clock = Clock::real();
    let kernel = KERNELS.iter().find(|kernel| kernel.name == "xxh64").unwrap();
    let ready = [Ready::new(kernel).broken()];
    let stop = Stop::new();
    let load = Load {
        workers: 1,
        labour: &kernels::ByTurns(&ready),
        cpus: &crate::host::allowed()[..1],
        time: Duration::from_millis(50),
        clock: &clock,
        stop: &stop,
    };
    // A machine may be too busy for a single turn in that time.
    let soak = (0..100).find_map(|_| load.run(&Silent).unwrap()).unwrap();
    let readings = CpuReadings { wrong: soak.wrong.clone(), soak: Some(soak), ..CpuReadings::default() };
    let errors = readings.soak.as_ref().unwrap().errors;
    assert!(errors > 0);
    assert!(readings.wrong[0].contains("chunk 0 of xxh64 computed"), "{:?}", readings.wrong);
    let record = record::build(&RunData::default(), &readings);
    assert_eq!(record.run.verdict, "invalid");
    let wrong = record.doubts().next();
    assert!(wrong.is_some_and(|(_, text)| text.contains("has a fault")), "{:?}", record.advice);
}

#[test]
fn more_workers_than_cpus_end_with_the_time() {
    let readings = measured(&["soak=200"], 1);
    let soak = readings.soak.unwrap();
    assert_eq!(soak.workers, 200);
    assert!(!readings.is_pinned);
    assert!(soak.ops >= 200, "{}", soak.ops);
}
