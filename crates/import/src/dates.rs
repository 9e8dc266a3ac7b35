//! When a run began, as tools print it, in one form that sorts: `2024-03-05T10:00:01-00:00`.

/// `2024-03-05T10:00:01` has a date and a time.
fn halves(word: &str) -> [Option<&str>; 2] {
    match word.as_bytes().get(10) {
        Some(b'T') => [word.get(..10), word.get(11..)],
        _ => [Some(word), None],
    }
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A date in one form, with `Z` where the text says that it is universal time; as it is where it cannot be read.
pub(crate) fn sortable(text: &str) -> String {
    parsed(text).unwrap_or_else(|| text.trim().to_owned())
}

fn parsed(text: &str) -> Option<String> {
    let words = text.split([' ', ',', '_']).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.flat_map(halves).flatten().collect();
    if let [epoch] = words.as_slice()
        && epoch.len() >= 10
        && let Ok(seconds) = epoch.parse::<f64>()
    {
        return from_epoch(seconds as i64);
    }
    let half = words.iter().find_map(|word| half_of_day(word));
    let (mut year, mut month, mut day, mut clock, mut is_utc) = (None, None, None, None, text.trim().ends_with('Z'));
    let mut offset = None;
    for word in words {
        let word = match offset_of(word) {
            Some((rest, of_word)) => {
                offset = Some(of_word?);
                rest
            }
            None => word,
        };
        let lower = word.to_ascii_lowercase();
        is_utc |= ["utc", "gmt", "z"].contains(&lower.as_str());
        let known = MONTHS.iter().position(|name| lower.starts_with(name));
        let parts: Vec<&str> = word.split(['-', '/', '.', ':']).collect();
        let number = |part: &str| part.parse::<u32>().ok().filter(|_| !part.starts_with('+'));
        match parts.as_slice() {
            // `2023.02.14-10:00:00` holds both.
            [y, m, d, rest @ ..] if y.len() == 4 && number(y).is_some() && rest.len() != 1 => {
                (year, month, day) = (number(y), number(m), number(d));
                if let [h, minute, second, ..] = rest {
                    clock = Some(time(h, minute, second, half)?);
                }
            }
            [h, m, s, ..] if word.contains(':') && h.len() <= 2 => clock = Some(time(h, m, s, half)?),
            // `05-Mar-24`
            [d, name, y] if number(d).is_some() && number(name).is_none() => {
                let of_name = MONTHS.iter().position(|known| name.to_ascii_lowercase().starts_with(known))?;
                (day, month) = (number(d), Some(of_name as u32 + 1));
                year = number(y).map(|y| if y < 100 { 2000 + y } else { y });
            }
            [one] if number(one).is_some_and(|n| n > 31) => year = number(one),
            [one] if number(one).is_some() => day = number(one),
            _ if known.is_some() => month = known.map(|at| at as u32 + 1),
            _ => {}
        }
    }
    let (year, month, day) = (year?, month?, day?);
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some(())?;
    // An offset that nobody told is `-00:00`.
    let offset = offset.as_deref().unwrap_or(if is_utc { "Z" } else { "-00:00" });
    let clock = clock.map_or_else(String::new, |clock| format!("T{clock}{offset}"));
    Some(format!("{year:04}-{month:02}-{day:02}{clock}"))
}

/// `PM`, also behind a time: the hour at which that half of the day begins.
fn half_of_day(word: &str) -> Option<u32> {
    let lower = word.to_ascii_lowercase();
    let is = |end: &str| lower == end || (lower.ends_with(end) && lower.contains(':'));
    is("am").then_some(0).or_else(|| is("pm").then_some(12))
}

/// `+0200`, `10:00:01-05:00`: what stands before the offset, and the offset in one form, if there is such a one.
fn offset_of(word: &str) -> Option<(&str, Option<String>)> {
    let at = word.rfind(['+', '-'])?;
    let (rest, offset) = word.split_at(at);
    let digits = offset[1..].replace(':', "");
    let is_offset = matches!(digits.len(), 2 | 4) && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_offset && (rest.is_empty() || rest.contains(':'))).then_some(())?;
    let (hours, minutes) = digits.split_at(2);
    let is_real = hours <= "14" && minutes < "60";
    let minutes = if minutes.is_empty() { "00" } else { minutes };
    Some((rest, is_real.then(|| format!("{}{hours}:{minutes}", &offset[..1]))))
}

fn time(hour: &str, minute: &str, second: &str, half: Option<u32>) -> Option<String> {
    let digits: String = second.chars().take_while(char::is_ascii_digit).collect();
    let (hour, minute, second): (u32, u32, u32) = (hour.parse().ok()?, minute.parse().ok()?, digits.parse().ok()?);
    let hour = half.filter(|_| hour <= 12).map_or(hour, |begin| hour % 12 + begin);
    Some(format!("{hour:02}:{minute:02}:{second:02}"))
}

/// Days are counted from 1 March, so that a leap day is the last of its year.
fn from_epoch(seconds: i64) -> Option<String> {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    (1970..=9999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

#[cfg(test)]
mod tests {
    use super::sortable;

    #[test]
    fn dates_of_every_tool_sort() {
        for (text, date) in [
            ("Tue Mar  5 10:00:01 2024", "2024-03-05T10:00:01-00:00"),
            ("Thu Mar  2 09:10:11 UTC 2023", "2023-03-02T09:10:11Z"),
            ("Tue, 05 Mar 2024 10:00:01 GMT", "2024-03-05T10:00:01Z"),
            ("2024-03-05T10:00:01.5Z", "2024-03-05T10:00:01Z"),
            ("2024-03-05 10:00:01", "2024-03-05T10:00:01-00:00"),
            ("2026:11:21", "2026-11-21"),
            ("2023.02.14-10:00:00", "2023-02-14T10:00:00-00:00"),
            ("05-Mar-24 10:00:01", "2024-03-05T10:00:01-00:00"),
            ("1709632801.123456", "2024-03-05T10:00:01Z"),
            ("2024-03-05T10:00:01-00:00", "2024-03-05T10:00:01-00:00"),
            ("2024-03-05T10:00:01+02:00", "2024-03-05T10:00:01+02:00"),
            ("2024-03-05T10:00:01.5+0200", "2024-03-05T10:00:01+02:00"),
            ("2024-03-05T10:00:01-0500", "2024-03-05T10:00:01-05:00"),
            ("2024-03-05 10:00:01+02", "2024-03-05T10:00:01+02:00"),
            ("Tue, 05 Mar 2024 10:00:01 +0200", "2024-03-05T10:00:01+02:00"),
            ("Tue, 05 Mar 2024 10:00:01 -0500", "2024-03-05T10:00:01-05:00"),
            ("Tue, 05 Mar 2024 10:00:01 +9900", "Tue, 05 Mar 2024 10:00:01 +9900"),
            ("Tue 05 Mar 2024 10:00:01 PM UTC", "2024-03-05T22:00:01Z"),
            ("2024-03-05 12:30:01 AM", "2024-03-05T00:30:01-00:00"),
            ("2024-03-05 12:30:01PM", "2024-03-05T12:30:01-00:00"),
            ("at noon", "at noon"),
            ("Mar  5 10:00:01", "Mar  5 10:00:01"),
            ("", ""),
        ] {
            assert_eq!(sortable(text), date, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_date_or_itself(text in ".{0,40}") {
            let _ = sortable(&text);
        }
    }
}
