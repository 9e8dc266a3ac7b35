//! NUMA: latency and bandwidth from the CPUs of each node to the memory of each.

use super::info::NumaRow;
use super::{MemoryReadings, Work, refused};
use crate::crew::pin;
use crate::machine::{Machine, Node};
use assay_block::memory::{Area, Cycle, LANES, Policy, Spacing, sum};
use assay_measure::prng::SplitMix64;
use assay_measure::record::Figure;
use assay_measure::statistics::median;
use assay_run::engine::EngineError;
use assay_run::threads;
use std::hint::black_box;

/// Share of the time for all pairs.
const SHARE: f64 = 0.15;
const BATCHES: usize = 5;
const HOPS: u64 = 40_000;
/// Memory of a chase, at most: enough for the last cache of most sockets.
const CHASE_MOST: u64 = 512 << 20;

pub(super) fn with_memory(machine: &Machine) -> Vec<u32> {
    let nodes = machine.nodes.iter();
    let has = nodes.filter(|node| node.memory_bytes != Some(0));
    has.map(|node| node.number).collect()
}

/// Nodes with CPUs that this process may use, each with those.
fn with_cpus(machine: &Machine) -> Vec<(&Node, Vec<u32>)> {
    let all = machine.nodes.iter().map(|node| {
        let usable = |cpu: &&u32| machine.usable.contains(cpu);
        (node, node.cpus.iter().filter(usable).copied().collect())
    });
    all.filter(|(_, cpus): &(_, Vec<u32>)| !cpus.is_empty()).collect()
}

/// Each node's memory, then that of all by turns.
fn memories(machine: &Machine) -> Vec<Policy> {
    let nodes = with_memory(machine);
    let each = nodes.iter().map(|node| Policy::Node(*node));
    each.chain([Policy::Interleaved(nodes.clone())]).collect()
}

/// None on a machine with one node.
pub(super) fn steps(machine: &Machine) -> usize {
    match with_memory(machine).len() {
        0 | 1 => 0,
        _ => with_cpus(machine).len() * memories(machine).len(),
    }
}

pub(super) fn run(work: &Work<'_>, readings: &mut MemoryReadings) -> Result<(), EngineError> {
    if steps(work.machine) == 0 {
        return Ok(());
    }
    matrix(work, readings)
}

/// Every pair, whether there are several nodes or not.
fn matrix(work: &Work<'_>, readings: &mut MemoryReadings) -> Result<(), EngineError> {
    for (node, cpus) in with_cpus(work.machine) {
        for policy in memories(work.machine) {
            let memory = match &policy {
                Policy::Node(number) => number.to_string(),
                Policy::Interleaved(_) => "interleaved".to_owned(),
            };
            work.meter.next(&format!("node {}, memory {memory}", node.number));
            if work.stop.requested() {
                return Ok(());
            }
            let distance = match policy {
                Policy::Node(number) => distance(work.machine, node, number),
                Policy::Interleaved(_) => Figure::na("of no single node"),
            };
            match pair(work, &cpus, &policy) {
                Ok((ns, gb_per_s, placed)) => readings.info.numa.push(NumaRow {
                    cpu_node: node.number,
                    memory,
                    distance,
                    numa_latency_ns_p50: Figure::decimal(ns),
                    numa_gb_per_s: Figure::decimal(gb_per_s),
                    placed_pct: placed,
                }),
                // A node may have no room left, or a container forbid the call: that pair is not known.
                Err(why) => {
                    readings.info.left_out.push((format!("node {} to memory {memory}", node.number), why.to_string()))
                }
            }
        }
    }
    Ok(())
}

fn distance(machine: &Machine, from: &Node, to: u32) -> Figure {
    let nth = machine.nodes.iter().position(|node| node.number == to);
    let found = nth.and_then(|nth| from.distances.get(nth));
    found.map_or_else(|| Figure::na(crate::conditions::NOT_EXPOSED), |distance| Figure::Count(u64::from(*distance)))
}

