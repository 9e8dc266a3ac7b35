//! Which settings can hold a secret, and how such a value is shown: one rule for records, copies, lists and messages.

#[cfg(test)]
mod tests;

/// Whether a name looks like that of a secret, known parameter or not: messages and copies of the file never repeat its
/// value.
#[must_use]
pub fn looks_secret(name: &str) -> bool {
    has_one_of(name, &["PASS", "PWD", "SECRET", "CONNECT_STRING", "TOKEN", "CREDENTIAL"])
}

/// Whether a name says where or as whom one connects: its value may be `user/password@place`.
fn connects(name: &str) -> bool {
    has_one_of(name, &["SERVICE", "CONNECT", "TARGET", "DSN", "_URL"]) || names_user(name)
}

/// An Oracle account may be given as `user/password`.
fn names_user(name: &str) -> bool {
    has_one_of(name, &["_USER", "USERID"])
}

/// Whether the text of a setting must not be quoted where it could not be read.
pub(super) fn may_hold_secret(name: &str) -> bool {
    looks_secret(name) || connects(name)
}

fn has_one_of(name: &str, parts: &[&str]) -> bool {
    let upper = name.to_uppercase();
    parts.iter().any(|part| upper.contains(part))
}

/// The value of a setting as it may be shown: the passwords in it are `***`.
#[must_use]
pub fn mask(name: &str, text: &str) -> String {
    let shown = mask_url_password(text);
    if looks_secret(name) && !text.is_empty() {
        return "***".into();
    }
    let oracle = text.trim_start_matches(['"', '\'', ' ']);
    let is_url = oracle.contains("://") || name.eq_ignore_ascii_case("TARGET");
    if !connects(name) || is_url && !oracle.starts_with("oracle:") {
        return shown;
    }
    mask_oracle(&shown, names_user(name))
}

/// `user/password@place`, and where it names an account `user/password` too.
fn mask_oracle(text: &str, is_account: bool) -> String {
    let start = match text.find("oracle:") {
        Some(at) => text.len() - text[at + 7..].trim_start_matches('/').len(),
        None => 0,
    };
    let Some(slash) = text[start..].find('/').map(|at| start + at) else {
        return text.to_owned();
    };
    let begins = slash + 1;
    let user = text[start..slash].trim_start_matches(['"', '\'', ' ']);
    let has_user = !user.is_empty() && !user.contains('@');
    let ends = match text.rfind('@') {
        Some(at) if at > begins => at,
        None if is_account => text.len(),
        _ => return text.to_owned(),
    };
    // "//host/service" and "/@service" (a wallet) name no user.
    if !has_user {
        return text.to_owned();
    }
    format!("{}***{}", &text[..begins], &text[ends..])
}

/// Where the value of a connection parameter ends: with its closing quote, or before the next parameter.
fn value_ends(text: &str, in_url: bool) -> usize {
    let quoted = (!in_url).then(|| text.strip_prefix('\'')).flatten();
    let mut escaped = false;
    let mut ends_at = |letter: char, end: char| {
        let found = !escaped && letter == end;
        escaped = letter == '\\' && !escaped;
        found
    };
    let end = match quoted {
        Some(quoted) => quoted.find(|letter| ends_at(letter, '\'')).map(|end| end + 2),
        None if in_url => text.find('&'),
        None => text.find(|letter| ends_at(letter, ' ')),
    };
    end.unwrap_or(text.len())
}

/// A connection URL or connect string with its password replaced by `***`;
/// anything else unchanged.
#[must_use]
pub fn mask_url_password(text: &str) -> String {
    let mut masked = text.to_owned();
    let mut from = 0;
    while let Some(found) = masked[from..].find("://") {
        let start = from + found + 3;
        // It may hold any of the signs that would have to be encoded, spaces among them: then more is taken for it rather than less.
        let password = |text| slash_password(text).or_else(|| colon_password(text));
        if let Some((begin, end)) = masked[start..].split("://").next().and_then(password) {
            masked.replace_range(start + begin..start + end, "***");
        }
        from = start;
    }
    for word in ["password", "passwd", "pwd"] {
        masked = mask_word(masked, word);
    }
    masked
}

/// `user/password@place`, which Oracle's tools take and people give to others.
fn slash_password(text: &str) -> Option<(usize, usize)> {
    let slash = text.find('/').filter(|slash| *slash > 0 && !text[..*slash].contains([':', '@', '?']))?;
    let at = text.rfind('@').filter(|at| slash < *at)?;
    // Behind a database's name parameters may have an @ of their own.
    let has_parameters = text[slash..at].find('?').is_some_and(|mark| text[slash + mark..at].contains('='));
    let at = if has_parameters { text[..text.find('?')?].rfind('@')? } else { at };
    (slash < at).then_some((slash + 1, at))
}

/// `user:password@place`.
fn colon_password(text: &str) -> Option<(usize, usize)> {
    let colon = text.find(':')?;
    let place = text[colon + 1..].split(['/', '?']).next()?;
    if !place.contains('@') && place.split(',').next()?.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let front = text.find('?').unwrap_or(text.len());
    let at = match text.find('@')? {
        // A user with an @ in it.
        at if at < colon => text[..=colon + place.len()].rfind('@')?,
        _ => text[..front].rfind('@').or_else(|| text.rfind('@'))?,
    };
    (colon < at).then_some((colon + 1, at))
}

/// Stars the value of every `word=value`.
fn mask_word(mut masked: String, word: &str) -> String {
    let mut from = 0;
    while let Some(found) = masked[from..].to_ascii_lowercase().find(word) {
        let named = from + found + word.len();
        let rest = masked[named..].trim_start();
        let Some(value) = rest.strip_prefix('=').map(str::trim_start) else {
            from = named;
            continue;
        };
        let before = masked[..from + found].trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        let in_url = before.ends_with(['?', '&']);
        let start = masked.len() - value.len();
        let end = start + value_ends(&masked[start..], in_url);
        masked.replace_range(start..end, "***");
        from = start + 3;
    }
    masked
}
