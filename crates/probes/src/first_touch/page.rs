//! What is shown of first reads: the answer, the report and the map.

use super::info::{COLD, FirstTouchInfo, PARTLY, RegionRow, SOME, bytes};
use super::layout::SLOT_BYTES;
use super::{READERS, findings};
use assay_measure::chart::{Axis, Chart, Drawn, Heat, Rows};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::plain::shell_word;
use assay_measure::record::{Figure, Record};
use assay_measure::rule::Rule;
use assay_measure::section::{Sections, common};
use assay_measure::units::{duration, fixed, many, size, thousands};

const STOPPED: &str = "the probe was stopped before a block was read";

/// A latency for a sentence.
fn ms(us: &Figure) -> String {
    us.value().map_or_else(|| "n/a".to_owned(), |us| duration((us * 1e3) as u64))
}

fn time(s: &Figure) -> Option<String> {
    s.value().map(|s| duration((s * 1e9) as u64))
}

fn verdict(info: &FirstTouchInfo) -> String {
    if info.is_unknown() {
        return "cannot tell whether anything is cold".to_owned();
    }
    let cost = match info.first_read_us_p50.value() {
        Some(_) => format!("first read {}, second {}", ms(&info.first_read_us_p50), ms(&info.second_read_us_p50)),
        None => "this host had every block in its page cache".to_owned(),
    };
    let high = bytes(&info.cold_high_bytes);
    if info.is_cold() {
        return format!("{} (95 %: {} to {high}); {cost}", info.how_much(), bytes(&info.cold_low_bytes));
    }
    format!("nothing cold found: at most {high} of {} (95 %); {cost}", size(info.data_bytes))
}

/// The first things to know.
pub(super) fn headline(record: &Record, info: &FirstTouchInfo) -> Headline {
    let holes = if info.hole_bytes > 0 {
        format!("; {} more of it are holes, never written", size(info.hole_bytes))
    } else {
        String::new()
    };
    let object = match info.object.as_str() {
        "" => ": nothing could be read.".to_owned(),
        object => format!(" ({object}, {}{holes}).", size(info.data_bytes)),
    };
    Headline {
        tested: format!("First reads of {}{object}", info.path),
        verdict: verdict(info),
        rows: rows(info),
        steadiness: "n/a (each block is read first only once)".to_owned(),
        rerun_command: rerun_command(record),
        limit: limit(record, info),
        next: next(info),
        ..Headline::default()
    }
}

fn rows(info: &FirstTouchInfo) -> Vec<HeadlineLine> {
    if info.blocks_count == 0 {
        return Vec::new();
    }
    let cold = info.regions.iter().filter(|row| [COLD, PARTLY, SOME].contains(&row.verdict.as_str())).count() as u64;
    let cached = match info.cached_count {
        0 => String::new(),
        count => format!(", {} of them in the page cache and so warm", thousands(count)),
    };
    let mut rows = vec![HeadlineLine {
        lead: format!(
            "{} in {}{cached}: ",
            many(info.blocks_count, "block"),
            many(info.regions.len() as u64, "region")
        ),
        ..HeadlineLine::told(
            "Blocks",
            vec![
                HeadlineFigure::new(&info.slow_first_pct, "% slow at the first read"),
                HeadlineFigure::new(&info.slow_second_pct, "% at the second"),
                HeadlineFigure::new(&info.slow_beside_quick_pct, "% beside a quick one"),
            ],
        )
    }];
    if info.is_cold() {
        let several = format!("with {READERS} readers");
        let told = |s: &Figure, speed: &Figure, who: &str| {
            let s = time(s).unwrap_or_else(|| "n/a".to_owned());
            HeadlineFigure::new(speed, &format!("MiB/s {who} ({s})"))
        };
        rows.push(HeadlineLine {
            lead: format!("{} in {} with cold blocks: ", bytes(&info.to_hydrate_bytes), many(cold, "region")),
            ..HeadlineLine::told(
                "To hydrate",
                vec![
                    told(&info.hydrate_together_s, &info.together_mib_per_s, &several),
                    told(&info.hydrate_alone_s, &info.alone_mib_per_s, "with one"),
                ],
            )
        });
    }
    if let (Some(read), Some(asked), Some(s)) =
        (info.hydrated_bytes.value(), info.hydrate_asked_bytes.value(), time(&info.hydrated_s))
    {
        let told = format!("{} of {} in {s}", size(read as u64), size(asked as u64));
        let told = match asked {
            0.0 => "no region was cold, so nothing was read (--hydrate-all reads all of it)".to_owned(),
            asked if read < asked => {
                format!("{told}, {} %: stopped; the same command goes on", fixed(100.0 * read / asked, 0))
            }
            _ => told,
        };
        rows.push(HeadlineLine::of("Hydrated", Vec::new(), &told));
    }
    rows
}

