//! The record of pairs: a row for each, the slowest first, and the matrix.

use super::Pair;
use crate::fleet::message::Hello;
use assay_measure::figures::{figures, of_layer};
use assay_measure::fleet::ODD;
use assay_measure::kind::{Finding, Headline, HeadlineFigure, HeadlineLine, Limit, OwnKind};
use assay_measure::record::{Figure, Part, Record};
use assay_measure::section::{Align, Cell, Sections, common};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::units::{many, short};

/// A matrix with more hosts is wider than anybody reads.
const MATRIX_HOSTS: usize = 12;

/// The kind of these records.
pub const KIND: OwnKind<PairsInfo> = OwnKind {
    conditions: |info| {
        vec![
            ("test", info.test.clone(), Finding::Forbids),
            ("its options", info.options.clone(), Finding::Forbids),
            ("hosts", info.hosts.join(", "), Finding::Tolerable),
        ]
    },
    ..OwnKind::new(|info| of_layer("network", info), sections, headline)
};

/// What was measured between the hosts of a fleet.
#[figures(group = Host)]
pub struct PairsInfo {
    /// `net` or `ping`.
    pub test: String,
    /// Its options, as typed.
    pub options: String,
    /// The hosts' names.
    pub hosts: Vec<String>,
    /// Pairs that there are.
    pub planned_count: u64,
    /// Pairs that were measured.
    #[metric("pairs measured", Higher)]
    pub measured_count: u64,
    /// The slowest pair, the one in the middle, and the fastest; of net.
    #[metric("slowest pair", Primary, Higher)]
    pub slowest_bits_per_s: Figure,
    /// See above.
    #[metric("pair in the middle", Higher)]
    pub middle_bits_per_s: Figure,
    /// See above.
    #[metric("fastest pair", Higher)]
    pub fastest_bits_per_s: Figure,
    /// What round trips are judged by: `p99`, or `p50` where a pair has too few for that; empty of net.
    pub statistic: String,
    /// The same of round trips; of ping.
    #[metric("slowest pair", Primary, Lower)]
    pub slowest_rtt_us: Figure,
    /// See above.
    #[metric("pair in the middle", Lower)]
    pub middle_rtt_us: Figure,
    /// See above.
    #[metric("fastest pair", Lower)]
    pub fastest_rtt_us: Figure,
    /// The pairs, the slowest first; those without figures before them.
    #[metrics]
    pub pairs: Vec<PairRow>,
}

impl Part for PairsInfo {
    const NAME: &str = "pairs";
}

/// One pair.
#[figures(group = Host, scope = "{client} to {server}")]
pub struct PairRow {
    /// Who asked, and sent unless the options say otherwise.
    pub client: String,
    /// Who served.
    pub server: String,
    /// What the receiver got; of net.
    #[metric("received", Higher)]
    pub received_bits_per_s: Figure,
    /// Segments sent again; of net over TCP.
    #[metric("segments sent again", Lower)]
    pub retransmits_count: Figure,
    /// Round trips: as the sender's kernel sampled them beside the stream, of net; of ping, those of its requests.
    #[metric("round trip", Lower)]
    pub rtt_us_avg: Figure,
    /// See above; of ping.
    #[metric("round trip", Lower)]
    pub rtt_us_p50: Figure,
    /// See above; of ping.
    #[metric("round trip", Lower)]
    pub rtt_us_p99: Figure,
    /// See above; of ping.
    #[metric("longest round trip", Lower)]
    pub rtt_us_max: Figure,
    /// Requests lost; of ping.
    #[metric("lost", Lower)]
    pub lost_pct: Figure,
    /// Why there are no figures; empty where there are.
    pub note: String,
}

const NOT_OF_IT: &str = "not of this test";

/// The statistics of round trips that pairs are judged by.
const P99: &str = "p99";
const P50: &str = "p50";

impl PairRow {
    /// What pairs are ordered by.
    fn judged(&self, statistic: &str) -> &Figure {
        match statistic {
            "" => &self.received_bits_per_s,
            P99 => &self.rtt_us_p99,
            _ => &self.rtt_us_p50,
        }
    }

