//! HammerDB: the log of a test and its job's results as JSON; the time profile of both.
//!
//! Its JSON is a list of the log's lines, or one object per procedure. Both are read word by word: JSON commas and
//! braces end a line, and quotes are left out.

use super::draft::{Draft, Reading};
use super::number::{self, Printed};
use super::rows::{load_row, op_row, operations_are_transactions, setting};
use super::text::{At, Line, Text};
use super::{Confidence, ImportError};
use assay_measure::plain::slug;

const MINUTE: f64 = 60.0;

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    let result =
        Confidence::of(93, &[("a line TEST RESULT : System achieved ...", has("TEST RESULT : System achieved"))]);
    let profile = Confidence::of(
        88,
        &[
            ("a procedure NEWORD", has("NEWORD")),
            ("its calls", has("CALLS: ") || has("\"calls\"")),
            ("its share of the time", has("RATIO: ") || has("\"ratio_pct\"")),
        ],
    );
    result.or(profile)
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "HammerDB log");
    for text in texts {
        let mut procedure = None;
        for line in &text.lines {
            for part in parts(line) {
                read_part(line.at, &part, &mut procedure, draft);
            }
        }
    }
    operations_are_transactions(draft);
    Ok(())
}

/// What a line says: one thing of a log, several of JSON and of a time profile.
fn parts(line: &Line) -> Vec<String> {
    let bare = line.text.trim();
    let is_json = bare.contains('"');
    let cut = |c: char| is_json && ",{}[]".contains(c);
    let words = bare.split(cut).map(|part| part.replace('"', "").trim().to_owned());
    let mut all: Vec<String> = words.filter(|part| !part.is_empty()).collect();
    // `CALLS: 12  MIN: 0.9ms  AVG: 2.1ms`
    if let [only] = all.as_slice()
        && (only.starts_with("CALLS: ") || only.starts_with("P99: "))
    {
        let mut pairs = Vec::new();
        let words: Vec<&str> = only.split_whitespace().collect();
        for pair in words.chunks(2) {
            pairs.push(pair.join(" "));
        }
        all = pairs;
    }
    all
}

fn read_part(at: At, part: &str, procedure: &mut Option<String>, draft: &mut Draft) {
    // `Vuser 1:`
    let said = match part.strip_prefix("Vuser ") {
        Some(rest) => rest.split_once(':').map_or(part, |(_, said)| said.trim()),
        None => part,
    };
    if let Some(rest) = said.split("System achieved ").nth(1) {
        result(at, rest, draft);
    } else if let Some(users) = said.strip_suffix(" Active Virtual Users configured") {
        if let Some(printed) = number::count(users.trim()) {
            let reading = client(at, "sessions_count", "Active Virtual Users", printed);
            put!(draft, reading, run.sessions);
        }
    } else if let Some(minutes) = between(said, "Timing test period of ", " in minutes") {
        if let Some(printed) = number::count(minutes) {
            let reading = client(at, "elapsed_s", "Timing test period", printed.scaled(MINUTE));
            put!(draft, reading, interval.elapsed_s);
        }
    } else if let Some(minutes) = between(said, "rampup time of ", " minute") {
        setting(draft, "rampup_minutes", minutes);
    } else if let Some(version) = said.strip_prefix("HammerDB CLI v") {
        draft.recognised(version, "HammerDB log");
    } else if let Some(name) = said.split("PROC: ").nth(1) {
        *procedure = Some(name.trim().to_owned());
    } else if said.ends_with(':') && !said.contains(' ') {
        // `"NEWORD": {`
        *procedure = Some(said.trim_end_matches(':').to_owned());
    } else if said.contains("FINISHED FAILED") {
        draft.note(at, format!("HammerDB says: {said}"));
    } else if let (Some((label, value)), Some(name)) = (said.split_once(':'), procedure.as_deref()) {
        statistic(at, name, label.trim(), value.trim(), draft);
    }
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let rest = text.split(open).nth(1)?;
    rest.contains(close).then(|| rest.split(close).next().unwrap_or_default().trim())
}

