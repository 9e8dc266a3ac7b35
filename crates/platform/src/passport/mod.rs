//! A passport: what a box did in some rounds of short tests, kept in one file; and whether another box, or this one at another
//! time, does the same.

mod info;
mod judge;
mod page;
pub mod record;
mod rounds;

#[cfg(test)]
mod tests;

pub use rounds::{LEAST_S, ROUNDS, USUAL_S, tests};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a file of this kind calls itself.
const FORMAT: &str = "assay-passport-1";

/// What a box did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passport {
    /// [`FORMAT`].
    format: String,
    /// When it was made, and on which host.
    pub made: String,
    /// The host's name.
    pub host: String,
    /// The version of assay that measured: another one may measure in another way.
    pub version: String,
    /// What all rounds took, s; another box is tested for as long.
    pub seconds: u64,
    /// Bytes of the file that was read and written.
    pub file_bytes: u64,
    /// Whether another host took part.
    pub has_peer: bool,
    /// What the kernel told.
    pub facts: BTreeMap<String, String>,
    /// What was measured.
    pub rows: Vec<Measured>,
    /// SHA-256 of the whole with this text empty, in hexadecimal: shows that a file was changed, not by whom.
    sha256: String,
}

/// One figure in every round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Its name, which ends in its unit.
    pub what: String,
    /// Its value in each round that had one, in order.
    pub rounds: Vec<f64>,
    /// How many of them others disturbed.
    pub disturbed_count: usize,
}

impl Passport {
    /// As a file keeps it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut signed = Self { format: FORMAT.to_owned(), sha256: String::new(), ..self.clone() };
        signed.sha256 = signed.digest();
        signed.json()
    }

    /// Of a file's text.
    ///
    /// # Errors
    /// What is wrong with it, in one sentence.
    pub fn read(text: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(text)
            .map_err(|error| format!("is no passport of assay: {error}; `assay passport` makes one"))?;
        if read.format != FORMAT {
            return Err(format!("is a passport of the form \"{}\", this assay reads {FORMAT}", read.format));
        }
        let unsigned = Self { sha256: String::new(), ..read.clone() };
        if unsigned.digest() != read.sha256 {
            return Err(
                "was changed after it was made: its sha256 does not fit; take the file as `assay passport` wrote it"
                    .to_owned(),
            );
        }
        let is_usable = |row: &Measured| row.rounds.iter().all(|value| value.is_finite() && *value >= 0.0);
        if read.rows.is_empty() || !read.rows.iter().all(is_usable) || read.seconds < LEAST_S {
            return Err("holds no figures to compare with; make it again with `assay passport`".to_owned());
        }
        Ok(read)
    }

    fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts are JSON") + "\n"
    }

    fn digest(&self) -> String {
        let digest = Sha256::digest(self.json().as_bytes());
        digest.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
