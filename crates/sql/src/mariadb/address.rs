//! Where a server is and as whom to log in:
//! `//[USER[:PASSWORD]@][HOST[:PORT]]/[DATABASE][?socket=PATH&ssl-mode=MODE...]`. Option files complete what the URL
//! leaves out.

use super::files::Options;
use super::tls::{self, Tls};
use crate::password::Password;
use crate::patience::Patience;
use crate::url;
use std::path::PathBuf;
use std::time::Duration;

const PORT: u16 = 3306;
/// Longest login, from the first byte to the last; a healthy server needs less.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Variable for a password that the URL leaves out; the clients of MariaDB and MySQL read it too.
const VARIABLE: &str = "MYSQL_PWD";
const FORM: &str = "write mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE, or \
     mysql://USER@/DATABASE?socket=PATH";
const PARAMETERS: &str = "socket, ssl-mode, ssl-ca, ssl-cert, ssl-key, server-public-key-path";

/// How to reach a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Tcp { host: String, port: u16 },
    Socket(PathBuf),
}

impl Host {
    /// The name that the certificate must match.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Tcp { host, .. } => host,
            Self::Socket(_) => "localhost",
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Socket(path) => write!(f, "socket {}", path.display()),
        }
    }
}

/// A server's address and how to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(super) host: Host,
    pub(super) user: String,
    pub(super) password: Option<Password>,
    pub(super) database: String,
    pub(super) tls: Tls,
    /// Time limit of a login.
    pub(super) login: Duration,
    /// How long an answer may take.
    pub(super) patience: Patience,
}

impl Address {
    /// Parses what follows `mysql:`; the environment and option files complete it.
    ///
    /// # Errors
    /// What is wrong, without repeating what may be a password.
    pub(super) fn parse(url: &str, files: Options) -> Result<Self, String> {
        Self::with(url, std::env::var(VARIABLE).ok(), files)
    }

    fn with(url: &str, password: Option<String>, files: Options) -> Result<Self, String> {
        let rest = url.strip_prefix("//").ok_or(FORM)?;
        let mut given = url::read(rest)?;
        let mut take = |name: &str| {
            let at = given.iter().position(|(found, _)| found == name)?;
            Some(given.remove(at).1)
        };
        let database = take("dbname").or_else(|| files.database.clone()).unwrap_or_default();
        if database.is_empty() || database.contains(['/', '\0']) {
            return Err(format!("the URL names no database: {FORM}"));
        }
        let user = take("user").or_else(|| files.user.clone()).unwrap_or_default();
        if user.is_empty() {
            return Err(format!("the URL names no user: {FORM}"));
        }
        let said = take("password");
        let host = host(take("host"), take("port"), take("socket"), &files)?;
        let mut tls = tls::Asked::default();
        for (name, value) in given {
            if !tls.set(&name, &value)? {
                return Err(format!("the URL's parameter {name} is unknown; assay knows {PARAMETERS}"));
            }
        }
        Ok(Self {
            host,
            user,
            password: said
                .or(password)
                .map(Password::new)
                .or(files.password)
                .filter(|password| !password.reveal().is_empty()),
            database,
            tls: tls.or(files.tls).decide()?,
            login: CONNECT,
            patience: Patience::default(),
        })
    }

    /// For sessions whose answers must keep the time limit, whatever the server's state.
    pub(super) fn strict(&self) -> Self {
        self.strict_within(self.patience.answer())
    }

    /// For requests that a healthy server answers at once: the login, and each answer.
    pub(super) fn brief(&self, within: Duration) -> Self {
        Self { login: within.min(self.login), ..self.strict_within(within) }
    }

    fn strict_within(&self, answer: Duration) -> Self {
        Self { patience: self.patience.strict(answer), ..self.clone() }
    }
}

