//! The two spellings of a connection: `//user:password@host:port/database?name=value` and `name=value name='a value'`.

use crate::url;
pub(super) use crate::url::Given;

/// Parses what follows `postgres:`. Errors repeat none of its values: they may include a password.
pub(super) fn parse(location: &str) -> Result<Given, String> {
    if let Some(rest) = location.strip_prefix("//") {
        let mut given = url::read(rest)?;
        // Other drivers use this name; libpq accepts it as well.
        for (name, value) in given.iter_mut().filter(|(name, value)| name == "ssl" && value == "true") {
            (*name, *value) = ("sslmode".to_owned(), "require".to_owned());
        }
        Ok(given)
    } else if location.contains('=') {
        keywords(location)
    } else if location.is_empty() {
        Ok(Vec::new())
    } else {
        // A database name, as in psql's first argument.
        Ok(vec![("dbname".to_owned(), location.to_owned())])
    }
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
