//! Wall time in the format of `ctime(3)`, in UTC: a report must read the same wherever it is printed again from its
//! readings.

use jiff::Timestamp;

/// `Sat Nov 21 08:59:45 2026` from ms since 1970.
pub(super) fn date(timestamp_ms: u64) -> String {
    let seconds = i64::try_from(timestamp_ms / 1000).unwrap_or(i64::MAX);
    let instant = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    instant.strftime("%a %b %e %H:%M:%S %Y").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_ctime() {
        assert_eq!(date(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(date(1_795_251_585_728), "Sat Nov 21 08:59:45 2026");
        assert_eq!(date(951_827_696_000), "Tue Feb 29 12:34:56 2000");
        assert_eq!(date(4_107_542_400_000), "Mon Mar  1 00:00:00 2100");
        assert_eq!(date(u64::MAX).split_whitespace().count(), 5);
    }
}
