//! Reads: R8, R13, R14, R16, R18.

use super::{Judged, Missing, finding, foreground, named, need, share, stat};
use crate::readings::{cache_parameter, device_reads};
use assay_measure::histogram::{Histogram, slot_low_and_width_ns};
use assay_measure::record::Advice;
use assay_measure::record::{EventRow, Figure, Record};
use assay_measure::units::{fixed, size, thousands};

/// R8: two local maxima with a valley of at most half the lower one between them.
pub(super) fn bimodal_reads(record: &Record) -> Judged {
    let names = ["db file sequential read", "cell single block physical read"];
    let mut named = names.into_iter().filter_map(|name| named(record, name, "foreground"));
    let Some(reads) = named.find(|event| event.hist_us.iter().any(|count| *count > 0)) else {
        return Ok(None);
    };
    let waits: u64 = reads.hist_us.iter().sum();
    let Some((low, valley, high)) = modes(&reads.hist_us) else {
        return Ok(None);
    };
    let slow: u64 = reads.hist_us[valley..].iter().sum();
    let pct = 100.0 * slow.min(waits - slow) as f64 / waits as f64;
    if pct < 1.0 {
        return Ok(None);
    }
    // Bucket i holds 2^(i-1) to 2^i us: its middle stands for its waits.
    let time = |buckets: std::ops::Range<usize>| -> f64 {
        buckets.map(|i| reads.hist_us[i] as f64 * 0.75 * (1_u64 << i) as f64).sum()
    };
    let all = time(0..reads.hist_us.len());
    let slow_time = 100.0 * time(valley..reads.hist_us.len()) / all;
    let slow_waits = 100.0 * slow as f64 / waits as f64;
    let fast_mean = time(0..valley) / (waits - slow) as f64;
    let text = format!(
        "Read latency has two populations, around {} us and {} us: this shows a cache tier or a second device class. \
         The slow population is {} % of waits and {} % of the time; the fast one averages {} us. The average of all \
         reads describes neither.",
        thousands(1 << low),
        thousands(1 << high),
        fixed(slow_waits, 1),
        fixed(slow_time, 0),
        fixed(fast_mean, 0)
    );
    let evidence = [("slow_waits_pct", slow_waits), ("slow_time_pct", slow_time), ("fast_avg_us", fast_mean)];
    finding("R8", slow_time, 25.0, text, &evidence)
}

/// Lower mode, valley and upper mode of a log2 histogram.
pub(super) fn modes(buckets: &[u64]) -> Option<(usize, usize, usize)> {
    let all: u64 = buckets.iter().sum();
    let mut best = None;
    for low in 0..buckets.len() {
        for high in low + 2..buckets.len() {
            let (valley, least) = (low + 1..high).map(|i| (i, buckets[i])).min_by_key(|(_, n)| *n)?;
            let lower = buckets[low].min(buckets[high]);
            if 2 * least <= lower && 100 * lower >= all && best.is_none_or(|(l, _)| lower > l) {
                best = Some((lower, (low, valley, high)));
            }
        }
    }
    best.map(|(_, modes)| modes)
}

/// R13.
pub(super) fn page_cache(record: &Record) -> Judged {
    const THRESHOLD: f64 = 0.5;
    const SOME_BYTES: f64 = 16_777_216.0;
    let checks = &record.checks;
    let Ok(engine) = need(&checks.engine_read_bytes, "engine read bytes") else {
        return Ok(None);
    };
    if engine < SOME_BYTES {
        return Ok(None);
    }
    let (below, layer) = match (checks.device_read_bytes.value(), checks.process_read_bytes.value()) {
        // A neighbour's reads would hide ours: what this process caused is the sharper figure.
        (Some(device), Some(process)) => (device.min(process), "the devices"),
        (Some(device), None) => (device, "the devices"),
        (None, Some(process)) if record.instance.reads.is_some() => {
            (process, "the kernel, for the server's processes,")
        }
        (None, Some(process)) => (process, "the kernel, for this process,"),
        (None, None) => {
            return Err(Missing("device and process read bytes: unknown".to_owned()));
        }
    };
    let ratio = below / engine;
    if ratio >= THRESHOLD {
        return Ok(None);
    }
    let asked = match &record.instance.reads {
        Some(reads) if !reads.evict_asked.is_empty() => {
            format!(" EVICT={} did not keep the page cache out.", reads.evict_asked)
        }
        _ => String::new(),
    };
    let text = format!(
        "Reads come from the page cache: the engine read {}, {layer} only {}. {}The wait times are those of memory, \
         not of a device.{asked} For a test of storage: {}.",
        size(engine as u64),
        size(below as u64),
        record
            .os
            .disk
            .iter()
            .find_map(|disk| disk.read_avg_us.value())
            .map_or_else(String::new, |us| { format!("The device's own latency is {} us per read. ", fixed(us, 0)) }),
        device_reads(record)
    );
    let evidence = [("device_over_engine_ratio", ratio), ("engine_read_bytes", engine), ("device_read_bytes", below)];
    Ok(Some(Advice::of("R13", ratio <= THRESHOLD / 2.0, text, &evidence)))
}

