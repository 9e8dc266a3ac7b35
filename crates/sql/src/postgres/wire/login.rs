//! Startup and authentication on a new stream.

use super::connection::Connection;
use super::error::{PgError, clean};
use super::open::aside;
use super::peer::Stream;
use super::reach::timed_out;
use super::tls;
use crate::postgres::conninfo::{ChannelBinding, Password};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};
use postgres_protocol::message::frontend;
use std::sync::Arc;

/// Position of the minor version in a startup message: after its length and the major version.
const MINOR_AT: std::ops::Range<usize> = 6..8;
/// Longest secret for cancel requests that the protocol allows.
const SECRET_BYTES_MAX: usize = 256;

/// State of the authentication.
#[derive(Debug, Default)]
struct Progress {
    /// The server requested a credential.
    asked: bool,
    /// The authentication was bound to the TLS channel.
    bound: bool,
    /// The server accepted the login.
    admitted: bool,
}

impl Connection {
    /// Sends the startup message and answers the server's authentication requests.
    pub(super) fn log_in(&mut self, password: Option<&Password>) -> Result<(), PgError> {
        self.start_up()?;
        let mut progress = Progress::default();
        loop {
            let message = self.receive("connecting").map_err(|error| match error {
                PgError::Io { what, source } => PgError::Io { what, source: timed_out(source, &self.options) },
                other => other,
            })?;
            match message.kind {
                b'R' if !progress.admitted => {
                    let body = self.input.body(&message).to_vec();
                    self.authenticate(password, &body, &mut progress)?;
                }
                // `channel_binding` and `require_auth` are checked when the server accepts the login. A server that
                // skips that message would bypass the checks.
                b'K' | b'Z' if !progress.admitted => {
                    return Err(self.unexpected(message.kind, "connecting"));
                }
                b'K' => {
                    let body = self.input.body(&message);
                    let read =
                        body.split_first_chunk().filter(|(_, secret)| (1..=SECRET_BYTES_MAX).contains(&secret.len()));
                    let Some((pid, secret)) = read else {
                        return Err(self.unexpected(b'K', "connecting"));
                    };
                    (self.pid, self.secret) = (i32::from_be_bytes(*pid), secret.to_vec());
                }
                b'Z' => return self.ready(&message).map(drop),
                b'v' if !progress.asked && !progress.admitted => self.negotiate(&message)?,
                b'E' => return Err(self.server_error(&message)),
                other => return Err(self.unexpected(other, "connecting")),
            }
        }
    }

    fn start_up(&mut self) -> Result<(), PgError> {
        let options = Arc::clone(&self.options);
        let mut parameters = vec![
            ("user", options.user.as_str()),
            ("database", options.dbname.as_str()),
            ("application_name", options.application_name.as_str()),
            ("client_encoding", "UTF8"),
        ];
        if let Some(extra) = &options.options {
            parameters.push(("options", extra));
        }
        let settings = options.settings.iter();
        parameters.extend(settings.map(|(name, value)| (name.as_str(), value.as_str())));
        let begun = frontend::startup_message(parameters, &mut self.output);
        begun.map_err(|_| PgError::Usage("a connection parameter contains a zero byte".to_owned()))?;
        let minor = options.protocol_minor.1.to_be_bytes();
        self.output[MINOR_AT].copy_from_slice(&minor);
        self.send("connecting")
    }

    /// The server supports only an older minor version than requested.
    fn negotiate(&mut self, message: &super::input::Message) -> Result<(), PgError> {
        let body = self.input.body(message);
        let Some((newest, _)) = body.split_first_chunk() else {
            return Err(self.unexpected(b'v', "connecting"));
        };
        // Despite the manual, servers send the whole version number; the minor version is its lower half.
        let minor = u32::from_be_bytes(*newest) & 0xffff;
        let lowest = self.options.protocol_minor.0;
        if minor < u32::from(lowest) {
            return Err(PgError::Refused(format!(
                "{} uses protocol 3.{minor}, but min_protocol_version asks for 3.{lowest}",
                self.host
            )));
        }
        Ok(())
    }

    fn authenticate(
        &mut self,
        password: Option<&Password>,
        body: &[u8],
        progress: &mut Progress,
    ) -> Result<(), PgError> {
        let (code, rest) = body.split_first_chunk().ok_or_else(|| self.unexpected(b'R', "connecting"))?;
        let code = u32::from_be_bytes(*code);
        if code == 0 {
            return self.admitted(progress);
        }
        let way = match code {
            3 => "password",
            5 => "md5",
            7 | 8 => "gss",
            9 => "sspi",
            10 => "scram-sha-256",
            _ => "unknown",
        };
        self.may_be_asked(way)?;
        self.can_be_bound(way)?;
        if std::mem::replace(&mut progress.asked, true) {
            return Err(PgError::Refused(format!(
                "{} asks for authentication {way} again after an answer: no PostgreSQL server asks twice",
                self.host
            )));
        }
        let reveal = || {
            password.map(Password::reveal).ok_or_else(|| {
                PgError::Refused(format!(
                    "{} asks for the password of {}: give it with PGPASSWORD or the password file (~/.pgpass){}",
                    self.host,
                    self.options.user,
                    aside(&self.options)
                ))
            })
        };
        match code {
            3 => {
                let password = reveal()?.as_bytes().to_vec();
                self.send_password(&password)
            }
            5 => {
                let salt = rest.try_into().map_err(|_| self.unexpected(b'R', "connecting"))?;
                let hash = md5_hash(self.options.user.as_bytes(), reveal()?.as_bytes(), salt);
                self.send_password(hash.as_bytes())
            }
            10 => {
                let password = reveal()?.as_bytes().to_vec();
                progress.bound = self.scram(&password, rest)?;
                Ok(())
            }
            other => Err(PgError::Refused(format!(
                "{} asks for authentication method {other} (GSSAPI, SSPI, ...), which assay does not support: use \
                 scram-sha-256, md5, password, trust, peer or a client certificate in its pg_hba.conf",
                self.host
            ))),
        }
    }