fn host(name: Option<String>, port: Option<String>, socket: Option<String>, files: &Options) -> Result<Host, String> {
    let port = match port {
        None => files.port.unwrap_or(PORT),
        Some(text) => {
            text.parse().ok().filter(|port| *port > 0).ok_or("the URL's port is not a number from 1 to 65535")?
        }
    };
    let is_here = |host: &Option<String>| host.as_deref().is_none_or(|host| host == "localhost");
    let (name, socket) = match (name, socket) {
        (None, None) => (files.host.clone(), files.socket.clone().filter(|_| is_here(&files.host))),
        (name, socket) => (name, socket.map(PathBuf::from)),
    };
    match (name, socket) {
        // Clients use a socket only for a server on their own host.
        (name, Some(path)) if is_here(&name) => Ok(Host::Socket(path)),
        (Some(host), None) => Ok(Host::Tcp { host, port }),
        (None, _) => Err(format!("the URL names neither host nor socket: {FORM}")),
        _ => Err("the URL names a host and a socket; keep one of them".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tls::Mode;
    use super::*;

    fn with(url: &str, password: Option<&str>) -> Result<Address, String> {
        Address::with(url, password.map(str::to_owned), Options::default())
    }

    #[test]
    fn an_address_has_user_host_port_and_database() {
        let read = with("//me:p%40ss@db.example:3307/test", None).unwrap();
        assert_eq!(read.user, "me");
        assert_eq!(read.password, Some(Password::new("p@ss".to_owned())));
        assert_eq!(read.host.to_string(), "db.example:3307");
        assert_eq!(read.database, "test");
        assert!(!format!("{read:?}").contains("ss\""));
        let six = with("//me@[::1]/test", Some("env")).unwrap();
        assert_eq!(six.host.to_string(), "::1:3306");
        assert_eq!(six.password, Some(Password::new("env".to_owned())));
        let path = format!("//root@/assay?socket={}", crate::url::encoded("/a b/s"));
        let socket = with(&path, None).unwrap();
        assert_eq!(socket.host, Host::Socket(PathBuf::from("/a b/s")));
    }

    #[test]
    fn what_is_missing_or_wrong_is_said_without_the_password() {
        for (url, wanted) in [
            ("", "write mysql://"),
            ("//me:Kq9@h", "write mysql://"),
            ("//me:Kq9@h/", "no database"),
            ("//:Kq9@h/d", "no user"),
            ("//h/d", "no user"),
            ("//me:Kq9@/d", "neither host nor socket"),
            ("//me:Kq9@h:0/d", "port"),
            ("//me:Kq9@h:x/d", "port"),
            ("//me:Kq9%zz@h/d", "hexadecimal"),
            ("//me:Kq9@h/d?socket=/s", "keep one"),
            ("//me:Kq9@h/d?sslmode=require", "sslmode is unknown"),
            ("//me:Kq9@h/d?ssl-mode=always", "ssl-mode is one of"),
            ("//me:Kq9@h/d?ssl-ca=/no/such", "/no/such"),
        ] {
            let why = with(url, None).expect_err(url);
            assert!(why.contains(wanted), "{url}: {why}");
            assert!(!why.contains("Kq9"), "{url}: {why}");
        }
    }

    #[test]
    fn what_the_url_leaves_out_is_taken_from_files_and_what_it_says_is_not() {
        let files = || Options {
            user: Some("file".to_owned()),
            password: Some(Password::new("p".to_owned())),
            host: None,
            port: Some(3310),
            socket: Some(PathBuf::from("/run/s")),
            database: Some("base".to_owned()),
            tls: tls::Asked::default(),
        };
        let bare = Address::with("///", None, files()).unwrap();
        assert_eq!(bare.host, Host::Socket(PathBuf::from("/run/s")));
        assert_eq!((bare.user.as_str(), bare.database.as_str()), ("file", "base"));
        assert_eq!(bare.password, Some(Password::new("p".to_owned())));
        assert_eq!(bare.tls.mode, Mode::Preferred);
        let url = "//me:q@h/d?ssl-mode=REQUIRED";
        let said = Address::with(url, Some("env".to_owned()), files()).unwrap();
        assert_eq!(said.host.to_string(), "h:3310");
        assert_eq!((said.user.as_str(), said.database.as_str()), ("me", "d"));
        assert_eq!(said.password, Some(Password::new("q".to_owned())));
        assert_eq!(said.tls.mode, Mode::Required);
        let env = Address::with("//h/", Some("env".to_owned()), files()).unwrap();
        assert_eq!(env.password, Some(Password::new("env".to_owned())));
    }
}
