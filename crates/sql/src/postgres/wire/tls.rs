//! TLS to a server: whom to trust as libpq's `sslmode` and `sslrootcert` say, our own certificate, channel binding.

use super::certificate::{Certificate, instant_of, name_matches};
use super::error::PgError;
use super::reach::{Patient, timed_out};
use crate::postgres::conninfo::{ConnectOptions, Roots, SslMode, Tls};
use assay_run::bounded;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned, SupportedProtocolVersion,
};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// An encrypted stream.
pub(super) type Secured = StreamOwned<ClientConnection, Patient<TcpStream>>;

/// Makes a stream a secured one.
///
/// # Errors
/// `Usage` for files of ours that cannot be used, `Refused` for a server that is not who it should be.
pub(super) fn secure(mut tcp: Patient<TcpStream>, host: &str, options: &ConnectOptions) -> Result<Secured, PgError> {
    let tls = &options.tls;
    let config = Arc::new(config(tls, host)?);
    let mut session = ClientConnection::new(config, server_name(host, &tcp.socket, tls)?)
        .map_err(|error| PgError::Refused(format!("TLS with {host}: {error}")))?;
    while session.is_handshaking() {
        session.complete_io(&mut tcp).map_err(|error| {
            let error = timed_out(error, options);
            PgError::Refused(format!("TLS with {host}: {}", reason(&error)))
        })?;
    }
    // Who speaks TLS without being asked must say that it means this protocol: else any TLS server would do.
    if tls.direct && session.alpn_protocol().is_none() {
        return Err(PgError::Refused(format!(
            "{host} accepts TLS but does not confirm PostgreSQL's protocol in it, which sslnegotiation=direct needs: \
             servers before 17 need sslnegotiation=postgres"
        )));
    }
    Ok(StreamOwned::new(session, tcp))
}

/// What binds authentication to the channel; see [`Certificate::end_point`].
pub(super) fn channel_binding(secured: &Secured) -> Option<Vec<u8>> {
    let certificate = secured.conn.peer_certificates()?.first()?;
    Certificate::read(certificate)?.end_point()
}

/// Our own words where the verifier found them, else the library's.
fn reason(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::General(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => error.to_string(),
    }
}

fn server_name(host: &str, tcp: &TcpStream, tls: &Tls) -> Result<ServerName<'static>, PgError> {
    match ServerName::try_from(host.to_owned()) {
        Ok(name) => Ok(name),
        // A name no certificate can be for does not matter where none is asked for.
        Err(_) if tls.mode < SslMode::VerifyFull => {
            let address = tcp.peer_addr().map_err(|source| PgError::Io { what: format!("TLS with {host}"), source })?;
            Ok(ServerName::IpAddress(address.ip().into()))
        }
        Err(_) => Err(PgError::Usage(format!(
            "host {host:?} cannot be in a certificate: sslmode=verify-full needs its DNS name or address"
        ))),
    }
}

fn config(tls: &Tls, host: &str) -> Result<ClientConfig, PgError> {
    let provider = Arc::new(ring::default_provider());
    let versions: Vec<&'static SupportedProtocolVersion> =
        [(12, &rustls::version::TLS12), (13, &rustls::version::TLS13)]
            .into_iter()
            .filter(|(version, _)| {
                tls.versions.0.is_none_or(|lowest| lowest <= *version)
                    && tls.versions.1.is_none_or(|highest| highest >= *version)
            })
            .map(|(_, version)| version)
            .collect();
    let unfit = |error: rustls::Error| PgError::Usage(format!("TLS cannot be set up: {error}"));
    let verifier = Arc::new(Verifier::new(tls, host, &provider)?);
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(unfit)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &tls.client {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate, "sslcert")?;
            config.with_client_auth_cert(chain, private_key(key)?).map_err(|error| {
                PgError::Usage(format!(
                    "the client certificate {} and the key {} cannot be used: {error}",
                    certificate.display(),
                    key.display()
                ))
            })?
        }
    };
    config.enable_sni = !tls.hide_name;
    // Servers from 17 on name their protocol; direct negotiation insists on it.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(config)
}

