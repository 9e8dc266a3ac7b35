//! A record as iperf3 3.12 prints it: text and JSON.

use super::info::{IntervalInfo, IntervalStream, NetworkInfo, StreamInfo, rate};
use super::metrics::side_of;
use crate::network::lines::{DIVIDER, amount, begin, ended, head, loss, title};
use crate::network::params::VERSION;
use crate::network::results::{CpuPct, StreamEnd};
use serde_json::{Map, Value, json};

/// Role of a stream where both ends send.
fn role(info: &NetworkInfo, is_sent_here: bool) -> &'static str {
    match (info.is_bidirectional, is_sent_here) {
        (false, _) => "",
        (true, true) => "TX-C",
        (true, false) => "RX-C",
    }
}

/// The text.
pub(super) fn text(info: &NetworkInfo) -> String {
    let mut lines = Vec::new();
    if info.is_verbose {
        lines.extend([
            format!("iperf {VERSION}"),
            info.system.clone(),
            format!("Control connection MSS {}", info.max_segment_bytes),
            format!("Time: {}", http_time(info.started_s)),
        ]);
    }
    lines.push(format!("Connecting to host {}, port {}", info.host, info.port));
    if info.is_reverse {
        lines.push(format!("Reverse mode, remote host {} is sending", info.host));
    }
    if info.is_verbose {
        before(info, &mut lines);
    }
    lines.extend(info.streams.iter().map(connected));
    if info.is_verbose {
        lines.push(starting(info));
    }
    let both = info.is_bidirectional;
    let sends = info.way(true).next().is_some();
    lines.push(title(
        both,
        match (info.is_udp(), sends) {
            (true, true) if !both => "         Total Datagrams",
            (true, _) => "         Jitter    Lost/Total Datagrams",
            (false, true) => "         Retr  Cwnd",
            (false, false) => "",
        },
    ));
    for (at, interval) in info.intervals.iter().enumerate() {
        if at > 0 && info.streams_count > 1 {
            lines.push(DIVIDER.to_owned());
        }
        block(info, interval, &mut lines);
    }
    lines.push(DIVIDER.to_owned());
    if info.is_verbose {
        lines.push("Test Complete. Summary Results:".to_owned());
    }
    summary(info, &mut lines);
    if info.is_verbose {
        after(info, &mut lines);
    }
    lines.push(String::new());
    if !info.server_output.is_empty() {
        lines.push("Server output:".to_owned());
        lines.push(info.server_output.clone());
        lines.push(String::new());
    }
    if info.failed.is_empty() {
        lines.push("iperf Done.".to_owned());
    }
    lines.join("\n") + "\n"
}

fn connected(stream: &StreamInfo) -> String {
    format!(
        "[{:3}] local {} port {} connected to {} port {}",
        stream.socket, stream.local_host, stream.local_port, stream.remote_host, stream.remote_port
    )
}

/// What `-V` tells before the streams.
fn before(info: &NetworkInfo, lines: &mut Vec<String>) {
    lines.push(format!("      Cookie: {}", info.cookie));
    if !info.is_udp() {
        lines.push(format!("      TCP MSS: {} (default)", info.max_segment_bytes));
    }
    if info.rate_bits_per_s > 0 {
        lines.push(format!("      Target Bitrate: {}", info.rate_bits_per_s));
    }
}

fn starting(info: &NetworkInfo) -> String {
    let end = match (info.bytes_asked, info.blocks_asked) {
        (0, 0) => format!("{} second test", info.time_s),
        (0, blocks) => format!("{blocks} blocks to send"),
        (bytes, _) => format!("{bytes} bytes to send"),
    };
    format!(
        "Starting Test: protocol: {}, {} streams, {} byte blocks, omitting {} seconds, {end}, tos {}",
        info.protocol.to_uppercase(),
        info.streams_count,
        info.block_bytes,
        info.omit_s,
        info.tos
    )
}

/// What `-V` tells behind the summary: CPU of both ends, and congestion control.
fn after(info: &NetworkInfo, lines: &mut Vec<String>) {
    let told = |cpu: CpuPct| format!("{:.1}% ({:.1}%u/{:.1}%s)", cpu.total, cpu.user, cpu.system);
    let (here, there) = if info.is_reverse { ("receiver", "sender") } else { ("sender", "receiver") };
    lines.push(format!(
        "CPU Utilization: local/{here} {}, remote/{there} {}",
        told(info.cpu_local),
        told(info.cpu_remote.unwrap_or_default())
    ));
    let (sends, receives) = if info.is_reverse {
        (&info.congestion_remote, &info.congestion_local)
    } else {
        (&info.congestion_local, &info.congestion_remote)
    };
    for (side, name) in [("snd", sends), ("rcv", receives)] {
        if !name.is_empty() {
            lines.push(format!("{side}_tcp_congestion {name}"));
        }
    }
}

