//! The two spellings of a connection: `//user:password@host:port/database?name=value` and `name=value name='a value'`.

/// Parameters in the order they were given; later ones count.
pub(super) type Given = Vec<(String, String)>;

/// Reads what follows `postgres:`. Errors repeat no value of it: it may hold a password.
pub(super) fn parse(location: &str) -> Result<Given, String> {
    if let Some(rest) = location.strip_prefix("//") {
        uri(rest)
    } else if location.contains('=') {
        keywords(location)
    } else if location.is_empty() {
        Ok(Vec::new())
    } else {
        // As psql's first argument: the name of a database.
        Ok(vec![("dbname".to_owned(), location.to_owned())])
    }
}

fn uri(rest: &str) -> Result<Given, String> {
    let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, dbname) = front.split_once('/').unwrap_or((front, ""));
    let mut given = Given::new();
    let mut put = |name: &str, text: &str| -> Result<(), String> {
        if !text.is_empty() {
            given.push((name.to_owned(), decode(text, name)?));
        }
        Ok(())
    };
    let (who, place) = authority.split_once('@').unwrap_or(("", authority));
    if place.contains('@') {
        return Err("the URL has two @ before the host: write %40 for an @ in a user or password".to_owned());
    }
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    put("user", user)?;
    put("password", password)?;
    let mut names = Vec::new();
    let mut ports = Vec::new();
    for part in place.split(',') {
        let (name, port) = host_and_port(part)?;
        names.push(name);
        ports.push(port);
    }
    if names.iter().any(|name| !name.is_empty()) {
        put("host", &names.join(","))?;
    }
    if ports.iter().any(|port| !port.is_empty()) {
        put("port", &ports.join(","))?;
    }
    put("dbname", dbname)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("the URL's parameter {pair:?} has no value: write name=value"))?;
        let name = decode(name, "parameter's name")?;
        if value.contains('=') {
            return Err(format!("the value of the URL's parameter {name} contains =: write %3D instead"));
        }
        let value = decode(value, &name)?;
        // What other drivers write for it; libpq takes it as well.
        given.push(match (name.as_str(), value.as_str()) {
            ("ssl", "true") => ("sslmode".to_owned(), "require".to_owned()),
            _ => (name, value),
        });
    }
    Ok(given)
}

fn host_and_port(part: &str) -> Result<(&str, &str), String> {
    if let Some(rest) = part.strip_prefix('[') {
        let (name, more) = rest.split_once(']').ok_or("the URL's IPv6 address has no closing ]")?;
        return match more.strip_prefix(':') {
            Some(port) => Ok((name, port)),
            None if more.is_empty() => Ok((name, "")),
            None => Err(format!("the URL's [{name}] can be followed only by a port, not by {more:?}")),
        };
    }
    match part.split_once(':') {
        Some((_, port)) if port.contains(':') => {
            Err("the URL's host has two colons: write an IPv6 address in brackets, [::1]:5432".to_owned())
        }
        Some(parts) => Ok(parts),
        None => Ok((part, "")),
    }
}

/// Undoes `%41`.
fn decode(text: &str, what: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let digit = |at: usize| {
            let digit = tail.get(at).copied().map(char::from)?;
            digit.to_digit(16)
        };
        let value = match (digit(0), digit(1)) {
            (Some(high), Some(low)) => high * 16 + low,
            _ => {
                return Err(format!(
                    "the URL's {what} has a % without two hexadecimal digits: write %25 for a percent sign"
                ));
            }
        };
        bytes.push(u8::try_from(value).expect("two hexadecimal digits are a byte"));
        rest = &tail[2..];
    }
    let decoded = String::from_utf8(bytes).ok();
    decoded
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| format!("the URL's {what} is not valid text: use UTF-8 without %00"))
}

/// `name = value name='quoted \' value'`
fn keywords(text: &str) -> Result<Given, String> {
    let mut given = Given::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or("the connection string ends in a name without =")?;
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(format!(
                "the connection string has no = after a name, or none before one, near value {}",
                given.len() + 1
            ));
        }
        let (value, more) = keyword_value(after.trim_start(), name)?;
        given.push((name.to_owned(), value));
        rest = more.trim_start();
    }
    Ok(given)
}

fn keyword_value<'a>(text: &'a str, name: &str) -> Result<(String, &'a str), String> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut letters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, next)| next)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            _ if !quoted && letter.is_whitespace() => return Ok((value, &text[at..])),
            _ => value.push(letter),
        }
    }
    if quoted {
        return Err(format!("the value of {name} has no closing quote"));
    }
    Ok((value, ""))
}
