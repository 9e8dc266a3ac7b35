//! TLS to a server: which authorities to trust, our own certificate, and which advice to give when a server does not
//! prove its identity, in terms of its own clients' options.

use crate::certificate::{Certificate, instant_of, name_matches};
use crate::patience::Peer;
use crate::patient::Patient;
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
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, ServerConfig,
    SignatureScheme, StreamOwned, SupportedProtocolVersion,
};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An encrypted stream.
pub(crate) type Secured<P> = StreamOwned<ClientConnection, Patient<TcpStream, P>>;

/// Trusted authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// None: the certificate is not verified.
    #[default]
    None,
    /// Those in a file.
    File(PathBuf),
    /// The system's.
    System,
}

/// Names of these options in a server's own clients.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) roots: &'static str,
    pub(crate) revoked: &'static str,
    pub(crate) certificate: &'static str,
    pub(crate) key: &'static str,
    /// Option values that verify nothing, everything except the name, and everything.
    pub(crate) nothing: &'static str,
    pub(crate) chain: &'static str,
    pub(crate) all: &'static str,
}

/// Whom to trust.
pub(crate) struct Trust<'a> {
    pub(crate) roots: &'a Roots,
    /// File of revoked certificates.
    pub(crate) revoked: Option<&'a Path>,
    /// The certificate must match the host.
    pub(crate) named: bool,
    pub(crate) host: &'a str,
    pub(crate) words: &'static Words,
}

/// The TLS versions supported.
pub(crate) const VERSIONS: [(u8, &SupportedProtocolVersion); 2] =
    [(12, &rustls::version::TLS12), (13, &rustls::version::TLS13)];

impl Trust<'_> {
    /// Builds the client configuration for these versions, with an optional client certificate and its key.
    ///
    /// # Errors
    /// A local file that cannot be used.
    pub(crate) fn config(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        client: Option<&(PathBuf, PathBuf)>,
    ) -> Result<ClientConfig, String> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(Verifier::new(self, &provider)?);
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| format!("TLS cannot be set up: {error}"))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let Some((certificate, key)) = client else {
            return Ok(config.with_no_client_auth());
        };
        let chain = certificates(certificate, self.words.certificate)?;
        config.with_client_auth_cert(chain, private_key(key, self.words.key)?).map_err(|error| {
            format!(
                "the client certificate {} and the key {} cannot be used: {error}",
                certificate.display(),
                key.display()
            )
        })
    }

    /// The host name to verify.
    ///
    /// # Errors
    /// The host cannot be in a certificate, although one must match it.
    pub(crate) fn server_name(&self, tcp: &TcpStream) -> Result<ServerName<'static>, String> {
        let host = self.host;
        match (ServerName::try_from(host.to_owned()), self.named) {
            (Ok(name), _) => Ok(name),
            // If no name is verified, any name will do.
            (Err(_), false) => match tcp.peer_addr() {
                Ok(address) => Ok(ServerName::IpAddress(address.ip().into())),
                Err(error) => Err(format!("TLS with {host}: {error}")),
            },
            (Err(_), true) => {
                let all = self.words.all;
                Err(format!("host {host:?} cannot be in a certificate: {all} needs its DNS name or address"))
            }
        }
    }
}

/// What a server of this program proves itself with: files that the options `words` names.
///
/// # Errors
/// One of them cannot be used, or they do not belong together.
pub fn server_identity(certificate: &Path, key: &Path, words: [&str; 2]) -> Result<ServerConfig, String> {
    let chain = certificates(certificate, words[0])?;
    let secret = private_key(key, words[1])?;
    let versions = VERSIONS.map(|(_, version)| version);
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_protocol_versions(&versions).map_err(|error| format!("TLS cannot be set up: {error}"))?;
    config.with_no_client_auth().with_single_cert(chain, secret).map_err(|error| {
        let (certificate, key) = (certificate.display(), key.display());
        format!("{} {certificate} and {} {key} cannot be used together: {error}", words[0], words[1])
    })
}

/// Starts TLS on a stream.
///
/// # Errors
/// The server did not prove its identity or does not speak TLS; see [`reason`].
pub(crate) fn secure<P: Peer>(
    mut tcp: Patient<TcpStream, P>,
    config: ClientConfig,
    name: ServerName<'static>,
) -> std::io::Result<Secured<P>> {
    let session = ClientConnection::new(Arc::new(config), name);
    let mut session = session.map_err(std::io::Error::other)?;
    while session.is_handshaking() {
        session.complete_io(&mut tcp)?;
    }
    Ok(StreamOwned::new(session, tcp))
}