/// The rows of an interval.
fn block(info: &NetworkInfo, interval: &IntervalInfo, lines: &mut Vec<String>) {
    let tail = if interval.is_omitted { "(omitted)" } else { "" };
    let times = (interval.start_s, interval.end_s);
    for (stream, seen) in info.streams.iter().zip(&interval.streams) {
        let head = head(Some(stream.socket), role(info, stream.is_sent_here));
        let row = begin(&head, times, seen.bytes, &info.units);
        lines.push(row + &behind(info, stream.is_sent_here, seen, true, tail));
    }
    if info.streams_count < 2 {
        return;
    }
    for way in info.ways() {
        let streams = info.way(way).filter_map(|(at, _)| interval.streams.get(at));
        let all: Vec<&IntervalStream> = streams.collect();
        let again: Option<u64> = all.iter().map(|stream| stream.retransmits).sum();
        let sum = IntervalStream {
            bytes: all.iter().map(|stream| stream.bytes).sum(),
            retransmits: again,
            datagrams: all.iter().map(|stream| stream.datagrams).sum(),
            lost: all.iter().map(|stream| stream.lost).sum(),
            jitter_us: all.iter().map(|stream| stream.jitter_us).sum::<f64>() / all.len().max(1) as f64,
            ..IntervalStream::default()
        };
        let row = begin(&head(None, role(info, way)), times, sum.bytes, &info.units);
        lines.push(row + &behind(info, way, &sum, false, tail));
    }
}

/// What stands behind the rate of an interval.
fn behind(info: &NetworkInfo, is_sender: bool, seen: &IntervalStream, is_stream: bool, tail: &str) -> String {
    match (info.is_udp(), is_sender) {
        (true, true) => {
            let gap = if info.is_bidirectional { "          " } else { "" };
            format!(" {gap} {}  {tail}", seen.datagrams)
        }
        (true, false) => loss(seen.jitter_us / 1e3, seen.lost, seen.datagrams) + "  " + tail,
        (false, true) => match (seen.retransmits, is_stream) {
            (Some(count), true) => {
                let window = amount(seen.cwnd_bytes.unwrap_or(0) as f64);
                format!("  {count:3}   {window}       {tail}")
            }
            (Some(count), false) => format!("  {count:3}             {tail}"),
            (None, _) => format!("                  {tail}"),
        },
        (false, false) => format!("                  {tail}"),
    }
}

/// What a peer that has not told is printed as.
fn untold(stream: &StreamEnd, is_sender: bool) -> StreamEnd {
    StreamEnd { is_sender, seconds: stream.seconds, ..StreamEnd::default() }
}

fn both_sides(sent: Option<StreamEnd>, received: Option<StreamEnd>) -> [StreamEnd; 2] {
    match (sent, received) {
        (Some(sent), Some(received)) => [sent, received],
        (Some(sent), None) => {
            let received = untold(&sent, false);
            [sent, received]
        }
        (None, Some(received)) => [untold(&received, true), received],
        (None, None) => [untold(&StreamEnd::default(), true), StreamEnd::default()],
    }
}

fn sides(stream: &StreamInfo) -> [StreamEnd; 2] {
    both_sides(stream.sent.clone(), stream.received.clone())
}

fn sums(info: &NetworkInfo, way: bool) -> [StreamEnd; 2] {
    let streams: Vec<&StreamInfo> = info.way(way).map(|(_, stream)| stream).collect();
    both_sides(side_of(&streams, true), side_of(&streams, false))
}

fn summary(info: &NetworkInfo, lines: &mut Vec<String>) {
    let behind = if info.is_udp() { "         Jitter    Lost/Total Datagrams" } else { "         Retr" };
    lines.push(title(info.is_bidirectional, behind));
    for stream in &info.streams {
        let head = head(Some(stream.socket), role(info, stream.is_sent_here));
        for end in sides(stream) {
            lines.push(ended(&head, &end, info.is_udp(), &info.units));
        }
        let late = stream.received.as_ref().map_or(0, |end| end.out_of_order);
        if info.is_udp() && late > 0 {
            let seconds = stream.received.as_ref().map_or(0.0, |end| end.seconds);
            lines.push(format!("{head}  0.00-{seconds:.2}  sec  {late} datagrams received out-of-order"));
        }
    }
    if info.streams_count > 1 {
        for way in info.ways() {
            for end in sums(info, way) {
                let head = head(None, role(info, way));
                lines.push(ended(&head, &end, info.is_udp(), &info.units));
            }
        }
    }
}

