//! TLS to a server with libpq's options, and channel binding.

use super::error::PgError;
use super::peer::{Patient, Server};
use super::reach::timed_out;
use crate::certificate::Certificate;
use crate::postgres::conninfo::{ConnectOptions, SslMode};
use crate::tls::{Secured, Trust, VERSIONS, Words, reason, secure as handshake};
use rustls::SupportedProtocolVersion;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const WORDS: Words = Words {
    roots: "sslrootcert",
    revoked: "sslcrl",
    certificate: "sslcert",
    key: "sslkey",
    nothing: "sslmode=require without sslrootcert",
    chain: "sslmode=verify-ca",
    all: "sslmode=verify-full",
};

/// Starts TLS on a stream.
///
/// # Errors
/// `Usage` for unusable local files, `Refused` for a server that does not prove its identity.
pub(super) fn secure(
    tcp: Patient<TcpStream>,
    host: &str,
    options: &ConnectOptions,
) -> Result<Secured<Server>, PgError> {
    let tls = &options.tls;
    let trust = Trust {
        roots: &tls.roots,
        revoked: tls.revoked.as_deref(),
        named: tls.mode == SslMode::VerifyFull,
        host,
        words: &WORDS,
    };
    if let Some((_, key)) = &tls.client {
        refuse_shared(key)?;
    }
    let (lowest, highest) = tls.versions;
    let versions: Vec<&'static SupportedProtocolVersion> = VERSIONS
        .into_iter()
        .filter(|(version, _)| {
            lowest.is_none_or(|lowest| lowest <= *version) && highest.is_none_or(|highest| highest >= *version)
        })
        .map(|(_, version)| version)
        .collect();
    let mut config = trust.config(&versions, tls.client.as_ref()).map_err(PgError::Usage)?;
    config.enable_sni = !tls.hide_name;
    // Servers from 17 on negotiate the protocol with ALPN; direct negotiation requires it.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    let name = trust.server_name(&tcp.socket).map_err(PgError::Usage)?;
    let secured = handshake(tcp, config, name).map_err(|error| {
        let error = timed_out(error, options);
        PgError::Refused(format!("TLS with {host}: {}", reason(&error)))
    })?;
    // With direct TLS the server must confirm this protocol: otherwise any TLS server would be accepted.
    if tls.direct && secured.conn.alpn_protocol().is_none() {
        return Err(PgError::Refused(format!(
            "{host} accepts TLS but does not confirm PostgreSQL's protocol in it, which sslnegotiation=direct needs: \
             servers before 17 need sslnegotiation=postgres"
        )));
    }
    Ok(secured)
}

/// Channel binding data; see [`Certificate::end_point`].
pub(super) fn channel_binding(secured: &Secured<Server>) -> Option<Vec<u8>> {
    let certificate = secured.conn.peer_certificates()?.first()?;
    Certificate::read(certificate)?.end_point()
}

/// Refuses a key that other users can read.
fn refuse_shared(path: &Path) -> Result<(), PgError> {
    let shown = path.display();
    let facts = std::fs::metadata(path).map_err(|error| PgError::Usage(format!("sslkey {shown}: {error}")))?;
    // An administrator may share root's key with a group, as in libpq.
    let allowed = if facts.uid() == 0 { 0o740 } else { 0o700 };
    match facts.mode() & 0o777 & !allowed {
        0 => Ok(()),
        _ => Err(PgError::Usage(format!("sslkey {shown}: other users can read it; run chmod 600 {shown}"))),
    }
}
