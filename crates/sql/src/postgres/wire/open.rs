//! Chooses the server from the list: the first that answers, accepts the login and has the requested role.

use super::connection::Connection;
use super::dial::{Way, dial, ways};
use super::error::PgError;
use super::peer::{Patient, Server, Stream};
use crate::patient::Limit;
use crate::postgres::conninfo::{ConnectOptions, SessionAttrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Oldest supported major version.
const OLDEST: u32 = 13;

impl Connection {
    /// Opens a session with the first host that answers and satisfies `target_session_attrs`.
    ///
    /// # Errors
    /// No host answers, TLS or authentication fails, the database does not exist, or the server is too old.
    pub fn open(options: &ConnectOptions) -> Result<Self, PgError> {
        let options = Arc::new(options.clone());
        if options.session_attrs == SessionAttrs::PreferStandby {
            return Self::first(&options, SessionAttrs::Standby).or_else(|_| Self::first(&options, SessionAttrs::Any));
        }
        Self::first(&options, options.session_attrs)
    }

    fn first(options: &Arc<ConnectOptions>, wanted: SessionAttrs) -> Result<Self, PgError> {
        let mut failed = Vec::new();
        for at in 0..options.hosts.len() {
            let opened = Self::at_host(at, options).and_then(|mut session| match session.unfit(wanted)? {
                None => Ok(session),
                Some(why) => {
                    let host = session.host.clone();
                    session.close();
                    Err(PgError::Refused(format!("{host} {why}")))
                }
            });
            match opened {
                Ok(session) => return Ok(session),
                // If a server refuses the login, try no other host; if it is only starting up, try the next.
                Err(error @ (PgError::Login { .. } | PgError::Usage(_))) if error.code() != Some("57P03") => {
                    return Err(error);
                }
                Err(error) => failed.push(error),
            }
        }
        if failed.len() > 1 {
            let all: Vec<String> = failed.iter().map(ToString::to_string).collect();
            return Err(PgError::Refused(all.join("; ")));
        }
        let only = failed.pop();
        Err(only.unwrap_or_else(|| PgError::Usage("there is no host to connect to".to_owned())))
    }

    /// Opens a session with one host, in the ways its `sslmode` allows.
    fn at_host(at: usize, options: &Arc<ConnectOptions>) -> Result<Self, PgError> {
        let host = &options.hosts[at];
        let mut first: Option<PgError> = None;
        for way in ways(host, options.tls.mode) {
            let error = match Self::by(*way, at, options) {
                Ok(session) => return Ok(session),
                Err(error) => error,
            };
            // Only a server that refused may answer differently when asked another way.
            let other_way = match error {
                PgError::Login { .. } => true,
                PgError::Usage(_) | PgError::Unreached(_) => false,
                _ => *way == Way::Offered,
            };
            match first {
                None if other_way => first = Some(error),
                None => return Err(error),
                Some(first) => return Err(both(first, *way, &error)),
            }
        }
        Err(first.unwrap_or_else(|| PgError::Usage("no way to connect".to_owned())))
    }

    /// Opens a session over an already connected stream, with the first host's name and password: for tests and
    /// fuzzing, which act as the server.
    ///
    /// # Errors
    /// As [`Connection::open`]; `options` has no host.
    pub fn over(stream: UnixStream, options: &ConnectOptions) -> Result<Self, PgError> {
        let options = Arc::new(options.clone());
        let host = options.hosts.first().cloned();
        let host = host.ok_or_else(|| PgError::Usage("there is no host to connect to".to_owned()))?;
        let limit = Limit::Until(None);
        let peer = Server { host: host.clone(), session: None };
        let stream = Patient::new(stream, peer, limit, options.patience.clone());
        let stream = stream.map_err(|source| PgError::Io { what: "taking a stream over".to_owned(), source })?;
        Self::new(Stream::Unix(stream), host, Arc::clone(&options)).entered(0)
    }

    fn by(way: Way, at: usize, options: &Arc<ConnectOptions>) -> Result<Self, PgError> {
        let (stream, host) = dial(&options.hosts[at], way, options)?;
        Self::new(stream, host, Arc::clone(options)).entered(at)
    }

    /// Logs in with the password for a host, and checks the server's version.
    fn entered(mut self, at: usize) -> Result<Self, PgError> {
        let session = &mut self;
        let options = Arc::clone(&session.options);
        session.log_in(options.password_for(at)).map_err(|error| session.at_login(error))?;
        session.stream.set_limit(Limit::Answers);
        let alone = ConnectOptions {
            hosts: vec![session.host.clone()],
            host_passwords: vec![options.password_for(at).cloned()],
            ..ConnectOptions::clone(&options)
        };
        session.stream.peer().session = (session.pid != 0).then(|| (Arc::new(alone), session.pid));
        let version = session.server_version();
        // A proxy may not report a version; an unsupported server behind it shows when statements fail.
        if version.is_some_and(|(major, _)| major < OLDEST) {
            let said = session.parameter("server_version").unwrap_or_default();
            return Err(PgError::Refused(format!(
                "{} is PostgreSQL {said}; assay supports versions from {OLDEST} on",
                session.host
            )));
        }
        Ok(self)
    }

    /// Adds to a refused login where, as whom, and what was ignored.
    fn at_login(&self, error: PgError) -> PgError {
        let options = &self.options;
        match error {
            PgError::Server(error) => PgError::Login {
                to: format!("connecting to {} as {} to database {}", self.host, options.user, options.dbname),
                more: if error.code.starts_with("28") { aside(options) } else { String::new() },
                error,
            },
            other => other,
        }
    }

    /// Major and minor version, from what the server reports (`15.18 (Debian 15.18-0+deb12u1)` is 15 and 18).
    #[must_use]
    pub fn server_version(&self) -> Option<(u32, u32)> {
        let text = self.parameter("server_version")?;
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
        let major = numbers.next()?.ok()?;
        let minor = numbers.next().and_then(Result::ok).unwrap_or(0);
        Some((major, minor))
    }

    /// Whether the server is a hot standby.
    ///
    /// # Errors
    /// The server's, or a lost connection.
    pub fn in_recovery(&mut self) -> Result<bool, PgError> {
        // Servers from 14 on report it, also when it changes.
        match self.parameter("in_hot_standby") {
            Some(told) => Ok(told == "on"),
            None => self.is_on("select case when pg_catalog.pg_is_in_recovery() then 'on' else 'off' end"),
        }
    }

    /// Whether sessions are read-only: on a hot standby, or through `default_transaction_read_only`.
    ///
    /// # Errors
    /// The server's, or a lost connection.
    pub fn is_read_only(&mut self) -> Result<bool, PgError> {
        Ok(self.in_recovery()? || self.is_on("show default_transaction_read_only")?)
    }

    fn is_on(&mut self, sql: &str) -> Result<bool, PgError> {
        let rows = self.query(sql)?.rows;
        Ok(rows.first().and_then(|row| row.first()?.as_deref()) == Some("on"))
    }

    /// Why the server does not satisfy the request.
    fn unfit(&mut self, wanted: SessionAttrs) -> Result<Option<&'static str>, PgError> {
        Ok(match wanted {
            SessionAttrs::ReadWrite if self.is_read_only()? => Some("is read-only"),
            SessionAttrs::ReadOnly if !self.is_read_only()? => Some("takes writes"),
            SessionAttrs::Primary if self.in_recovery()? => Some("is a hot standby"),
            SessionAttrs::Standby if !self.in_recovery()? => Some("is not a hot standby"),
            _ => None,
        })
    }
}

/// What was ignored while connecting.
pub(super) fn aside(options: &ConnectOptions) -> String {
    let told = options.warnings.iter().map(|warning| format!("; {warning}"));
    told.collect()
}

/// Combines two errors of one server; mentions the second only if it differs.
fn both(first: PgError, second_way: Way, second: &PgError) -> PgError {
    let how = match second_way {
        Way::Plain => "without TLS",
        _ => "with TLS",
    };
    match first {
        PgError::Login { to, error, more } => {
            let same = second.code() == Some(&error.code);
            let more = if same { more } else { format!("{more}; {how}: {second}") };
            PgError::Login { to, error, more }
        }
        other => PgError::Refused(format!("{other}; {how}: {second}")),
    }
}
