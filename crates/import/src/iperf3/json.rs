//! iperf3's JSON: one document, or one event a line.

use super::super::draft::{Draft, Reading};
use super::super::json::{Node, Source};
use super::super::rows::{put_step, setting, step};
use super::super::text::{At, Text};
use super::super::{Confidence, ImportError};
use super::{series_name, value};
use std::collections::BTreeMap;

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    let whole = has("\"start\"") && has("\"intervals\"");
    let stream = has("\"event\"") && has("\"data\"");
    Confidence::of(
        95,
        &[
            ("a line that begins with {", text.head_begins("{")),
            ("\"start\" and \"intervals\"", whole || stream),
            (
                "\"test_start\", \"version\" or \"sum_sent\"",
                has("iperf 3") || has("\"sum_sent\"") || has("\"test_start\""),
            ),
        ],
    )
}

/// The parts of a test, however they came.
#[derive(Default)]
struct Parts<'a> {
    start: Option<Node<'a>>,
    intervals: Vec<Node<'a>>,
    end: Option<Node<'a>>,
    error: Option<Node<'a>>,
    title: Option<At>,
}

pub(super) fn read(text: &Text, draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "iperf3 JSON");
    draft.own_tabs(text.file);
    let source = Source::new(text);
    let documents = source.documents();
    if let (Some(broken), true) = (&documents.broken, documents.whole.is_empty()) {
        return Err(ImportError::Damaged {
            path: text.path.clone(),
            line: broken.line,
            what: format!(
                "the JSON is incomplete: {}; import the file as iperf3 wrote it",
                broken.what
            ),
        });
    }
    let parts = parts(&documents.whole, draft);
    if let Some(error) = parts.error {
        draft.note(error.at(), format!("the test failed: {}", error.text()));
    }
    let mut is_udp = false;
    if let Some(start) = parts.start {
        is_udp = self::start(start, draft);
    }
    let protocol = if is_udp { "udp" } else { "tcp" };
    for interval in &parts.intervals {
        self::interval(*interval, protocol, draft);
    }
    if let Some(end) = parts.end {
        self::end(end, protocol, draft);
    }
    Ok(())
}

fn parts<'a>(documents: &[Node<'a>], draft: &mut Draft) -> Parts<'a> {
    let mut parts = Parts::default();
    for document in documents {
        let event = document.get("event").map(Node::text);
        if let (Some(event), Some(data)) = (event, document.get("data")) {
            match event.as_str() {
                "start" => parts.start = Some(data),
                "interval" => parts.intervals.push(data),
                "end" => parts.end = Some(data),
                "error" => parts.error = Some(data),
                _ => {}
            }
            continue;
        }
        if parts.title.is_some() {
            draft.note(
                document.at(),
                "a second test begins here; one record can contain one test only: split the file to import it",
            );
            break;
        }
        parts.title = Some(document.at());
        for (key, node) in document.members() {
            match key.as_str() {
                "start" => parts.start = Some(node),
                "intervals" => parts.intervals = node.items(),
                "end" => parts.end = Some(node),
                "error" => parts.error = Some(node),
                _ => {}
            }
        }
    }
    parts
}

/// What the test was; whether it was UDP.
fn start(start: Node<'_>, draft: &mut Draft) -> bool {
    if let Some(version) = start.get("version") {
        let version = version.text();
        draft.recognised(version.trim_start_matches("iperf").trim(), "iperf3 JSON");
    }
    if let Some(time) = start.path(&["timestamp", "time"]) {
        draft.record.run.started = time.text();
    }
    let mut is_udp = false;
    for (name, node) in start
        .get("test_start")
        .map(Node::members)
        .unwrap_or_default()
    {
        let text = node.text();
        is_udp |= name == "protocol" && text.eq_ignore_ascii_case("udp");
        setting(draft, &name, &text);
    }
    if let Some(node) = start
        .get("tcp_mss_default")
        .or_else(|| start.get("tcp_mss"))
    {
        let printed = node.number();
        value(
            draft,
            node.at(),
            "tcp_mss_bytes".to_owned(),
            "tcp_mss",
            "",
            printed,
        );
    }
    is_udp
}

/// Keys of an interval's sum, ours and what to multiply by.
const STEPS: [(&str, &str, f64); 6] = [
    ("bits_per_second", "throughput_bits_per_s", 1.0),
    ("retransmits", "retransmits_count", 1.0),
    ("jitter_ms", "jitter_us_mean", 1e3),
    ("lost_packets", "lost_count", 1.0),
    ("packets", "datagrams_count", 1.0),
    ("lost_percent", "lost_pct", 1.0),
];