    fn of(hosts: &[Hello], pair: &Pair) -> Self {
        let (server, client) = (hosts[pair.server].name.clone(), hosts[pair.client].name.clone());
        let record = match &pair.outcome {
            Ok(record) => record,
            Err(why) => {
                let none = || Figure::na(why);
                return Self {
                    client,
                    server,
                    received_bits_per_s: none(),
                    retransmits_count: none(),
                    rtt_us_avg: none(),
                    rtt_us_p50: none(),
                    rtt_us_p99: none(),
                    rtt_us_max: none(),
                    lost_pct: none(),
                    note: why.clone(),
                };
            }
        };
        let find = |scopes: &[&str], keys: &[&str]| {
            let is_it = |metric: &&assay_measure::record::Metric| {
                scopes.contains(&metric.scope.as_str()) && keys.contains(&metric.key.as_str())
            };
            record.metrics.iter().find(is_it).map_or_else(|| Figure::na(NOT_OF_IT), |metric| metric.value.clone())
        };
        Self {
            received_bits_per_s: find(
                &["receiver", "TX-C receiver"],
                &["tcp_throughput_bits_per_s_mean", "udp_throughput_bits_per_s_mean"],
            ),
            retransmits_count: find(&["sender", "TX-C sender"], &["tcp_retransmits_count"]),
            rtt_us_avg: find(&["", "sender", "TX-C sender"], &["rtt_us_avg", "tcp_rtt_us_avg"]),
            rtt_us_p50: find(&[""], &["rtt_us_p50"]),
            rtt_us_p99: find(&[""], &["rtt_us_p99"]),
            rtt_us_max: find(&[""], &["rtt_us_max"]),
            lost_pct: find(&[""], &["packets_lost_pct"]),
            note: String::new(),
            client,
            server,
        }
    }
}

impl PairsInfo {
    /// Of what was tested: the test, its options, and the pairs.
    #[must_use]
    pub fn of(words: &[String], hosts: &[Hello], pairs: &[Pair]) -> Self {
        let (test, options) = words.split_first().map_or(("", &[][..]), |(test, options)| (test.as_str(), options));
        let mut rows: Vec<PairRow> = pairs.iter().map(|pair| PairRow::of(hosts, pair)).collect();
        let has_p99 = |row: &PairRow| !row.note.is_empty() || row.rtt_us_p99.value().is_some();
        let statistic = match test {
            "net" => "",
            _ if rows.iter().all(has_p99) => P99,
            _ => P50,
        };
        for row in rows.iter_mut().filter(|row| row.note.is_empty()) {
            row.note = row.judged(statistic).reason().unwrap_or_default().to_owned();
        }
        let slower = |row: &PairRow| match row.judged(statistic).value() {
            None => f64::NEG_INFINITY,
            Some(value) if statistic.is_empty() => value,
            Some(value) => -value,
        };
        rows.sort_by(|a, b| slower(a).total_cmp(&slower(b)));
        let measured: Vec<&PairRow> = rows.iter().filter(|row| row.judged(statistic).value().is_some()).collect();
        let at = |rate: bool, at: usize| match measured.get(at) {
            _ if rate != statistic.is_empty() => Figure::na(NOT_OF_IT),
            None => Figure::na("no pair was measured"),
            Some(row) => row.judged(statistic).clone(),
        };
        let last = measured.len().saturating_sub(1);
        let of = |rate: bool| [0, last / 2, last].map(|place| at(rate, place));
        let [slowest_bits_per_s, middle_bits_per_s, fastest_bits_per_s] = of(true);
        let [slowest_rtt_us, middle_rtt_us, fastest_rtt_us] = of(false);
        Self {
            test: test.to_owned(),
            options: options.join(" "),
            hosts: hosts.iter().map(|host| host.name.clone()).collect(),
            planned_count: (hosts.len() * hosts.len().saturating_sub(1) / 2) as u64,
            measured_count: measured.len() as u64,
            slowest_bits_per_s,
            middle_bits_per_s,
            fastest_bits_per_s,
            statistic: statistic.to_owned(),
            slowest_rtt_us,
            middle_rtt_us,
            fastest_rtt_us,
            pairs: rows,
        }
    }

    /// Its record; `labels` brings id, versions and settings, `elapsed_s` is what all pairs took.
    #[must_use]
    pub fn record(&self, mut labels: RunData, elapsed_s: f64) -> Record {
        let missing = self.planned_count - self.measured_count;
        if missing > 0 {
            let why: Vec<String> = (self.pairs.iter().filter(|row| row.judged(&self.statistic).value().is_none()))
                .map(|row| format!("{} to {}: {}", row.client, row.server, row.note))
                .collect();
            let why = if why.is_empty() { "stopped on request".to_owned() } else { why.join("; ") };
            let Self { measured_count, planned_count, .. } = self;
            labels.verdict = Verdict::Incomplete(format!("partial: {measured_count} of {planned_count} pairs ({why})"));
        }
        let mut record = Record::labelled(&labels);
        record.interval.elapsed_s = Figure::decimal(elapsed_s);
        KIND.complete(record, self)
    }

    /// Whether pairs are judged by throughput.
    fn is_rate(&self) -> bool {
        self.statistic.is_empty()
    }

