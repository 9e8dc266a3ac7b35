//! Wall time as `ctime(3)` writes it, in UTC: a report must read the same wherever it is made again
//! from its readings.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// `Sat Nov 21 08:59:45 2026` of ms since 1970.
pub(super) fn date(timestamp_ms: u64) -> String {
    let seconds = timestamp_ms / 1000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{} {} {day:2} {:02}:{:02}:{:02} {year}",
        DAYS[(days % 7) as usize],
        MONTHS[month],
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// Year, month from 0 and day of the month of days since 1970.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    // Whole eras of 400 years first, so that any number of days ends soon.
    let mut year = 1970 + days / 146_097 * 400;
    days %= 146_097;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, length) in lengths.into_iter().enumerate() {
        if days < length {
            return (year, month, days + 1);
        }
        days -= length;
    }
    unreachable!("fewer days than a year has are left")
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