fn client(at: At, key: &str, name: &str, printed: Printed) -> Reading {
    Reading::new(at, key, printed).name(name).layer("client")
}

/// `27975 NOPM from 64210 Oracle TPM`, and `64210 Oracle TPM at 27975 NOPM` of older versions.
fn result(at: At, rest: &str, draft: &mut Draft) {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let before = |unit: &str| {
        let place = words.iter().position(|word| *word == unit)?;
        let number = words[..place].iter().rev().find(|word| word.parse::<f64>().is_ok())?;
        number::count(number)
    };
    if let Some(printed) = before("NOPM") {
        draft.alone(client(at, "new_orders_per_min", "NOPM", printed));
    }
    if let Some(printed) = before("TPM") {
        // Transactions as the database counts them, over whole minutes.
        let row = load_row(draft, "Transactions", "count");
        let reading = Reading::new(at, "transactions_per_s", printed.scaled(1.0 / MINUTE)).name("TPM");
        put!(draft, reading, instance.load_profile[row].per_s);
    }
    let database: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| word.parse::<f64>().is_err() && !["NOPM", "TPM", "from", "at"].contains(word))
        .collect();
    draft.record.run.engine = database.join(" ").to_ascii_lowercase();
}

/// A statistic of a procedure: `CALLS`, `MIN` of the log, `calls`, `min_ms` of JSON.
fn statistic(at: At, procedure: &str, label: &str, value: &str, draft: &mut Draft) {
    let kind = slug(procedure);
    let name = label.to_ascii_lowercase();
    let name = name.trim_end_matches("_ms").trim_end_matches("_pct").trim_end_matches(" [ms]");
    if name == "calls" {
        if let Some(printed) = number::count(value) {
            let row = op_row(draft, &kind);
            let reading = client(at, &format!("{kind}_count"), label, printed);
            put!(draft, reading, driver.ops[row].count);
        }
        return;
    }
    let bare = value.trim_end_matches('%').trim_end_matches("ms");
    if name == "ratio" {
        if let Some(printed) = number::measure(bare) {
            draft.alone(client(at, &format!("{kind}_time_pct"), label, printed));
        }
        return;
    }
    let Some(printed) = number::measure(bare).map(|ms| ms.scaled(1e3)) else {
        return;
    };
    let statistic = match name {
        "min" | "avg" | "max" | "p50" | "p95" | "p99" => name,
        "total" => "sum",
        // `sd` is in us in some versions and in ms in others; `elapsed` is of the virtual user.
        _ => return,
    };
    let row = op_row(draft, &kind);
    let reading = client(at, &format!("{kind}_us_{statistic}"), label, printed);
    match statistic {
        "avg" => put!(draft, reading, driver.ops[row].service.us_avg),
        "min" => put!(draft, reading, driver.ops[row].service.us_min),
        "max" => put!(draft, reading, driver.ops[row].service.us_max),
        "p50" => put!(draft, reading, driver.ops[row].service.us_p50),
        "p99" => put!(draft, reading, driver.ops[row].service.us_p99),
        _ => draft.alone(reading),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, record_of, survives, told};

    const SAMPLES: [&str; 3] = ["hammerdb.log", "hammerdb-result.json", "hammerdb-timing.json"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn both_orders_of_the_result_are_read() {
        let line = "Vuser 1:TEST RESULT : System achieved 61200 SQL Server TPM at 26500 NOPM\n";
        let record = record_of("old", line);
        assert_eq!(number(&record, "", "new_orders_per_min"), 26_500.0);
        assert_eq!(number(&record, "", "transactions_per_s"), 1020.0);
        assert_eq!(record.run.engine, "sql server");
        let record = imported("hammerdb.log");
        assert_eq!((record.run.sessions, record.interval.elapsed_s.value()), (16, Some(300.0)));
        assert_eq!(number(&record, "", "neword_us_p95"), 4_100.0);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
