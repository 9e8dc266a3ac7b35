//! pgbench, 9.x to 18: totals, progress lines, scripts, statements, failures.

use super::Confidence;
use super::ImportError;
use super::draft::{Draft, Reading};
use super::located_number::between;
use super::number::{self, Printed};
use super::rows::{load_row, op_row, operations_are_transactions, put_step, setting, step};
use super::text::{At, Text};
use assay_measure::plain::slug;
use assay_measure::record::Figure;

/// What all transactions together are called.
const ALL: &str = "transaction";

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    let totals = Confidence::of(
        92,
        &[
            ("a line number of transactions actually processed:", has("number of transactions actually processed")),
            ("a line tps = ...", text.head_begins("tps = ")),
        ],
    );
    let progress = Confidence::of(
        75,
        &[
            ("lines progress: ... s, ... tps", text.head_begins("progress: ")),
            ("lat ... ms in them", has(" tps, lat ")),
        ],
    );
    totals.or(progress)
}

/// What the lines so far belong to.
#[derive(Default)]
struct Reader {
    /// Operation the lines are of: all, or one script.
    kind: String,
    script: Option<String>,
    in_statements: bool,
    statements: u32,
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "pgbench text");
    for text in texts {
        let mut reader = Reader { kind: ALL.to_owned(), ..Reader::default() };
        for line in &text.lines {
            reader.line(line.at, line.text.trim(), draft);
        }
    }
    elapsed(draft);
    operations_are_transactions(draft);
    Ok(())
}

fn client(at: At, key: &str, name: &str, printed: Printed) -> Reading {
    Reading::new(at, key, printed).name(name).layer("client")
}

fn alone(draft: &mut Draft, at: At, key: &str, name: &str, scope: &str, printed: Option<Printed>) {
    if let Some(printed) = printed {
        draft.alone(client(at, key, name, printed).scope(scope));
    }
}

/// A number and `ms` or `s` behind it, in us.
fn time_us(text: &str) -> Option<Printed> {
    let mut tokens = text.split_whitespace();
    let number = number::measure(tokens.next()?)?;
    match tokens.next()?.trim_end_matches(['.', ',']) {
        "ms" => Some(number.scaled(1e3)),
        "s" => Some(number.scaled(1e6)),
        "us" => Some(number),
        _ => None,
    }
}

impl Reader {
    fn line(&mut self, at: At, text: &str, draft: &mut Draft) {
        if text.starts_with("progress: ") {
            progress(at, text, draft);
            return;
        }
        if let Some(version) = text.strip_prefix("pgbench (") {
            let version = version.trim_start_matches("PostgreSQL").trim();
            let version = version.split([' ', ')']).next().unwrap_or_default();
            draft.recognised(version, "pgbench text");
            return;
        }
        if let Some(rest) = text.strip_prefix("SQL script ") {
            let name = rest.split_once(": ").map_or(rest, |(_, name)| name);
            let name = name.trim_matches(['<', '>']).trim_start_matches("builtin: ");
            self.kind = slug(name);
            self.script = Some(name.to_owned());
            self.in_statements = false;
            return;
        }
        if text.contains("statement latencies in milliseconds") || text.starts_with("- statement latencies") {
            self.in_statements = true;
            self.statements = 0;
            return;
        }
        let bare = text.trim_start_matches("- ");
        // Both may hold an equals sign: they are told apart from the totals first.
        if self.script.is_some() && text.starts_with("- ") && bare.contains(" transactions (") {
            self.share(at, bare, draft);
            return;
        }
        if self.in_statements && self.statement(at, text, draft) {
            return;
        }
        if let Some((name, value)) = bare.split_once(" = ") {
            self.equals(at, name.trim(), value.trim(), draft);
            return;
        }
        if let Some((name, value)) = bare.split_once(':') {
            self.colon(at, name.trim(), value.trim(), draft);
        }
    }

    /// `latency average = 4.671 ms`, `tps = 854.275682 (without initial connection time)`
    fn equals(&mut self, at: At, name: &str, value: &str, draft: &mut Draft) {
        self.in_statements = false;
        let us = || time_us(value);
        match name {
            "latency average" => {
                let row = op_row(draft, &self.kind);
                if let Some(printed) = us() {
                    let reading = client(at, &format!("{}_us_avg", self.kind), name, printed);
                    put!(draft, reading, driver.ops[row].service.us_avg);
                }
            }
            "latency stddev" => alone(draft, at, &format!("{}_us_stddev", self.kind), name, "", us()),
            "initial connection time" => alone(draft, at, "connect_us", name, "", us()),
            "average connection time" => alone(draft, at, "connect_us_avg", name, "", us()),
            "tps" => tps(at, value, draft),
            _ => {}
        }
    }

