//! Where a server is and who we are there: what libpq takes from a URL, a service file, the environment and a password file.
//!
//! Pure: all outside input comes through [`Surroundings`]. Order of precedence as in libpq: URL, service, environment,
//! default. A parameter that assay cannot honour is an error that names it, never ignored.
//! Public documentation: "Database Connection Control Functions" and the following sections in the chapter on libpq.

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
        /// Name or address; the certificate must match it.
        name: String,
        /// Address to connect to without resolving the name (`hostaddr`).
        address: Option<IpAddr>,
        /// Port.
        port: u16,
    },
    /// On this host.
    Unix {
        /// Directory of the socket `.s.PGSQL.<port>`; a leading `@` means the abstract name space.
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
    /// If the server supports it.
    #[default]
    Prefer,
    /// Always, without verifying the server.
    Require,
    /// Always, with a certificate from a trusted authority.
    VerifyCa,
    /// The certificate must also match the host name.
    VerifyFull,
}

/// Encryption and whom to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whether to encrypt.
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
    /// Lowest and highest version, if requested: 12 or 13.
    pub versions: (Option<u8>, Option<u8>),
}

/// Whether authentication must be bound to the TLS channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// If the server supports it.
    #[default]
    Prefer,
    /// Refuse sessions without it.
    Require,
}

/// Which servers of a list are acceptable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAttrs {
    /// All servers.
    #[default]
    Any,
    /// Servers whose sessions accept writes by default.
    ReadWrite,
    /// Servers whose sessions are read-only by default.
    ReadOnly,
    /// Servers not in recovery.
    Primary,
    /// Servers in hot standby.
    Standby,
    /// Servers in hot standby; if none is, all servers.
    PreferStandby,
}

assay_measure::with_defaults! {
    /// How TCP treats a silent peer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Keepalive {
        /// Whether to probe at all.
        pub on: bool = true,
        /// Silence before the first probe; `None` means the system's default.
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
    /// Passwords from the password file, by host; used if no password was given.
    pub host_passwords: Vec<Option<Password>>,
    /// Database.
    pub dbname: String,
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// Command-line options for the server process (`-c name=value`).
    pub options: Option<String>,
    /// Further settings of the session from the environment (`TimeZone`, `geqo`).
    pub settings: Vec<(String, String)>,
    /// Longest time to connect and log in to one address; `None` means no limit.
    pub connect_timeout: Option<Duration>,
    /// Encryption.
    pub tls: Tls,
    /// Channel binding.
    pub channel_binding: ChannelBinding,
    /// Accepted authentication methods (`require_auth`), by name; empty means all.
    pub require_auth: Vec<String>,
    /// Operating-system user that must run the server of a Unix socket (`requirepeer`).
    pub require_peer: Option<String>,
    /// Which servers are acceptable.
    pub session_attrs: SessionAttrs,
    /// Treatment of silent peers.
    pub keepalive: Keepalive,
    /// Lowest and highest minor version of protocol 3.
    pub protocol_minor: (u16, u16),
    /// How long an answer may take after the login, and who may end the wait.
    pub patience: Patience,
    /// What was ignored, and why: a password file that others can read.
    pub warnings: Vec<String>,
}

impl ConnectOptions {
    /// The password for a host, by its position in the list.
    #[must_use]
    pub fn password_for(&self, host: usize) -> Option<&Password> {
        self.password.as_ref().or_else(|| self.host_passwords.get(host)?.as_ref())
    }
}
