//! What the host did between two readings of `/proc`.

use assay_measure::record::Figure;
use assay_measure::snapshot::{DiskReading, HostReading};

/// CPU time by column between two readings, ns; guest time is inside user and nice.
pub(crate) fn cpu_delta_ns(from: &HostReading, to: &HostReading) -> Option<[u64; 10]> {
    let (from, to) = (from.cpu_ns?, to.cpu_ns?);
    let mut moved = [0; 10];
    for (column, moved) in moved.iter_mut().enumerate() {
        // The kernel's iowait column may step back by a tick; that is no time.
        *moved = to[column].saturating_sub(from[column]);
    }
    Some(moved)
}

/// All CPU time of a delta, ns: guest columns are left out, they are counted already.
pub(crate) fn cpu_total_ns(moved: &[u64; 10]) -> u64 {
    moved[..8].iter().sum()
}

/// The share of a time in which a request was in flight, on average over the devices of several hosts, 0..100.
pub(crate) fn busy_pct(disk: &DiskReading, time_ns: f64, otherwise: &str) -> Figure {
    Figure::decimal(100.0 * disk.busy_ns as f64).per(time_ns * disk.devices.max(1) as f64, otherwise)
}

/// Devices that both readings know, as differences.
pub(crate) fn disk_deltas(from: &HostReading, to: &HostReading) -> Vec<DiskReading> {
    to.disks
        .iter()
        .filter_map(|now| {
            let then = from.disks.iter().find(|disk| disk.name == now.name)?;
            Some(DiskReading {
                name: now.name.clone(),
                reads: now.reads.saturating_sub(then.reads),
                read_merges: now.read_merges.saturating_sub(then.read_merges),
                read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
                read_ns: now.read_ns.saturating_sub(then.read_ns),
                writes: now.writes.saturating_sub(then.writes),
                write_merges: now.write_merges.saturating_sub(then.write_merges),
                write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
                write_ns: now.write_ns.saturating_sub(then.write_ns),
                in_flight: now.in_flight,
                busy_ns: now.busy_ns.saturating_sub(then.busy_ns),
                weighted_ns: now.weighted_ns.saturating_sub(then.weighted_ns),
                flushes: now.flushes.saturating_sub(then.flushes),
                flush_ns: now.flush_ns.saturating_sub(then.flush_ns),
                discard_ns: now.discard_ns.saturating_sub(then.discard_ns),
                devices: now.devices,
            })
        })
        .collect()
}