    /// Any method other than SCRAM is not bound to the channel and reveals something about the password: if binding is
    /// required, assay does not answer it.
    fn can_be_bound(&self, way: &str) -> Result<(), PgError> {
        if self.options.channel_binding != ChannelBinding::Require || way == "scram-sha-256" {
            return Ok(());
        }
        Err(PgError::Refused(format!(
            "{} asks for authentication {way}, but channel_binding=require accepts only SCRAM-SHA-256 bound to TLS; \
             no form of the password was sent: set scram-sha-256 for this role in the server's pg_hba.conf",
            self.host
        )))
    }

    fn admitted(&self, progress: &mut Progress) -> Result<(), PgError> {
        if !progress.asked {
            self.may_be_asked("none")?;
        }
        if self.options.channel_binding == ChannelBinding::Require && !progress.bound {
            return Err(PgError::Refused(format!(
                "{} accepted the login without channel binding, but channel_binding=require asks for it: this needs \
                 TLS and scram-sha-256",
                self.host
            )));
        }
        progress.admitted = true;
        Ok(())
    }

    /// Checks that `require_auth` accepts the method.
    fn may_be_asked(&self, way: &str) -> Result<(), PgError> {
        let accepted = &self.options.require_auth;
        if accepted.is_empty() || accepted.iter().any(|known| known == way) {
            return Ok(());
        }
        Err(PgError::Refused(format!(
            "{} {}, but require_auth accepts only {}: no form of the password was sent",
            self.host,
            match way {
                "none" => "accepts the login without authentication".to_owned(),
                way => format!("asks for authentication {way}"),
            },
            accepted.join(", ")
        )))
    }

    fn send_password(&mut self, password: &[u8]) -> Result<(), PgError> {
        let sent = frontend::password_message(password, &mut self.output);
        sent.map_err(|_| PgError::Usage("the password contains a zero byte".to_owned()))?;
        self.send("connecting")
    }

    /// The mechanism to use, and its channel binding.
    fn mechanism(&self, offered: &[u8]) -> Result<(&'static str, sasl::ChannelBinding), PgError> {
        let offers = |wanted: &str| {
            let mut names = offered.split(|byte| *byte == 0);
            names.any(|name| name == wanted.as_bytes())
        };
        let binding = match &self.stream {
            Stream::Tls(secured) if self.options.channel_binding != ChannelBinding::Disable => {
                tls::channel_binding(secured)
            }
            _ => None,
        };
        let plus = offers(SCRAM_SHA_256_PLUS);
        match binding {
            Some(binding) if plus => Ok((SCRAM_SHA_256_PLUS, sasl::ChannelBinding::tls_server_end_point(binding))),
            _ if self.options.channel_binding == ChannelBinding::Require => Err(PgError::Refused(format!(
                "{} cannot bind authentication to the channel, but channel_binding=require asks for it: this \
                     needs TLS, and a certificate whose signature has a hash",
                self.host
            ))),
            _ if !offers(SCRAM_SHA_256) => Err(PgError::Refused(format!(
                "{} offers no SCRAM-SHA-256: set the role's password again with password_encryption = scram-sha-256",
                self.host
            ))),
            // Tells the server that the client supports binding, which reveals a man in the middle who removed the offer.
            Some(_) => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unrequested())),
            None => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unsupported())),
        }
    }

    /// Performs SCRAM; returns whether it was bound to the channel.
    fn scram(&mut self, password: &[u8], offered: &[u8]) -> Result<bool, PgError> {
        let (name, binding) = self.mechanism(offered)?;
        let host = self.host.to_string();
        let broken = move |error: std::io::Error| {
            // The error quotes the server's text.
            let error = clean(error.to_string().as_bytes());
            PgError::Refused(format!("{host} does not follow SCRAM-SHA-256: {error}"))
        };
        let mut scram = ScramSha256::new(password, binding);
        frontend::sasl_initial_response(name, scram.message(), &mut self.output).map_err(&broken)?;
        self.send("connecting")?;
        scram.update(&self.sasl_answer(11)?).map_err(&broken)?;
        frontend::sasl_response(scram.message(), &mut self.output).map_err(&broken)?;
        self.send("connecting")?;
        scram.finish(&self.sasl_answer(12)?).map_err(&broken)?;
        Ok(name == SCRAM_SHA_256_PLUS)
    }

    fn sasl_answer(&mut self, wanted: u32) -> Result<Vec<u8>, PgError> {
        let message = self.receive("connecting")?;
        match message.kind {
            b'R' => match self.input.body(&message).split_first_chunk() {
                Some((code, rest)) if u32::from_be_bytes(*code) == wanted => Ok(rest.to_vec()),
                _ => Err(self.unexpected(b'R', "connecting")),
            },
            b'E' => Err(self.server_error(&message)),
            other => Err(self.unexpected(other, "connecting")),
        }
    }
}
