//! Charts of memory.

use super::super::info::{LadderRow, MemoryInfo};
use assay_measure::chart::{Axis, Chart, ChartMark, Drawn, Stroke, Trace};
use assay_measure::palette::nth;
use assay_measure::units::size;

const STOPPED: &str = "the probe was stopped before";

/// All of them.
pub(super) fn all(info: &MemoryInfo) -> Vec<Drawn> {
    match &info.soak {
        Some(soak) => crate::load::charts(soak, "pages written or read back"),
        None => vec![ladder(info, "lines"), bandwidth(info), chains(info), loaded(info), ladder(info, "pages")],
    }
}

fn ladder(info: &MemoryInfo, spacing: &str) -> Drawn {
    let (id, title, note) = match spacing {
        "lines" => (
            "c-ladder",
            "Latency of a dependent load by the size of the memory it walks",
            "A chain of pointers in random order, one in each cache line; the marks show the caches that the kernel \
             reports.",
        ),
        _ => (
            "c-ladder-pages",
            "The same with one pointer in each 4 KiB",
            "Few lines and many pages: the additional cost of a step, compared with the chart of cache lines, is \
             address translation.",
        ),
    };
    let of = |row: &&LadderRow| row.spacing == spacing;
    let rows: Vec<&LadderRow> = info.ladder.iter().filter(of).collect();
    let mut pages: Vec<&str> = rows.iter().map(|row| row.pages.as_str()).collect();
    pages.dedup();
    let traces = pages.iter().enumerate().map(|(at, pages)| {
        let own = rows.iter().filter(|row| row.pages == *pages);
        let x = own.clone().map(|row| row.bytes as f64 / 1024.0).collect();
        let ns = own.map(|row| row.ns_p50.value()).collect();
        Trace::new(&format!("{pages} pages"), Stroke::Joined, nth(at), ns).at(x)
    });
    let marks = info.caches.iter().map(|cache| ChartMark {
        at: cache.bytes as f64 / 1024.0,
        text: format!("{} {}", cache.name, size(cache.bytes)),
    });
    let chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        note: note.to_owned(),
        x: Axis::log("memory", "KiB"),
        y: Axis::log("per step", "ns"),
        traces: traces.collect(),
        marks: marks.collect(),
        ..Chart::default()
    };
    Drawn::or(chart, STOPPED)
}

fn bandwidth(info: &MemoryInfo) -> Drawn {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for row in &info.bandwidth {
        let name = (row.kernel.as_str(), row.stores.as_str());
        // Scale and add say what copy and triad say; the table has all.
        if !names.contains(&name) && !["scale", "add"].contains(&name.0) {
            names.push(name);
        }
    }
    let traces = names.iter().enumerate().map(|(at, (kernel, stores))| {
        let own = info.bandwidth.iter().filter(|row| row.kernel == *kernel && row.stores == *stores);
        let x = own.clone().map(|row| row.threads_count as f64).collect();
        let rates = own.map(|row| row.gb_per_s_p50.value()).collect();
        let name = format!("{kernel} {stores}");
        Trace::new(name.trim(), Stroke::Joined, nth(at), rates).at(x)
    });
    let chart = Chart {
        id: "c-bandwidth".to_owned(),
        title: "Bandwidth by threads".to_owned(),
        note: "Bytes that the formula counts, median of the passes; a normal store also reads the line that it writes."
            .to_owned(),
        x: Axis::of("threads", ""),
        y: Axis::of("bandwidth", "GB/s"),
        traces: traces.collect(),
        ..Chart::default()
    };
    Drawn::or(chart, STOPPED)
}

fn chains(info: &MemoryInfo) -> Drawn {
    let x = info.chains.iter().map(|row| row.chains_count as f64).collect();
    let y = info.chains.iter().map(|row| row.parallel_ratio.value()).collect();
    let chart = Chart {
        id: "c-chains".to_owned(),
        title: "Parallel accesses".to_owned(),
        note: "Steps of one thread that walks several chains, against one chain: this shows how many misses a core \
            keeps in flight."
            .to_owned(),
        x: Axis::of("chains", ""),
        y: Axis::of("times one chain", ""),
        traces: vec![Trace::new("steps per time", Stroke::Joined, nth(0), y).at(x)],
        ..Chart::default()
    };
    Drawn::or(chart, STOPPED)
}

fn loaded(info: &MemoryInfo) -> Drawn {
    let mut rows: Vec<(f64, Option<f64>)> =
        info.loaded.iter().filter_map(|row| Some((row.gb_per_s.value()?, row.loaded_latency_ns_p50.value()))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (x, y) = rows.into_iter().unzip();
    let chart = Chart {
        id: "c-loaded".to_owned(),
        title: "Latency under load".to_owned(),
        note: "The chase of one CPU while others read: latency against their total read rate.".to_owned(),
        x: Axis::of("read by others", "GB/s"),
        y: Axis::of("per step", "ns"),
        traces: vec![Trace::new("latency", Stroke::Joined, nth(0), y).at(x)],
        ..Chart::default()
    };
    Drawn::or(chart, STOPPED)
}
