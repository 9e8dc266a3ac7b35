//! Where a server is and who asks: `//[USER[:PASSWORD]@][HOST[:PORT]]/DATABASE[?socket=PATH]`.

use crate::place::decoded;
use std::path::PathBuf;
use std::time::Duration;

const PORT: u16 = 3306;
/// How long an answer may take where nobody says otherwise.
const ANSWER: Duration = Duration::from_secs(60);
/// The password, where the URL has none: read by the clients of MariaDB and MySQL too.
const PASSWORD: &str = "MYSQL_PWD";
const FORM: &str = "write mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE, or \
     mysql://USER@/DATABASE?socket=PATH";

/// A password; never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(pub(super) String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// The way to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Tcp { host: String, port: u16 },
    Socket(PathBuf),
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Socket(path) => write!(f, "socket {}", path.display()),
        }
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: Host,
    pub(super) user: String,
    pub(super) password: Option<Password>,
    pub(super) database: String,
    /// How long an answer may take.
    pub(super) answer: Duration,
}

impl Address {
    /// Reads what follows `mysql:`; the password may come from the environment.
    ///
    /// # Errors
    /// What is wrong, without repeating what may be a password.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        Self::with(url, std::env::var(PASSWORD).ok())
    }

    fn with(url: &str, password: Option<String>) -> Result<Self, String> {
        let rest = url.strip_prefix("//").ok_or(FORM)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (server, database) = rest.split_once('/').ok_or(FORM)?;
        let database = decoded(database)?;
        if database.is_empty() || database.contains(['/', '\0']) {
            return Err(format!("the URL names no database: {FORM}"));
        }
        let (who, server) = server.rsplit_once('@').ok_or(FORM)?;
        let (user, given) = match who.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password)?)),
            None => (who, None),
        };
        let user = decoded(user)?;
        if user.is_empty() {
            return Err(format!("the URL names no user: {FORM}"));
        }
        Ok(Self {
            host: host(server, query)?,
            user,
            password: given
                .or(password)
                .filter(|text| !text.is_empty())
                .map(Password),
            database,
            answer: ANSWER,
        })
    }
}

fn host(server: &str, query: &str) -> Result<Host, String> {
    let mut socket = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("socket", path)) if !path.is_empty() => socket = Some(decoded(path)?),
            Some((name, _)) => {
                return Err(format!(
                    "the URL's parameter {name} is unknown; there is socket=PATH alone"
                ));
            }
            None => return Err(FORM.to_owned()),
        }
    }
    if let Some(path) = socket {
        return match server {
            "" | "localhost" => Ok(Host::Socket(PathBuf::from(path))),
            _ => Err("the URL names a host and a socket; keep one of them".to_owned()),
        };
    }
    // An IPv6 address stands in brackets, so its colons are no port's.
    let (name, port) = match server.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (server, None),
    };
    let port = match port {
        None => PORT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or("the URL's port is no number from 1 to 65535")?,
    };
    let name = decoded(name.trim_start_matches('[').trim_end_matches(']'))?;
    match name.as_str() {
        "" => Err(format!("the URL names neither host nor socket: {FORM}")),
        _ => Ok(Host::Tcp { host: name, port }),
    }
}

/// A text as a part of a URL.
pub(super) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_user_host_port_and_database() {
        let read = Address::with("//me:p%40ss@db.example:3307/test", None).unwrap();
        assert_eq!(read.user, "me");
        assert_eq!(read.password, Some(Password("p@ss".to_owned())));
        assert_eq!(read.host.to_string(), "db.example:3307");
        assert_eq!(read.database, "test");
        assert!(!format!("{read:?}").contains("ss\""));
        let six = Address::with("//me@[::1]/test", Some("env".to_owned())).unwrap();
        assert_eq!(six.host.to_string(), "::1:3306");
        assert_eq!(six.password, Some(Password("env".to_owned())));
        let path = format!("//root@/assay?socket={}", encoded("/a b/s"));
        let socket = Address::with(&path, None).unwrap();
        assert_eq!(socket.host, Host::Socket(PathBuf::from("/a b/s")));
    }

    #[test]
    fn what_is_missing_or_wrong_is_said_without_the_password() {
        for (url, wanted) in [
            ("", "write mysql://"),
            ("//me:Kq9@h", "write mysql://"),
            ("//me:Kq9@h/", "no database"),
            ("//:Kq9@h/d", "no user"),
            ("//h/d", "write mysql://"),
            ("//me:Kq9@/d", "neither host nor socket"),
            ("//me:Kq9@h:0/d", "port"),
            ("//me:Kq9@h:x/d", "port"),
            ("//me:Kq9%zz@h/d", "hexadecimal"),
            ("//me:Kq9@h/d?socket=/s", "keep one"),
            ("//me:Kq9@h/d?sslmode=require", "sslmode is unknown"),
        ] {
            let why = Address::with(url, None).expect_err(url);
            assert!(why.contains(wanted), "{url}: {why}");
            assert!(!why.contains("Kq9"), "{url}: {why}");
        }
    }
}
