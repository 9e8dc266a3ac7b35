//! "Latency by Layer" and "Scan Throughput".

use super::header::percent;
use assay_measure::facts;
use assay_measure::record::{Figure, LayerRow, Record, RequestLayers};
use assay_measure::section::{Cell, Column, Sections, left, number_or_reason, right};

/// Characters of a figure's name under "Scan Throughput".
const NAME: usize = 44;

const LAYERS: [Column; 9] = [
    left("Request (event) / Layer", 44),
    right("Count", 14),
    right("Avg (us)", 11),
    right("p50", 10),
    right("p99", 11),
    right("Max", 13),
    right("% Above", 9),
    right("% of Total", 11),
    left(" Source", 11),
];

pub(super) fn by_layer(page: &mut Sections, record: &Record) {
    page.heading("Latency by Layer");
    if record.instance.layers.is_empty() {
        page.line("n/a (unsupported, or no requests)");
        return;
    }
    page.wrapped(
        "",
        "engine: the wait of the session; syscall: from submission to reaping in the ring; device: the mean of all \
         its requests in this direction.",
    );
    page.wrapped(
        "",
        "% Above: the share of the layer above that this layer does not explain; % of Total: its mean divided by the \
         mean wait.",
    );
    page.columns(&LAYERS);
    for row in &record.instance.layers {
        request(page, row);
    }
}

fn request(page: &mut Sections, row: &RequestLayers) {
    page.line(&if row.event.is_empty() { row.request.clone() } else { format!("{} ({})", row.request, row.event) });
    let top = [&row.engine, &row.syscall]
        .into_iter()
        .find(|layer| !(row.is_batched && layer.layer == "engine"))
        .and_then(|layer| layer.latency.us_avg.value());
    let lost = [Cell::default(), percent(&row.lost_above_syscall_pct), percent(&row.lost_above_device_pct)];
    for (layer, lost) in [&row.engine, &row.syscall, &row.device].into_iter().zip(lost) {
        // Batched waits and means of other requests have no share in each other.
        let comparable = match layer.layer.as_str() {
            "engine" => !row.is_batched,
            "device" => row.lost_total_pct.value().is_some(),
            _ => true,
        };
        let share = match top.filter(|us| comparable && *us > 0.0) {
            Some(top) => percent(&layer.latency.us_avg.scaled(100.0).per(top, "no time")),
            None => "n/a".into(),
        };
        page.row(&LAYERS, &cells(layer, lost, share));
    }
    if let Some(reason) = row.device.latency.us_avg.reason() {
        page.line(&format!("    device n/a ({reason})"));
    }
    for note in &row.notes {
        page.wrapped("    ", note);
    }
}

fn cells(layer: &LayerRow, lost: Cell, share: Cell) -> [Cell; 9] {
    let spread = &layer.latency;
    [
        format!("  {}", layer.layer).into(),
        Cell::figure(&layer.count, 0),
        Cell::figure(&spread.us_avg, 1),
        Cell::figure(&spread.us_p50, 1),
        Cell::figure(&spread.us_p99, 1),
        Cell::figure(&spread.us_max, 1),
        lost,
        share,
        format!(" {}", layer.source).into(),
    ]
}

/// What scans delivered; one line with the reason where there were none.
pub(super) fn scan(page: &mut Sections, record: &Record) {
    let scan = &record.instance.scan;
    if let (Some(reason), None | Some(0.0)) = (scan.direct_bytes.reason(), scan.scans_count.value()) {
        page.missing("Scan Throughput", reason);
        return;
    }
    page.heading("Scan Throughput");
    page.named("Scans ended", NAME, Cell::figure(&scan.scans_count, 0));
    let blocks = Cell::figure(&scan.blocks_count, 0);
    page.named("Blocks of ended scans", NAME, blocks);
    if record.instance.server.is_some() {
        through_buffers(page, record);
    }
    for (name, figure, decimals) in [
        ("Streams of a scan", &scan.streams_count, 0),
        ("Direct path reads, requests", &scan.direct_requests_count, 0),
        ("Direct path reads, bytes", &scan.direct_bytes, 0),
        ("Direct path reads, MB/s (10^6)", &scan.direct_mb_per_s, 1),
        ("Direct path reads, MiB/s (2^20)", &scan.direct_mib_per_s, 1),
        ("CPU of assay per GB (10^9) read this way, s", &scan.cpu_per_gb_s, 3),
    ] {
        page.named(name, NAME, number_or_reason(figure, decimals));
    }
}

/// What a server's scans went through, whether in its buffers or not: small tables are not read past them.
fn through_buffers(page: &mut Sections, record: &Record) {
    let facts = &record.plan.engine_facts;
    let block = facts.iter().find(|fact| fact.name == "block_bytes");
    let block: Option<f64> = block.and_then(|fact| fact.value.parse().ok());
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    let blocks = &record.instance.scan.blocks_count;
    let mb_per_s = match block {
        Some(block) => blocks.scaled(block / 1e6).per(elapsed, "no measured window"),
        None => Figure::na("block size unknown"),
    };
    let name = format!("Scanned in the {}, MB/s (10^6)", facts::kind(facts));
    page.named(&name, NAME, number_or_reason(&mb_per_s, 1));
}
