//! Runs the fault harness: `cargo xtask faults --help` says how.
#![forbid(unsafe_code)]

use assay_engines::native::engine::faults::{Base, Harness, Tally};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir = tempfile::tempdir().unwrap();
    let bases = [512, 4096].map(|log_block| {
        Base::prepare(&dir.path().join(format!("base-{log_block}")), log_block).unwrap()
    });
    let harness = Harness::new(&bases);
    let (a, b): (u64, u64) = (args[0].parse().unwrap(), args[1].parse().unwrap());
    let trace = b == a + 1;
    let mut tally = Tally::default();
    let begun = std::time::Instant::now();
    let mut bad = 0;
    for seed in a..b {
        match harness.run(seed..seed + 1, trace, &mut tally) {
            Ok(lines) => lines.iter().for_each(|line| println!("{line}")),
            Err(failure) => {
                failure.trace.iter().for_each(|line| println!("{line}"));
                println!("seed {}: {}", failure.seed, failure.text);
                bad += 1;
                if bad > 20 {
                    break;
                }
            }
        }
    }
    println!("{tally:?}");
    println!(
        "{:.1} seeds/s, {bad} bad",
        tally.seeds as f64 / begun.elapsed().as_secs_f64()
    );
}
