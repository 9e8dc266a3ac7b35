//! The common form of a server's URL, `//[USER[:PASSWORD]@][HOST[:PORT],...][/DATABASE][?NAME=VALUE&...]`, which each
//! server interprets in its own way. [`mask`](assay_measure::config::mask) hides every password in it.

/// Parameters in the order given; later ones win.
pub(crate) type Given = Vec<(String, String)>;

/// Parses what follows the two slashes: `user`, `password`, `host`, `port` and `dbname`, if present, and the
/// parameters. Several hosts share one value, as do their ports.
///
/// # Errors
/// What is wrong, without repeating any value: it may be a password.
pub(crate) fn read(rest: &str) -> Result<Given, String> {
    let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, dbname) = front.split_once('/').unwrap_or((front, ""));
    let mut given = Given::new();
    let mut put = |name: &str, text: &str| -> Result<(), String> {
        if !text.is_empty() {
            given.push((name.to_owned(), decoded(text, name)?));
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
    // A list with all items left out is omitted.
    let list = |all: Vec<&str>| if all.concat().is_empty() { String::new() } else { all.join(",") };
    put("host", &list(names))?;
    put("port", &list(ports))?;
    put("dbname", dbname)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        // This may be the rest of a password that contains a `?`.
        let is_one = |(name, value): &(&str, &str)| !value.contains('=') && !name.contains(['@', '/', '?']);
        let (name, value) = pair.split_once('=').filter(is_one).ok_or(
            "a parameter of the URL is not name=value: write %3F for a ? in a password, %3D for a = in a value",
        )?;
        let name = decoded(name, "parameter's name")?;
        let value = decoded(value, &name)?;
        given.push((name, value));
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

/// Decodes the `%XX` in a part of a URL.
///
/// # Errors
/// What is wrong, without the text itself.
pub(crate) fn decoded(text: &str, what: &str) -> Result<String, String> {
    let wrong = || format!("the URL's {what} has a % without two hexadecimal digits: write %25 for a percent sign");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or_else(wrong);
        bytes.push(if byte == b'%' { (digit()? * 16 + digit()?) as u8 } else { byte });
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| format!("the URL's {what} is not valid text: use UTF-8 without %00"))
}

/// Encodes a text as a part of a URL.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::config::mask;
    use proptest::prelude::*;

    fn of<'a>(given: &'a Given, name: &str) -> Option<&'a str> {
        given.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn its_parts_are_read_and_what_is_wrong_repeats_no_value() {
        let url = read("me:p%40ss@[::1]:5432,b/d%2fb?a=1&b=%26").unwrap();
        let parts = ["user", "password", "host", "port", "dbname", "a", "b"].map(|name| of(&url, name).unwrap());
        assert_eq!(parts, ["me", "p@ss", "::1,b", "5432,", "d/b", "1", "&"]);
        assert_eq!(read("").unwrap(), []);
        assert_eq!(of(&read("me:,@,/").unwrap(), "password"), Some(","));
        let wrong = ["me:Kq9%zz@h", "me:Kq9%00@h", "me:Kq9@a@h", "me@h/d?password=Kq9=", "me@h/%f"];
        for wrong in wrong.into_iter().chain(["me:a?Kq9@h/d", "me:a?Kq9@h/d?x=1", "me@h/d?Kq9"]) {
            let why = read(wrong).unwrap_err();
            assert!(!why.contains("Kq9"), "{why}");
        }
    }

    proptest! {
        /// Whatever signs stand around it.
        #[test]
        fn what_is_read_as_a_password_is_never_shown(
            scheme in "(postgres|postgresql|mysql|mariadb|oracle)",
            user in "[a-z@:/?%=&#]{0,6}",
            around in "[a-z@:/?=&#., ]{0,4}",
            place in "(h|h:5432|\\[::1\\]:1,b)?",
            rest in "(/d|/d\\?password=[ ,a/]?Wv3Ty8|/|)",
            sign in "[:/]",
        ) {
            let text = format!("{scheme}://{user}{sign}{around}Kq9Zx7{around}@{place}{rest}");
            let given = read(&text[scheme.len() + 3..]).unwrap_or_default();
            let passwords = given.iter().filter(|(name, _)| name == "password");
            let shown = mask("TARGET", &text);
            for secret in ["Kq9Zx7", "Wv3Ty8"] {
                let is_read = passwords.clone().any(|(_, password)| password.contains(secret));
                prop_assert!(!is_read || !shown.contains(secret), "{text}: {shown}");
            }
        }
    }
}