/// The JSON.
pub(super) fn json(info: &NetworkInfo) -> String {
    let mut all = Map::new();
    all.insert("start".to_owned(), start(info));
    let intervals: Vec<Value> = info.intervals.iter().map(|i| interval(info, i)).collect();
    all.insert("intervals".to_owned(), json!(intervals));
    all.insert("end".to_owned(), end(info));
    if !info.server_output.is_empty() {
        all.insert("server_output_text".to_owned(), json!(info.server_output));
    }
    let error = match info.failed.as_str() {
        "" if info.is_stopped => "interrupt - the client has terminated",
        failed => failed,
    };
    if !error.is_empty() {
        all.insert("error".to_owned(), json!(error));
    }
    all.insert("native".to_owned(), json!({"local": info.native_local, "remote": info.native_remote}));
    serde_json::to_string_pretty(&Value::Object(all)).unwrap_or_default() + "\n"
}

fn start(info: &NetworkInfo) -> Value {
    let connected: Vec<Value> = info
        .streams
        .iter()
        .map(|stream| {
            json!({
                "socket": stream.socket,
                "local_host": stream.local_host,
                "local_port": stream.local_port,
                "remote_host": stream.remote_host,
                "remote_port": stream.remote_port,
            })
        })
        .collect();
    let time = http_time(info.started_s);
    json!({
        "connected": connected,
        "version": format!("iperf {VERSION}"),
        "system_info": info.system,
        "timestamp": {"time": time, "timesecs": info.started_s},
        "connecting_to": {"host": info.host, "port": info.port},
        "cookie": info.cookie,
        "tcp_mss_default": info.max_segment_bytes,
        "target_bitrate": info.rate_bits_per_s,
        "fq_rate": info.fq_rate_bits_per_s,
        "sock_bufsize": info.window_bytes,
        "sndbuf_actual": info.send_buffer_bytes,
        "rcvbuf_actual": info.receive_buffer_bytes,
        "test_start": {
            "protocol": info.protocol.to_uppercase(),
            "num_streams": info.streams_count,
            "blksize": info.block_bytes,
            "omit": info.omit_s,
            "duration": info.time_s,
            "bytes": info.bytes_asked,
            "blocks": info.blocks_asked,
            "reverse": u8::from(info.is_reverse),
            "tos": info.tos,
            "target_bitrate": info.rate_bits_per_s,
            "bidir": u8::from(info.is_bidirectional),
            "fqrate": info.fq_rate_bits_per_s,
        },
    })
}

/// `Mon, 23 Nov 2026 18:48:45 GMT` of seconds since 1970.
fn http_time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok();
    let time = time.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.unwrap_or_default().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// What every object of figures has.
fn figures(times: (f64, f64), bytes: u64) -> Map<String, Value> {
    let mut all = Map::new();
    for (key, value) in [
        ("start", json!(times.0)),
        ("end", json!(times.1)),
        ("seconds", json!(times.1 - times.0)),
        ("bytes", json!(bytes)),
        ("bits_per_second", json!(rate(bytes, times.1 - times.0))),
    ] {
        all.insert(key.to_owned(), value);
    }
    all
}

fn put(all: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        all.extend(more);
    }
}

fn lost_percent(lost: u64, all: u64) -> f64 {
    if all > 0 { 100.0 * lost as f64 / all as f64 } else { 0.0 }
}

fn interval(info: &NetworkInfo, interval: &IntervalInfo) -> Value {
    let times = (interval.start_s, interval.end_s);
    let is_omitted = interval.is_omitted;
    let of_udp = |seen: &IntervalStream, is_sender: bool| {
        if is_sender {
            json!({"packets": seen.datagrams})
        } else {
            json!({
                "jitter_ms": seen.jitter_us / 1e3,
                "lost_packets": seen.lost,
                "packets": seen.datagrams,
                "lost_percent": lost_percent(seen.lost, seen.datagrams),
            })
        }
    };
    let streams = info.streams.iter().zip(&interval.streams).map(|(stream, seen)| {
        let mut all = Map::new();
        all.insert("socket".to_owned(), json!(stream.socket));
        all.extend(figures(times, seen.bytes));
        match (info.is_udp(), stream.is_sent_here) {
            (true, is_sender) => put(&mut all, of_udp(seen, is_sender)),
            (false, true) => put(
                &mut all,
                json!({
                    "retransmits": seen.retransmits,
                    "snd_cwnd": seen.cwnd_bytes,
                    "snd_wnd": seen.window_bytes,
                    "rtt": seen.rtt_us,
                    "rttvar": seen.rttvar_us,
                    "pmtu": seen.mtu_bytes,
                }),
            ),
            (false, false) => {}
        }
        put(&mut all, json!({"omitted": is_omitted, "sender": stream.is_sent_here}));
        Value::Object(all)
    });
    let mut whole = Map::new();
    whole.insert("streams".to_owned(), json!(streams.collect::<Vec<_>>()));
    for (at, way) in info.ways().into_iter().enumerate() {
        let seen = info.way(way).filter_map(|(at, _)| interval.streams.get(at));
        let seen: Vec<&IntervalStream> = seen.collect();
        let again: Option<u64> = seen.iter().map(|stream| stream.retransmits).sum();
        let sum = IntervalStream {
            datagrams: seen.iter().map(|stream| stream.datagrams).sum(),
            lost: seen.iter().map(|stream| stream.lost).sum(),
            jitter_us: seen.iter().map(|s| s.jitter_us).sum::<f64>() / seen.len().max(1) as f64,
            ..IntervalStream::default()
        };
        let mut all = figures(times, interval.bytes(info.way(way)));
        match (info.is_udp(), way) {
            (true, is_sender) => put(&mut all, of_udp(&sum, is_sender)),
            (false, true) => put(&mut all, json!({"retransmits": again})),
            (false, false) => {}
        }
        put(&mut all, json!({"omitted": is_omitted, "sender": way}));
        let name = if at == 0 { "sum" } else { "sum_bidir_reverse" };
        whole.insert(name.to_owned(), Value::Object(all));
    }
    Value::Object(whole)
}