/// Certificates of a PEM file, at least one.
fn certificates(path: &Path, parameter: &str) -> Result<Vec<CertificateDer<'static>>, PgError> {
    let unfit = |why: String| {
        PgError::Usage(format!("{parameter} {}: {why}; it must be a PEM file of certificates", path.display()))
    };
    let pem = bounded::read(path, bounded::CERTIFICATES).map_err(|error| unfit(error.to_string()))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = read.map_err(|error| unfit(error.to_string()))?;
    if found.is_empty() {
        return Err(unfit("it contains no certificate".to_owned()));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, PgError> {
    let shown = path.display();
    let unfit = |why: String| PgError::Usage(format!("sslkey {shown}: {why}"));
    let facts = std::fs::metadata(path).map_err(|error| unfit(error.to_string()))?;
    // The administrator may share a key of root's with a group, as libpq allows.
    let allowed = if facts.uid() == 0 { 0o740 } else { 0o700 };
    if facts.mode() & 0o777 & !allowed != 0 {
        return Err(unfit(format!("other users can read it; run chmod 600 {shown}")));
    }
    let pem = bounded::read(path, bounded::CERTIFICATES).map_err(|error| unfit(error.to_string()))?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
        unfit(if String::from_utf8_lossy(&pem).contains("ENCRYPTED") {
            format!("the key is encrypted; decrypt it with openssl pkey -in {shown} -out PLAIN")
        } else {
            format!("{error}; it must be a PEM file with a private key")
        })
    })
}

/// Whether a server is who it should be.
#[derive(Debug)]
struct Verifier {
    /// None: whoever it is, only its possession of the key is verified.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates believed as they are: a self-signed server's own, listed as an authority.
    listed: Vec<CertificateDer<'static>>,
    full: bool,
    host: String,
    /// For messages.
    authorities: String,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(tls: &Tls, host: &str, provider: &Arc<CryptoProvider>) -> Result<Self, PgError> {
        let (listed, authorities) = match &tls.roots {
            Roots::None => (Vec::new(), String::new()),
            // The default file need not be there; one that was named and must be was looked for before.
            Roots::File(path) => (certificates(path, "sslrootcert")?, path.display().to_string()),
            Roots::System => (rustls_native_certs::load_native_certs().certs, "the system's authorities".to_owned()),
        };
        let mut verifier = Self {
            chain: None,
            listed: Vec::new(),
            full: tls.mode == SslMode::VerifyFull,
            host: host.to_owned(),
            authorities,
            provider: Arc::clone(provider),
        };
        if tls.roots == Roots::None {
            return Ok(verifier);
        }
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(listed.iter().cloned());
        if added == 0 {
            return Err(PgError::Usage(format!(
                "{} has no certificate that can belong to an authority",
                verifier.authorities
            )));
        }
        let mut builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        if let Some(path) = &tls.revoked {
            builder = builder.with_crls(revocations(path)?);
        }
        let built = builder.build();
        verifier.chain = Some(built.map_err(|error| PgError::Usage(format!("{}: {error}", verifier.authorities)))?);
        verifier.listed = listed;
        Ok(verifier)
    }

    /// The certificate is one of the listed ones itself: its dates are all there is to verify.
    fn verify_listed(
        &self,
        der: &CertificateDer<'_>,
        certificate: &Certificate<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), String> {
        let now = instant_of(now.as_secs());
        let (begin, end) = &certificate.valid;
        if now < *begin {
            return Err(not_yet(Some(begin)));
        }
        if now > *end {
            return Err(expired(Some(end)));
        }
        let named = || {
            let parsed = ParsedCertificate::try_from(der).ok();
            parsed.is_some_and(|parsed| verify_server_name(&parsed, name).is_ok())
        };
        if self.full && !named() {
            self.verify_common_name(certificate)?;
        }
        Ok(())
    }