/// What the finding says, which is not told twice.
fn limit(record: &Record, info: &FirstTouchInfo) -> Limit {
    let said = |rule: &Rule| {
        record.advice.iter().find(|advice| advice.id == rule.id).map_or("", |advice| advice.text.as_str())
    };
    if info.is_cold() {
        return Limit::new("blocks that are fetched at their first read", said(&findings::COLD));
    }
    if info.is_unknown() {
        return Limit::new("", format!("n/a: {}", said(&findings::UNKNOWN)));
    }
    Limit::unknown("no first read was slower than noise makes it")
}

fn next(info: &FirstTouchInfo) -> Vec<Next> {
    let place = shell_word(&info.path);
    if info.is_unknown() && info.blocks_count == info.cached_count {
        return Vec::new();
    }
    if info.is_unknown() {
        return vec![Next::new(format!("assay first-touch {place} --time 2m"), "more blocks; best on a quiet host")];
    }
    let again = Next::new(format!("assay first-touch {place}"), "other blocks: how much is still cold");
    if info.is_hydrated() {
        return vec![again];
    }
    if info.is_cold() {
        let hydrate = format!("assay first-touch {place} --hydrate 100MiB/s");
        return vec![Next::new(hydrate, "reads the cold regions at a rate that leaves room for others"), again];
    }
    // Every slot was touched: there is no more to read.
    if info.blocks_count >= info.data_bytes / SLOT_BYTES {
        return Vec::new();
    }
    vec![Next::new(format!("assay first-touch {place} --samples 100000"), "a narrower bound, and more of it read")]
}

/// The whole report.
pub(super) fn render(record: &Record, info: &FirstTouchInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(&mut page, record, "FIRST TOUCH", &info.path);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.heading("First Reads");
    page.wrapped("", &format!("{}.", sentence(&verdict(info))));
    page.table_of("Regions", REGIONS, &info.regions, STOPPED);
    common::facts(&mut page, "Device", &record.plan.engine_facts);
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

const REGIONS: &str = "Each block was read twice in a row. First, second: medians. Ratio: the median of first over second read of the same \
                       block, with its 95 % interval. Slow: reads much longer than the median second read. As cold: slow at the first read \
                       and not afterwards. Cold, partly cold: half of the blocks or more, or fewer, more than noise explains. Some slow: too few to \
                       call the region cold; --hydrate reads it to be safe.";

/// The map: latencies by place.
pub(super) fn charts(info: &FirstTouchInfo) -> Vec<Drawn> {
    let ends: Vec<f64> = info.regions.iter().filter_map(|row| row.to_gib.value()).collect();
    let read = info.regions.iter().filter(|row| row.blocks_count > 0).count();
    if read == 0 {
        return vec![Drawn::missing(MAP, STOPPED)];
    }
    let us = |get: fn(&RegionRow) -> &Figure| -> Vec<Option<f64>> {
        info.regions.iter().map(|row| get(row).value().map(f64::round)).collect()
    };
    vec![Drawn::Chart(Box::new(Chart {
        id: "c-first-touch".to_owned(),
        title: MAP.to_owned(),
        note: "Median latency of each region in us, by its place; the colour is its logarithm. A region whose first reads stand out from its \
               second ones is cold; the table says which are."
            .to_owned(),
        x: Axis::of("to this place", "GiB"),
        y: Axis::of("read", ""),
        heat: Some(Heat {
            unit: "us",
            columns: Rows::Numbers(ends),
            rows: vec!["second".to_owned(), "first".to_owned()],
            values: vec![us(|row| &row.second_us_p50), us(|row| &row.first_us_p50)],
            ..Heat::default()
        }),
        ..Chart::default()
    }))]
}

const MAP: &str = "Map of first and second reads";
