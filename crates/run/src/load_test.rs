//! The load of a data set as a test: the kind of the records that `prepare` leaves.
//!
//! A target's summary has the same keys for the same figures; what it has not is n/a.

use crate::engine::{Line, LineValue};
use assay_measure::figures::{figures, of_layer};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, OwnKind, given};
use assay_measure::plain::shell_word;
use assay_measure::record::{Figure, Part, Record};
use assay_measure::section::{Sections, common};
use assay_measure::snapshot::RunData;

/// The kind of a load.
pub const KIND: OwnKind<LoadInfo> = OwnKind::new(|info| of_layer("engine", info), sections, headline);

/// What loading a data set came to.
#[figures(group = Primary)]
pub struct LoadInfo {
    /// Bytes of rows that were written, 10^6 a second.
    #[metric("load rate", Higher)]
    pub load_mb_per_s: Figure,
    /// Rows that were written each second.
    #[metric("rows loaded per second", Higher)]
    pub load_rows_per_s: Figure,
    /// Time of the rows alone, s.
    #[metric("time to load the rows", Lower)]
    pub load_s: Figure,
    /// Time of all phases, indexes, logs and checks too, s.
    #[metric("time in all", Lower)]
    pub prepare_s: Figure,
    /// Bytes of rows.
    #[metric("rows loaded, bytes", Storage)]
    pub load_bytes: Figure,
    /// Rows.
    #[metric("rows loaded", Storage)]
    pub loaded_rows_count: Figure,
    /// Everything the target said of the load, as it was printed.
    pub summary: Vec<LoadLine>,
}

/// A line of a target's summary.
#[figures]
pub struct LoadLine {
    /// What it is.
    pub what: String,
    /// Its value with the unit.
    pub value: String,
}

impl Part for LoadInfo {
    const NAME: &str = "load";
}

/// Builds the record of a load: `run` brings labels, settings and facts; `printed` is the summary as it is printed.
#[must_use]
pub fn build(run: &RunData, summary: &[Line], printed: Vec<(String, String)>) -> Record {
    let figure = |keys: &[&str]| {
        let found = summary.iter().find(|line| keys.contains(&line.key));
        match found.map(|line| &line.value) {
            Some(LineValue::Count(count)) => Figure::Count(*count),
            Some(LineValue::Decimal(value)) => Figure::decimal(*value),
            _ => Figure::na("the target does not say"),
        }
    };
    let (rows, load_s) = (figure(&["loaded_rows"]), figure(&["load_s", "generate_s"]));
    let rate = figure(&["load_rows_per_s", "rows_per_s"]);
    let info = LoadInfo {
        load_mb_per_s: figure(&["load_mb_per_s", "mb_per_s"]),
        load_rows_per_s: if rate.value().is_some() { rate } else { rate_of(&rows, &load_s) },
        load_s,
        prepare_s: figure(&["total_s"]),
        load_bytes: figure(&["load_bytes"]),
        loaded_rows_count: rows,
        summary: printed.into_iter().map(|(what, value)| LoadLine { what, value }).collect(),
    };
    KIND.complete(Record::labelled(run), &info)
}

fn rate_of(rows: &Figure, seconds: &Figure) -> Figure {
    let seconds = seconds.value().unwrap_or(0.0);
    rows.value().map_or_else(|| rows.clone(), |rows| Figure::decimal(rows).per(seconds, "the load took no time"))
}

fn headline(record: &Record, info: &LoadInfo) -> Headline {
    let target = given(record).into_iter().find(|line| line.name == "TARGET");
    let target = target.map_or_else(String::new, |line| format!(" --target {}", shell_word(&line.value)));
    let told = HeadlineFigure::new;
    Headline {
        tested: format!("assay loaded a data set into {}.", record.run.engine),
        rows: vec![
            HeadlineLine::told(
                "Rate",
                vec![told(&info.load_mb_per_s, "MB/s (10^6)"), told(&info.load_rows_per_s, "rows/s")],
            ),
            HeadlineLine::told("Loaded", vec![told(&info.load_bytes, "bytes"), told(&info.loaded_rows_count, "rows")]),
            HeadlineLine::told("Time", vec![told(&info.load_s, "s for the rows"), told(&info.prepare_s, "s in all")]),
        ],
        steadiness: "n/a (a load is one figure)".to_owned(),
        limit: Limit::unknown("a load is not sampled"),
        next: vec![Next::new(format!("assay run{target}"), "measures what the data set can do")],
        ..Headline::default()
    }
}

fn sections(record: &Record, info: &LoadInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(&mut page, record, "LOAD", &record.run.engine);
    common::warnings(&mut page, record);
    page.heading("Load");
    let width = info.summary.iter().map(|line| line.what.chars().count()).max().unwrap_or(0) + 2;
    for line in &info.summary {
        page.named(&line.what, width, line.value.clone());
    }
    common::facts(&mut page, "Plan", &record.plan.engine_facts);
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::lines;
    use assay_measure::record::metric::find;

    #[test]
    fn a_load_is_told_by_rate_bytes_and_seconds_whatever_the_target_calls_them() {
        let native = [
            lines::count("loaded_rows", "Rows loaded", 4096),
            lines::bytes("load_bytes", "Table data written", 33_554_432),
            lines::decimal("load_s", "Load time, s", 0.5),
            lines::decimal("load_mb_per_s", "Load rate, MB/s (10^6)", 67.1),
            lines::decimal("total_s", "Time in all, s", 1.4),
        ];
        let record = build(&RunData::default(), &native, vec![("Rows loaded".to_owned(), "4,096".to_owned())]);
        let value = |record: &Record, key: &str| find(&record.metrics, key).and_then(|metric| metric.value.value());
        assert_eq!(record.kind, "load");
        assert_eq!(value(&record, "load_rows_per_s"), Some(8192.0));
        assert_eq!((value(&record, "load_mb_per_s"), value(&record, "prepare_s")), (Some(67.1), Some(1.4)));
        let orders = [
            lines::decimal("generate_s", "data generation time", 2.0),
            lines::decimal("mb_per_s", "data generated", 12.5),
            lines::decimal("rows_per_s", "rows inserted per sec", 100.0),
        ];
        let record = build(&RunData::default(), &orders, Vec::new());
        assert_eq!((value(&record, "load_s"), value(&record, "load_mb_per_s")), (Some(2.0), Some(12.5)));
        assert_eq!(value(&record, "load_bytes"), None);
        let headline = headline(&record, &record.parts.get().unwrap_or_default());
        assert_eq!(headline.next[0].command, "assay run");
    }
}