fn interval(node: Node<'_>, protocol: &str, draft: &mut Draft) {
    let members: BTreeMap<String, Node<'_>> = node.members().into_iter().collect();
    let both_ways = members.contains_key("sum_bidir_reverse");
    for (name, role) in [("sum", "TX-C"), ("sum_bidir_reverse", "RX-C")] {
        let Some(sum) = members.get(name) else {
            continue;
        };
        let role = if both_ways { role } else { "" };
        let sum: BTreeMap<String, Node<'_>> = sum.members().into_iter().collect();
        if sum.get("omitted").is_some_and(|node| node.is_true()) {
            continue;
        }
        let end = sum.get("end").and_then(|end| end.number()?.number());
        let seconds = sum.get("seconds").and_then(|s| s.number()?.number());
        // A rest of an interval with hardly anything in it is no step.
        if seconds.is_some_and(|seconds| seconds < 0.1) {
            continue;
        }
        let Some((end, step)) = end.and_then(|end| Some((end, step(draft, end)?))) else {
            continue;
        };
        let scope = match role {
            "" => format!("{end:.2} s"),
            role => format!("{role}, {end:.2} s"),
        };
        for (name, key, factor) in STEPS {
            let Some(field) = sum.get(name) else {
                continue;
            };
            if let Some(printed) = field.number() {
                let key = format!("{protocol}_{key}");
                let series = series_name(&key, role);
                let reading = Reading::new(field.at(), key, printed.scaled(factor)).name(name);
                put_step(draft, reading.scope(&scope).layer("network"), &series, step);
            }
        }
        streams(&members, role, &scope, protocol, step, draft);
    }
}

/// Window and round trip of an interval, where there is but one stream.
fn streams(
    members: &BTreeMap<String, Node<'_>>,
    role: &str,
    scope: &str,
    protocol: &str,
    step: usize,
    draft: &mut Draft,
) {
    let streams = members
        .get("streams")
        .map(|node| node.items())
        .unwrap_or_default();
    let [only] = streams.as_slice() else {
        return;
    };
    for (field, key) in [("snd_cwnd", "cwnd_bytes"), ("rtt", "rtt_us")] {
        if let Some(node) = only.get(field)
            && let Some(printed) = node.number()
        {
            let key = format!("{protocol}_{key}");
            let series = series_name(&key, role);
            let reading = Reading::new(node.at(), key, printed)
                .name(field)
                .scope(scope);
            put_step(draft, reading.layer("network"), &series, step);
        }
    }
}

/// Keys of a sum at the end, ours and what to multiply by.
const ENDS: [(&str, &str, f64); 13] = [
    ("bits_per_second", "throughput_bits_per_s_mean", 1.0),
    ("bytes", "moved_bytes", 1.0),
    ("seconds", "interval_s", 1.0),
    ("retransmits", "retransmits_count", 1.0),
    ("jitter_ms", "jitter_us_mean", 1e3),
    ("lost_packets", "lost_count", 1.0),
    ("packets", "datagrams_count", 1.0),
    ("lost_percent", "lost_pct", 1.0),
    ("out_of_order", "out_of_order_count", 1.0),
    ("max_snd_cwnd", "cwnd_bytes_max", 1.0),
    ("min_rtt", "rtt_us_min", 1.0),
    ("mean_rtt", "rtt_us_avg", 1.0),
    ("max_rtt", "rtt_us_max", 1.0),
];

fn end(end: Node<'_>, protocol: &str, draft: &mut Draft) {
    let members: BTreeMap<String, Node<'_>> = end.members().into_iter().collect();
    let both_ways = members.contains_key("sum_sent_bidir_reverse");
    let forward = if both_ways { "TX-C " } else { "" };
    for (name, scope) in [
        ("sum_sent", format!("{forward}sender")),
        ("sum_received", format!("{forward}receiver")),
        ("sum_sent_bidir_reverse", "RX-C sender".to_owned()),
        ("sum_received_bidir_reverse", "RX-C receiver".to_owned()),
    ] {
        if let Some(sum) = members.get(name) {
            summary(*sum, protocol, &scope, draft);
        }
    }
    // Older ones print but one sum for UDP: bytes of the sender, losses of the receiver.
    if let (Some(sum), false) = (members.get("sum"), members.contains_key("sum_received")) {
        summary(*sum, protocol, "receiver", draft);
    }
    let streams = members
        .get("streams")
        .map(|node| node.items())
        .unwrap_or_default();
    for stream in &streams {
        for (side, node) in stream.members() {
            let side = if side == "udp" {
                "receiver".to_owned()
            } else {
                side
            };
            let socket = node.get("socket").map(Node::text).unwrap_or_default();
            match streams.len() {
                1 => summary(node, protocol, &side, draft),
                _ => summary(node, protocol, &format!("stream {socket} {side}"), draft),
            }
        }
    }
    for (side, field) in [("local", "host_total"), ("remote", "remote_total")] {
        let node = members
            .get("cpu_utilization_percent")
            .and_then(|cpu| cpu.get(field));
        if let Some(node) = node {
            let printed = node.number();
            value(
                draft,
                node.at(),
                "network_cpu_pct".to_owned(),
                field,
                side,
                printed,
            );
        }
    }
    let seconds = ["sum_received", "sum_sent", "sum"]
        .into_iter()
        .find_map(|name| members.get(name)?.get("seconds"));
    if let Some(node) = seconds
        && let Some(printed) = node.number()
    {
        let reading = Reading::new(node.at(), "elapsed_s", printed).name("seconds");
        put!(draft, reading.layer("network"), interval.elapsed_s);
    }
}

/// What stands at a sum already is not taken from its only stream.
fn summary(node: Node<'_>, protocol: &str, scope: &str, draft: &mut Draft) {
    let members: BTreeMap<String, Node<'_>> = node.members().into_iter().collect();
    for (field, key, factor) in ENDS {
        let key = format!("{protocol}_{key}");
        if let Some(node) = members.get(field)
            && !draft.has(scope, &key)
        {
            let printed = node.number().map(|printed| printed.scaled(factor));
            value(draft, node.at(), key, field, scope, printed);
        }
    }
}
