//! ping's replies and summary: iputils, BusyBox, BSD and macOS.

use super::Confidence;
use super::ImportError;
use super::draft::{Draft, Reading};
use super::located_number::between;
use super::number::{self, Printed};
use super::rows::{op_row, setting};
use super::text::{At, Text};
use assay_measure::histogram::Histogram;
use assay_measure::record::Figure;
use assay_measure::record::percentile_us;

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    let summary = Confidence::of(
        90,
        &[
            ("a line ... packets transmitted", has("packets transmitted")),
            ("a line ... packet loss", has("packet loss")),
        ],
    );
    let replies = Confidence::of(
        80,
        &[("a line ... bytes from ...", has(" bytes from ")), ("time=... ms in it", has("time=") || has("time<"))],
    );
    summary.or(replies)
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "ping text");
    for text in texts {
        let mut replies = Histogram::new();
        for line in &text.lines {
            read_line(line.at, line.text.trim(), &mut replies, draft);
        }
        let mut lines = text.lines.iter();
        let first = lines.find(|line| line.text.contains(" bytes from "));
        if let Some(first) = first {
            distribution(&replies, first.at, draft);
        }
    }
    Ok(())
}

fn read_line(at: At, text: &str, replies: &mut Histogram, draft: &mut Draft) {
    if text.starts_with("PING ") {
        setting(draft, "test", text);
    } else if text.contains(" bytes from ") {
        reply(at, text, replies, draft);
    } else if text.contains("packets transmitted") {
        packets(at, text, draft);
    } else if text.contains("min/avg/max") {
        round_trips(at, text, draft);
    }
}

/// `... time=0.085 ms`, `time<1 ms`
fn reply(at: At, text: &str, replies: &mut Histogram, draft: &mut Draft) {
    let time = text.split("time").nth(1).unwrap_or_default();
    let token = time.trim_start_matches('=').split_whitespace().next();
    let token = token.unwrap_or_default().trim_end_matches("ms");
    match number::measure(token).and_then(|ms| ms.number()) {
        Some(ms) if ms >= 0.0 => replies.record((ms * 1e6).round() as u64),
        _ => draft.note(at, "a reply without a time was skipped"),
    }
    if text.contains("DUP!") {
        draft.note(at, "a duplicate reply: as in ping, it is included in the sums");
    }
}

fn put_alone(draft: &mut Draft, at: At, key: &str, name: &str, printed: Option<Printed>) {
    if let Some(printed) = printed {
        let reading = Reading::new(at, key, printed).name(name);
        draft.alone(reading.layer("network"));
    }
}

/// `5 packets transmitted, 5 received, 0% packet loss, time 817ms`
fn packets(at: At, text: &str, draft: &mut Draft) {
    for part in text.split(',') {
        let part = part.trim();
        let first = part.split(' ').next().unwrap_or_default();
        if part.contains("transmitted") {
            put_alone(draft, at, "packets_sent_count", "packets transmitted", number::count(first));
        } else if part.contains("duplicates") {
            let first = first.trim_start_matches('+');
            put_alone(draft, at, "packets_duplicate_count", "duplicates", number::count(first));
        } else if part.contains("received") {
            let printed = number::count(first);
            let row = op_row(draft, "rtt");
            if let Some(printed) = printed {
                let reading = Reading::new(at, "packets_received_count", printed).name("received");
                put!(draft, reading.layer("network"), driver.ops[row].count);
            }
        } else if part.contains("packet loss") {
            put_alone(draft, at, "packets_lost_pct", "packet loss", number::measure(first));
        } else if let Some(time) = part.strip_prefix("time ") {
            let printed = number::duration_us(time.trim(), 1e3).map(|us| us.scaled(1e-6));
            if let Some(printed) = printed {
                let reading = Reading::new(at, "elapsed_s", printed).name("time");
                put!(draft, reading.layer("network"), interval.elapsed_s);
            }
        }
    }
}

