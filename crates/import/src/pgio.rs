//! pgio's output: the line with its rates, and the counters it read before and after.

use super::Confidence;
use super::ImportError;
use super::draft::{Draft, Reading};
use super::located_number::between;
use super::number::{self, Printed};
use super::rows::{load_row, setting};
use super::text::{At, Text};
use assay_measure::record::Figure;

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    Confidence::of(
        93,
        &[("a line with RIOPS >...<", has("RIOPS >")), ("CACHE_HITS/s >...< in it", has("CACHE_HITS/s"))],
    )
}

/// Columns of the counter rows, in their order.
const COUNTERS: [(&str, &str); 5] = [
    ("blks_hit", "pgio_blocks_hit_count"),
    ("blks_read", "pgio_blocks_read_count"),
    ("tup_returned", "pgio_rows_returned_count"),
    ("tup_fetched", "pgio_rows_fetched_count"),
    ("tup_updated", "pgio_rows_updated_count"),
];

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "pgio text");
    for text in texts {
        for line in &text.lines {
            read_line(line.at, line.text.trim(), draft);
        }
    }
    totals(draft);
    Ok(())
}

fn read_line(at: At, text: &str, draft: &mut Draft) {
    if text.contains("RIOPS >") {
        result(at, text, draft);
    } else if let Some(rest) = text.strip_prefix("BEFORE:") {
        counters(at, rest, "before", draft);
    } else if let Some(rest) = text.strip_prefix("AFTER:") {
        counters(at, rest, "after", draft);
    } else if let Some(date) = text.strip_prefix("Date:") {
        if draft.record.run.started.is_empty() {
            date.trim().clone_into(&mut draft.record.run.started);
        }
    } else if text.starts_with("Testing ") || text.starts_with("Shared buffers") || text.starts_with("Database connect")
    {
        let (name, value) = text.split_once(':').unwrap_or(("test", text));
        setting(draft, name.trim(), value.trim().trim_end_matches('.'));
    }
}

fn engine(at: At, key: &str, name: &str, printed: Printed) -> Reading {
    Reading::new(at, key, printed).name(name).layer("engine")
}

/// `DBNAME:  pgio. 48 schemas, 1 threads(each). Run time: 120 seconds. RIOPS >436964< CACHE_HITS/s >112652<`
fn result(at: At, text: &str, draft: &mut Draft) {
    let word_before = |mark: &str| text.split(mark).next()?.split_whitespace().last().map(str::to_owned);
    let schemas = word_before(" schemas").or_else(|| word_before(" schema")).and_then(|token| number::count(&token));
    let threads = word_before(" threads(").or_else(|| word_before(" thread(")).and_then(|token| number::count(&token));
    if let (Some(schemas), Some(threads)) = (&schemas, &threads) {
        let sessions = schemas.number().unwrap_or(0.0) * threads.number().unwrap_or(0.0);
        draft.record.run.sessions = sessions as u64;
    }
    for (key, name, printed) in
        [("pgio_schemas_count", "schemas", schemas), ("pgio_threads_per_schema_count", "threads(each)", threads)]
    {
        if let Some(printed) = printed {
            draft.alone(engine(at, key, name, printed));
        }
    }
    let seconds = between(text, "Run time:", "second").and_then(|token| number::measure(token.trim()));
    if let Some(printed) = seconds {
        put!(draft, engine(at, "elapsed_s", "Run time", printed), interval.elapsed_s);
    }
    // Misses of the database's cache: the page cache of the system may have had them.
    if let Some(printed) = between(text, "RIOPS >", "<").and_then(number::measure) {
        let row = load_row(draft, "Physical read (blocks)", "blocks");
        let reading = engine(at, "physical_read_blocks_per_s", "RIOPS", printed);
        put!(draft, reading, instance.load_profile[row].per_s);
        draft.note(at, "RIOPS counts misses of the database's cache; the system's page cache answered some of them");
    }
    if let Some(printed) = between(text, "CACHE_HITS/s >", "<").and_then(number::measure) {
        draft.alone(engine(at, "cache_hits_blocks_per_s", "CACHE_HITS/s", printed));
    }
}

/// `pgio    | 252209 |  118112 | ...`
fn counters(at: At, rest: &str, when: &str, draft: &mut Draft) {
    let cells = rest.split('|').skip(1).map(str::trim);
    for ((name, key), cell) in COUNTERS.iter().zip(cells) {
        if let Some(printed) = number::count(cell) {
            draft.alone(engine(at, key, name, printed).scope(when));
        }
    }
}

/// What was read and hit follows from the counters; logical reads are both.
fn totals(draft: &mut Draft) {
    let moved = |draft: &Draft, key: &str| {
        let (before, after) = (draft.number_of("before", key)?, draft.number_of("after", key)?);
        (after >= before).then_some(after - before)
    };
    let read = moved(draft, "pgio_blocks_read_count");
    if let Some(read) = read {
        let row = load_row(draft, "Physical read (blocks)", "blocks");
        draft.record.instance.load_profile[row].total = Figure::Count(read as u64);
    }
    let hits = draft.number_of("", "cache_hits_blocks_per_s");
    let reads = draft.number_of("", "physical_read_blocks_per_s");
    if let (Some(hits), Some(reads)) = (hits, reads) {
        let row = load_row(draft, "Logical read (blocks)", "blocks");
        draft.record.instance.load_profile[row].per_s = (hits + reads).into();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, survives, told};

    #[test]
    fn the_sample_is_read_as_frozen() {
        insta::assert_snapshot!(told(&imported("pgio.txt")));
    }

    #[test]
    fn reads_are_misses_and_logical_reads_are_both() {
        let record = imported("pgio.txt");
        let metrics = &record.metrics;
        let of = |key| assay_measure::record::metric::find(metrics, key).and_then(|metric| metric.value.value());
        assert_eq!(of("logical_reads_per_s"), Some(21_600.0));
        assert_eq!(of("physical_read_blocks_per_s"), Some(20_000.0));
        assert_eq!(record.run.sessions, 16);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX) {
            survives("pgio.txt", seed);
        }
    }
}
