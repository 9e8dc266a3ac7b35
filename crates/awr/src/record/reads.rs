//! Where a server's reads came from: its own count, the kernel's account of its processes, the devices.

use crate::deltas::disk_deltas;
use crate::deltas::{Deltas, NO_WINDOW};
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::facts::{self, SERVER_HOST};
use assay_measure::record::{Checks, Figure, ReadSources};

/// Fewer bytes than this tell nothing about where reads come from.
const SOME_BYTES: f64 = 1_048_576.0;
const NO_DEVICE: &str = "no device known";

/// Whether the engine's work is done by the processes of a server.
pub(super) fn is_server(deltas: &Deltas<'_>) -> bool {
    let counters = &deltas.window.to.stats.counters;
    counters.contains_key(counter_catalog::SERVER_DEVICE_READ_BYTES.name)
}

/// The layers of a server's reads; `None` for an engine that is no server.
pub(super) fn sources(deltas: &Deltas<'_>, checks: &Checks) -> Option<ReadSources> {
    if !is_server(deltas) {
        return None;
    }
    let w = &deltas.window;
    let get = |stat: Stat| w.get(stat);
    let disks = disk_deltas(&deltas.data.begin.host, &deltas.data.end.host);
    let device = |sum: u64| if disks.is_empty() { Figure::na(NO_DEVICE) } else { Figure::Count(sum) };
    let mut reads = ReadSources {
        engine_blocks_count: get(counter_catalog::PHYSICAL_READS),
        engine_bytes: checks.engine_read_bytes.clone(),
        process_calls_count: get(counter_catalog::SERVER_READ_CALLS),
        process_call_bytes: get(counter_catalog::SERVER_READ_CALL_BYTES),
        process_device_bytes: get(counter_catalog::SERVER_DEVICE_READ_BYTES),
        device_requests_count: device(disks.iter().map(|disk| disk.reads).sum()),
        device_bytes: device(disks.iter().map(|disk| disk.read_bytes).sum()),
        buffer_hit_pct: checks.hit_measured_pct.clone(),
        engine_blocks_per_s: w.rate(counter_catalog::PHYSICAL_READS),
        ..ReadSources::default()
    };
    let workers = facts::workers(&deltas.data.engine_facts);
    judge(&mut reads, workers, &get(counter_catalog::SESSION_LOGICAL_READS), w.elapsed_s);
    said(&mut reads, deltas);
    Some(reads)
}

/// The share that met the page cache, and what follows from it.
fn judge(reads: &mut ReadSources, workers: &str, gets: &Figure, elapsed_s: f64) {
    let unknown = |reads: &mut ReadSources, reason: String| {
        reads.page_cache_pct = Figure::Na(reason.clone());
        reads.true_hit_pct = Figure::Na(reason.clone());
        reads.true_blocks_per_s = Figure::Na(reason);
    };
    // A neighbour's reads would pass for ours, so the smaller figure is the sharper one.
    let (process, device) = (reads.process_device_bytes.value(), reads.device_bytes.value());
    let (below, basis) = match (process, device) {
        (Some(process), Some(device)) if device < process => (device, "devices"),
        (Some(process), _) => (process, workers),
        (None, Some(device)) => (device, "devices"),
        (None, None) => {
            let reason = reads.process_device_bytes.reason().unwrap_or("unknowable");
            let reason = reason.to_owned();
            return unknown(reads, reason);
        }
    };
    let Some(engine) = reads.engine_bytes.value() else {
        let reason = reads.engine_bytes.reason().unwrap_or("unknowable");
        let reason = reason.to_owned();
        return unknown(reads, reason);
    };
    basis.clone_into(&mut reads.basis);
    let from_device = (below / engine.max(1.0)).min(1.0);
    if engine < SOME_BYTES {
        unknown(reads, "too few reads to judge".to_owned());
        return;
    }
    reads.page_cache_pct = Figure::decimal(100.0 * (1.0 - from_device));
    let blocks = reads.engine_blocks_count.scaled(from_device);
    reads.true_blocks_per_s = blocks.per(elapsed_s, NO_WINDOW);
    reads.true_hit_pct = match (gets.value(), blocks.value()) {
        (Some(gets), Some(blocks)) if gets > 0.0 => Figure::decimal((100.0 * (1.0 - blocks / gets)).max(0.0)),
        (Some(_), Some(_)) => Figure::na("no gets"),
        (None, _) => gets.clone(),
        (_, None) => blocks,
    };
}

/// What the engine says of its place and of EVICT.
fn said(reads: &mut ReadSources, deltas: &Deltas<'_>) {
    let facts = &deltas.data.engine_facts;
    let host = SERVER_HOST.told(facts).unwrap_or("n/a (absent)");
    host.clone_into(&mut reads.server_host);
    let asked = deltas.setting("EVICT").unwrap_or_default();
    // An unset parameter shows itself so among the settings.
    reads.evict_asked = asked.replace("(not set)", "");
    reads.evict_achieved = facts
        .iter()
        .filter(|fact| fact.name.starts_with("evict_") && !reads.evict_asked.is_empty())
        .map(|fact| format!("{}: {}", fact.name.trim_start_matches("evict_"), fact.value))
        .collect();
}

#[cfg(test)]
mod tests;
