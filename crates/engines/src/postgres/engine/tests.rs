//! Sessions on a real server.

use super::*;
use crate::conformance;
use crate::postgres::params::PARAMS;
use assay_measure::config::{Tables, command_line, resolve};
use assay_run::{Options as RunOptions, Unobserved, execute};

struct Silent;

impl Progress for Silent {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}

fn settings(given: &[(&str, &str)]) -> Settings {
    let options = given
        .iter()
        .map(|(name, value)| ("--set".to_owned(), (*name).to_owned(), (*value).to_owned()));
    let tables = Tables {
        target: "postgres",
        params: PARAMS,
        others: &[],
    };
    let resolved = resolve(&tables, &[command_line(options)]);
    assert!(!resolved.has_errors(), "{:?}", resolved.problems);
    resolved.settings
}

fn place() -> Place {
    let dir = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/.pgdir")).unwrap();
    Place::new(&format!("//postgres@/postgres?host={}", dir.trim())).unwrap()
}

#[test]
fn conformance_suite() {
    let violations = conformance::suite(&mut |plan| conformance::Subject {
        engine: open(&place(), plan, &settings(&[("PG_SCHEMA", "small")]), &Stop::new(), &Silent).unwrap(),
        clock: Clock::real(),
    });
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
#[ignore]
fn bench() {
    let var = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let sessions: u32 = var("S", "1").parse().unwrap();
    let schemas: u32 = 2.min(sessions);
    let plan = Plan {
        work_unit: var("W", "1").parse().unwrap(),
        update_work_unit: var("W", "1").parse().unwrap(),
        update_pct: var("U", "0").parse().unwrap(),
        run_time_ns: 1_000_000_000 * var("T", "5").parse::<u64>().unwrap(),
        scan_blocks: 128,
        ..Plan::plain(schemas, sessions / schemas, 20000)
    };
    let engine = open(&place(), &plan, &settings(&[("LOOP", &var("L", "client"))]), &Stop::new(), &Silent).unwrap();
    let data = execute(&plan, &*engine, &Clock::real(), &Stop::new(), &mut Unobserved, RunOptions::default()).unwrap();
    let d = &data.end.driver;
    let ops: u64 = d.ops.iter().map(|op| op.service.count()).sum();
    println!("{:?} {:?} ops {ops} tps {:.0} cpu/op us {:.2} mean us {:.1}", data.verdict, data.warnings, ops as f64 / (data.end.at_ns as f64 / 1e9), d.thread_cpu_ns as f64 / 1e3 / ops as f64, d.busy_ns as f64/1e3/ops as f64);
}
