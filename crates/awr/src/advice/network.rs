//! The way between two hosts: R23.

use super::{Judged, Missing, finding, need};
use assay_measure::record::{Figure, Record};
use assay_measure::units::fixed;

/// The value of a key that an import read of the whole test. Those of its seconds have a scope.
fn read(record: &Record, key: &str) -> Option<Figure> {
    let mut values = record.import.iter().flat_map(|info| &info.values);
    values.find(|value| value.key == key && value.scope.is_empty()).map(|value| value.value.clone())
}

/// R23. What is left of a remote call when its disk write is taken off.
pub(super) fn network_part(record: &Record) -> Judged {
    const THRESHOLD: f64 = 25.0;
    let Some(call) = read(record, "redo_transport_us_avg") else {
        return Ok(None);
    };
    let call = need(&call, "latency of the remote call")?;
    let Some(disk) = read(record, "redo_transport_disk_write_us_avg") else {
        return Err(Missing("disk part of the remote call: not printed (no disk write)".to_owned()));
    };
    let disk = need(&disk, "disk part of the remote call")?;
    let network = call - disk;
    if call <= 0.0 || network < 0.0 || 100.0 * network / call < THRESHOLD {
        return Ok(None);
    }
    let pct = 100.0 * network / call;
    let text = format!(
        "The network is {} % of a remote call: {} us of {} us, {} us is the disk write of the remote side. Improve \
         the network (distance, switches, socket buffers, interrupts) before you buy a faster disk for the remote \
         side.",
        fixed(pct, 0),
        fixed(network, 0),
        fixed(call, 0),
        fixed(disk, 0)
    );
    let evidence = [("network_pct", pct), ("network_us", network), ("disk_us", disk)];
    finding("R23", pct, THRESHOLD, text, &evidence)
}