/// R14.
pub(super) fn hidden_outliers(record: &Record) -> Judged {
    const MAX: f64 = 100.0;
    const DEVIATION: f64 = 3.0;
    const HEAVY_PCT: f64 = 10.0;
    let events = foreground(record, |event| {
        event.class != "Idle"
            && event.hist_ns.count() >= 1000
            && event.db_time_pct.value().is_some_and(|pct| pct >= 1.0)
    });
    // How far beyond its threshold the worse of the two is.
    let excess = |event: &EventRow| {
        let max = event.max_us.value()? / event.avg_us.value()?;
        let deviation = deviation(&event.hist_ns)?;
        Some((max, deviation, (max / MAX).max(deviation / DEVIATION)))
    };
    let worst = events.filter_map(|event| Some((event, excess(event)?))).max_by(|a, b| a.1.2.total_cmp(&b.1.2));
    let Some((event, (max, deviation, excess))) = worst else {
        return Ok(None);
    };
    if excess < 1.0 {
        return Ok(None);
    }
    let tail = tail_time_pct(&event.hist_ns);
    let us = |figure: &Figure| figure.value().map(|us| fixed(us, 0));
    let text = format!(
        "The average hides outliers: the longest {} took {} us, {} times the average of {} us; the standard \
         deviation is {} times the average{}. The slowest 0.1 % of the waits take {} % of the total wait time.",
        event.name,
        us(&event.max_us).unwrap_or_default(),
        fixed(max, 0),
        us(&event.avg_us).unwrap_or_default(),
        fixed(deviation, 1),
        us(&event.p999_us).map_or_else(String::new, |us| format!("; p99.9 {us} us")),
        fixed(tail, 1)
    );
    let evidence =
        [("max_over_mean_ratio", max), ("deviation_over_mean_ratio", deviation), ("slowest_thousandth_time_pct", tail)];
    // One wait of a run may be long; it weighs where such waits take a part of the time.
    let is_high = excess >= 2.0 && tail >= HEAVY_PCT;
    Ok(Some(Advice::of("R14", is_high, text, &evidence)))
}

/// Middle and count of the histogram's slots, the slowest first.
fn slots(histogram: &Histogram) -> Vec<(f64, f64)> {
    let mut slots: Vec<(f64, f64)> = histogram
        .sparse()
        .into_iter()
        .map(|(slot, count)| {
            let (low, width) = slot_low_and_width_ns(slot as usize);
            (low as f64 + width as f64 / 2.0, count as f64)
        })
        .collect();
    slots.reverse();
    slots
}

/// Standard deviation over mean, from the slots' middles.
fn deviation(histogram: &Histogram) -> Option<f64> {
    let mean = histogram.mean_ns().filter(|mean| *mean > 0.0)?;
    let squares: f64 = slots(histogram).into_iter().map(|(middle, count)| count * (middle - mean).powi(2)).sum();
    Some((squares / histogram.count() as f64).sqrt() / mean)
}

/// Share of the time that the slowest thousandth of the waits took, 0..100.
fn tail_time_pct(histogram: &Histogram) -> f64 {
    let mut left = (histogram.count() as f64 / 1000.0).max(1.0);
    let (mut tail, mut all) = (0.0, 0.0);
    for (middle, count) in slots(histogram) {
        let taken = count.min(left);
        left -= taken;
        tail += taken * middle;
        all += count * middle;
    }
    100.0 * tail / all
}

/// R16.
pub(super) fn batched_waits(record: &Record) -> Judged {
    const THRESHOLD: f64 = 20.0;
    let parallel = named(record, "db file parallel read", "foreground");
    let Some(waits) = parallel.and_then(|event| event.count.value()).filter(|n| *n > 0.0) else {
        return Ok(None);
    };
    let reads = stat(record, "physical_reads_blocks")?;
    let prefetched = stat(record, "physical_reads_cache_prefetch_blocks")?;
    if reads <= 0.0 || 100.0 * prefetched / reads < THRESHOLD {
        return Ok(None);
    }
    let pct = 100.0 * prefetched / reads;
    // Of a batch one block is the one asked for, the others came along.
    let per_wait = (prefetched + waits) / waits;
    let text = format!(
        "{} % of the blocks were read in batches: one wait for db file parallel read covers {} blocks, not one I/O. \
         Do not use it as the time of one request; Latency by Layer has that.",
        fixed(pct, 1),
        fixed(per_wait, 1)
    );
    let evidence = [("prefetched_pct", pct), ("blocks_per_wait", per_wait)];
    finding("R16", pct, THRESHOLD, text, &evidence)
}

/// Share of DB time that makes an imported run one of storage, %.
const OF_STORAGE_PCT: f64 = 50.0;

/// R18, both ways.
pub(super) fn cached(record: &Record) -> Judged {
    const ALL: f64 = 99.9;
    const SOME: f64 = 20.0;
    let mut rows = record.instance.efficiency.iter();
    let printed = rows.find(|row| row.name.trim() == "Buffer Hit %" && record.import.is_some());
    let measured = match printed {
        Some(row) => &row.value_pct,
        None => &record.checks.hit_measured_pct,
    };
    let Ok(pct) = need(measured, "Buffer Hit") else {
        return Ok(None);
    };
    // A report of a database at work is no test of storage, and its hits need no advice.
    if record.import.is_some() && share(record, |event| event.class == "User I/O")? < OF_STORAGE_PCT {
        return Ok(None);
    }
    let evidence = [("buffer_hit_pct", pct)];
    let cache = match (&record.instance.reads, &record.import) {
        (Some(_), _) => format!("the server's buffers ({})", cache_parameter(record)),
        (None, Some(_)) => "the buffer cache".to_owned(),
        (None, None) => "CACHE_MB".to_owned(),
    };
    if pct >= ALL {
        let text = format!(
            "The data fits in the cache (Buffer Hit {} %): there were hardly any reads from storage. For a test of \
             storage make {cache} smaller or SCALE larger.",
            fixed(pct, 2)
        );
        return finding("R18", pct, ALL, text, &evidence);
    }
    if pct <= SOME {
        return Ok(None);
    }
    let text = format!(
        "The cache answered {} % of the gets: the physical reads understate what the sessions asked for. For a test \
         of storage make {cache} smaller or SCALE larger.",
        fixed(pct, 1)
    );
    finding("R18", pct, SOME, text, &evidence)
}
