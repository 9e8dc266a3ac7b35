//! From a fresh socket to a session: startup and authentication.

use super::connection::Connection;
use super::error::PgError;
use crate::postgres::conninfo::{ConnectOptions, Password};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

impl Connection {
    /// Says who we are and answers whatever the server asks for.
    pub(super) fn log_in(
        &mut self,
        options: &ConnectOptions,
        password: Option<&Password>,
    ) -> Result<(), PgError> {
        let mut parameters = vec![
            ("user", options.user.as_str()),
            ("database", options.dbname.as_str()),
            ("application_name", options.application_name.as_str()),
            ("client_encoding", "UTF8"),
        ];
        if let Some(extra) = &options.options {
            parameters.push(("options", extra));
        }
        let begun = frontend::startup_message(parameters, &mut self.output);
        begun.map_err(|source| self.lost("startup", source))?;
        self.send("startup")?;
        loop {
            let message = self.receive("startup")?;
            match message.kind {
                b'R' => {
                    let body = self.input.body(&message).to_vec();
                    self.authenticate(options, password, &body)?;
                }
                b'K' => {
                    let body = self.input.body(&message);
                    let word = |at: usize| {
                        body.get(at..at + 4)
                            .and_then(|bytes| bytes.try_into().ok())
                            .map(i32::from_be_bytes)
                    };
                    (self.pid, self.secret) = (word(0).unwrap_or(0), word(4).unwrap_or(0));
                }
                b'Z' => return Ok(()),
                b'v' => {}
                b'E' => return Err(self.server_error(&message)),
                other => return Err(self.unexpected(other, "startup")),
            }
        }
    }

    fn authenticate(
        &mut self,
        options: &ConnectOptions,
        password: Option<&Password>,
        body: &[u8],
    ) -> Result<(), PgError> {
        let (code, rest) = body
            .split_at_checked(4)
            .ok_or_else(|| self.unexpected(b'R', "startup"))?;
        let code = u32::from_be_bytes([code[0], code[1], code[2], code[3]]);
        let password = || {
            password.ok_or_else(|| {
                PgError::Refused(format!(
                    "the server asks for the password of user {}: give it by PGPASSWORD, PGPASSFILE or ~/.pgpass",
                    options.user
                ))
            })
        };
        match code {
            0 => Ok(()),
            3 => {
                let sent =
                    frontend::password_message(password()?.reveal().as_bytes(), &mut self.output);
                sent.map_err(|source| self.lost("authentication", source))?;
                self.send("authentication")
            }
            5 => {
                let salt = rest
                    .try_into()
                    .map_err(|_| self.unexpected(b'R', "authentication"))?;
                let hash = md5_hash(
                    options.user.as_bytes(),
                    password()?.reveal().as_bytes(),
                    salt,
                );
                let sent = frontend::password_message(hash.as_bytes(), &mut self.output);
                sent.map_err(|source| self.lost("authentication", source))?;
                self.send("authentication")
            }
            10 => self.scram(password()?.reveal().as_bytes(), rest),
            other => Err(PgError::Refused(format!(
                "the server asks for authentication method {other} (GSSAPI, SSPI, ...), which is not supported: use scram-sha-256, md5, password, trust, peer or a client certificate"
            ))),
        }
    }

    fn scram(&mut self, password: &[u8], mechanisms: &[u8]) -> Result<(), PgError> {
        let offered = mechanisms
            .split(|byte| *byte == 0)
            .any(|name| name == SCRAM_SHA_256.as_bytes());
        if !offered {
            return Err(PgError::Refused(
                "the server offers no SCRAM-SHA-256".to_owned(),
            ));
        }
        let mut scram = ScramSha256::new(password, ChannelBinding::unsupported());
        let begun =
            frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut self.output);
        begun.map_err(|source| self.lost("authentication", source))?;
        self.send("authentication")?;
        let first = self.sasl_answer(11)?;
        scram
            .update(&first)
            .map_err(|source| self.lost("authentication", source))?;
        let answered = frontend::sasl_response(scram.message(), &mut self.output);
        answered.map_err(|source| self.lost("authentication", source))?;
        self.send("authentication")?;
        let last = self.sasl_answer(12)?;
        scram
            .finish(&last)
            .map_err(|source| self.lost("authentication", source))
    }

    fn sasl_answer(&mut self, wanted: u32) -> Result<Vec<u8>, PgError> {
        let message = self.receive("authentication")?;
        match message.kind {
            b'R' => match self.input.body(&message).split_first_chunk() {
                Some((code, rest)) if u32::from_be_bytes(*code) == wanted => Ok(rest.to_vec()),
                _ => Err(self.unexpected(b'R', "authentication")),
            },
            b'E' => Err(self.server_error(&message)),
            other => Err(self.unexpected(other, "authentication")),
        }
    }
}
