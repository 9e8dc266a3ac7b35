//! The results that each side sends the other after a test.

use super::params::VERSION;
use assay_measure::figures::figures;
use serde_json::{Map, Value, json};

/// What one side knows of one stream at the end of a test. Counts are of the measured time, without what was left out.
#[figures]
pub(crate) struct StreamEnd {
    /// On the wire: 1, 3, 4, ...
    pub(crate) id: i64,
    pub(crate) is_sender: bool,
    pub(crate) bytes: u64,
    /// How long this side counted.
    pub(crate) seconds: f64,
    /// Segments that the kernel sent again; nothing of a receiver and of UDP.
    pub(crate) retransmits: Option<u64>,
    pub(crate) bytes_retransmitted: Option<u64>,
    pub(crate) cwnd_max_bytes: Option<u64>,
    pub(crate) window_max_bytes: Option<u64>,
    /// Of the samples at the ends of the intervals, us.
    pub(crate) rtt_us: Option<[u64; 3]>,
    /// The least the kernel saw, us.
    pub(crate) min_rtt_us: Option<u64>,
    /// How long there was something to send, and what held it back: the receiver's window, the sender's buffer; us.
    pub(crate) busy_us: Option<u64>,
    pub(crate) rwnd_limited_us: Option<u64>,
    pub(crate) sndbuf_limited_us: Option<u64>,
    /// Datagrams sent, or the highest number that came.
    pub(crate) datagrams: u64,
    /// As iperf3 counts.
    pub(crate) lost: u64,
    pub(crate) out_of_order: u64,
    /// Different datagrams that came; nothing of a peer that does not tell.
    pub(crate) unique: Option<u64>,
    pub(crate) duplicates: Option<u64>,
    pub(crate) jitter_s: f64,
    /// From the first byte on, once all was quiet: bytes by this side's count and by the kernel's, datagrams sent, and
    /// different ones that came.
    pub(crate) bytes_in_all: u64,
    pub(crate) kernel_bytes_in_all: Option<u64>,
    pub(crate) datagrams_in_all: Option<u64>,
    pub(crate) unique_in_all: Option<u64>,
    /// CPU time of the stream's own thread, s.
    pub(crate) cpu_s: Option<f64>,
    /// How long it could run and had no CPU, s.
    pub(crate) run_delay_s: Option<f64>,
}

/// CPU of a side, % of one CPU.
#[figures]
#[derive(Copy)]
pub(crate) struct CpuPct {
    pub(crate) total: f64,
    pub(crate) user: f64,
    pub(crate) system: f64,
}

/// All that one side tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Results {
    pub(crate) cpu: CpuPct,
    pub(crate) congestion: Option<String>,
    pub(crate) streams: Vec<StreamEnd>,
    /// What only another assay tells.
    pub(crate) native: Option<Native>,
    /// The text of a server that was asked for it.
    pub(crate) server_output: Option<String>,
}

/// What iperf3 has no place for.
#[figures]
pub(crate) struct Native {
    /// assay's version.
    pub(crate) version: String,
    /// CPUs that may be used there.
    pub(crate) cpus: Option<f64>,
    /// Time the hypervisor gave to others there, %.
    pub(crate) steal_pct: Option<f64>,
    /// What the host counted of UDP while it was measured, of all programs.
    pub(crate) udp: Option<UdpErrors>,
    pub(crate) streams: Vec<StreamEnd>,
}

/// Of `/proc/net/snmp`.
#[figures]
#[derive(Copy, Eq)]
pub(crate) struct UdpErrors {
    /// Datagrams that came and went to nobody.
    pub(crate) in_errors: u64,
    /// Those for which a receiver's buffer had no room.
    pub(crate) receive_buffer: u64,
    /// Those for which a sender's buffer had no room.
    pub(crate) send_buffer: u64,
}

impl UdpErrors {
    /// Of the text of `/proc/net/snmp`, since boot.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
        let (names, values) = (lines.next()?, lines.next()?);
        let of = |wanted: &str| {
            let mut pairs = names.split_whitespace().zip(values.split_whitespace());
            let (_, value) = pairs.find(|(name, _)| *name == wanted)?;
            value.parse().ok()
        };
        Some(Self { in_errors: of("InErrors")?, receive_buffer: of("RcvbufErrors")?, send_buffer: of("SndbufErrors")? })
    }

    pub(crate) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/net/snmp").ok()?)
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            in_errors: self.in_errors.saturating_sub(before.in_errors),
            receive_buffer: self.receive_buffer.saturating_sub(before.receive_buffer),
            send_buffer: self.send_buffer.saturating_sub(before.send_buffer),
        }
    }
}

