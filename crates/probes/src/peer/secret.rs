//! The secret that both ends share.

use assay_run::bounded;
use assay_run::engine::EngineError;
use ring::hmac::{self, Key, Tag};
use std::fmt;
use std::path::Path;

/// Fewer could be guessed by trying.
const LEAST_BYTES: usize = 8;

/// A key made of the secret's bytes; it cannot be shown.
#[derive(Clone)]
pub(crate) struct Secret(Key);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

impl Secret {
    /// The content of a file, without the white space around it.
    pub(crate) fn of_file(path: &Path) -> Result<Self, EngineError> {
        let cannot =
            |source| EngineError::Io { what: format!("--secret-file {}: cannot read it", path.display()), source };
        let bytes = bounded::read(path, bounded::SECRET).map_err(cannot)?;
        let secret = bytes.trim_ascii();
        if secret.len() < LEAST_BYTES {
            return Err(EngineError::Usage(format!(
                "--secret-file {}: a secret has {LEAST_BYTES} to {} bytes; \
                 `openssl rand -hex 32 > FILE` makes one",
                path.display(),
                bounded::SECRET.most_bytes
            )));
        }
        Ok(Self(Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// Proves to know the secret: of these parts in this order, none of which may be taken for the end of another.
    pub(crate) fn proof(&self, parts: &[&[u8]]) -> Tag {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        context.sign()
    }

    /// Whether that is the proof of these parts; takes the same time whatever it is.
    pub(crate) fn is_proof(&self, parts: &[&[u8]], proof: &[u8]) -> bool {
        let mut whole = Vec::new();
        for part in parts {
            whole.extend_from_slice(&(part.len() as u64).to_le_bytes());
            whole.extend_from_slice(part);
        }
        hmac::verify(&self.0, &whole, proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_its_parts_and_its_secret_alone() {
        let dir = tempfile::tempdir().unwrap();
        let secret = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            Secret::of_file(&path)
        };
        let one = secret("one", "correct horse\n").unwrap();
        let same = secret("same", "  correct horse").unwrap();
        let other = secret("other", "battery staple").unwrap();
        let proof = one.proof(&[b"ab", b"c"]);
        assert!(same.is_proof(&[b"ab", b"c"], proof.as_ref()));
        assert!(!same.is_proof(&[b"a", b"bc"], proof.as_ref()));
        assert!(!other.is_proof(&[b"ab", b"c"], proof.as_ref()));
        assert_eq!(format!("{one:?}"), "***");
        let short = secret("short", " 1234567 \n").unwrap_err().to_string();
        assert!(short.contains("8 to 4096 bytes"), "{short}");
        let absent = Secret::of_file(&dir.path().join("absent")).unwrap_err();
        assert!(absent.to_string().contains("cannot read it"), "{absent}");
    }
}