    /// A figure that pairs are ordered by, in words.
    fn told(&self, figure: &Figure) -> String {
        match figure.value() {
            Some(value) if self.is_rate() => format!("{} Mbit/s", short(value / 1e6)),
            Some(value) => format!("{} {} us", self.statistic, short(value)),
            None => "n/a".to_owned(),
        }
    }

    /// The slowest pair that has figures.
    fn slowest(&self) -> Option<&PairRow> {
        self.pairs.iter().find(|row| row.judged(&self.statistic).value().is_some())
    }

    /// The median over the pairs that are so.
    fn median(&self, is_meant: impl Fn(&PairRow) -> bool) -> Option<f64> {
        let all: Vec<f64> = self
            .pairs
            .iter()
            .filter(|row| is_meant(row))
            .filter_map(|row| row.judged(&self.statistic).value())
            .collect();
        all.get(all.len() / 2).copied()
    }

    /// The host whose own pairs are slower than those of the others.
    fn odd_host(&self) -> Option<String> {
        let found = self.hosts.iter().filter_map(|host| {
            let is_its = |row: &PairRow| row.client == *host || row.server == *host;
            let (its, others) = (self.median(is_its)?, self.median(|row| !is_its(row))?);
            let slower = if self.is_rate() { 1.0 - its / others } else { 1.0 - others / its };
            (slower > ODD).then_some((slower, host, its, others))
        });
        let (_, host, its, others) = found.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let [its, others] = [its, others].map(|value| self.told(&Figure::decimal(value)));
        Some(format!("{host}: its pairs have {its} at the median, those of the others {others}."))
    }
}

fn headline(_: &Record, info: &PairsInfo) -> Headline {
    let three = if info.is_rate() {
        [&info.slowest_bits_per_s, &info.middle_bits_per_s, &info.fastest_bits_per_s]
    } else {
        [&info.slowest_rtt_us, &info.middle_rtt_us, &info.fastest_rtt_us]
    };
    let (factor, unit) = if info.is_rate() { (1e-6, "Mbit/s") } else { (1.0, "us") };
    let unit = format!("{unit} {}", info.statistic);
    let line = |title, at: usize| {
        HeadlineLine::told(title, vec![HeadlineFigure::new(&three[at].scaled(factor), unit.trim_end())])
    };
    let middle = info.told(three[1]);
    Headline {
        verdict: match info.slowest() {
            Some(row) => {
                let PairRow { client, server, .. } = row;
                let told = info.told(three[0]);
                format!("the slowest pair is {client} to {server} with {told}; the one in the middle has {middle}")
            }
            None => "n/a (no pair was measured)".to_owned(),
        },
        tested: format!(
            "{} between {}: {} of {}, each alone, one after the other.",
            if info.is_rate() { "Throughput" } else { "Round trips" },
            many(info.hosts.len() as u64, "host"),
            info.measured_count,
            many(info.planned_count, "pair")
        ),
        rows: vec![line("Slowest", 0), line("Middle", 1), line("Fastest", 2)],
        steadiness: "n/a (each pair was measured once)".to_owned(),
        limit: match info.odd_host() {
            Some(told) => Limit::new("the way to one host", told),
            None => Limit::unknown("no host stands out among the pairs"),
        },
        rerun_command: format!("assay fleet run -- {} {}", info.test, info.options).trim_end().to_owned(),
        ..Headline::default()
    }
}

fn sections(record: &Record, info: &PairsInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(
        &mut page,
        record,
        "PAIRS",
        &format!("{} between {}", info.test, many(info.hosts.len() as u64, "host")),
    );
    common::warnings(&mut page, record);
    if info.hosts.len() <= MATRIX_HOSTS {
        page.heading("Matrix");
        let of = if info.is_rate() { RATES.to_owned() } else { format!("{TRIPS} {}.", info.statistic) };
        page.wrapped("", &of);
        let mut titles = vec![("from \\ to", Align::Left)];
        titles.extend(info.hosts.iter().map(|host| (host.as_str(), Align::Right)));
        let row = |client: &String| {
            let cells = info.hosts.iter().map(|server| Cell::from(cell(info, client, server)));
            [Cell::from(client.as_str())].into_iter().chain(cells).collect()
        };
        page.fitted(&titles, info.hosts.iter().map(row).collect());
    }
    page.heading("Pairs");
    page.wrapped("", "The slowest first; one without figures before it.");
    let titles = [
        ("from", Align::Left),
        ("to", Align::Left),
        ("Mbit/s", Align::Right),
        ("sent again", Align::Right),
        ("mean us", Align::Right),
        ("p50 us", Align::Right),
        ("p99 us", Align::Right),
        ("max us", Align::Right),
        ("lost %", Align::Right),
        ("note", Align::Left),
    ];
    let row = |row: &PairRow| {
        let figures = [
            (row.received_bits_per_s.scaled(1e-6), 1),
            (row.retransmits_count.clone(), 0),
            (row.rtt_us_avg.clone(), 1),
            (row.rtt_us_p50.clone(), 1),
            (row.rtt_us_p99.clone(), 1),
            (row.rtt_us_max.clone(), 1),
            (row.lost_pct.clone(), 2),
        ];
        let mut cells = vec![Cell::from(row.client.as_str()), Cell::from(row.server.as_str())];
        cells.extend(figures.iter().map(|(figure, decimals)| match figure.reason() {
            Some(NOT_OF_IT) => Cell::from("-"),
            _ => Cell::figure(figure, *decimals),
        }));
        cells.push(Cell::from(row.note.as_str()));
        cells
    };
    let mut rows: Vec<Vec<Cell>> = info.pairs.iter().map(row).collect();
    let is_shown = |at: usize| rows.iter().any(|cells| !["-", ""].contains(&cells[at].text.as_str()));
    let shown: Vec<bool> = (0..titles.len()).map(is_shown).collect();
    let kept = |at: usize| shown[at];
    rows.iter_mut().for_each(|cells| retain(cells, kept));
    let mut titles = titles.to_vec();
    retain(&mut titles, kept);
    page.fitted(&titles, rows);
    common::facts(&mut page, "Controller", &record.host.facts);
    page
}

