//! A record as ping prints it, and as JSON.

use super::info::PingInfo;
use assay_measure::units::fixed;
use serde_json::json;

/// Bytes that IP and ICMP add.
const HEADERS: u64 = 28;

/// ping's time of one reply: three digits, more of a long one.
fn ms(us: f64) -> String {
    let ms = us / 1e3;
    let decimals = match ms {
        _ if ms < 1.0 => 3,
        _ if ms < 10.0 => 2,
        _ if ms < 100.0 => 1,
        _ => 0,
    };
    fixed(ms, decimals)
}

/// Up to six significant digits without zeroes behind them, as C's `%g`.
fn percent(lost: u64, sent: u64) -> String {
    let pct = 100.0 * lost as f64 / sent.max(1) as f64;
    let decimals = match pct {
        _ if pct >= 10.0 => 4,
        _ if pct >= 1.0 => 5,
        _ => 6,
    };
    let text = format!("{pct:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The text.
pub(super) fn text(info: &PingInfo) -> String {
    let with = info.size_bytes + HEADERS;
    let mut lines = vec![format!("PING {} ({}) {}({with}) bytes of data.", info.host, info.address, info.size_bytes)];
    for reply in &info.replies {
        let ttl = reply.ttl.map_or_else(String::new, |ttl| format!("ttl={ttl} "));
        lines.push(format!(
            "{} bytes from {}: icmp_seq={} {ttl}time={} ms",
            info.size_bytes + 8,
            info.address,
            reply.seq,
            ms(reply.us)
        ));
    }
    lines.push(String::new());
    lines.push(format!("--- {} ping statistics ---", info.host));
    let errors = match info.errors_count {
        0 => String::new(),
        count => format!("+{count} errors, "),
    };
    let twice = match info.strays_count {
        0 => String::new(),
        count => format!("+{count} duplicates, "),
    };
    lines.push(format!(
        "{} packets transmitted, {} received, {twice}{errors}{}% packet loss, time {}ms",
        info.sent_count,
        info.received_count,
        percent(info.lost_count, info.sent_count),
        (info.elapsed_s * 1e3).round() as u64
    ));
    let of = |us: Option<f64>| us.map(|us| fixed(us.floor() / 1e3, 3));
    let all = [
        of(info.service.us_min.value()),
        of(info.ping_us_avg.value()),
        of(info.service.us_max.value()),
        of(info.ping_us_mdev.value()),
    ];
    let all: Option<Vec<String>> = all.into_iter().collect();
    lines.extend(all.map(|all| format!("rtt min/avg/max/mdev = {} ms", all.join("/"))));
    lines.join("\n") + "\n"
}

/// ping has no JSON: its summary under the names of the text.
pub(super) fn json(info: &PingInfo) -> String {
    let value = json!({
        "host": info.host,
        "address": info.address,
        "method": info.method,
        "transmitted": info.sent_count,
        "received": info.received_count,
        "loss_pct": info.lost_pct(),
        "time_ms": info.elapsed_s * 1e3,
        "rtt_min_ms": info.service.us_min.scaled(1e-3),
        "rtt_avg_ms": info.ping_us_avg.scaled(1e-3),
        "rtt_max_ms": info.service.us_max.scaled(1e-3),
        "rtt_mdev_ms": info.ping_us_mdev.scaled(1e-3),
    });
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_decimals_of_ping() {
        for (us, wanted) in [(78.0, "0.078"), (1234.0, "1.23"), (12_345.0, "12.3"), (123_456.0, "123")] {
            assert_eq!(ms(us), wanted);
        }
        for (lost, sent, wanted) in [(0, 5, "0"), (1, 3, "33.3333"), (5, 5, "100"), (1, 200, "0.5")] {
            assert_eq!(percent(lost, sent), wanted);
        }
    }
}