    /// Names of a certificate without alternative ones, as libpq takes them.
    fn verify_common_name(&self, certificate: &Certificate<'_>) -> Result<(), String> {
        let by_name = |name: &String| name_matches(name, &self.host);
        if !certificate.has_alternative_names && certificate.common_names.iter().any(by_name) {
            return Ok(());
        }
        Err(format!(
            "its certificate (for {}) is not for host {}: connect by a name in the certificate, or use \
             sslmode=verify-ca",
            certificate.common_names.join(", "),
            self.host
        ))
    }

    fn explained(&self, error: &CertificateError, end: Option<&String>) -> String {
        match error {
            CertificateError::UnknownIssuer => format!(
                "no authority in {} signed its certificate: name the right one with sslrootcert",
                self.authorities
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => expired(end),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => not_yet(None),
            CertificateError::Revoked => "its certificate is revoked".to_owned(),
            other => {
                let other = other.to_string();
                // The library has these two as text alone.
                if other.contains("CaUsedAsEndEntity") {
                    format!(
                        "its certificate is self-signed and not among those in {}: name the certificate itself with \
                         sslrootcert",
                        self.authorities
                    )
                } else if other.contains("UnsupportedCertVersion") {
                    "its certificate is of X.509 version 1, which cannot be verified: make one with a subjectAltName, or use sslmode=require without sslrootcert".to_owned()
                } else {
                    format!("its certificate cannot be verified: {other}")
                }
            }
        }
    }
}

fn expired(end: Option<&String>) -> String {
    let end = end.and_then(|end| Some(format!("{}-{}-{}", end.get(..4)?, end.get(4..6)?, end.get(6..8)?)));
    format!(
        "its certificate has expired{}: it needs a new one",
        end.map(|end| format!(" (on {end})")).unwrap_or_default()
    )
}

fn not_yet(begin: Option<&String>) -> String {
    let from = begin.map(|begin| format!(" before {begin} UTC"));
    format!(
        "its certificate is not valid{}: compare the clocks of both hosts",
        from.unwrap_or_else(|| " yet".to_owned())
    )
}

fn revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, PgError> {
    let unfit = |error: String| PgError::Usage(format!("sslcrl {}: {error}", path.display()));
    let pem = bounded::read(path, bounded::CERTIFICATES).map_err(|error| unfit(error.to_string()))?;
    let lists: Result<_, _> = CertificateRevocationListDer::pem_slice_iter(&pem).collect();
    lists.map_err(|error| unfit(error.to_string()))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let parsed = Certificate::read(end_entity);
        let verified = chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let failed = match verified {
            Ok(verified) => return Ok(verified),
            Err(rustls::Error::InvalidCertificate(error)) => error,
            Err(other) => return Err(other),
        };
        let outcome = match (&failed, &parsed) {
            // The name is looked at last: the chain holds.
            (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }, _) if !self.full => {
                Ok(())
            }
            (
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                Some(certificate),
            ) => self.verify_common_name(certificate),
            (_, Some(certificate)) if self.listed.iter().any(|listed| listed == end_entity) => {
                self.verify_listed(end_entity, certificate, server_name, now)
            }
            _ => Err(self.explained(&failed, parsed.as_ref().map(|parsed| &parsed.valid.1))),
        };
        outcome.map(|()| ServerCertVerified::assertion()).map_err(rustls::Error::General)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        if ParsedCertificate::try_from(cert).is_ok() {
            return rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms);
        }
        // Many servers still have a certificate of version 1, which the library does not read: its key will do.
        let read = Certificate::read(cert).ok_or(rustls::Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let key = SubjectPublicKeyInfoDer::from(read.key);
        verify_tls13_signature_with_raw_key(message, &key, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