/// Leaves the elements at such places.
fn retain<T>(all: &mut Vec<T>, is_kept: impl Fn(usize) -> bool) {
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        is_kept(at - 1)
    });
}

const RATES: &str = "What the receiver got, Mbit/s. Each pair is measured once, from who stands in the row to who stands in the column.";
const TRIPS: &str = "Round trips, us. Each pair is measured once, by who stands in the row. Statistic:";

fn cell(info: &PairsInfo, client: &str, server: &str) -> String {
    let row = info.pairs.iter().find(|row| row.client == client && row.server == server);
    match row.map(|row| row.judged(&info.statistic)) {
        None => "-".to_owned(),
        Some(figure) => match figure.value() {
            Some(value) if info.is_rate() => short(value / 1e6),
            Some(value) => short(value),
            None => "n/a".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::record::Metric;

    fn pair(server: usize, client: usize, bits: Option<f64>) -> Pair {
        let metric = |bits| Metric {
            scope: "receiver".to_owned(),
            key: "tcp_throughput_bits_per_s_mean".to_owned(),
            value: Figure::decimal(bits),
            ..Metric::default()
        };
        let record = |bits| Box::new(Record { metrics: vec![metric(bits)], ..Record::default() });
        Pair { server, client, outcome: bits.map(record).ok_or_else(|| "nobody answers".to_owned()) }
    }

    #[test]
    fn the_slowest_pair_comes_first_and_the_host_that_all_its_pairs_share_is_named() {
        let hosts = ["a", "b", "c", "d"].map(|name| Hello { name: name.to_owned(), ..Hello::default() });
        let rates = [(0, 1, 900e6), (0, 2, 400e6), (1, 2, 420e6), (0, 3, 910e6), (1, 3, 905e6), (2, 3, 410e6)];
        let pairs = rates.map(|(server, client, bits)| pair(server, client, Some(bits)));
        let info = PairsInfo::of(&["net".to_owned(), "--time=2s".to_owned()], &hosts, &pairs);
        assert_eq!((info.planned_count, info.measured_count), (6, 6));
        assert_eq!((info.pairs[0].client.as_str(), info.pairs[0].server.as_str()), ("c", "a"));
        let record = info.record(RunData::default(), 6.0);
        let headline = headline(&record, &info);
        assert_eq!(
            headline.verdict,
            "the slowest pair is c to a with 400 Mbit/s; the one in the middle has 420 Mbit/s"
        );
        assert!(headline.limit.evidence.starts_with("c: its pairs have 410 Mbit/s at the median"), "{headline:?}");
        assert_eq!(cell(&info, "d", "c"), "410");
        assert_eq!(cell(&info, "c", "d"), "-", "a pair is measured once");
    }

    #[test]
    fn a_pair_that_failed_is_a_row_with_its_reason_and_the_rest_is_partial() {
        let hosts = ["a", "b", "c"].map(|name| Hello { name: name.to_owned(), ..Hello::default() });
        let pairs = [pair(0, 1, Some(1e9)), pair(0, 2, None), pair(1, 2, Some(2e9))];
        let info = PairsInfo::of(&["net".to_owned()], &hosts, &pairs);
        assert_eq!(info.pairs[0].note, "nobody answers");
        let record = info.record(RunData::default(), 6.0);
        assert_eq!(record.run.verdict_reasons, ["partial: 2 of 3 pairs (c to a: nobody answers)"]);
    }
}