impl Results {
    /// The frame of the wire.
    pub(crate) fn frame(&self) -> Value {
        let sends = self.streams.iter().find(|stream| stream.is_sender);
        let has_retransmits = match sends {
            Some(stream) => i64::from(stream.retransmits.is_some()),
            None => -1,
        };
        let stream = |stream: &StreamEnd| {
            json!({
                "id": stream.id,
                "bytes": stream.bytes,
                "retransmits": stream.retransmits.map_or(-1, |count| count as i64),
                "jitter": stream.jitter_s,
                "errors": stream.lost,
                "omitted_errors": 0,
                "packets": stream.datagrams,
                "omitted_packets": 0,
                "start_time": 0,
                "end_time": stream.seconds,
            })
        };
        let streams: Vec<Value> = self.streams.iter().map(stream).collect();
        let mut all = Map::new();
        for (key, value) in [
            ("cpu_util_total", json!(self.cpu.total)),
            ("cpu_util_user", json!(self.cpu.user)),
            ("cpu_util_system", json!(self.cpu.system)),
            ("sender_has_retransmits", json!(has_retransmits)),
            ("streams", json!(streams)),
        ] {
            all.insert(key.to_owned(), value);
        }
        if let Some(name) = &self.congestion {
            all.insert("congestion_used".to_owned(), json!(name));
        }
        if let Some(text) = &self.server_output {
            all.insert("server_output_text".to_owned(), json!(text));
        }
        if let Some(native) = &self.native {
            all.insert("assay".to_owned(), json!(native));
        }
        Value::Object(all)
    }

    /// Reads a frame of these streams (id, and whether the one who tells sends); what is missing or of another type is
    /// told in words.
    pub(crate) fn read(frame: &Value, wanted: &[(i64, bool)]) -> Result<Self, String> {
        let cpu = |key: &str| number(frame, key);
        let streams = frame.get("streams").and_then(Value::as_array);
        let streams = streams.ok_or("its results contain no streams")?;
        let read: Result<Vec<StreamEnd>, String> = streams.iter().map(|stream| self::stream(stream, wanted)).collect();
        let mut read = read?;
        for (id, _) in wanted {
            if !read.iter().any(|stream| stream.id == *id) {
                return Err(format!("its results leave stream {id} out"));
            }
        }
        read.sort_by_key(|stream| stream.id);
        read.dedup_by_key(|stream| stream.id);
        // What an assay of another version tells may have another shape: then the frame of iperf3 is all there is.
        let native = frame.get("assay").cloned();
        let native: Option<Native> = native.and_then(|native| serde_json::from_value(native).ok());
        let text = |key: &str| frame.get(key).and_then(Value::as_str).map(str::to_owned);
        let output = text("server_output_text").or_else(|| Some(frame.get("server_output_json")?.to_string()));
        if let Some(native) = &native {
            for stream in &native.streams {
                let known = read.iter_mut().find(|known| known.id == stream.id);
                if let Some(known) = known.filter(|known| known.is_sender == stream.is_sender) {
                    known.clone_from(stream);
                }
            }
        }
        Ok(Self {
            cpu: CpuPct { total: cpu("cpu_util_total")?, user: cpu("cpu_util_user")?, system: cpu("cpu_util_system")? },
            congestion: text("congestion_used"),
            streams: read,
            native,
            server_output: output,
        })
    }
}

fn number(of: &Value, key: &str) -> Result<f64, String> {
    let value = of.get(key).and_then(Value::as_f64);
    let value = value.filter(|value| value.is_finite());
    value.ok_or_else(|| format!("its results lack the number {key}"))
}

/// A count that some versions write as the bits of a negative number, and some as a decimal.
pub(crate) fn count(of: &Value, key: &str) -> Result<Option<u64>, String> {
    let value = of.get(key).ok_or_else(|| format!("its results lack {key}"))?;
    if let Some(whole) = value.as_u64() {
        return Ok((whole < 1 << 63).then_some(whole));
    }
    let decimal = value.as_f64().filter(|value| value.is_finite());
    let decimal = decimal.ok_or_else(|| format!("{key} {value} in its results is not a number"))?;
    Ok((0.0..9.3e18).contains(&decimal).then_some(decimal as u64))
}

