//! The requested settings, and the server's log lines about settings it did not accept.

use assay_run::engine::EngineError;

/// Name and value of a setting.
pub(crate) type Setting = (String, String);

/// Parses a list `NAME=VALUE; NAME='VALUE with ; in it'`, keeping its order; the last value of a name wins. `option` is
/// the option's name, and `ours` the settings that cannot be changed, each with the reason.
pub(crate) fn parse(list: &str, option: &str, ours: &[(&str, &str)]) -> Result<Vec<Setting>, EngineError> {
    let mut settings: Vec<Setting> = Vec::new();
    for part in parts(list) {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| EngineError::Usage(format!("{option} {part}: write {option} NAME=VALUE")))?;
        let name = name.trim().to_ascii_lowercase();
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '$';
        if name.is_empty() || !name.chars().all(legal) {
            return Err(EngineError::Usage(format!("{option} {part}: {name:?} is not the name of a setting")));
        }
        if let Some((_, why)) = ours.iter().find(|(ours, _)| *ours == name) {
            return Err(EngineError::Usage(format!("{option} {name}: not allowed for a temporary server: {why}")));
        }
        settings.retain(|(other, _)| *other != name);
        settings.push((name, unquote(value.trim())));
    }
    Ok(settings)
}

/// Splits at semicolons outside quotes.
fn parts(list: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            ';' if !quoted => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts.into_iter().map(str::trim).collect()
}

fn unquote(value: &str) -> String {
    match value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'"),
        None => value.to_owned(),
    }
}

/// The lines of a server's log that say why it gave up, starting at one of these words; the first word is left out. If
/// no line matches, the last lines.
pub(crate) fn complaint(log: &str, words: &[String]) -> String {
    let first = words.first().map_or("", String::as_str);
    let of = |line: &str| {
        let at = words.iter().find_map(|word| line.find(word.as_str()))?;
        let from = &line[at..];
        Some(from.strip_prefix(first).unwrap_or(from).trim().to_owned())
    };
    let mut told: Vec<String> = log.lines().filter_map(of).collect();
    if told.is_empty() {
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.len().saturating_sub(3);
        told = lines[last..].iter().map(|line| line.trim().to_owned()).collect();
    }
    told.dedup();
    if told.is_empty() { "nothing".to_owned() } else { told.join("; ") }
}

/// Settings as text: `name=value, name=value`.
pub(crate) fn listed(settings: &[Setting]) -> String {
    let each: Vec<String> = settings
        .iter()
        .map(|(name, value)| if value.is_empty() { format!("{name}=''") } else { format!("{name}={value}") })
        .collect();
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<Setting> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn read(list: &str) -> Result<Vec<Setting>, EngineError> {
        parse(list, "--its-set", &[("socket", "its socket is private")])
    }

    #[test]
    fn a_list_of_settings_is_read_with_its_quotes_and_the_last_of_a_name_wins() {
        let settings = read("cache = 1GB; Work_Mem=4MB;; x.y='a;b''c'; cache=2GB;");
        let wanted = pairs(&[("work_mem", "4MB"), ("x.y", "a;b'c"), ("cache", "2GB")]);
        assert_eq!(settings.unwrap(), wanted);
        assert_eq!(read("").unwrap(), Vec::new());
    }

    #[test]
    fn what_is_no_setting_or_would_make_it_public_is_refused() {
        for (list, wanted) in [
            ("cache", "NAME=VALUE"),
            ("a b=1", "not the name"),
            ("=1", "not the name"),
            ("socket=/x", "its socket is private"),
            ("SOCKET=/y", "its socket is private"),
        ] {
            let text = read(list).unwrap_err().to_string();
            assert!(text.contains(wanted), "{list}: {text}");
        }
    }

    #[test]
    fn a_log_is_cut_down_to_why_the_server_gave_up() {
        let words = ["FATAL:", "HINT:"].map(str::to_owned);
        let log = "2026-01-01 00:00:00.0 UTC [7] LOG:  starting\n\
                   2026-01-01 00:00:00.1 UTC [7] FATAL:  could not map anonymous shared memory: Cannot allocate memory\n\
                   2026-01-01 00:00:00.1 UTC [7] HINT:  reduce the cache\n\
                   2026-01-01 00:00:00.2 UTC [7] LOG:  the system is shut down\n";
        assert_eq!(
            complaint(log, &words),
            "could not map anonymous shared memory: Cannot allocate memory; HINT:  reduce the cache"
        );
        assert_eq!(complaint("one\n\ntwo\n", &words), "one; two");
        assert_eq!(complaint("", &words), "nothing");
    }
}
