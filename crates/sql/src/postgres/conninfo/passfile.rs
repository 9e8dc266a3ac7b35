//! Password files: one `host:port:database:user:password` per line, `*` for any value, `\` before a colon or a backslash.

use super::Password;

/// Which password to find.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// Host, its address, or its socket's directory; `localhost` for the default directory.
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) dbname: &'a str,
    pub(super) user: &'a str,
}

/// The password of the first matching line.
pub(super) fn find(text: &str, wanted: Wanted<'_>) -> Option<Password> {
    let port = wanted.port.to_string();
    let keys = [wanted.host, &port, wanted.dbname, wanted.user];
    text.lines()
        .map(|line| line.trim_end_matches('\r'))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .find_map(|line| {
            let mut rest = line;
            for key in keys {
                let (field, plain, more) = field(rest)?;
                if field != key && !(plain && field == "*") {
                    return None;
                }
                rest = more;
            }
            // A password ends at the first unescaped colon.
            let (password, ..) = field_to_end(rest);
            (!password.is_empty()).then(|| Password::new(password))
        })
}

/// A field, whether it has no escape, and the text after its colon.
fn field(text: &str) -> Option<(String, bool, &str)> {
    let (field, plain, more) = field_to_end(text);
    more.map(|more| (field, plain, more))
}

fn field_to_end(text: &str) -> (String, bool, Option<&str>) {
    let (mut field, mut plain) = (String::new(), true);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            ':' => return (field, plain, Some(&text[at + 1..])),
            '\\' => {
                plain = false;
                // A backslash at the very end stands for itself.
                field.push(letters.next().map_or('\\', |(_, next)| next));
            }
            _ => field.push(letter),
        }
    }
    (field, plain, None)
}
