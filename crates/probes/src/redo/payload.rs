//! What messages carry: made, or read from a file of the user's, before the test.

use super::options::CONTENT;
use assay_measure::prng::SplitMix64;
use assay_run::bounded;
use assay_run::engine::EngineError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What there is to send of.
const POOL_BYTES: usize = 16 << 20;
/// What is read of a file at most.
const FILE_BYTES: u64 = 64 << 20;
/// Between the beginnings of two payloads, so that no two messages in a row are alike: odd, and no multiple of a block.
const STEP_BYTES: usize = 4099;
/// Bytes of which `mix:R` makes one part in R random and the rest zeros: a compressor's own bytes for each are few.
const MIX_BYTES: usize = 2048;

/// What payloads consist of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) enum Content {
    #[default]
    Random,
    Zeros,
    /// Compressible to one part in this many.
    Mix(f64),
    /// The bytes of a file.
    File(PathBuf),
}

impl fmt::Display for Content {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => out.write_str("random"),
            Self::Zeros => out.write_str("zeros"),
            Self::Mix(ratio) => write!(out, "mix:{ratio}"),
            Self::File(path) => write!(out, "file:{}", path.display()),
        }
    }
}

impl Content {
    /// `random`, `zeros`, `mix:R`, `file:PATH`; a file must be there and hold a message.
    pub(super) fn parse(text: &str, length: u64) -> Result<Self, EngineError> {
        if let Some(path) = text.strip_prefix("file:") {
            let is_regular = Path::new(path).metadata();
            let found = is_regular.map_err(|error| CONTENT.refused(text, error))?;
            if !found.is_file() {
                return Err(CONTENT.refused(text, "give a regular file"));
            }
            if found.len() < length.max(1) {
                let bytes = found.len();
                let why = format!("its {bytes} bytes are fewer than a message of {length} (--length)");
                return Err(CONTENT.refused(text, why));
            }
            return Ok(Self::File(path.into()));
        }
        let word = text.to_lowercase();
        if let Some(ratio) = word.strip_prefix("mix:") {
            let ratio = ratio.parse().ok().filter(|ratio| (1.0..=100.0).contains(ratio));
            let why = "give mix:1 to mix:100; mix:2.5 is compressible to 1/2.5";
            return ratio.map(Self::Mix).ok_or_else(|| CONTENT.refused(text, why));
        }
        match word.as_str() {
            "random" => Ok(Self::Random),
            "zeros" | "zeroes" => Ok(Self::Zeros),
            _ => Err(CONTENT.refused(text, "give random, zeros, mix:R or file:PATH")),
        }
    }

    /// The bytes that messages of at most `length` are taken from.
    fn bytes(&self, length: usize, seed: u64) -> Result<Vec<u8>, EngineError> {
        let mut bytes = vec![0; POOL_BYTES.max(2 * length)];
        match self {
            Self::Zeros => {}
            Self::Random => SplitMix64(seed).fill(&mut bytes),
            Self::Mix(ratio) => {
                let mut random = SplitMix64(seed);
                let share = (MIX_BYTES as f64 / ratio).round() as usize;
                for unit in bytes.chunks_mut(MIX_BYTES) {
                    let end = share.min(unit.len());
                    random.fill(&mut unit[..end]);
                }
            }
            Self::File(path) => {
                bytes.clear();
                let file = bounded::open(path, bounded::CONTENT);
                let read = file.and_then(|file| file.take(FILE_BYTES).read_to_end(&mut bytes));
                read.map_err(|error| CONTENT.refused(&self.to_string(), error))?;
                if bytes.len() < length.max(1) {
                    return Err(CONTENT.refused(&self.to_string(), "it became shorter than a message"));
                }
            }
        }
        Ok(bytes)
    }
}

/// Payloads, made before the test; its clones share them.
#[derive(Clone)]
pub(super) struct Pool {
    bytes: Arc<Vec<u8>>,
    /// Bytes of the longest payload.
    length: usize,
    step: usize,
}

impl Pool {
    /// One for payloads of at most so many bytes.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn new(content: &Content, length: u64, seed: u64) -> Result<Self, EngineError> {
        let length = length as usize;
        // Of a file one message follows the other, as they did.
        let step = match content {
            Content::File(_) => length.max(1),
            _ => STEP_BYTES,
        };
        Ok(Self { bytes: Arc::new(content.bytes(length, seed)?), length, step })
    }

    /// The first `length` bytes of the payload of message `sequence`, as often as they are asked for.
    pub(super) fn of(&self, sequence: u64, length: usize) -> &[u8] {
        let room = (self.bytes.len() - self.length + 1) as u64;
        let from = (sequence.wrapping_mul(self.step as u64) % room) as usize;
        &self.bytes[from..from + length.min(self.length)]
    }

    /// Part of the bytes that are zero.
    pub(super) fn zero_ratio(&self) -> f64 {
        let zeros = self.bytes.iter().filter(|byte| **byte == 0).count();
        zeros as f64 / self.bytes.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redo::pack::{Compress, Packer};

    #[test]
    fn a_mix_is_compressible_to_what_it_says_in_both_ways() {
        for (ratio, how) in [(2.5, Compress::Lz4), (2.5, Compress::Zstd(1)), (8.0, Compress::Zstd(3))] {
            let pool = Pool::new(&Content::Mix(ratio), 65_536, 7).unwrap();
            let mut packer = Packer::new(how, 65_536).unwrap();
            let mut packed = 0;
            for sequence in 1..=50 {
                let payload = pool.of(sequence, 65_536);
                packed += packer.pack(payload).unwrap().map_or(65_536, <[u8]>::len);
            }
            let found = 50.0 * 65_536.0 / packed as f64;
            assert!((found / ratio - 1.0).abs() < 0.06, "{how}: {found} of {ratio}");
        }
    }

    #[test]
    fn a_file_is_sent_in_its_order_and_one_that_holds_no_message_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at / 7) as u8).collect();
        std::fs::write(file.path(), &bytes).unwrap();
        let text = format!("file:{}", file.path().display());
        let content = Content::parse(&text, 1000).unwrap();
        let pool = Pool::new(&content, 1000, 7).unwrap();
        assert_eq!(pool.of(0, 1000), &bytes[..1000]);
        assert_eq!(pool.of(3, 1000), &bytes[3000..4000]);
        let short = Content::parse(&text, 1 << 20).unwrap_err().to_string();
        assert!(short.contains("--length"), "{short}");
        for text in ["file:/", "file:/no/such", "mix:", "mix:0.5", "mix:1000", "ones"] {
            let error = Content::parse(text, 1).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--content {text}: ")), "{error}");
        }
    }
}
