//! How the connection to a server is protected, in the words of MySQL's and MariaDB's clients.

use assay_run::bounded;
use mysql::{ClientIdentity, SslOpts};
use std::path::{Path, PathBuf};

/// Certificates that the system trusts, where distributions keep them.
const TRUSTED: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// `ssl-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Disabled,
    /// If the server can.
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

/// What was asked for, as far as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) mode: Option<Mode>,
    /// `ssl-verify-server-cert`
    pub(super) verify: Option<bool>,
    pub(super) ca: Option<PathBuf>,
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// What will be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) mode: Mode,
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl Asked {
    /// An option of a URL or file; false if it is none of these.
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
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What is asked here, else what `other` asks.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            mode: self.mode.or(other.mode),
            verify: self.verify.or(other.verify),
            ca: self.ca.or(other.ca),
            cert: self.cert.or(other.cert),
            key: self.key.or(other.key),
        }
    }

    /// Every choice made: who names an authority wants its certificates alone, as with MySQL's clients.
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
        for file in files.filter(|_| mode != Mode::Disabled) {
            if let Err(error) = bounded::open(file, bounded::CERTIFICATES) {
                return Err(format!("{}: {error}", file.display()));
            }
        }
        Ok(Tls { mode, ca: self.ca, identity })
    }
}

impl Tls {
    /// Without any.
    pub(super) fn none() -> Self {
        Self { mode: Mode::Disabled, ca: None, identity: None }
    }

    /// For the crate; none: no TLS.
    pub(super) fn options(&self) -> Option<SslOpts> {
        if self.mode == Mode::Disabled {
            return None;
        }
        crate::choose_cryptography();
        let verifies = matches!(self.mode, Mode::VerifyCa | Mode::VerifyIdentity);
        let trusted = || {
            let files = TRUSTED.iter().map(PathBuf::from);
            files.into_iter().find(|file| verifies && Path::is_file(file))
        };
        let identity = self.identity.clone();
        Some(
            SslOpts::default()
                .with_client_identity(identity.map(|(cert, key)| ClientIdentity::new(cert, key)))
                .with_root_cert_path(self.ca.clone().or_else(trusted))
                .with_danger_accept_invalid_certs(!verifies)
                .with_danger_skip_domain_validation(self.mode != Mode::VerifyIdentity),
        )
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
