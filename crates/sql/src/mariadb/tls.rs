//! How the connection to a server is encrypted, in the options of MySQL's and MariaDB's clients.

use crate::tls::{Roots, Trust, VERSIONS, Words};
use assay_run::bounded;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::TcpStream;
use std::path::PathBuf;

const WORDS: Words = Words {
    roots: "ssl-ca",
    revoked: "ssl-crl",
    certificate: "ssl-cert",
    key: "ssl-key",
    nothing: "ssl-mode=required without ssl-ca",
    chain: "ssl-mode=verify-ca",
    all: "ssl-mode=verify-identity",
};

/// `ssl-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Disabled,
    /// If the server supports it.
    Preferred,
    Required,
    VerifyCa,
    VerifyIdentity,
}

const MODES: [(&str, Mode); 5] = [
    ("disabled", Mode::Disabled),
    ("preferred", Mode::Preferred),
    ("required", Mode::Required),
    ("verify-ca", Mode::VerifyCa),
    ("verify-identity", Mode::VerifyIdentity),
];

/// The requested options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) mode: Option<Mode>,
    /// `ssl-verify-server-cert`
    pub(super) verify: Option<bool>,
    pub(super) ca: Option<PathBuf>,
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) server_key: Option<PathBuf>,
}

/// The resolved options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) mode: Mode,
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
    /// The server's public key, for a password that nothing else protects.
    pub(super) server_key: Option<PathBuf>,
}

impl Asked {
    /// Sets an option from a URL or file; false if it is not one of these.
    ///
    /// # Errors
    /// `ssl-mode` has no such value.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let path = || Some(PathBuf::from(value));
        match key {
            "ssl-mode" => {
                let value = value.to_ascii_lowercase().replace('_', "-");
                let mode = MODES.iter().find(|(name, _)| *name == value);
                let names = MODES.map(|(name, _)| name).join(", ");
                self.mode = Some(mode.ok_or(format!("ssl-mode is one of {names}"))?.1);
            }
            "ssl-ca" => self.ca = path(),
            "ssl-cert" => self.cert = path(),
            "ssl-key" => self.key = path(),
            "server-public-key-path" => self.server_key = path(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// These options, completed with those of `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            mode: self.mode.or(other.mode),
            verify: self.verify.or(other.verify),
            ca: self.ca.or(other.ca),
            cert: self.cert.or(other.cert),
            key: self.key.or(other.key),
            server_key: self.server_key.or(other.server_key),
        }
    }

    /// Resolves all options. As in MySQL's clients, naming an authority implies that its certificates are required.
    ///
    /// # Errors
    /// Files that cannot be read; a certificate without its key.
    pub(super) fn decide(self) -> Result<Tls, String> {
        let mode = match (self.mode, self.verify, &self.ca) {
            (Some(Mode::Disabled), ..) => Mode::Disabled,
            (None | Some(Mode::Preferred | Mode::Required), Some(true), _) => Mode::VerifyIdentity,
            (None | Some(Mode::Required), None, Some(_)) => Mode::VerifyCa,
            (mode, ..) => mode.unwrap_or(Mode::Preferred),
        };
        let identity = match (self.cert, self.key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err("ssl-cert and ssl-key go together".to_owned()),
        };
        let files = self.ca.iter().chain(identity.iter().flat_map(|(c, k)| [c, k]));
        for file in files.filter(|_| mode != Mode::Disabled).chain(&self.server_key) {
            if let Err(error) = bounded::open(file, bounded::CERTIFICATES) {
                return Err(format!("{}: {error}", file.display()));
            }
        }
        Ok(Tls { mode, ca: self.ca, identity, server_key: self.server_key })
    }
}

impl Tls {
    /// TLS configuration for this host, and the name to verify.
    ///
    /// # Errors
    /// Unusable local files.
    pub(super) fn ready(&self, host: &str, tcp: &TcpStream) -> Result<(ClientConfig, ServerName<'static>), String> {
        let roots = match (self.mode, &self.ca) {
            (Mode::VerifyCa | Mode::VerifyIdentity, Some(file)) => Roots::File(file.clone()),
            (Mode::VerifyCa | Mode::VerifyIdentity, None) => Roots::System,
            _ => Roots::None,
        };
        let named = self.mode == Mode::VerifyIdentity;
        let trust = Trust { roots: &roots, revoked: None, named, host, words: &WORDS };
        let config = trust.config(&VERSIONS.map(|(_, version)| version), self.identity.as_ref())?;
        Ok((config, trust.server_name(tcp)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_authority_and_a_wish_to_verify_are_heeded() {
        let ca = Some(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")));
        let decide = |mode, verify, ca: &Option<PathBuf>| {
            let asked = Asked { mode, verify, ca: ca.clone(), ..Asked::default() };
            asked.decide().unwrap().mode
        };
        assert_eq!(decide(None, None, &None), Mode::Preferred);
        assert_eq!(decide(None, None, &ca), Mode::VerifyCa);
        assert_eq!(decide(Some(Mode::Required), None, &ca), Mode::VerifyCa);
        assert_eq!(decide(Some(Mode::Required), Some(false), &ca), Mode::Required);
        assert_eq!(decide(Some(Mode::Required), Some(true), &None), Mode::VerifyIdentity);
        assert_eq!(decide(Some(Mode::Disabled), Some(true), &ca), Mode::Disabled);
        let missing = Some(PathBuf::from("/no/such/ca.pem"));
        let asked = |ca, cert| Asked { ca, cert, ..Asked::default() };
        assert!(asked(missing.clone(), None).decide().unwrap_err().contains("/no/such"));
        assert!(asked(None, missing).decide().unwrap_err().contains("go together"));
    }
}
