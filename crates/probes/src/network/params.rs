//! The parameters of a test, as the client tells the server.

use serde_json::{Map, Value, json};

/// Streams of one direction at most.
pub(crate) const STREAMS_MOST: u64 = 128;
/// Bytes of a block at most.
pub(crate) const BLOCK_MOST: u64 = 1 << 20;
/// Bytes of a datagram.
pub(crate) const DATAGRAM: std::ops::RangeInclusive<u64> = 16..=65_507;
/// Bytes of a socket's buffers at most.
pub(crate) const WINDOW_MOST: u64 = 512 << 20;
/// Seconds of a test at most.
pub(crate) const TIME_MOST: u64 = 86_400;
/// Seconds left out at its begin, at most.
pub(crate) const OMIT_MOST: u64 = 600;
/// Blocks sent at once, at most.
pub(crate) const BURST_MOST: u64 = 1000;
/// The version of iperf3 whose protocol this is.
pub(crate) const VERSION: &str = "3.12";
/// What UDP sends by default, bits per second.
pub(crate) const UDP_RATE: u64 = 1 << 20;
/// Block of TCP by default, bytes.
pub(crate) const TCP_BLOCK: u64 = 128 << 10;

/// What is to be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Params {
    pub(crate) is_udp: bool,
    /// Seconds left out at the start.
    pub(crate) omit: u64,
    /// Seconds; 0 where a number of bytes or blocks rules.
    pub(crate) time: u64,
    /// Bytes to send in all; 0: no such end.
    pub(crate) bytes: u64,
    /// Blocks to send in all; 0: no such end.
    pub(crate) blocks: u64,
    /// Streams of each direction.
    pub(crate) streams: u64,
    pub(crate) is_reverse: bool,
    pub(crate) is_bidirectional: bool,
    pub(crate) block: u64,
    /// Bits per second of each stream; 0: as fast as it goes.
    pub(crate) rate: u64,
    /// Blocks at once.
    pub(crate) burst: u64,
    pub(crate) window: Option<u64>,
    pub(crate) max_segment: Option<u32>,
    pub(crate) no_delay: bool,
    pub(crate) congestion: Option<String>,
    pub(crate) tos: Option<u8>,
    /// Kernel pacing, bits per second.
    pub(crate) pacing: Option<u64>,
    pub(crate) wide_counters: bool,
    pub(crate) zero_copy: bool,
    pub(crate) wants_server_output: bool,
    /// The CPU of the server's streams.
    pub(crate) server_cpu: Option<u32>,
}

impl Params {
    /// The frame of the wire: flags that iperf3 reads as booleans are such, the others are numbers.
    pub(crate) fn frame(&self) -> Value {
        let mut all = Map::new();
        let mut put = |key: &str, value: Value| {
            all.insert(key.to_owned(), value);
        };
        put(if self.is_udp { "udp" } else { "tcp" }, json!(true));
        put("omit", json!(self.omit));
        put("time", json!(self.time));
        put("num", json!(self.bytes));
        put("blockcount", json!(self.blocks));
        put("parallel", json!(self.streams));
        for (key, is) in
            [("reverse", self.is_reverse), ("bidirectional", self.is_bidirectional), ("nodelay", self.no_delay)]
        {
            if is {
                put(key, json!(true));
            }
        }
        let known = |value: Option<u64>| value.map(|value| json!(value));
        for (key, value) in [
            ("MSS", known(self.max_segment.map(u64::from))),
            ("window", known(self.window)),
            ("TOS", known(self.tos.map(u64::from))),
            ("fqrate", known(self.pacing)),
            ("server_affinity", known(self.server_cpu.map(u64::from))),
            ("congestion", self.congestion.as_ref().map(|name| json!(name))),
            ("bandwidth", (self.rate > 0 || self.is_udp).then(|| json!(self.rate))),
            ("burst", (self.burst > 1).then(|| json!(self.burst))),
            ("udp_counters_64bit", self.wide_counters.then(|| json!(1))),
            ("zerocopy", self.zero_copy.then(|| json!(1))),
            ("get_server_output", self.wants_server_output.then(|| json!(1))),
        ] {
            if let Some(value) = value {
                put(key, value);
            }
        }
        put("len", json!(self.block));
        put("pacing_timer", json!(1000));
        put("client_version", json!(VERSION));
        Value::Object(all)
    }

