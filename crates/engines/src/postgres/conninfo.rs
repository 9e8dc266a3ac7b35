//! Where a server is and who we are there: what libpq takes from a URL, the environment, a service file and a
//! password file.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A password: never printed, never serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Keeps a password.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// For the server alone.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// One address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// Over the network.
    Tcp {
        /// Name or address.
        name: String,
        /// Port.
        port: u16,
    },
    /// On this host.
    Unix {
        /// Directory of the socket `.s.PGSQL.<port>`.
        directory: PathBuf,
        /// Port.
        port: u16,
    },
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { name, port } => write!(f, "{name}:{port}"),
            Self::Unix { directory, port } => write!(f, "{}/.s.PGSQL.{port}", directory.display()),
        }
    }
}

/// How to encrypt, as libpq's `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Never.
    Disable,
    /// Only if the server insists.
    Allow,
    /// If the server can.
    #[default]
    Prefer,
    /// Always, whoever the server is.
    Require,
    /// Always, with a certificate of a known authority.
    VerifyCa,
    /// Also with the right host name in it.
    VerifyFull,
}

/// Encryption and whom to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whether.
    pub mode: SslMode,
    /// Authorities (`sslrootcert`); the word `system` is the system's.
    pub root_cert: Option<PathBuf>,
    /// Our certificate (`sslcert`).
    pub cert: Option<PathBuf>,
    /// Its key (`sslkey`).
    pub key: Option<PathBuf>,
}

/// Everything needed to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// In the order they are tried.
    pub hosts: Vec<Host>,
    /// Role.
    pub user: String,
    /// Its password, if there is one.
    pub password: Option<Password>,
    /// Database.
    pub dbname: String,
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// Command-line options for the server process (`-c name=value`).
    pub options: Option<String>,
    /// Longest wait for a host to answer.
    pub connect_timeout: Option<Duration>,
    /// Encryption.
    pub tls: Tls,
}

/// Options of a URL (`//user:password@host:port/db?name=value`), with `env` for what it leaves open.
///
/// # Errors
/// What is wrong, with the value and the way out.
pub fn options(url: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<ConnectOptions, String> {
    let rest = url.strip_prefix("//").unwrap_or(url);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, dbname) = rest.split_once('/').unwrap_or((rest, ""));
    let (who, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    let asked = |name: &str| {
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(key, value)| {
                (key == name).then(|| value.replace("%2F", "/").replace("%2f", "/"))
            })
    };
    let or_env = |given: &str, name: &str| {
        if given.is_empty() {
            env(name)
        } else {
            Some(given.to_owned())
        }
    };
    let (name, port) = place.rsplit_once(':').unwrap_or((place, ""));
    let port = or_env(port, "PGPORT").unwrap_or_else(|| "5432".to_owned());
    let port: u16 = asked("port")
        .unwrap_or(port)
        .parse()
        .map_err(|_| format!("{url}: the port is no number"))?;
    let name = asked("host")
        .or_else(|| or_env(name, "PGHOST"))
        .unwrap_or_else(|| "/var/run/postgresql".to_owned());
    let host = if name.starts_with('/') {
        Host::Unix {
            directory: PathBuf::from(name),
            port,
        }
    } else {
        Host::Tcp { name, port }
    };
    let user = or_env(user, "PGUSER")
        .or_else(|| env("USER"))
        .unwrap_or_else(|| "postgres".to_owned());
    Ok(ConnectOptions {
        hosts: vec![host],
        password: or_env(password, "PGPASSWORD").map(Password::new),
        dbname: or_env(dbname, "PGDATABASE").unwrap_or_else(|| user.clone()),
        user,
        application_name: "assay".to_owned(),
        options: None,
        connect_timeout: None,
        tls: Tls::default(),
    })
}
