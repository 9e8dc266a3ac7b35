//! Reads from a certificate what the TLS library does not report: the hash for channel binding, the common name,
//! whether alternative names exist, and the validity period.
//!
//! Reads DER (X.690) of RFC 5280's `Certificate`; damaged input gives `None`, never a panic.

use jiff::Timestamp;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// Object identifiers, as DER writes them.
mod oid {
    pub(super) const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    pub(super) const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
    /// 1.2.840.113549.1.1: RSA; the last byte selects the hash.
    pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    /// 1.2.840.10045.4.3: ECDSA with SHA-2; the last byte selects the length.
    pub(super) const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    /// 1.2.840.10045.4.1
    pub(super) const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
    /// 2.16.840.1.101.3.4.2: SHA-2; 1 is 256, 2 is 384, 3 is 512.
    pub(super) const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
}

const OBJECT: u8 = 0x06;

/// The parts of a certificate that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate<'a> {
    whole: &'a [u8],
    signature_algorithm: &'a [u8],
    /// Its `SubjectPublicKeyInfo`.
    pub(crate) key: &'a [u8],
    /// Common names of the subject.
    pub(crate) common_names: Vec<String>,
    /// It has `subjectAltName`.
    pub(crate) has_alternative_names: bool,
    /// Start and end of validity, `YYYYMMDDHHMMSS` in UTC.
    pub(crate) valid: (String, String),
}

impl<'a> Certificate<'a> {
    /// Parses a certificate.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let (_, body, _) = element(der)?;
        let (_, signed, after) = element(body)?;
        let (_, signature_algorithm, _) = element(after)?;
        let mut rest = signed;
        // [0] is the version, which a version 1 certificate omits.
        if rest.first() == Some(&0xa0) {
            (_, _, rest) = element(rest)?;
        }
        let (_, _serial, rest) = element(rest)?;
        let (_, _algorithm, rest) = element(rest)?;
        let (_, _issuer, rest) = element(rest)?;
        let (_, validity, rest) = element(rest)?;
        let (_, subject, rest) = element(rest)?;
        let from_key = rest;
        let (_, _, rest) = element(rest)?;
        let (begin_kind, begin, after) = element(validity)?;
        let (end_kind, end, _) = element(after)?;
        Some(Self {
            whole: der,
            signature_algorithm,
            key: &from_key[..from_key.len() - rest.len()],
            common_names: common_names(subject),
            has_alternative_names: contains(rest, oid::ALTERNATIVE_NAMES),
            valid: (instant(begin_kind, begin)?, instant(end_kind, end)?),
        })
    }

    /// Channel binding data (RFC 5929, `tls-server-end-point`): the certificate's hash by the algorithm of its
    /// signature, with SHA-256 instead of MD5 and SHA-1. None for signatures without a separate hash (Ed25519).
    pub(crate) fn end_point(&self) -> Option<Vec<u8>> {
        let (kind, name, parameters) = element(self.signature_algorithm)?;
        if kind != OBJECT {
            return None;
        }
        let (family, last) = name.split_at_checked(name.len().checked_sub(1)?)?;
        let bits = match (family, last.first()?) {
            (oid::RSA, 10) => pss_bits(parameters),
            (oid::RSA, 4 | 5 | 11) => 256,
            (oid::RSA, 12) | (oid::ECDSA_SHA2, 3) => 384,
            (oid::RSA, 13) | (oid::ECDSA_SHA2, 4) => 512,
            (oid::ECDSA_SHA2, 2) => 256,
            _ if name == oid::ECDSA_SHA1 => 256,
            _ => return None,
        };
        Some(match bits {
            384 => Sha384::digest(self.whole).to_vec(),
            512 => Sha512::digest(self.whole).to_vec(),
            _ => Sha256::digest(self.whole).to_vec(),
        })
    }
}

/// The hash of an RSASSA-PSS signature: the first SHA-2 in its parameters. SHA-1, the default, counts as SHA-256.
fn pss_bits(parameters: &[u8]) -> u32 {
    let found = parameters.windows(oid::SHA2.len() + 1).find(|window| window.starts_with(oid::SHA2));
    match found.and_then(<[u8]>::last) {
        Some(2) => 384,
        Some(3) => 512,
        _ => 256,
    }
}

/// Tag and body of the first element, and the bytes after it.
pub(crate) fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        long @ 0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let length = digits.iter().fold(0_usize, |length, digit| length << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    let (body, rest) = rest.split_at_checked(length)?;
    Some((*kind, body, rest))
}

/// Common names in a subject's relative distinguished names.
fn common_names(subject: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut sets = subject;
    while let Some((_, set, more)) = element(sets) {
        sets = more;
        let mut pairs = set;
        while let Some((_, pair, more)) = element(pairs) {
            pairs = more;
            let named = element(pair).filter(|(kind, name, _)| *kind == OBJECT && *name == oid::COMMON_NAME);
            if let Some((_, value, _)) = named.and_then(|(_, _, value)| element(value)) {
                names.push(String::from_utf8_lossy(value).into_owned());
            }
        }
    }
    names
}

/// Whether an object identifier occurs as an element.
fn contains(bytes: &[u8], object: &[u8]) -> bool {
    let mut wanted = vec![OBJECT, u8::try_from(object.len()).unwrap_or(0)];
    wanted.extend_from_slice(object);
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// `UTCTime` (two digits of the year, from 1950) or `GeneralizedTime`.
fn instant(kind: u8, body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match (kind, text.len()) {
        (0x17, 12) => {
            let century = if text < "50" { "20" } else { "19" };
            Some(format!("{century}{text}"))
        }
        (0x18, 14) => Some(text.to_owned()),
        _ => None,
    }
}

/// Formats seconds since 1970 as `YYYYMMDDHHMMSS`.
pub(crate) fn instant_of(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let instant = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    instant.strftime("%Y%m%d%H%M%S").to_string()
}

/// Whether a name in a certificate (`*.example.com` matches one label) matches a host.
pub(crate) fn name_matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    match pattern.strip_prefix("*.") {
        Some(domain) => host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == domain),
        None => pattern == host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEQUENCE: u8 = 0x30;

    #[test]
    fn instants_are_calendar_ones() {
        assert_eq!(instant_of(0), "19700101000000");
        assert_eq!(instant_of(951_826_154), "20000229120914");
        assert_eq!(instant_of(4_107_542_399), "21000228235959");
        assert_eq!(instant(0x17, b"491231235959Z").as_deref(), Some("20491231235959"));
        assert_eq!(instant(0x17, b"500101000000Z").as_deref(), Some("19500101000000"));
        assert_eq!(instant(0x17, b"5001010000Z"), None);
    }

    #[test]
    fn a_star_is_one_label() {
        assert!(name_matches("*.Example.com", "db.example.COM"));
        assert!(!name_matches("*.example.com", "a.b.example.com"));
        assert!(!name_matches("*.example.com", "example.com"));
        assert!(!name_matches("*.example.com", ".example.com"));
        assert!(name_matches("db", "DB"));
    }

    proptest! {
        #[test]
        fn damaged_certificates_are_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(read) = Certificate::read(&bytes) {
                let _ = read.end_point();
            }
            let mut nested = vec![SEQUENCE, 0x81, 200, SEQUENCE, 0x81, 100];
            nested.extend(bytes);
            let _ = Certificate::read(&nested);
        }
    }
}