    /// `number of clients: 4`
    fn colon(&self, at: At, name: &str, value: &str, draft: &mut Draft) {
        let first = value.split([' ', '/']).next().unwrap_or_default();
        let count = number::count(first);
        let scope = self.script.as_deref().unwrap_or_default();
        match name {
            "number of clients" => {
                if let Some(printed) = count {
                    put!(draft, client(at, "sessions_count", name, printed), run.sessions);
                }
            }
            "number of threads" => {
                if let Some(printed) = count {
                    put!(draft, client(at, "threads_count", name, printed), driver.threads_count);
                }
            }
            "duration" => {
                if let Some(printed) = time_us(value).map(|us| us.scaled(1e-6)) {
                    put!(draft, client(at, "elapsed_s", name, printed), interval.elapsed_s);
                }
            }
            "number of transactions actually processed" => processed(at, name, count, draft),
            "scaling factor" => alone(draft, at, "pgbench_scale_count", name, "", count),
            "number of transactions per client" => alone(draft, at, "transactions_per_client_count", name, "", count),
            "rate limit schedule lag" => schedule_lag(at, value, draft),
            _ if name.starts_with("number of transactions above") => {
                alone(draft, at, "transactions_late_count", name, "", count);
            }
            _ if name.starts_with("number of ") || name.starts_with("total number of ") => {
                let what = slug(name.trim_start_matches("total ").trim_start_matches("number of "));
                alone(draft, at, &format!("{what}_count"), name, scope, count);
            }
            "transaction type" | "query mode" | "partitions" | "partition method" | "maximum number of tries" => {
                setting(draft, name, value);
            }
            "ERROR" | "FATAL" | "error" => draft.note(at, format!("pgbench says: {value}")),
            _ => {}
        }
    }

    /// ` - 30 transactions (33.7% of total, tps = 15.112513)`
    fn share(&self, at: At, text: &str, draft: &mut Draft) {
        let row = op_row(draft, &self.kind);
        let count = text.split(' ').next().and_then(number::count);
        if let Some(printed) = count {
            let reading = client(at, &format!("{}_count", self.kind), "transactions", printed);
            put!(draft, reading, driver.ops[row].count);
        }
        if let Some(printed) = between(text, "tps = ", ")").and_then(number::measure) {
            let reading = client(at, &format!("{}_per_s", self.kind), "tps", printed);
            put!(draft, reading, driver.ops[row].per_s);
        }
    }

    /// `0.192           0  BEGIN;`: mean, failures, retries, the statement.
    fn statement(&mut self, at: At, text: &str, draft: &mut Draft) -> bool {
        let mut rest = text;
        let mut numbers = Vec::new();
        while numbers.len() < 3 {
            let Some((token, tail)) = rest.trim_start().split_once(char::is_whitespace) else {
                break;
            };
            let Some(printed) = number::measure(token) else {
                break;
            };
            numbers.push(printed);
            rest = tail;
        }
        let Some(mean) = numbers.first().cloned() else {
            return false;
        };
        self.statements += 1;
        let script = self.script.as_ref().map_or_else(String::new, |name| format!("{name} "));
        let short: String = rest.trim().chars().take(60).collect();
        let scope = format!("{script}{}: {short}", self.statements);
        alone(draft, at, "statement_us_avg", "statement latency", &scope, Some(mean.scaled(1e3)));
        for (printed, key) in numbers[1..].iter().zip(["statement_failures_count", "statement_retries_count"]) {
            if printed.number() != Some(0.0) {
                alone(draft, at, key, key, &scope, number::count(&printed.text));
            }
        }
        true
    }
}

/// With or without the time for connecting: two lines until 13, one since.
fn tps(at: At, value: &str, draft: &mut Draft) {
    let first = value.split([' ', '(']).next().unwrap_or_default();
    let Some(printed) = number::measure(first) else {
        return;
    };
    if value.contains("including connections") || value.contains("including reconnection") {
        draft.alone(client(at, "transactions_with_connecting_per_s", "tps including connections", printed));
        return;
    }
    let row = load_row(draft, "Transactions", "count");
    put!(draft, client(at, "transactions_per_s", "tps", printed), instance.load_profile[row].per_s);
    let per_s = draft.record.instance.load_profile[row].per_s.clone();
    let all = op_row(draft, ALL);
    draft.record.driver.ops[all].per_s = per_s;
}

fn processed(at: At, name: &str, count: Option<Printed>, draft: &mut Draft) {
    let Some(printed) = count else {
        return;
    };
    let row = load_row(draft, "Transactions", "count");
    put!(draft, client(at, "transactions_count", name, printed), instance.load_profile[row].total);
    let total = draft.record.instance.load_profile[row].total.value();
    let all = op_row(draft, ALL);
    draft.record.driver.ops[all].count = total.unwrap_or(0.0) as u64;
}

