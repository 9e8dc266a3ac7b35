//! Where a server is and who we are there: what libpq takes from a URL, a service file, the environment, a password file.
//!
//! Pure: the outside comes in as [`Surroundings`]. Order of precedence, as libpq's: URL, service, environment, default. A
//! parameter that cannot be honoured is an error that names it, never ignored.
//! Public documentation: "Database Connection Control Functions" and what follows it in the chapter on libpq.

mod names;
mod passfile;
mod resolve;
mod service;
mod surroundings;
#[cfg(test)]
pub(super) mod tests;
mod text;

pub use resolve::options;
pub(in crate::postgres) use surroundings::user_field;
pub use surroundings::{FileText, Surroundings, ThisHost};

pub use crate::password::Password;
use crate::patience::Patience;
pub use crate::tls::Roots;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// One address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// Over the network.
    Tcp {
        /// Name or address; a certificate must be for it.
        name: String,
        /// Where to connect without asking for the name (`hostaddr`).
        address: Option<IpAddr>,
        /// Port.
        port: u16,
    },
    /// On this host.
    Unix {
        /// Directory of the socket `.s.PGSQL.<port>`; one that begins with `@` is in the abstract name space.
        directory: PathBuf,
        /// Port.
        port: u16,
    },
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { name, address: Some(address), port } if name.parse() != Ok(*address) => {
                write!(f, "{name} ({address}), port {port}")
            }
            Self::Tcp { name, port, .. } => write!(f, "{name}, port {port}"),
            Self::Unix { directory, port } => write!(f, "{}/.s.PGSQL.{port}", directory.display()),
        }
    }
}

/// How to encrypt, as libpq's `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Authorities (`sslrootcert`).
    pub roots: Roots,
    /// Revoked certificates (`sslcrl`).
    pub revoked: Option<PathBuf>,
    /// Our certificate and its key (`sslcert`, `sslkey`).
    pub client: Option<(PathBuf, PathBuf)>,
    /// TLS from the first byte, without asking (`sslnegotiation=direct`, 17+).
    pub direct: bool,
    /// Do not tell the server the name we look for (`sslsni=0`).
    pub hide_name: bool,
    /// Lowest and highest version, where one is requested: 12 or 13.
    pub versions: (Option<u8>, Option<u8>),
}

/// Whether authentication must be bound to the TLS channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where the server can.
    #[default]
    Prefer,
    /// Or no session.
    Require,
}

/// Which servers of a list will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAttrs {
    /// All.
    #[default]
    Any,
    /// Those that take writes by default.
    ReadWrite,
    /// Those that do not.
    ReadOnly,
    /// Those not in recovery.
    Primary,
    /// Those in hot standby.
    Standby,
    /// Those in hot standby; if there is none, all.
    PreferStandby,
}

assay_measure::with_defaults! {
    /// What TCP does about a peer that says nothing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Keepalive {
        /// Probe at all.
        pub on: bool = true,
        /// Silence before the first probe; none: the system's.
        pub idle: Option<Duration>,
        /// Time between probes.
        pub interval: Option<Duration>,
        /// Probes before the connection counts as lost.
        pub count: Option<u32>,
        /// How long sent bytes may stay unacknowledged (`tcp_user_timeout`).
        pub user_timeout: Option<Duration>,
    }
}

/// Everything needed to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// In the order they are tried.
    pub hosts: Vec<Host>,
    /// Role.
    pub user: String,
    /// Its password, if one was given.
    pub password: Option<Password>,
    /// Passwords of the password file, by host; looked at where none was given.
    pub host_passwords: Vec<Option<Password>>,
    /// Database.
    pub dbname: String,
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// Command-line options for the server process (`-c name=value`).
    pub options: Option<String>,
    /// Further settings of the session from the environment (`TimeZone`, `geqo`).
    pub settings: Vec<(String, String)>,
    /// Longest wait for one address to let us in; none: for ever.
    pub connect_timeout: Option<Duration>,
    /// Encryption.
    pub tls: Tls,
    /// Channel binding.
    pub channel_binding: ChannelBinding,
    /// Ways of authentication that are accepted (`require_auth`), by name; empty: all.
    pub require_auth: Vec<String>,
    /// Operating-system user the server of a socket must run as (`requirepeer`).
    pub require_peer: Option<String>,
    /// Which servers will do.
    pub session_attrs: SessionAttrs,
    /// Silent peers.
    pub keepalive: Keepalive,
    /// Lowest and highest minor of protocol 3 to speak.
    pub protocol_minor: (u16, u16),
    /// How long an answer may take once we are let in, and who may end the wait.
    pub patience: Patience,
    /// What was ignored, and why: a password file that others may read.
    pub warnings: Vec<String>,
}

impl ConnectOptions {
    /// The password for a host, by its place in the list.
    #[must_use]
    pub fn password_for(&self, host: usize) -> Option<&Password> {
        self.password.as_ref().or_else(|| self.host_passwords.get(host)?.as_ref())
    }
}
