//! The results of a run in the formats of Swingbench: its results file, and the table that its summary script prints
//! from such files.

use crate::mix::{ALL, Tx};
use crate::part::OrdersInfo;
use assay_measure::histogram::Histogram;
use assay_measure::record::{OpRow, Record};

/// The percentile elements of a transaction, as the format spells them.
const PERCENTILES: [(&str, f64); 9] = [
    ("TenthPrecentile", 0.1),
    ("TwentiethPercentile", 0.2),
    ("ThirtiethPercentile", 0.3),
    ("FortiethPrecentile", 0.4),
    ("FiftythPercentile", 0.5),
    ("SixtiethPercentile", 0.6),
    ("SeventiethPercentile", 0.7),
    ("EightiethPercentile", 0.8),
    ("NinetiethPercentile", 0.9),
];

/// Lines of indented XML.
#[derive(Default)]
struct Xml {
    text: String,
    depth: usize,
}

impl Xml {
    fn line(&mut self, line: &str) {
        self.text.push_str(&"   ".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn value(&mut self, name: &str, value: &str) {
        self.line(&format!("<{name}>{}</{name}>", escaped(value)));
    }

    fn within(&mut self, tag: &str, name: &str, inside: impl FnOnce(&mut Self)) {
        self.line(&format!("<{tag}>"));
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.line(&format!("</{name}>"));
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // Not allowed in XML 1.0, not even escaped.
            c if c < ' ' && !matches!(c, '\t' | '\n' | '\r') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// The figures that both formats print.
struct Results<'a> {
    record: &'a Record,
    info: &'a OrdersInfo,
}

/// A number for other programs: no separators.
fn fixed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
}

/// `0:10:00`
fn clock(s: f64) -> String {
    let s = s.round() as u64;
    format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// Milliseconds.
fn ms(ns: Option<u64>) -> String {
    fixed(ns.unwrap_or(0) as f64 / 1e6, 2)
}

impl Results<'_> {
    fn op(&self, tx: Tx) -> Option<&OpRow> {
        self.record.driver.ops.iter().find(|op| op.kind == tx.key())
    }

    fn enabled(&self) -> impl Iterator<Item = Tx> + '_ {
        let done = |tx: &Tx| self.info.transactions.iter().any(|row| row.kind == tx.key());
        ALL.into_iter().filter(done)
    }

    fn completed(&self) -> u64 {
        self.enabled().filter_map(|tx| self.op(tx)).map(|op| op.count).sum()
    }

    fn elapsed_s(&self) -> f64 {
        self.record.interval.elapsed_s.value().unwrap_or(0.0)
    }

    fn per_s(&self) -> f64 {
        match self.elapsed_s() {
            0.0 => 0.0,
            s => self.completed() as f64 / s,
        }
    }

    /// The four pauses in milliseconds: minimum and maximum between transactions, then within.
    fn pauses(&self) -> [u64; 4] {
        let asked = self.info.asked();
        let pause = |of: fn(&crate::params::Asked) -> crate::params::Pause| asked.map(of).unwrap_or_default();
        let (inter, intra) = (pause(|asked| asked.inter), pause(|asked| asked.intra));
        [inter.min_ns, inter.max_ns, intra.min_ns, intra.max_ns].map(|ns| ns / 1_000_000)
    }

    fn started(&self) -> String {
        let started: Result<jiff::Timestamp, _> = self.record.run.started.parse();
        started
            .map_or_else(|_| self.record.run.started.clone(), |at| at.strftime("%b %-d, %Y %-I:%M:%S %p").to_string())
    }

    fn target(&self) -> &str {
        let line = self.record.plan.settings.iter().find(|line| line.name == "TARGET");
        line.map_or("", |line| line.value.as_str())
    }

    fn overview(&self, xml: &mut Xml) {
        xml.value("BenchmarkName", "\"Order Entry (assay)\"");
        xml.value("Comment", self.record.run.label.as_deref().unwrap_or(""));
        xml.value("TimeOfRun", &self.started());
        xml.value("TotalRunTime", &clock(self.elapsed_s()));
        xml.value("TotalLogonTime", "0:00:00");
        xml.value("TotalCompletedTransactions", &self.completed().to_string());
        let failed: u64 = self.info.transactions.iter().map(|row| row.failures()).sum();
        xml.value("TotalFailedTransactions", &failed.to_string());
        xml.value("AverageTransactionsPerSecond", &fixed(self.per_s(), 2));
        xml.value("MaximumTransactionRate", &per_minute_max(self.record).to_string());
    }

    fn configuration(&self, xml: &mut Xml) {
        xml.value("NumberOfUsers", &self.record.run.sessions.to_string());
        let names =
            ["MinimumInterThinkTime", "MaximumInterThinkTime", "MinimumIntraThinkTime", "MaximumIntraThinkTime"];
        for (name, ms) in names.into_iter().zip(self.pauses()) {
            xml.value(name, &ms.to_string());
        }
        xml.value("ConnectString", self.target());
        xml.value("TimingsIn", "milliseconds");
        xml.value("WaitTillAllLogon", "true");
        xml.value("Driver", &format!("assay {} ({})", self.record.run.version, self.record.run.engine));
    }

    fn statements(&self, xml: &mut Xml) {
        let ledger = &self.info.known.ledger;
        for (name, n) in [
            ("SelectStatements", ledger.selects),
            ("InsertStatements", ledger.inserts),
            ("UpdateStatements", ledger.updates),
            ("DeleteStatements", 0),
            ("CommitStatements", ledger.commits),
            ("RollbackStatements", ledger.rollbacks),
        ] {
            xml.value(name, &n.to_string());
        }
    }

    fn transaction(&self, xml: &mut Xml, tx: Tx) {
        let none = Histogram::new();
        let times = self.op(tx).map_or(&none, |op| &op.response.hist_ns);
        xml.value("AverageResponse", &fixed(times.mean_ns().unwrap_or(0.0) / 1e6, 2));
        xml.value("MinimumResponse", &ms(times.min_ns()));
        xml.value("MaximumResponse", &ms(times.max_ns()));
        xml.value("TransactionCount", &times.count().to_string());
        let row = self.info.transactions.iter().find(|row| row.kind == tx.key());
        let failed = row.map_or(0, |row| row.failures());
        xml.value("FailedTransactionCount", &failed.to_string());
        let rolled = failed + row.map_or(0, |row| row.retries());
        xml.value("RollbackCount", &rolled.to_string());
        xml.value("GeometricMean", &fixed(geometric_mean_ns(times) / 1e6, 3));
        for (name, q) in PERCENTILES {
            xml.value(name, &ms(percentile(times, q)));
        }
    }

    /// Rate of each second: ms since 1970, and transactions per second.
    fn readings(&self) -> String {
        let begun: Result<jiff::Timestamp, _> = self.record.run.started.parse();
        let begun_ms = begun.map_or(0, |at| at.as_millisecond());
        let series = &self.record.series;
        let Some(rates) = series.metrics.get("ops_count_per_s") else {
            return String::new();
        };
        let told = series.t_s.iter().zip(rates).filter_map(|(t_s, rate)| {
            let at = begun_ms + (t_s * 1000.0) as i64;
            Some(format!("{at}, {},", fixed(rate.value()?, 0)))
        });
        told.collect()
    }
}

/// A percentile of a histogram, even if few samples lie beyond it: the results file needs a number in each place.
fn percentile(times: &Histogram, q: f64) -> Option<u64> {
    times.percentile_ns(q).or_else(|| {
        let wanted = (q * times.count() as f64).ceil() as u64;
        let mut seen = 0;
        for (slot, n) in times.sparse() {
            seen += n;
            if seen >= wanted {
                let (low, width) = assay_measure::histogram::slot_low_and_width_ns(slot as usize);
                let middle = low + width / 2;
                return Some(middle.clamp(times.min_ns()?, times.max_ns()?));
            }
        }
        times.max_ns()
    })
}

/// The percentile in us, if there is any sample.
pub(crate) fn percentile_us(times: &Histogram, q: f64) -> Option<f64> {
    times.percentile_ns(q).map(|ns| ns as f64 / 1e3)
}

fn geometric_mean_ns(times: &Histogram) -> f64 {
    let all = times.count() as f64;
    if all == 0.0 {
        return 0.0;
    }
    let sum: f64 = times
        .sparse()
        .into_iter()
        .map(|(slot, n)| {
            let (low, width) = assay_measure::histogram::slot_low_and_width_ns(slot as usize);
            ((low + width / 2).max(1) as f64).ln() * n as f64
        })
        .sum();
    // The midpoint of a bucket may slightly exceed the mean when all samples are equal.
    (sum / all).exp().min(times.mean_ns().unwrap_or(f64::MAX))
}

/// Most transactions in any minute; for a shorter window, all of them.
pub(crate) fn per_minute_max(record: &Record) -> u64 {
    let series = &record.series;
    let none = Vec::new();
    let rates = series.metrics.get("ops_count_per_s").unwrap_or(&none);
    let mut begin = 0.0;
    let steps: Vec<(f64, f64)> = series
        .t_s
        .iter()
        .zip(rates)
        .zip(&series.in_window)
        .filter_map(|((t_s, rate), in_window)| {
            let width = t_s - begin;
            begin = *t_s;
            in_window.then(|| (*t_s, rate.value().unwrap_or(0.0) * width))
        })
        .collect();
    let minute = |end: usize| -> f64 {
        let at = steps[end].0;
        steps[..=end].iter().rev().take_while(|(t_s, _)| at - t_s < 60.0 - 1e-6).map(|(_, n)| n).sum()
    };
    (0..steps.len()).map(minute).fold(0.0, f64::max).round() as u64
}

/// The results file.
#[must_use]
pub fn file(record: &Record, info: &OrdersInfo) -> String {
    let results = Results { record, info };
    let mut xml = Xml::default();
    xml.line("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>");
    let root = "Results xmlns=\"http://www.dominicgiles.com/swingbench/results\"";
    xml.within(root, "Results", |xml| {
        xml.within("Overview", "Overview", |xml| results.overview(xml));
        xml.within("Configuration", "Configuration", |xml| results.configuration(xml));
        xml.within("DMLResults", "DMLResults", |xml| results.statements(xml));
        xml.within("TransactionResults", "TransactionResults", |xml| {
            for tx in results.enabled() {
                xml.within(&format!("Result id=\"{}\"", tx.title()), "Result", |xml| {
                    results.transaction(xml, tx);
                });
            }
        });
        xml.within("BenchmarkMetrics", "BenchmarkMetrics", |xml| {
            xml.value("TPSReadings", &results.readings());
        });
        let more = "Assay xmlns=\"https://assay.invalid/orders\"";
        xml.within(more, "Assay", |xml| extras(&results, xml));
    });
    xml.text
}

/// Figures that have no element in the format.
fn extras(results: &Results<'_>, xml: &mut Xml) {
    let (record, info) = (results.record, results.info);
    xml.value("Seed", &record.run.seed.to_string());
    xml.value("Preset", info.asked().map_or("", |asked| asked.mix.preset.as_str()));
    xml.value("Arrivals", &info.arrivals());
    if info.dropped_told().is_some() {
        xml.value("ArrivalsDropped", &info.dropped.to_string());
    }
    xml.value("Form", info.form());
    xml.value("Isolation", &info.known.isolation);
    xml.value("Durability", &info.known.durability);
    xml.value("Scale", &assay_measure::units::six(info.known.scale));
    xml.value("Consistency", &info.consistency());
    for row in &info.transactions {
        let Some(op) = row.tx().and_then(|tx| results.op(tx)) else {
            continue;
        };
        let times = &op.response.hist_ns;
        let told = [("p95", 0.95), ("p99", 0.99), ("p999", 0.999)]
            .map(|(name, q)| format!("{name}=\"{}\"", ms(percentile(times, q))));
        xml.line(&format!("<Response id=\"{}\" {} retries=\"{}\"/>", row.kind, told.join(" "), row.retries()));
    }
}

/// Widths of the table's two columns.
const WIDTHS: (usize, usize) = (42, 34);

/// The table that the summary script prints from a results file.
#[must_use]
pub fn table(record: &Record, info: &OrdersInfo) -> String {
    let results = Results { record, info };
    let rule = format!("+{}+{}+\n", "-".repeat(WIDTHS.0 + 2), "-".repeat(WIDTHS.1 + 2));
    let row = |name: &str, value: &str| format!("| {name:<0$} | {value:<1$} |\n", WIDTHS.0, WIDTHS.1);
    let [inter_min, inter_max, intra_min, intra_max] = results.pauses().map(|ms| ms.to_string());
    let mut out = rule.clone() + &row("Attribute", &record.run.id) + &rule;
    for (name, value) in [
        ("Benchmark Name", "\"Order Entry (assay)\""),
        ("Connect String", results.target()),
        ("Time of run", &results.started()),
        ("Minimum Inter TX Think Time", &inter_min),
        ("Maximum Inter TX Think Time", &inter_max),
        ("Minimum Intra TX Think Time", &intra_min),
        ("Maximum Intra TX Think Time", &intra_max),
        ("No of Users", &record.run.sessions.to_string()),
        ("Total Run Time", &clock(results.elapsed_s())),
        ("Average Tx/Sec", &fixed(results.per_s(), 2)),
        ("Maximum Tx/Min", &per_minute_max(record).to_string()),
        ("Total Completed Transactions", &results.completed().to_string()),
    ] {
        out.push_str(&row(name, value));
    }
    let none = Histogram::new();
    for (title, q) in [
        ("Average", None),
        ("10th Percentile", Some(0.1)),
        ("50th Percentile", Some(0.5)),
        ("90th Percentile", Some(0.9)),
    ] {
        out.push_str(&row("", ""));
        out.push_str(&row(&format!("{title} Transaction Response Time"), ""));
        for tx in results.enabled() {
            let times = results.op(tx).map_or(&none, |op| &op.response.hist_ns);
            let value = match q {
                None => fixed(times.mean_ns().unwrap_or(0.0) / 1e6, 2),
                Some(q) => ms(percentile(times, q)),
            };
            out.push_str(&row(tx.title(), &value));
        }
    }
    out + &rule
}

#[cfg(test)]
mod tests;
