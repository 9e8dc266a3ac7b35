//! The machine as boxes in boxes: nodes and sockets hold caches, those hold cores, cores hold threads.

use crate::machine::{Cache, Machine, ranges};
use assay_measure::section::Tile;
use assay_measure::units::size;
use std::collections::BTreeSet;

/// With more cores than this, those below one cache are one box.
const CORES_MOST: usize = 64;

/// One box for each socket, and one for each node of memory alone.
pub(super) fn of(machine: &Machine) -> Vec<Tile> {
    let mut tiles: Vec<Tile> = match machine.packages() {
        Some(packages) => packages.into_iter().map(|package| socket(machine, package)).collect(),
        None if machine.online.is_empty() => Vec::new(),
        None => vec![Tile {
            title: format!("CPUs {}", ranges(&machine.online)),
            lines: vec!["sockets and cores are not exposed".to_owned()],
            ..Tile::default()
        }],
    };
    let alone = machine.nodes.iter().filter(|node| node.cpus.is_empty());
    tiles.extend(alone.map(|node| Tile {
        title: format!("NUMA node {}", node.number),
        lines: vec![memory(node.memory_bytes), "no CPUs".to_owned()],
        ..Tile::default()
    }));
    tiles
}

fn memory(bytes: Option<u64>) -> String {
    match bytes {
        Some(0) => "no memory".to_owned(),
        Some(bytes) => format!("memory {}", size(bytes)),
        None => "memory not exposed".to_owned(),
    }
}

/// The nodes of a socket hold its CPUs; where a node has several sockets, each names it.
fn socket(machine: &Machine, package: u32) -> Tile {
    let of = |cpu: &&crate::machine::Cpu| cpu.package == Some(package);
    let cpus: Vec<u32> = machine.cpus.iter().filter(of).map(|cpu| cpu.number).collect();
    let has = |node: &&crate::machine::Node| node.cpus.iter().any(|cpu| cpus.contains(cpu));
    let nodes: Vec<_> = machine.nodes.iter().filter(has).collect();
    let title = format!("Socket {package}");
    match nodes[..] {
        [] => Tile { title, inside: below(machine, &cpus, u32::MAX), ..Tile::default() },
        _ => Tile {
            title,
            inside: nodes
                .iter()
                .map(|node| {
                    let mut own = node.cpus.clone();
                    own.retain(|cpu| cpus.contains(cpu));
                    Tile {
                        title: format!("NUMA node {}", node.number),
                        lines: vec![memory(node.memory_bytes)],
                        inside: below(machine, &own, u32::MAX),
                        ..Tile::default()
                    }
                })
                .collect(),
            ..Tile::default()
        },
    }
}

/// What lies below caches of this level: the next smaller caches that several cores share, else the cores.
fn below(machine: &Machine, cpus: &[u32], level: u32) -> Vec<Tile> {
    let core = |cpu: u32| {
        let of = machine.cpus.iter().find(|of| of.number == cpu);
        of.map_or((0, u32::MAX - cpu), |of| (of.package.unwrap_or(0), of.core.unwrap_or(u32::MAX - cpu)))
    };
    let cores = |cpus: &[u32]| cpus.iter().map(|cpu| core(*cpu)).collect::<BTreeSet<_>>();
    let is_shared = |cache: &&Cache| cache.level < level && cores(&cache.cpus).len() > 1;
    let here = |cache: &&Cache| cache.cpus.iter().any(|cpu| cpus.contains(cpu));
    let next = machine.caches.iter().filter(is_shared).filter(here);
    let next = next.map(|cache| cache.level).max();
    let Some(next) = next else {
        return each(machine, cpus, &cores(cpus), &core);
    };
    let mut left: Vec<u32> = cpus.to_vec();
    let mut tiles = Vec::new();
    for cache in machine.caches.iter().filter(|cache| cache.level == next) {
        let mut own = cache.cpus.clone();
        own.retain(|cpu| left.contains(cpu));
        if own.is_empty() {
            continue;
        }
        left.retain(|cpu| !own.contains(cpu));
        tiles.push(Tile {
            title: format!("{} {}", cache.name(), size(cache.bytes)),
            inside: below(machine, &own, next),
            ..Tile::default()
        });
    }
    if !left.is_empty() {
        tiles.extend(below(machine, &left, next));
    }
    tiles
}

/// A box for each core with its own caches and threads; of a large machine one box for all of them.
fn each(machine: &Machine, cpus: &[u32], cores: &BTreeSet<(u32, u32)>, core: &dyn Fn(u32) -> (u32, u32)) -> Vec<Tile> {
    let caches = |cpu: u32| {
        let own = machine.caches.iter().filter(|cache| cache.cpus.contains(&cpu));
        let own = own.filter(|cache| {
            let of: BTreeSet<_> = cache.cpus.iter().map(|cpu| core(*cpu)).collect();
            of.len() == 1
        });
        let mut own: Vec<String> = own.map(|cache| format!("{} {}", cache.name(), size(cache.bytes))).collect();
        own.reverse();
        own
    };
    let all = machine.cores().map_or(cpus.len(), |all| all.len());
    if all > CORES_MOST {
        let first = cpus.first().copied();
        return vec![Tile {
            title: format!("{} cores", cores.len()),
            lines: first.map_or_else(Vec::new, caches),
            inside: vec![Tile { title: format!("CPUs {}", ranges(cpus)), is_leaf: true, ..Tile::default() }],
            ..Tile::default()
        }];
    }
    let tile = |wanted: &(u32, u32)| {
        let threads: Vec<u32> = cpus.iter().copied().filter(|cpu| core(*cpu) == *wanted).collect();
        let name = match wanted.1 {
            number if number <= u32::MAX / 2 => format!("Core {number}"),
            _ => "Core".to_owned(),
        };
        Tile {
            title: name,
            lines: threads.first().map_or_else(Vec::new, |cpu| caches(*cpu)),
            inside: threads
                .iter()
                .map(|cpu| Tile { title: format!("CPU {cpu}"), is_leaf: true, ..Tile::default() })
                .collect(),
            ..Tile::default()
        }
    };
    cores.iter().map(tile).collect()
}