/// ns of a hop, GB/s of all CPUs of the node, and the share of pages if they were requested.
fn pair(work: &Work<'_>, cpus: &[u32], policy: &Policy) -> Result<(f64, f64, Figure), EngineError> {
    let window = work.window_ns(SHARE, steps(work.machine));
    let bytes = work.sizes.ladder_bytes.min(CHASE_MOST) as usize;
    let (ns, placed) = std::thread::scope(|scope| {
        let chase = || chase(work, cpus[0], policy, bytes);
        let chase = threads::spawn(scope, "memory-chase".to_owned(), chase)?;
        chase.join().expect("a chase does not panic")
    })?;
    let mut area = Area::new(bytes, work.huge, "a node's memory").map_err(refused)?;
    area.place(policy.clone()).map_err(refused)?;
    let part = (area.floats().len() / cpus.len() / LANES * LANES).max(LANES);
    let rates = std::thread::scope(|scope| {
        let parts = area.floats().chunks_exact_mut(part).zip(cpus);
        let all: Result<Vec<_>, _> = parts
            .map(|(part, cpu)| {
                let read = move || read(work, *cpu, part, window / 2);
                threads::spawn(scope, format!("memory-{cpu}"), read)
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, f64>| thread.join().expect("a read does not panic");
        Ok::<_, EngineError>(all?.into_iter().map(join).sum::<f64>())
    })?;
    Ok((ns, rates, placed))
}

fn chase(work: &Work<'_>, cpu: u32, policy: &Policy, bytes: usize) -> Result<(f64, Figure), EngineError> {
    pin(cpu);
    let mut cycle = Cycle::new(bytes, work.huge, Spacing::Lines, "a node's memory").map_err(refused)?;
    // The first node is touched already, by this very CPU; all others come where they are asked for.
    cycle.bind(policy.clone()).map_err(refused)?;
    let mut random = SplitMix64(1);
    cycle.grow(bytes, |below| random.below(below));
    let mut at = cycle.place(0);
    let mut batches = Vec::new();
    for _ in 0..BATCHES {
        let begun = work.clock.now_ns();
        at = cycle.walk(at, HOPS);
        batches.push((work.clock.now_ns() - begun) as f64 / HOPS as f64);
    }
    black_box(at);
    Ok((median(&batches).unwrap_or(f64::NAN), placed(&cycle, policy)))
}

fn placed(cycle: &Cycle, policy: &Policy) -> Figure {
    let found = cycle.nodes();
    let all: u64 = found.iter().map(|(_, pages)| pages).sum();
    let wanted = |node: &u32| match policy {
        Policy::Node(number) => node == number,
        Policy::Interleaved(nodes) => nodes.contains(node),
    };
    let there: u64 = found.iter().filter(|(node, _)| wanted(node)).map(|(_, pages)| pages).sum();
    Figure::Count(100 * there).per(all as f64, crate::conditions::NOT_EXPOSED)
}

/// GB/s of one CPU that reads its part over and over.
fn read(work: &Work<'_>, cpu: u32, part: &mut [f64], window_ns: u64) -> f64 {
    pin(cpu);
    part.fill(1.0);
    let begun = work.clock.now_ns();
    let mut bytes = 0;
    loop {
        for piece in part.chunks((1 << 20) / 8) {
            black_box(sum(piece));
            bytes += size_of_val(piece);
            if work.stop.requested() {
                break;
            }
        }
        let ns = work.clock.now_ns() - begun;
        if ns >= window_ns || work.stop.requested() {
            return bytes as f64 / ns.max(1) as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizes::Sizes;
    use super::super::{Meter, Work};
    use super::*;
    use crate::machine::trees;
    use assay_block::Pages;
    use assay_measure::clock::Clock;
    use assay_run::probe::Steps;
    use assay_run::stop::Stop;
    use std::path::Path;
    use std::time::Duration;

    struct Silent;
    impl Steps for Silent {
        fn step(&self, _: usize, _: usize, _: &str) {}
    }

    #[test]
    fn memory_13_every_pair_of_nodes_is_measured_and_a_node_without_memory_is_no_target() {
        let dir = trees::memoryless_node();
        let mut machine = Machine::read(dir.path());
        machine.usable = machine.online.clone();
        assert_eq!(with_memory(&machine), [0, 2]);
        // Nodes 0 and 1 have CPUs; memory of nodes 0 and 2, and of both by turns.
        assert_eq!(steps(&machine), 2 * 3);
        assert_eq!(distance(&machine, &machine.nodes[1], 2), Figure::Count(24));
        let dir = trees::amd_vm();
        assert_eq!(steps(&Machine::read(dir.path())), 0);
    }

    #[test]
    fn memory_13_pages_of_a_pair_are_verified_on_their_node() {
        let machine = Machine::read(Path::new("/"));
        let sizes = Sizes { ladder_bytes: 8 << 20, ..Sizes::default() };
        let (clock, stop) = (Clock::real(), Stop::new());
        let cpus = machine.usable.clone();
        let work = Work {
            cpus: &cpus,
            counts: vec![1],
            sizes: &sizes,
            pages: &[Pages::Base],
            huge: Pages::Base,
            machine: &machine,
            time: Duration::from_millis(50),
            clock: &clock,
            stop: &stop,
            meter: Meter { steps: &Silent, done: 0.into(), of: 2 },
        };
        let mut readings = MemoryReadings::default();
        matrix(&work, &mut readings).unwrap();
        for row in &readings.info.numa {
            assert!(row.numa_latency_ns_p50.value().unwrap() > 0.0, "{row:?}");
            assert!(row.numa_gb_per_s.value().unwrap() > 0.0, "{row:?}");
            assert!(row.placed_pct.value().is_none_or(|pct| pct >= 99.0), "{row:?}");
        }
        let known = readings.info.numa.len() + readings.info.left_out.len();
        assert_eq!(known, with_cpus(&machine).len() * memories(&machine).len());
    }
}