    /// Reads a frame; what is no such thing, or more than a test may ask for, is told in words.
    pub(crate) fn read(frame: &Value) -> Result<Self, String> {
        let number = |key: &str, most: u64| match frame.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let known = value.as_u64().or_else(|| {
                    let value = value.as_f64()?;
                    (value >= 0.0 && value <= most as f64).then_some(value as u64)
                });
                let known = known.filter(|value| *value <= most);
                known.map(Some).ok_or_else(|| format!("{key} {value} is not a number from 0 to {most}"))
            }
        };
        let is = |key: &str| match frame.get(key) {
            None | Some(Value::Null | Value::Bool(false)) => Ok(false),
            Some(Value::Bool(true)) => Ok(true),
            Some(Value::Number(number)) => Ok(number.as_f64() != Some(0.0)),
            Some(value) => Err(format!("{key} {value} is neither true nor false")),
        };
        if is("sctp")? {
            return Err("assay does not measure SCTP; ask for TCP or UDP".to_owned());
        }
        if frame.get("authtoken").is_some() {
            return Err("RSA authentication is not supported; leave --username out".to_owned());
        }
        let is_udp = is("udp")?;
        let block = number("len", BLOCK_MOST)?.filter(|block| *block > 0);
        let block = block.unwrap_or(if is_udp { 1460 } else { TCP_BLOCK });
        if is_udp && !DATAGRAM.contains(&block) {
            return Err(format!("len {block} does not fit a datagram (16 to 65507)"));
        }
        let most = u64::MAX >> 11;
        let default_rate = if is_udp { UDP_RATE } else { 0 };
        let congestion = frame.get("congestion").and_then(Value::as_str);
        Ok(Self {
            is_udp,
            omit: number("omit", OMIT_MOST)?.unwrap_or(0),
            time: number("time", TIME_MOST)?.unwrap_or(10),
            bytes: number("num", most)?.unwrap_or(0),
            blocks: number("blockcount", most)?.unwrap_or(0),
            streams: number("parallel", STREAMS_MOST)?.unwrap_or(1).max(1),
            is_reverse: is("reverse")?,
            is_bidirectional: is("bidirectional")?,
            block,
            rate: number("bandwidth", most)?.unwrap_or(default_rate),
            burst: number("burst", BURST_MOST)?.unwrap_or(0).max(1),
            window: number("window", WINDOW_MOST)?.filter(|window| *window > 0),
            max_segment: number("MSS", 32_767)?.filter(|m| *m > 0).map(|m| m as u32),
            no_delay: is("nodelay")?,
            congestion: congestion.map(str::to_owned),
            tos: number("TOS", 255)?.map(|tos| tos as u8),
            pacing: number("fqrate", most)?.filter(|rate| *rate > 0),
            wide_counters: is("udp_counters_64bit")?,
            zero_copy: is("zerocopy")?,
            wants_server_output: is("get_server_output")?,
            server_cpu: number("server_affinity", 1 << 16)?.map(|cpu| cpu as u32),
        })
    }

    /// Seconds that it takes at most; one that ends with its bytes as long as the longest.
    pub(crate) fn longest_s(&self) -> f64 {
        match self.time {
            0 => TIME_MOST as f64,
            time => time as f64,
        }
    }

    /// Which of the client's streams send from it, in their order.
    pub(crate) fn client_sends(&self) -> Vec<bool> {
        let streams = self.streams as usize;
        match (self.is_bidirectional, self.is_reverse) {
            (true, _) => [vec![true; streams], vec![false; streams]].concat(),
            (false, is_reverse) => vec![!is_reverse; streams],
        }
    }
}

/// The ids of so many streams on the wire: 1, 3, 4, 5, ...
pub(crate) fn stream_ids(count: usize) -> impl Iterator<Item = i64> {
    (0..count as i64).map(|at| if at == 0 { 1 } else { at + 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn net_04_booleans_are_booleans_and_flags_are_numbers() {
        let params = Params {
            is_udp: true,
            time: 10,
            streams: 2,
            is_reverse: true,
            block: 1448,
            rate: 10_000_000,
            burst: 4,
            wide_counters: true,
            zero_copy: true,
            no_delay: true,
            congestion: Some("reno".to_owned()),
            ..Params::default()
        };
        let frame = params.frame();
        for key in ["udp", "reverse", "nodelay"] {
            assert_eq!(frame[key], json!(true), "{key}");
        }
        for key in ["udp_counters_64bit", "zerocopy"] {
            assert_eq!(frame[key], json!(1), "{key}");
        }
        assert!(frame.get("bidirectional").is_none() && frame.get("tcp").is_none());
        assert_eq!(Params::read(&frame), Ok(params));
    }

    #[test]
    fn a_frame_that_says_little_is_a_test_and_one_that_says_too_much_is_none() {
        let plain = Params::read(&json!({"tcp": true, "time": 3})).unwrap();
        assert_eq!((plain.time, plain.streams, plain.block), (3, 1, TCP_BLOCK));
        for (frame, told) in [
            (json!({"tcp": true, "parallel": 129}), "parallel 129"),
            (json!({"tcp": true, "len": 1 << 21}), "len"),
            (json!({"tcp": true, "time": "x"}), "time"),
            (json!({"udp": true, "len": 4}), "datagram"),
            (json!({"sctp": true}), "SCTP"),
            (json!({"tcp": true, "authtoken": "x"}), "RSA"),
            (json!({"tcp": true, "time": -1}), "time"),
        ] {
            let error = Params::read(&frame).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn net_06_ids_leave_two_out_and_both_ways_send_first() {
        assert_eq!(stream_ids(3).collect::<Vec<_>>(), [1, 3, 4]);
        let both = Params { streams: 2, is_bidirectional: true, ..Params::default() };
        let ids: Vec<(i64, bool)> = stream_ids(4).zip(both.client_sends()).collect();
        assert_eq!(ids, [(1, true), (3, true), (4, false), (5, false)]);
    }
}