fn end(info: &NetworkInfo) -> Value {
    let mut all = Map::new();
    let streams: Vec<Value> = info.streams.iter().map(|stream| ended_stream(info, stream)).collect();
    all.insert("streams".to_owned(), json!(streams));
    for (at, way) in info.ways().into_iter().enumerate() {
        let [sent, received] = sums(info, way);
        let suffix = if at == 0 { "" } else { "_bidir_reverse" };
        let mut put_sum = |name: &str, end: &StreamEnd| {
            let mut sum = figures((0.0, end.seconds), end.bytes);
            match (info.is_udp(), end.is_sender) {
                (true, _) => put(&mut sum, of_udp(end)),
                (false, true) => put(&mut sum, json!({"retransmits": end.retransmits})),
                (false, false) => {}
            }
            put(&mut sum, json!({"sender": way}));
            all.insert(format!("{name}{suffix}"), Value::Object(sum));
        };
        if info.is_udp() {
            // Bytes of the sender, loss of the receiver.
            let mixed = StreamEnd { bytes: sent.bytes, seconds: sent.seconds, ..received.clone() };
            put_sum("sum", &mixed);
        }
        put_sum("sum_sent", &sent);
        put_sum("sum_received", &received);
    }
    let remote = info.cpu_remote.unwrap_or_default();
    all.insert(
        "cpu_utilization_percent".to_owned(),
        json!({
            "host_total": info.cpu_local.total,
            "host_user": info.cpu_local.user,
            "host_system": info.cpu_local.system,
            "remote_total": remote.total,
            "remote_user": remote.user,
            "remote_system": remote.system,
        }),
    );
    if !info.is_udp() {
        let (local, remote) = (&info.congestion_local, &info.congestion_remote);
        let (sender, receiver) = if info.is_reverse { (remote, local) } else { (local, remote) };
        for (name, value) in [("sender_tcp_congestion", sender), ("receiver_tcp_congestion", receiver)] {
            if !value.is_empty() {
                all.insert(name.to_owned(), json!(value));
            }
        }
    }
    Value::Object(all)
}

fn of_udp(end: &StreamEnd) -> Value {
    json!({
        "jitter_ms": 1e3 * end.jitter_s,
        "lost_packets": end.lost,
        "packets": end.datagrams,
        "lost_percent": lost_percent(end.lost, end.datagrams),
    })
}

fn ended_stream(info: &NetworkInfo, stream: &StreamInfo) -> Value {
    let [sent, received] = sides(stream);
    if info.is_udp() {
        let mut all = Map::new();
        all.insert("socket".to_owned(), json!(stream.socket));
        all.extend(figures((0.0, sent.seconds), sent.bytes));
        put(&mut all, of_udp(&received));
        put(&mut all, json!({"out_of_order": received.out_of_order, "sender": stream.is_sent_here}));
        return json!({"udp": all});
    }
    let mut sender = Map::new();
    sender.insert("socket".to_owned(), json!(stream.socket));
    sender.extend(figures((0.0, sent.seconds), sent.bytes));
    let rtt = sent.rtt_us.unwrap_or_default();
    put(
        &mut sender,
        json!({
            "retransmits": sent.retransmits,
            "max_snd_cwnd": sent.cwnd_max_bytes.unwrap_or(0),
            "max_snd_wnd": sent.window_max_bytes.unwrap_or(0),
            "max_rtt": rtt[2],
            "min_rtt": rtt[0],
            "mean_rtt": rtt[1],
            "sender": stream.is_sent_here,
        }),
    );
    let mut receiver = Map::new();
    receiver.insert("socket".to_owned(), json!(stream.socket));
    receiver.extend(figures((0.0, received.seconds), received.bytes));
    put(&mut receiver, json!({"sender": stream.is_sent_here}));
    json!({"sender": sender, "receiver": receiver})
}
