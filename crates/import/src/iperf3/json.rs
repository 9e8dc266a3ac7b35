//! iperf3's JSON: one document, or one event a line.

use super::super::draft::{Draft, Reading};
use super::super::json::{Node, Source};
use super::super::rows::{put_step, setting, step};
use super::super::text::Text;
use super::super::{Confidence, ImportError};
use super::{STREAM_INTERVALS_MAX, series_name, value};
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
            what: format!("the JSON is incomplete: {}; import the file as iperf3 wrote it", broken.what),
        });
    }
    let parts = parts(&documents.whole);
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

/// Lines at which a further whole document begins; the events of one test are no documents.
pub(super) fn runs(text: &Text) -> Vec<usize> {
    let source = Source::new(text);
    let documents = source.documents().whole;
    let tests = documents.iter().filter(|node| {
        let event = node.get("event").map(Node::text);
        event.map_or(node.get("start").is_some(), |event| event == "start")
    });
    let lines = tests.map(|node| node.at().line.saturating_sub(1) as usize);
    lines.skip(1).collect()
}

fn parts<'a>(documents: &[Node<'a>]) -> Parts<'a> {
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
    for (name, node) in start.get("test_start").map(Node::members).unwrap_or_default() {
        let text = node.text();
        is_udp |= name == "protocol" && text.eq_ignore_ascii_case("udp");
        setting(draft, &name, &text);
    }
    if let Some(node) = start.get("tcp_mss_default").or_else(|| start.get("tcp_mss")) {
        let printed = node.number();
        value(draft, node.at(), "tcp_mss_bytes".to_owned(), "tcp_mss", "", printed);
    }
    is_udp
}

/// Keys of an interval's sum, ours and what to multiply by.
const STEPS: [(&str, &str, f64); 7] = [
    ("bits_per_second", "throughput_bits_per_s", 1.0),
    ("bytes", "moved_bytes", 1.0),
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

/// Of a single stream its window and round trip; of several what their sum says too.
fn streams(
    members: &BTreeMap<String, Node<'_>>,
    role: &str,
    scope: &str,
    protocol: &str,
    step: usize,
    draft: &mut Draft,
) {
    let streams = members.get("streams").map(|node| node.items()).unwrap_or_default();
    if let [only] = streams.as_slice() {
        for (field, key) in [("snd_cwnd", "cwnd_bytes"), ("rtt", "rtt_us")] {
            if let Some((node, printed)) = only.get(field).and_then(|node| Some((node, node.number()?))) {
                let key = format!("{protocol}_{key}");
                let series = series_name(&key, role);
                let reading = Reading::new(node.at(), key, printed).name(field).scope(scope);
                put_step(draft, reading.layer("network"), &series, step);
            }
        }
        return;
    }
    // Of a test of both ways each stream says whose it is.
    let is_ours =
        |stream: &&Node<'_>| role.is_empty() || stream.get("sender").is_some_and(Node::is_true) == (role == "TX-C");
    if streams.len() * (step + 1) > STREAM_INTERVALS_MAX {
        return;
    }
    for stream in streams.iter().filter(is_ours) {
        let of = format!("stream {}, {scope}", stream.get("socket").map(Node::text).unwrap_or_default());
        for (field, key, factor) in STEPS.into_iter().filter(|(field, ..)| !field.starts_with(['j', 'l'])) {
            if let Some((node, printed)) = stream.get(field).and_then(|node| Some((node, node.number()?))) {
                let reading = Reading::new(node.at(), format!("{protocol}_{key}"), printed.scaled(factor));
                draft.alone(reading.name(field).scope(&of).layer("network").again());
            }
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

/// CPU of both ends: whose, the field, our key.
const CPU: [(&str, &str, &str); 6] = [
    ("local", "host_total", "network_cpu_pct"),
    ("local", "host_user", "network_cpu_user_pct"),
    ("local", "host_system", "network_cpu_system_pct"),
    ("remote", "remote_total", "network_cpu_pct"),
    ("remote", "remote_user", "network_cpu_user_pct"),
    ("remote", "remote_system", "network_cpu_system_pct"),
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
            let of_sender = protocol == "udp" && name.starts_with("sum_sent");
            let which = if of_sender { SENT } else { |_: &str| true };
            summary(*sum, protocol, &scope, which, draft);
        }
    }
    // Older ones print but one sum for UDP: bytes of the sender, losses of the receiver.
    if let (Some(sum), false) = (members.get("sum"), members.contains_key("sum_received")) {
        udp(*sum, protocol, "", draft);
    }
    let streams = members.get("streams").map(|node| node.items()).unwrap_or_default();
    for stream in &streams {
        for (side, node) in stream.members() {
            let socket = node.get("socket").map(Node::text).unwrap_or_default();
            let of = match streams.len() {
                1 => String::new(),
                _ => format!("stream {socket} "),
            };
            match side.as_str() {
                "udp" => udp(node, protocol, &of, draft),
                _ => summary(node, protocol, &format!("{of}{side}"), |_| true, draft),
            }
        }
    }
    for (side, field, key) in CPU {
        let node = members.get("cpu_utilization_percent").and_then(|cpu| cpu.get(field));
        if let Some(node) = node {
            let printed = node.number();
            value(draft, node.at(), key.to_owned(), field, side, printed);
        }
    }
    let seconds = ["sum_received", "sum_sent", "sum"].into_iter().find_map(|name| members.get(name)?.get("seconds"));
    if let Some(node) = seconds
        && let Some(printed) = node.number()
    {
        let reading = Reading::new(node.at(), "elapsed_s", printed).name("seconds");
        put!(draft, reading.layer("network"), interval.elapsed_s);
    }
}

/// Fields of a sum of UDP that the sender knows; the others are of the receiver.
const SENT: fn(&str) -> bool = |field| ["bits_per_second", "bytes", "seconds", "packets"].contains(&field);

/// One sum for both ends: what was sent, and what the receiver says of it. What arrived was not printed.
fn udp(node: Node<'_>, protocol: &str, of: &str, draft: &mut Draft) {
    summary(node, protocol, &format!("{of}sender"), SENT, draft);
    let of_receiver = |field: &str| !SENT(field) || field == "packets";
    summary(node, protocol, &format!("{of}receiver"), of_receiver, draft);
}

/// Windows and round trips are 0 where the end that prints them did not send: nobody measured them there.
fn is_made_up(field: &str, node: Node<'_>) -> bool {
    let is_of_sender = field.ends_with("_rtt") || field == "max_snd_cwnd";
    is_of_sender && node.number().and_then(|printed| printed.number()) == Some(0.0)
}

/// What stands at a sum already is not taken from its only stream.
fn summary(node: Node<'_>, protocol: &str, scope: &str, which: fn(&str) -> bool, draft: &mut Draft) {
    let members: BTreeMap<String, Node<'_>> = node.members().into_iter().collect();
    for (field, key, factor) in ENDS {
        let key = format!("{protocol}_{key}");
        if let Some(node) = members.get(field)
            && which(field)
            && !is_made_up(field, *node)
            && !draft.has(scope, &key)
        {
            let printed = node.number().map(|printed| printed.scaled(factor));
            value(draft, node.at(), key, field, scope, printed);
        }
    }
}