fn stream(of: &Value, wanted: &[(i64, bool)]) -> Result<StreamEnd, String> {
    let id = of.get("id").and_then(Value::as_i64);
    let id = id.ok_or("a stream of its results has no id")?;
    let known = wanted.iter().find(|(known, _)| *known == id);
    let (_, is_sender) = known.ok_or_else(|| format!("its results name stream {id}, which does not exist"))?;
    let known = |key: &str| count(of, key).map(|count| count.unwrap_or(0));
    let time = |key: &str| of.get(key).and_then(Value::as_f64).unwrap_or(0.0);
    let omitted = |key: &str| count(of, key).ok().flatten().unwrap_or(0);
    Ok(StreamEnd {
        id,
        is_sender: *is_sender,
        bytes: known("bytes")?,
        seconds: (time("end_time") - time("start_time")).max(0.0),
        retransmits: count(of, "retransmits")?.filter(|_| *is_sender),
        jitter_s: number(of, "jitter")?.max(0.0),
        lost: known("errors")?.saturating_sub(omitted("omitted_errors")),
        datagrams: known("packets")?.saturating_sub(omitted("omitted_packets")),
        ..StreamEnd::default()
    })
}

/// What assay adds to a frame of results.
pub(crate) fn native(streams: &[StreamEnd], udp: Option<UdpErrors>, steal_pct: Option<f64>) -> Native {
    let millis = assay_run::host::usable_millicpus();
    Native {
        version: format!("{} (iperf {VERSION})", env!("CARGO_PKG_VERSION")),
        cpus: millis.map(|millis| millis as f64 / 1e3),
        steal_pct,
        udp,
        streams: streams.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_peer(retransmits: &str) -> Value {
        let text = format!(
            r#"{{"cpu_util_total": 1.5, "cpu_util_user": 0.5, "cpu_util_system": 1, "sender_has_retransmits": 1,
            "streams": [{{"id": 1, "bytes": 77, "retransmits": {retransmits}, "jitter": 0, "errors": 0, "packets": 0,
            "start_time": 0, "end_time": 2.5}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn net_05_no_retransmits_are_told_in_three_ways() {
        for none in ["18446744073709551615", "-1", "-1.0"] {
            let read = Results::read(&of_peer(none), &[(1, true)]).unwrap();
            assert_eq!(read.streams[0].retransmits, None, "{none}");
        }
        let read = Results::read(&of_peer("3"), &[(1, true)]).unwrap();
        assert_eq!(read.streams[0].retransmits, Some(3));
        assert_eq!((read.streams[0].bytes, read.streams[0].seconds), (77, 2.5));
        assert_eq!(Results::default().frame()["sender_has_retransmits"], -1);
        let ours = Results { streams: vec![StreamEnd { id: 1, ..StreamEnd::default() }], ..Results::default() };
        assert_eq!(ours.frame()["streams"][0]["retransmits"], -1);
    }

    #[test]
    fn what_an_assay_tells_comes_whole() {
        let stream =
            StreamEnd { id: 3, is_sender: true, bytes: 5, busy_us: Some(7), unique: Some(9), ..StreamEnd::default() };
        let ours = Results {
            native: Some(native(std::slice::from_ref(&stream), None, Some(1.0))),
            streams: vec![stream],
            congestion: Some("cubic".to_owned()),
            ..Results::default()
        };
        assert_eq!(Results::read(&ours.frame(), &[(3, true)]), Ok(ours));
    }

    #[test]
    fn results_of_other_streams_or_types_are_refused() {
        let mut frame = of_peer("0");
        assert!(Results::read(&frame, &[(3, true)]).is_err());
        frame["streams"][0]["bytes"] = json!("many");
        assert!(Results::read(&frame, &[(1, true)]).is_err());
        assert!(Results::read(&json!({}), &[]).is_err());
    }

    #[test]
    fn drops_of_udp_are_found_by_name() {
        let text = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
            Udp: 10 2 5 11 4 1\n";
        let all = UdpErrors::parse(text).unwrap();
        assert_eq!((all.in_errors, all.receive_buffer, all.send_buffer), (5, 4, 1));
        assert_eq!(UdpErrors::parse("Tcp: x\n"), None);
    }
}