/// `avg 0.340 (max 5.539) ms`
fn schedule_lag(at: At, value: &str, draft: &mut Draft) {
    let ms = |token: Option<&str>| Some(number::measure(token?.trim())?.scaled(1e3));
    let avg = ms(value.strip_prefix("avg ").and_then(|rest| rest.split(' ').next()));
    if let Some(printed) = avg {
        let reading = client(at, "schedule_lag_us_avg", "schedule lag avg", printed);
        put!(draft, reading, driver.schedule_lag.us_avg);
    }
    if let Some(printed) = ms(between(value, "(max ", ")")) {
        let reading = client(at, "schedule_lag_us_max", "schedule lag max", printed);
        put!(draft, reading, driver.schedule_lag.us_max);
    }
}

/// `progress: 1.0 s, 626.9 tps, lat 6.231 ms stddev 6.929, 0 failed, 0 retried, 0 retries`
fn progress(at: At, text: &str, draft: &mut Draft) {
    let parts: Vec<&str> = text.trim_start_matches("progress: ").split(", ").collect();
    let end = parts.first().and_then(|part| part.strip_suffix(" s"));
    let Some(end_s) = end.and_then(|token| token.trim().parse::<f64>().ok()) else {
        return;
    };
    let Some(step) = step(draft, end_s) else {
        draft.note(at, "a progress line out of order was skipped");
        return;
    };
    let mut put = |key: &str, name: &str, series: &str, printed: Option<Printed>| {
        if let Some(printed) = printed {
            let reading = client(at, key, name, printed).scope(&format!("{end_s} s"));
            put_step(draft, reading, series, step);
        }
    };
    for part in &parts[1..] {
        let first = part.split(' ').next().unwrap_or_default();
        let ms = |token: Option<&str>| Some(number::measure(token?)?.scaled(1e3));
        if part.ends_with(" tps") {
            put("transactions_per_s", "tps", "commits_count_per_s", number::measure(first));
        } else if let Some(rest) = part.strip_prefix("lat ") {
            put("transaction_us_avg", "lat", "op_us_avg", ms(rest.split(' ').next()));
            let stddev = rest.split("stddev ").nth(1).map(|rest| rest.trim_end_matches(" ms"));
            put("transaction_us_stddev", "stddev", "op_us_stddev", ms(stddev));
        } else if let Some(rest) = part.strip_prefix("lag ") {
            put("schedule_lag_us_avg", "lag", "schedule_lag_us_avg", ms(rest.split(' ').next()));
        } else if let Some((_, what)) = part.split_once(' ') {
            let what = slug(what);
            let key = format!("{what}_count");
            put(&key, &what, &format!("{what}_count_in_step"), number::count(first));
        }
    }
}

/// Where a number of transactions was asked for, the time follows.
fn elapsed(draft: &mut Draft) {
    if draft.record.interval.elapsed_s.value().is_some() {
        return;
    }
    let rows = &draft.record.instance.load_profile;
    let Some(row) = rows.iter().find(|row| row.name == "Transactions") else {
        return;
    };
    if let (Some(total), Some(per_s)) = (row.total.value(), row.per_s.value())
        && per_s > 0.0
    {
        draft.record.interval.elapsed_s = Figure::decimal(total / per_s);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, survives, told};

    const SAMPLES: [&str; 6] = [
        "pgbench-15-progress.txt",
        "pgbench-15-statements.txt",
        "pgbench-15-transactions.txt",
        "pgbench-15-scripts.txt",
        "pgbench-15-failures.txt",
        "pgbench-12.txt",
    ];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn compare_finds_transactions_and_operations() {
        let record = imported("pgbench-15-progress.txt");
        let metrics = &record.metrics;
        for key in ["transactions_per_s", "ops_per_s", "transaction_per_s"] {
            let metric = assay_measure::record::metric::find(metrics, key).expect(key);
            assert_eq!(metric.value.value(), Some(854.275_682), "{key}");
        }
        assert_eq!(record.series.metrics["commits_count_per_s"].len(), 4);
        assert_eq!((record.run.sessions, record.driver.threads_count), (4, 2));
        let op = &record.driver.ops[0];
        assert_eq!((op.count, op.service.us_avg.value()), (3414, Some(4671.0)));
    }

    #[test]
    fn both_rates_of_older_versions_are_kept_apart() {
        let record = imported("pgbench-12.txt");
        assert_eq!(number(&record, "", "transactions_with_connecting_per_s"), 1_998.25);
        assert_eq!(number(&record, "", "transactions_per_s"), 2_000.125);
    }

    #[test]
    fn scripts_have_operations_of_their_own() {
        let record = imported("pgbench-15-scripts.txt");
        let kinds: Vec<&str> = record.driver.ops.iter().map(|op| op.kind.as_str()).collect();
        assert_eq!(kinds, ["transaction", "simple_update", "select_only"]);
        assert_eq!(record.driver.ops[2].count, 59);
        assert_eq!(record.driver.ops[2].service.us_avg.value(), Some(856.0));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
