//! "Latency by Layer" and "Scan Throughput".

use super::header::percent;
use super::page::{Column, Page, left, number, number_or_reason, right};
use assay_measure::record::{Figure, LayerRow, Record, RequestLayers};

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

pub(super) fn by_layer(page: &mut Page, record: &Record) {
    page.heading("Latency by Layer");
    if record.layers.is_empty() {
        page.line("n/a (unsupported, or no requests)");
        return;
    }
    page.line(
        "engine is the session's wait, syscall from submit to reaping in the ring, device the mean of all its requests this way.",
    );
    page.line(
        "% Above is the share of the layer above that this layer does not explain, % of Total its mean over the wait's.",
    );
    page.columns(&LAYERS);
    for row in &record.layers {
        request(page, row);
    }
}

fn request(page: &mut Page, row: &RequestLayers) {
    page.line(&if row.event.is_empty() {
        row.request.clone()
    } else {
        format!("{} ({})", row.request, row.event)
    });
    let top = [&row.engine, &row.syscall]
        .into_iter()
        .find(|layer| !(row.is_batched && layer.layer == "engine"))
        .and_then(|layer| layer.latency.avg_us.value());
    let lost = [
        String::new(),
        percent(&row.lost_above_syscall_pct),
        percent(&row.lost_above_device_pct),
    ];
    for (layer, lost) in [&row.engine, &row.syscall, &row.device]
        .into_iter()
        .zip(lost)
    {
        // Batched waits and means of other requests have no share in each other.
        let comparable = match layer.layer.as_str() {
            "engine" => !row.is_batched,
            "device" => row.lost_total_pct.value().is_some(),
            _ => true,
        };
        let share = match top.filter(|us| comparable && *us > 0.0) {
            Some(top) => percent(&layer.latency.avg_us.scaled(100.0).per(top, "no time")),
            None => "n/a".to_owned(),
        };
        page.row(&LAYERS, &cells(layer, lost, share));
    }
    if let Some(reason) = row.device.latency.avg_us.reason() {
        page.line(&format!("    device n/a ({reason})"));
    }
    for note in &row.notes {
        page.wrapped("    ", note);
    }
}

fn cells(layer: &LayerRow, lost: String, share: String) -> [String; 9] {
    let spread = &layer.latency;
    [
        format!("  {}", layer.layer),
        number(&layer.count, 0),
        number(&spread.avg_us, 1),
        number(&spread.p50_us, 1),
        number(&spread.p99_us, 1),
        number(&spread.max_us, 1),
        lost,
        share,
        format!(" {}", layer.source),
    ]
}

/// What scans delivered; one line with the reason where there were none.
pub(super) fn scan(page: &mut Page, record: &Record) {
    let scan = &record.scan;
    if let (Some(reason), None | Some(0.0)) = (scan.direct_bytes.reason(), scan.scans_count.value())
    {
        page.missing("Scan Throughput", reason);
        return;
    }
    page.heading("Scan Throughput");
    let line = |page: &mut Page, name: &str, value: String| {
        page.line(&format!("{name:<44} {value}"));
    };
    line(page, "Scans ended", number(&scan.scans_count, 0));
    line(page, "Blocks of ended scans", number(&scan.blocks_count, 0));
    if record.server.is_some() {
        through_buffers(page, record);
    }
    line(
        page,
        "Streams of a scan",
        number_or_reason(&scan.streams_count, 0),
    );
    line(
        page,
        "Direct path reads, requests",
        number_or_reason(&scan.direct_requests_count, 0),
    );
    line(
        page,
        "Direct path reads, bytes",
        number_or_reason(&scan.direct_bytes, 0),
    );
    line(
        page,
        "Direct path reads, MB/s (10^6)",
        number_or_reason(&scan.direct_mb_per_s, 1),
    );
    line(
        page,
        "Direct path reads, MiB/s (2^20)",
        number_or_reason(&scan.direct_mib_per_s, 1),
    );
    line(
        page,
        "CPU of assay per GB (10^9) read so, s",
        number_or_reason(&scan.cpu_per_gb_s, 3),
    );
}

/// What a server's scans went through, whether in its buffers or not: small tables are not read past them.
fn through_buffers(page: &mut Page, record: &Record) {
    let facts = &record.plan.engine_facts;
    let block = facts.iter().find(|fact| fact.name == "block_bytes");
    let block: Option<f64> = block.and_then(|fact| fact.value.parse().ok());
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    let blocks = &record.scan.blocks_count;
    let mb_per_s = match block {
        Some(block) => blocks
            .scaled(block / 1e6)
            .per(elapsed, "no measured window"),
        None => Figure::na("block size unknown"),
    };
    page.line(&format!(
        "{:<44} {}",
        "Scanned in the server, MB/s (10^6)",
        number_or_reason(&mb_per_s, 1)
    ));
}
