//! Requests and bytes per second of the engine and of the devices.

use super::time::{self, NO_SERIES};
use assay_measure::chart::{Axis, Drawn, Stroke};
use assay_measure::palette::{BLUE, ORANGE, PURPLE, SKY, VERMILION};
use assay_measure::record::Record;

const NOTE: &str = "Solid lines: requests of the engine (layer engine). Dashed lines: requests that the devices \
    below its files completed, from all processes (layer device). If the devices are far below the engine, a cache \
    between them answers. If they are above it, other processes use them, or the kernel splits requests.";

/// Requests per second by kind.
pub(super) fn requests(record: &Record) -> Drawn {
    let columns = [
        ("read_io_requests_count_per_s", "reads, engine", Stroke::Line, BLUE),
        ("write_io_requests_count_per_s", "writes, engine", Stroke::Line, VERMILION),
        ("log_file_sync_waits_count_per_s", "log file syncs", Stroke::Line, PURPLE),
        ("redo_writes_count_per_s", "redo writes, engine", Stroke::Dotted, PURPLE),
        ("device_read_requests_count_per_s", "reads, device", Stroke::Dashed, SKY),
        ("device_write_requests_count_per_s", "writes, device", Stroke::Dashed, ORANGE),
    ];
    let y = Axis::of("requests", "1/s");
    let title = "I/O requests per second, engine and device";
    let mut chart = time::chart(record, "c-iops", title, y, NOTE);
    chart.traces = time::traces(record, &columns);
    Drawn::or(chart, NO_SERIES)
}

/// Bytes per second by kind.
pub(super) fn bytes(record: &Record) -> Drawn {
    let columns = [
        ("read_mib_per_s", "reads, engine", Stroke::Line, BLUE),
        ("write_mib_per_s", "writes, engine", Stroke::Line, VERMILION),
        ("redo_mib_per_s", "redo generated", Stroke::Line, PURPLE),
        ("device_read_mib_per_s", "reads, device", Stroke::Dashed, SKY),
        ("device_write_mib_per_s", "writes, device", Stroke::Dashed, ORANGE),
    ];
    let y = Axis::of("throughput", "MB/s, 2^20 bytes");
    let title = "MB per second, engine and device";
    let mut chart = time::chart(record, "c-mbps", title, y, NOTE);
    chart.traces = time::traces(record, &columns);
    Drawn::or(chart, NO_SERIES)
}
