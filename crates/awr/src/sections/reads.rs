//! "Where the Reads Came From", of a server.

use super::server::capital;
use assay_measure::facts;
use assay_measure::record::{Figure, ReadSources, Record};
use assay_measure::section::{Cell, Column, Sections, left, number_or_reason, right};
use assay_measure::units::size;

const LAYERS: [Column; 5] =
    [left("Layer", 44), right("Requests/s", 14), right("Bytes", 12), right("MiB/s", 12), left(" Source", 20)];
const MIB: f64 = 1_048_576.0;

pub(super) fn sources(page: &mut Sections, record: &Record) {
    let Some(reads) = &record.instance.reads else {
        return;
    };
    page.heading("Where the Reads Came From");
    page.wrapped(
        "",
        "The engine asks the operating system for each block that it has to read. Only blocks that the lower \
        layers fetched came from a device.",
    );
    let workers = facts::workers(&record.plan.engine_facts);
    layers(page, reads, workers, record.interval.elapsed_s.value().unwrap_or(0.0));
    shares(page, reads);
    let kind = capital(facts::kind(&record.plan.engine_facts));
    page.wrapped("", &format!("{kind}: {}", reads.server_host));
    if reads.evict_asked.is_empty() {
        // Not every target can.
        if record.plan.settings.iter().any(|line| line.name == "EVICT") {
            page.line("EVICT: not set; assay left the page cache as it was.");
        }
        return;
    }
    page.line(&format!("EVICT requested: {}", reads.evict_asked));
    for achieved in &reads.evict_achieved {
        page.wrapped("    ", achieved);
    }
}

fn layers(page: &mut Sections, reads: &ReadSources, workers: &str, elapsed_s: f64) {
    page.columns(&LAYERS);
    let rate = |figure: &Figure| figure.per(elapsed_s, "no measured window");
    let uncounted = Figure::na("not counted");
    let (called, fetched) = (format!("{workers}: read calls"), format!("{workers}: fetched from devices"));
    let rows = [
        ("engine: misses of its buffers", &reads.engine_blocks_count, &reads.engine_bytes, "engine, in blocks"),
        (&called, &reads.process_calls_count, &reads.process_call_bytes, "syscr, rchar"),
        (&fetched, &uncounted, &reads.process_device_bytes, "read_bytes"),
        ("devices: all reads, from all processes", &reads.device_requests_count, &reads.device_bytes, "diskstats"),
    ];
    for (layer, requests, bytes, source) in rows {
        let amount = bytes.value().map(|bytes| size(bytes as u64));
        page.row(
            &LAYERS,
            &[
                layer.to_owned().into(),
                Cell::figure(&rate(requests), 1),
                amount.unwrap_or_else(|| "n/a".to_owned()).into(),
                Cell::figure(&rate(bytes).scaled(1.0 / MIB), 1),
                format!(" {source}").into(),
            ],
        );
    }
    for (layer, _, bytes, _) in rows {
        if let Some(reason) = bytes.reason() {
            page.wrapped("    ", &format!("{layer}: n/a ({reason})"));
        }
    }
}

fn shares(page: &mut Sections, reads: &ReadSources) {
    let cached = number_or_reason(&reads.page_cache_pct, 1);
    let basis = match reads.basis.as_str() {
        "" => String::new(),
        basis => format!("   (by the {basis})"),
    };
    page.named("Page-cache share of the engine's reads, %", 44, format!("{cached}{basis}"));
    for (name, figure, decimals) in [
        ("Gets answered by the engine's buffers, %", &reads.buffer_hit_pct, 2),
        ("Gets without a device read, %", &reads.true_hit_pct, 2),
        ("Blocks read/s as the engine counts (RIOPS)", &reads.engine_blocks_per_s, 1),
        ("Blocks read/s delivered by a device", &reads.true_blocks_per_s, 1),
    ] {
        page.named(name, 44, number_or_reason(figure, decimals));
    }
}