/// `rtt min/avg/max/mdev = 0.039/0.051/0.085/0.017 ms`; the last is missing, or called `stddev`, elsewhere.
fn round_trips(at: At, text: &str, draft: &mut Draft) {
    let Some((names, values)) = text.split_once('=') else {
        return;
    };
    let names = names.split_whitespace().last().unwrap_or_default();
    let mut tokens = values.split_whitespace();
    let (values, unit) = (tokens.next().unwrap_or_default(), tokens.next());
    let us = match unit.map(|unit| unit.trim_end_matches(',')) {
        Some("us") => 1.0,
        Some("s") => 1e6,
        _ => 1e3,
    };
    let row = op_row(draft, "rtt");
    for (name, token) in names.split('/').zip(values.split('/')) {
        let Some(printed) = number::measure(token).map(|value| value.scaled(us)) else {
            continue;
        };
        let reading = |key: &str| Reading::new(at, key, printed.clone()).name(name).layer("network");
        match name {
            "min" => put!(draft, reading("rtt_us_min"), driver.ops[row].service.us_min),
            "avg" => put!(draft, reading("rtt_us_avg"), driver.ops[row].service.us_avg),
            "max" => put!(draft, reading("rtt_us_max"), driver.ops[row].service.us_max),
            // Both are the standard deviation of the population, whatever the letters say.
            "mdev" | "stddev" | "std-dev" => draft.alone(reading("rtt_us_mdev")),
            _ => {}
        }
    }
    // A line torn in two still has its unit; one cut off within the numbers does not.
    if between(text, "= ", " ms").is_none() && unit.is_none() {
        draft.note(at, "the line ends within its numbers");
    }
}

/// The distribution of the replies, where they were printed.
fn distribution(replies: &Histogram, first: At, draft: &mut Draft) {
    if replies.is_empty() {
        return;
    }
    let row = op_row(draft, "rtt");
    // A number that was printed stays, be it 0 beside replies.
    let counted = !draft.has("", "packets_received_count");
    let op = &mut draft.record.driver.ops[row];
    op.service.hist_ns.merge(replies);
    let all = &op.service.hist_ns;
    if counted {
        op.count = all.count();
    }
    let us = |ns: Option<u64>| ns.map_or_else(Figure::default, |ns| Figure::decimal(ns as f64 / 1e3));
    let or = |figure: &Figure, other: Figure| match figure.value() {
        Some(_) => figure.clone(),
        None => other,
    };
    let mean = all.mean_ns().map_or_else(Figure::default, |ns| Figure::decimal(ns / 1e3));
    let service = &op.service;
    let found =
        (or(&service.us_avg, mean), or(&service.us_min, us(all.min_ns())), or(&service.us_max, us(all.max_ns())));
    let percentiles = [0.5, 0.9, 0.99, 0.999].map(|q| percentile_us(all, q));
    let service = &mut op.service;
    (service.us_avg, service.us_min, service.us_max) = found;
    [service.us_p50, service.us_p90, service.us_p99, service.us_p999] = percentiles;
    // Nothing else was read of replies without a summary: their number is what was counted.
    if !draft.has("", "packets_received_count") && draft.len() == 0 {
        let count = replies.count();
        let printed = Printed { value: count.into(), rounding: 0.0, text: String::new() };
        put_alone(draft, first, "packets_received_count", "replies counted", Some(printed));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, record_of, survives, told};

    const SAMPLES: [&str; 4] = ["ping-iputils.txt", "ping-quiet.txt", "ping-busybox.txt", "ping-bsd.txt"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn replies_give_the_distribution_that_the_summary_hides() {
        let record = imported("ping-iputils.txt");
        let op = &record.driver.ops[0];
        assert_eq!(op.service.hist_ns.count(), 5);
        assert_eq!(op.service.us_avg.value(), Some(51.0));
        let mean = op.service.hist_ns.mean_ns().expect("counted") / 1e3;
        assert!((mean - 51.0).abs() < 0.5, "{mean}");
        assert_eq!(number(&record, "", "rtt_us_mdev"), 17.0);
        let metrics = &record.metrics;
        let avg = assay_measure::record::metric::find(metrics, "rtt_us_avg").expect("a metric");
        assert_eq!(avg.value.value(), Some(51.0));
    }

    #[test]
    fn replies_alone_will_do() {
        let text = "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.250 ms\n64 bytes from 10.0.0.1: icmp_seq=2 ttl=64 time=0.350 ms\n";
        let record = record_of("pasted", text);
        assert_eq!(record.driver.ops[0].service.us_avg.value(), Some(300.0));
        assert_eq!(record.driver.ops[0].count, 2);
    }

    #[test]
    fn a_printed_number_of_replies_stays_whatever_was_counted() {
        let text = "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.250 ms\n1 packets transmitted, 0 received, 100% packet loss\n";
        let record = record_of("torn", text);
        assert_eq!(record.driver.ops[0].count, 0);
        assert_eq!(assay_testkit::places::misplaced(&record), [""; 0]);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
