//! Rows as text for bulk loading, and their checksum.
//!
//! Tabs separate values, a line feed ends a row, and `\N` is NULL: both COPY and LOAD DATA read this. The checksum is
//! the sum of weight x value over all rows and columns. A server therefore computes the same sum in one pass over a
//! table, whatever the order of its rows ([`Column::checked`](crate::checks)).

/// Days from 1970-01-01 to 2000-01-01, from which the checksum counts days.
const DAYS_TO_2000: i64 = 10_957;

/// A buffer of rows on their way to a server.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    column: i128,
    sum: i128,
    rows: u64,
    /// Suffix of a number of months.
    months_unit: &'static str,
    /// Suffix of a point in time, which is UTC.
    zone: &'static str,
}

impl Lines {
    /// An empty buffer. `months_unit` and `zone` are the server's suffixes for a number of months and for a point in
    /// time; they may be empty.
    #[must_use]
    pub fn new(months_unit: &'static str, zone: &'static str) -> Self {
        Self { months_unit, zone, ..Self::default() }
    }

    /// The bytes written since [`Lines::clear`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Drops the bytes; the row count and checksum continue.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Checksum so far.
    #[must_use]
    pub fn sum(&self) -> i128 {
        self.sum
    }

    fn next(&mut self, value: i64) {
        if self.column > 0 {
            self.bytes.push(b'\t');
        }
        self.column += 1;
        self.sum += self.column * i128::from(value);
    }

    /// Ends a row.
    pub fn end(&mut self) {
        self.bytes.push(b'\n');
        self.column = 0;
        self.rows += 1;
    }

    /// Writes NULL; counts as 0.
    pub fn null(&mut self) {
        self.next(0);
        self.bytes.extend_from_slice(b"\\N");
    }

    /// Writes an integer; amounts of money are integers too.
    pub fn int(&mut self, n: i64) {
        self.next(n);
        self.digits(n);
    }

    /// Writes text that needs no escaping; counts as its length x 256 + its first byte.
    pub fn text(&mut self, text: &[u8]) {
        let first = text.first().copied().unwrap_or(0);
        self.next((text.len() as i64) << 8 | i64::from(first));
        self.bytes.extend_from_slice(text);
    }

    /// Writes a number of months.
    pub fn months(&mut self, n: i64) {
        self.next(n);
        self.digits(n);
        self.bytes.extend_from_slice(self.months_unit.as_bytes());
    }

    /// Writes a date, given as days since 1970-01-01; counts as days since 2000-01-01.
    pub fn date(&mut self, day: i64) {
        self.next(day - DAYS_TO_2000);
        self.day(day);
    }

    /// Writes a point in time, given as seconds since 1970-01-01 UTC; counts as its day.
    pub fn instant(&mut self, second: i64) {
        self.time(second);
        self.bytes.extend_from_slice(self.zone.as_bytes());
    }

    /// Writes a local time, given as seconds since 1970-01-01; counts as its day.
    pub fn time(&mut self, second: i64) {
        let (day, rest) = (second.div_euclid(86_400), second.rem_euclid(86_400));
        self.next(day - DAYS_TO_2000);
        self.day(day);
        self.bytes.push(b' ');
        for (at, part) in [rest / 3600, rest / 60 % 60, rest % 60].into_iter().enumerate() {
            if at > 0 {
                self.bytes.push(b':');
            }
            self.two(part);
        }
    }

    fn two(&mut self, n: i64) {
        self.bytes.push(b'0' + (n / 10 % 10) as u8);
        self.bytes.push(b'0' + (n % 10) as u8);
    }

    /// Writes the civil date of a day (Hinnant, "chrono-compatible low-level date algorithms").
    fn day(&mut self, day: i64) {
        let z = day + 719_468;
        let era = z.div_euclid(146_097);
        let doe = z.rem_euclid(146_097);
        let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let month = if mp < 10 { mp + 3 } else { mp - 9 };
        let year = yoe + era * 400 + i64::from(month <= 2);
        self.two(year / 100);
        self.two(year % 100);
        self.bytes.push(b'-');
        self.two(month);
        self.bytes.push(b'-');
        self.two(doy - (153 * mp + 2) / 5 + 1);
    }

    fn digits(&mut self, n: i64) {
        let mut buffer = [0_u8; 20];
        let mut at = buffer.len();
        let mut left = n.unsigned_abs();
        loop {
            at -= 1;
            buffer[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if n < 0 {
            self.bytes.push(b'-');
        }
        self.bytes.extend_from_slice(&buffer[at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_is_what_copy_reads() {
        let mut lines = Lines::new(" months", "Z");
        lines.int(-17);
        lines.null();
        lines.text(b"abc");
        lines.date(0);
        lines.instant(86_399);
        lines.months(13);
        lines.end();
        let row = "-17\t\\N\tabc\t1970-01-01\t1970-01-01 23:59:59Z\t13 months\n";
        assert_eq!(std::str::from_utf8(lines.bytes()), Ok(row));
        let day = -i128::from(DAYS_TO_2000);
        let text = i128::from(3 << 8 | i64::from(b'a'));
        assert_eq!(lines.sum(), -17 + 3 * text + 4 * day + 5 * day + 6 * 13);
    }

    proptest! {
        #[test]
        fn a_day_is_the_one_of_the_calendar(day in -20_000_i64..40_000, n in any::<i64>()) {
            let mut lines = Lines::new("", "");
            lines.date(day);
            let second = jiff::Timestamp::from_second(day * 86_400).expect("in range");
            let civil = jiff::tz::TimeZone::UTC.to_datetime(second).date().to_string();
            prop_assert_eq!(std::str::from_utf8(lines.bytes()), Ok(civil.as_str()));
            let mut lines = Lines::new("", "");
            lines.int(n);
            let text = n.to_string();
            prop_assert_eq!(lines.bytes(), text.as_bytes());
        }
    }
}
