//! Lines as iperf3 prints them.

use super::params::Params;
use super::results::StreamEnd;
use std::fmt::Write;

/// What separates two blocks of rows.
pub(crate) const DIVIDER: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";

/// A number of width 4 with at most two decimals, and its unit.
fn adaptive(mut number: f64, base: f64, units: [&str; 5]) -> String {
    let mut unit = units[0];
    for next in &units[1..] {
        if number < base {
            break;
        }
        (number, unit) = (number / base, next);
    }
    fixed(number, unit)
}

/// A number of width 4 in this unit.
fn fixed(number: f64, unit: &str) -> String {
    let decimals = match number {
        _ if number < 9.995 => 2,
        _ if number < 99.95 => 1,
        _ => 0,
    };
    format!("{number:4.decimals$} {unit}")
}

/// `2.42 GBytes`
pub(crate) fn amount(bytes: f64) -> String {
    adaptive(bytes, 1024.0, ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"])
}

/// `20.8 Gbits/sec`; `units` is the letter of iperf3's `-f`, or empty: what fits.
pub(crate) fn rate(bits_per_s: f64, units: &str) -> String {
    const BITS: [&str; 5] = ["bits", "Kbits", "Mbits", "Gbits", "Tbits"];
    const BYTES: [&str; 5] = ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"];
    let at = |letters: &str| Some(units).filter(|u| !u.is_empty()).and_then(|u| letters.find(u));
    let told = match (at("kmgt"), at("KMGT")) {
        (Some(at), _) => fixed(bits_per_s / 1000_f64.powi(at as i32 + 1), BITS[at + 1]),
        (_, Some(at)) => fixed(bits_per_s / 8.0 / 1024_f64.powi(at as i32 + 1), BYTES[at + 1]),
        _ => adaptive(bits_per_s, 1000.0, BITS),
    };
    told + "/sec"
}

/// Two significant digits, as C's `%.2g`.
fn two_digits(value: f64) -> String {
    let value = value.clamp(0.0, 100.0);
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = value.abs().log10().floor() as i32;
    let rounded: f64 = format!("{value:.1e}").parse().unwrap_or(value);
    if rounded >= 99.5 {
        return "1e+02".to_owned();
    }
    if exponent < -4 {
        let text = format!("{value:.1e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let power: i32 = power.parse().unwrap_or(0);
        return format!("{}e-{:02}", digits.trim_end_matches(".0"), -power);
    }
    let decimals = (1 - exponent).max(0) as usize;
    let text = format!("{rounded:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Who a row is of: a descriptor, or the sum, and the role where both send.
pub(crate) fn head(socket: Option<i32>, role: &str) -> String {
    let id = match socket {
        Some(socket) => format!("[{socket:3}]"),
        None => "[SUM]".to_owned(),
    };
    match role {
        "" => id + " ",
        role => format!("{id}[{role}] "),
    }
}

/// When, how much and how fast: what every row begins with.
pub(crate) fn begin(head: &str, (start, end): (f64, f64), bytes: u64, units: &str) -> String {
    let bits = if end > start { 8.0 * bytes as f64 / (end - start) } else { 0.0 };
    format!("{head}{start:6.2}-{end:<6.2} sec  {}  {}", amount(bytes as f64), rate(bits, units))
}

/// Title of the rows: of a sum of intervals, or of the end.
pub(crate) fn title(both_ways: bool, behind: &str) -> String {
    let role = if both_ways { "[Role]" } else { "" };
    format!("[ ID]{role} Interval           Transfer     Bitrate{behind}")
}

/// `   0.062 ms  0/39 (0%)`
pub(crate) fn loss(jitter_ms: f64, lost: u64, total: u64) -> String {
    let pct = if total > 0 { 100.0 * lost as f64 / total as f64 } else { 0.0 };
    format!("  {jitter_ms:5.3} ms  {lost}/{total} ({}%)", two_digits(pct))
}

/// A row of a summary: who, when, and either side.
pub(crate) fn ended(head: &str, end: &StreamEnd, is_udp: bool, units: &str) -> String {
    let row = begin(head, (0.0, end.seconds), end.bytes, units);
    match (is_udp, end.is_sender) {
        (true, true) => row + &loss(0.0, 0, end.datagrams) + "  sender",
        (true, false) => row + &loss(1e3 * end.jitter_s, end.lost, end.datagrams) + "  receiver",
        (false, true) => match end.retransmits {
            Some(count) => format!("{row}  {count:3}             sender"),
            None => row + "                  sender",
        },
        (false, false) => row + "                  receiver",
    }
}

/// What a server says of its own side.
pub(crate) fn summary_of_server(streams: &[StreamEnd], params: &Params) -> String {
    let both_ways = params.is_bidirectional;
    let is_sender = streams.first().is_some_and(|stream| stream.is_sender);
    let behind = match (params.is_udp, is_sender || both_ways) {
        (true, _) => "         Jitter    Lost/Total Datagrams",
        (false, true) => "         Retr",
        (false, false) => "",
    };
    let mut text = title(both_ways, behind);
    for stream in streams {
        let role = match (both_ways, stream.is_sender) {
            (false, _) => "",
            (true, true) => "TX-S",
            (true, false) => "RX-S",
        };
        // A server's descriptors are of no use to anybody: its rows have the numbers of the wire.
        let head = head(Some(stream.id as i32), role);
        let _ = write!(text, "\n{}", ended(&head, stream, params.is_udp, ""));
    }
    for is_sender in [true, false] {
        let some: Vec<&StreamEnd> = streams.iter().filter(|s| s.is_sender == is_sender).collect();
        if some.len() < 2 {
            continue;
        }
        let role = match (both_ways, is_sender) {
            (false, _) => "",
            (true, true) => "TX-S",
            (true, false) => "RX-S",
        };
        let _ = write!(text, "\n{}", ended(&head(None, role), &sum(&some), params.is_udp, ""));
    }
    text
}

/// Several streams of one side as one: what is counted is added, jitter is their mean.
pub(crate) fn sum(streams: &[&StreamEnd]) -> StreamEnd {
    let add = |get: fn(&StreamEnd) -> u64| streams.iter().map(|stream| get(stream)).sum();
    let known = |get: fn(&StreamEnd) -> Option<u64>| {
        let all: Option<Vec<u64>> = streams.iter().map(|stream| get(stream)).collect();
        all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
    };
    let jitter: f64 = streams.iter().map(|stream| stream.jitter_s).sum();
    StreamEnd {
        id: 0,
        is_sender: streams.first().is_some_and(|stream| stream.is_sender),
        bytes: add(|s| s.bytes),
        seconds: streams.iter().map(|stream| stream.seconds).fold(0.0, f64::max),
        retransmits: known(|s| s.retransmits),
        bytes_retransmitted: known(|s| s.bytes_retransmitted),
        busy_us: known(|s| s.busy_us),
        rwnd_limited_us: known(|s| s.rwnd_limited_us),
        sndbuf_limited_us: known(|s| s.sndbuf_limited_us),
        cwnd_max_bytes: streams.iter().filter_map(|s| s.cwnd_max_bytes).max(),
        window_max_bytes: streams.iter().filter_map(|s| s.window_max_bytes).max(),
        rtt_us: rtt(streams),
        min_rtt_us: streams.iter().filter_map(|s| s.min_rtt_us).min(),
        datagrams: add(|s| s.datagrams),
        lost: add(|s| s.lost),
        out_of_order: add(|s| s.out_of_order),
        unique: known(|s| s.unique),
        duplicates: known(|s| s.duplicates),
        jitter_s: jitter / streams.len().max(1) as f64,
        bytes_in_all: add(|s| s.bytes_in_all),
        kernel_bytes_in_all: known(|s| s.kernel_bytes_in_all),
        datagrams_in_all: known(|s| s.datagrams_in_all),
        unique_in_all: known(|s| s.unique_in_all),
        cpu_s: streams.iter().map(|s| s.cpu_s).sum(),
        run_delay_s: streams.iter().map(|s| s.run_delay_s).sum(),
    }
}

fn rtt(streams: &[&StreamEnd]) -> Option<[u64; 3]> {
    let all: Vec<[u64; 3]> = streams.iter().filter_map(|s| s.rtt_us).collect();
    let least = all.iter().map(|rtt| rtt[0]).min()?;
    let most = all.iter().map(|rtt| rtt[2]).max()?;
    let mean = all.iter().map(|rtt| rtt[1]).sum::<u64>() / all.len() as u64;
    Some([least, mean, most])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn net_12_numbers_have_width_four_and_the_decimals_of_iperf3() {
        for (bytes, wanted) in [
            (0.0, "0.00 Bytes"),
            (9.994, "9.99 Bytes"),
            (9.996, "10.0 Bytes"),
            (99.94, "99.9 Bytes"),
            (99.96, " 100 Bytes"),
            (1023.0, "1023 Bytes"),
            (1024.0, "1.00 KBytes"),
            (128.0 * 1024.0, " 128 KBytes"),
            (250.0 * 1024.0, " 250 KBytes"),
            (2.42 * 1_073_741_824.0, "2.42 GBytes"),
        ] {
            assert_eq!(amount(bytes), wanted, "{bytes}");
        }
        for (bits, units, wanted) in [
            (20.8e9, "", "20.8 Gbits/sec"),
            (1_048_576.0, "", "1.05 Mbits/sec"),
            (282e6, "", " 282 Mbits/sec"),
            (20.8e9, "m", "20800 Mbits/sec"),
            (20.8e9, "g", "20.8 Gbits/sec"),
            (8.0 * 1024.0 * 1024.0, "K", "1024 KBytes/sec"),
            (8.0 * 1024.0 * 1024.0, "M", "1.00 MBytes/sec"),
        ] {
            assert_eq!(rate(bits, units), wanted);
        }
    }

    #[test]
    fn net_12_rows_are_those_of_iperf3_byte_for_byte() {
        let head = head(Some(5), "");
        let row = begin(&head, (0.0, 1.0), 250 * 1024, "");
        assert_eq!(row, "[  5]   0.00-1.00   sec   250 KBytes  2.05 Mbits/sec");
        let sent = StreamEnd {
            is_sender: true,
            bytes: 5_143_265_935,
            seconds: 2.0,
            retransmits: Some(38),
            ..StreamEnd::default()
        };
        assert_eq!(
            ended(&head, &sent, false, ""),
            "[  5]   0.00-2.00   sec  4.79 GBytes  20.6 Gbits/sec   38             sender"
        );
        let got = StreamEnd { is_sender: false, retransmits: None, ..sent };
        assert_eq!(
            ended(&head, &got, false, ""),
            "[  5]   0.00-2.00   sec  4.79 GBytes  20.6 Gbits/sec                  receiver"
        );
        let udp = StreamEnd { bytes: 294_912, seconds: 2.0, jitter_s: 65e-6, datagrams: 9, ..StreamEnd::default() };
        assert_eq!(
            ended("[  7][RX-C] ", &udp, true, ""),
            "[  7][RX-C]   0.00-2.00   sec   288 KBytes  1.18 Mbits/sec  0.065 ms  0/9 (0%)  receiver"
        );
    }

    #[test]
    fn shares_have_two_significant_digits() {
        for (value, wanted) in [
            (0.0, "0"),
            (25.476, "25"),
            (3.909, "3.9"),
            (0.0123, "0.012"),
            (3.0, "3"),
            (100.0, "1e+02"),
            (0.000_01, "1e-05"),
        ] {
            assert_eq!(two_digits(value), wanted);
        }
    }
}