/// The verifier's own explanation if it has one, else the library's.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::General(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => error.to_string(),
    }
}

/// Certificates of a PEM file, at least one.
fn certificates(path: &Path, parameter: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let unfit = |why: String| format!("{parameter} {}: {why}; it must be a PEM file of certificates", path.display());
    let pem = bounded::read(path, bounded::CERTIFICATES).map_err(|error| unfit(error.to_string()))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = read.map_err(|error| unfit(error.to_string()))?;
    if found.is_empty() {
        return Err(unfit("it contains no certificate".to_owned()));
    }
    Ok(found)
}

fn private_key(path: &Path, parameter: &str) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    let pem = bounded::read(path, bounded::CERTIFICATES).map_err(|error| format!("{parameter} {shown}: {error}"))?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
        if String::from_utf8_lossy(&pem).contains("ENCRYPTED") {
            format!("{parameter} {shown}: the key is encrypted; decrypt it with openssl pkey -in {shown} -out PLAIN")
        } else {
            format!("{parameter} {shown}: {error}; it must be a PEM file with a private key")
        }
    })
}

/// Verifies a server's identity.
#[derive(Debug)]
struct Verifier {
    /// Without an authority, only possession of the key is verified, not identity.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates trusted directly: a self-signed server's own, listed as an authority.
    listed: Vec<CertificateDer<'static>>,
    named: bool,
    host: String,
    /// For messages.
    authorities: String,
    words: &'static Words,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(trust: &Trust<'_>, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let words = trust.words;
        let (listed, authorities) = match trust.roots {
            Roots::None => (Vec::new(), String::new()),
            // The default file may be absent; a file that was named was checked before.
            Roots::File(path) => (certificates(path, words.roots)?, path.display().to_string()),
            Roots::System => (rustls_native_certs::load_native_certs().certs, "the system's authorities".to_owned()),
        };
        let mut verifier = Self {
            chain: None,
            listed: Vec::new(),
            named: trust.named,
            host: trust.host.to_owned(),
            authorities,
            words,
            provider: Arc::clone(provider),
        };
        if *trust.roots == Roots::None {
            return Ok(verifier);
        }
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(listed.iter().cloned());
        if added == 0 {
            return Err(format!("{} has no certificate that can belong to an authority", verifier.authorities));
        }
        let mut builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        if let Some(path) = trust.revoked {
            builder = builder.with_crls(revocations(path, words.revoked)?);
        }
        let built = builder.build();
        verifier.chain = Some(built.map_err(|error| format!("{}: {error}", verifier.authorities))?);
        verifier.listed = listed;
        Ok(verifier)
    }

    /// The certificate itself is listed: only its dates are verified.
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
        if self.named && !named() {
            self.verify_common_name(certificate)?;
        }
        Ok(())
    }

    /// Verifies the common names of a certificate without alternative names, as libpq does.
    fn verify_common_name(&self, certificate: &Certificate<'_>) -> Result<(), String> {
        let by_name = |name: &String| name_matches(name, &self.host);
        if !certificate.has_alternative_names && certificate.common_names.iter().any(by_name) {
            return Ok(());
        }
        Err(format!(
            "its certificate (for {}) is not for host {}: connect by a name in the certificate, or use {}",
            certificate.common_names.join(", "),
            self.host,
            self.words.chain
        ))
    }

    fn explained(&self, error: &CertificateError, end: Option<&String>) -> String {
        match error {
            CertificateError::UnknownIssuer => format!(
                "no authority in {} signed its certificate: name the right one with {}",
                self.authorities, self.words.roots
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => expired(end),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => not_yet(None),
            CertificateError::Revoked => "its certificate is revoked".to_owned(),
            other => {
                let other = other.to_string();
                // The library reports these two only as text.
                if other.contains("CaUsedAsEndEntity") {
                    format!(
                        "its certificate is self-signed and not among those in {}: name the certificate itself with {}",
                        self.authorities, self.words.roots
                    )
                } else if other.contains("UnsupportedCertVersion") {
                    format!(
                        "its certificate is of X.509 version 1, which cannot be verified: make one with a \
                         subjectAltName, or use {}",
                        self.words.nothing
                    )
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

fn revocations(path: &Path, parameter: &str) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let unfit = |error: String| format!("{parameter} {}: {error}", path.display());
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
            // The name is checked last, so the chain is valid.
            (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }, _) if !self.named => {
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
        // Many servers still use a version 1 certificate, which the library cannot parse; its key suffices.
        let read = Certificate::read(cert).ok_or(rustls::Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let key = SubjectPublicKeyInfoDer::from(read.key);
        verify_tls13_signature_with_raw_key(message, &key, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
