//! The report of round trips.

use super::headline::method;
use super::info::PingInfo;
use assay_measure::record::{Figure, Latency, Record};
use assay_measure::section::{Align, Cell, Sections, common, right};
use assay_measure::snapshot::Fact;

use Align::{Left, Right};

/// The whole report.
pub(super) fn render(record: &Record, info: &PingInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(&mut page, record, "PING", &method(info));
    common::warnings(&mut page, record);
    common::integrity(&mut page, record);
    percentiles(&mut page, info);
    worst(&mut page, info);
    page.heading("Distribution of the Round Trips");
    if info.service.hist_ns.is_empty() {
        page.line("n/a (no request was answered)")
    } else {
        page.histogram(&info.service.hist_ns, right("Replies", 14))
    }
    page.heading("Distribution of the Times since Each Was Due");
    if info.response.hist_ns.is_empty() {
        page.line("n/a (nothing was sent)")
    } else {
        page.histogram(&info.response.hist_ns, right("Requests", 14))
    }
    page.heading("Who Else Used the Host");
    let shown = info.conditions.shown();
    let pairs: Vec<(String, String)> = shown.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    page.pairs(&pairs);
    common::facts(&mut page, "Test", &facts(info));
    page.heading("How to Read It");
    PITFALLS.iter().for_each(|text| page.wrapped("  - ", text));
    common::identities(&mut page, record);
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const PITFALLS: [&str; 5] = [
    "Each request has two times: the round trip starts when it is sent, the time since due starts when the schedule \
     wanted it sent. A stall of a second is one slow round trip and, at 1000 per second, a thousand late requests: a \
     user who waits in a queue sees the second kind.",
    "A lost request counts among the times since due with the time that was spent waiting for it; it does not count \
     among the round trips.",
    "mdev is the standard deviation of all round trips: a few outliers dominate it; prefer percentiles.",
    "\"Loaded\" is measured beside a stream of `assay net` over the same route. The difference is the queue that the \
     stream fills: while a backup runs, a commit that waits for a standby waits in that queue too.",
    "Over TCP a lost segment shows as a round trip of 200 ms and more, never as a loss.",
];

fn percentiles(page: &mut Sections, info: &PingInfo) {
    page.heading("Times, us");
    let row = |name: &str, latency: &Latency, p9999: &Figure| {
        let mut cells = vec![Cell::from(name)];
        for figure in [
            &latency.us_min,
            &latency.us_avg,
            &latency.us_p50,
            &latency.us_p90,
            &latency.us_p99,
            &latency.us_p999,
            p9999,
            &latency.us_max,
        ] {
            cells.push(Cell::figure(figure, 1));
        }
        cells
    };
    let none = Figure::na("not computed");
    let mut rows = vec![
        row("round trip", &info.service, &info.us_p9999),
        row("since due", &info.response, &info.response_us_p9999),
    ];
    if !info.server.hist_ns.is_empty() {
        rows.push(row("in the server", &info.server, &none));
        rows.push(row("without the server", &info.network, &none));
    }
    if let Some(loaded) = &info.loaded {
        rows.push(row("round trip, loaded", &loaded.service, &none));
        rows.push(row("since due, loaded", &loaded.response, &none));
    }
    let titles = [
        ("Time", Left),
        ("min", Right),
        ("mean", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("p99.9", Right),
        ("p99.99", Right),
        ("max", Right),
    ];
    page.fitted(&titles, rows);
}

fn worst(page: &mut Sections, info: &PingInfo) {
    page.heading("The Slowest Round Trips");
    if info.worst.is_empty() {
        page.line("n/a (nothing was sent)");
        return;
    }
    let rows = info.worst.iter().map(|row| {
        vec![
            Cell::from(row.seq.to_string()),
            Cell::figure(&Figure::decimal(row.at_s), 3),
            Cell::figure(&Figure::decimal(row.service_us), 1),
            Cell::figure(&Figure::decimal(row.response_us), 1),
            if row.is_lost { "lost" } else { "" }.into(),
        ]
    });
    let titles =
        [("Request", Left), ("due at, s", Right), ("round trip, us", Right), ("since due, us", Right), ("", Left)];
    page.fitted(&titles, rows.collect());
}

fn facts(info: &PingInfo) -> Vec<Fact> {
    let fact = |name: &str, value: String| Fact { name: name.to_owned(), value };
    let again = match info.retransmits_count {
        Some(count) => count.to_string(),
        None => "not with this method".to_owned(),
    };
    vec![
        fact("Method", info.method.clone()),
        fact("The time includes", info.holds.clone()),
        fact("Request, bytes of payload", info.size_bytes.to_string()),
        fact("Reply, bytes of payload", info.reply_bytes.to_string()),
        fact("Lost after", format!("{} s", info.timeout_s)),
        fact("Replies too late or twice", info.strays_count.to_string()),
        fact("Segments retransmitted", again),
    ]
}
