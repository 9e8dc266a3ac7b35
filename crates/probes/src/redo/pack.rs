//! Compression of payloads: how it is named, packing on the primary, unpacking on the standby.

use super::options::COMPRESS;
use assay_run::engine::EngineError;
use serde::{Deserialize, Serialize};
use std::fmt;
#[cfg(feature = "zstd")]
use zstd::bulk::{Compressor, Decompressor};

#[cfg(not(feature = "zstd"))]
use absent::{Compressor, Decompressor};

/// What stands where the library would: its functions refuse by name. A program without it is built in less time.
#[cfg(not(feature = "zstd"))]
mod absent {
    use std::io::{Error, Result};
    use std::marker::PhantomData;

    pub(super) struct Compressor<'a>(PhantomData<&'a ()>);
    pub(super) struct Decompressor<'a>(PhantomData<&'a ()>);

    fn refused<T>() -> Result<T> {
        Err(Error::other(super::ABSENT))
    }

    impl Compressor<'_> {
        pub(super) fn new(_: i32) -> Result<Self> {
            refused()
        }

        pub(super) fn compress_to_buffer(&mut self, _: &[u8], _: &mut [u8]) -> Result<usize> {
            refused()
        }
    }

    impl Decompressor<'_> {
        pub(super) fn new() -> Result<Self> {
            refused()
        }

        pub(super) fn decompress_to_buffer(&mut self, _: &[u8], _: &mut [u8]) -> Result<usize> {
            refused()
        }
    }
}

/// Said where zstd is asked for and was not compiled in.
const ABSENT: &str = "this assay was built without zstd; build it with `cargo build --release --features full`";

/// Levels of zstd that are taken: those that a log writer could afford, and one more of its kind.
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = 1..=19;

/// How payloads are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Compress {
    #[default]
    None,
    /// The block format of LZ4, which has one level.
    Lz4,
    /// Zstandard at a level.
    Zstd(i32),
}

impl fmt::Display for Compress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("none"),
            Self::Lz4 => out.write_str("lz4"),
            Self::Zstd(level) => write!(out, "zstd:{level}"),
        }
    }
}

impl Compress {
    /// `none`, `lz4`, `zstd` (level 1), `zstd:LEVEL`.
    pub(super) fn parse(text: &str) -> Result<Self, EngineError> {
        let word = text.to_lowercase();
        if cfg!(not(feature = "zstd")) && word.starts_with("zstd") {
            return Err(COMPRESS.refused(text, ABSENT));
        }
        let level = |level: &str| level.parse().ok().filter(|level| ZSTD_LEVELS.contains(level));
        match word.as_str() {
            "" | "none" => Some(Self::None),
            "lz4" => Some(Self::Lz4),
            "zstd" => Some(Self::Zstd(1)),
            other => other.strip_prefix("zstd:").and_then(level).map(Self::Zstd),
        }
        .ok_or_else(|| COMPRESS.refused(text, "give lz4, or zstd:LEVEL with a level of 1 to 19"))
    }
}

/// Packs payloads, one after the other.
pub(super) struct Packer {
    how: Compress,
    zstd: Option<Compressor<'static>>,
    packed: Vec<u8>,
}

impl Packer {
    /// One for payloads of at most so many bytes.
    pub(super) fn new(how: Compress, length: usize) -> Result<Self, String> {
        let zstd = match how {
            Compress::Zstd(level) => Some(Compressor::new(level)),
            _ => None,
        };
        let room = match how {
            Compress::None => 0,
            Compress::Lz4 => lz4_flex::block::get_maximum_output_size(length),
            // ZSTD_COMPRESSBOUND: a 256th more, and up to 64 bytes for a short payload.
            Compress::Zstd(_) => length + length / 256 + 64,
        };
        Ok(Self { how, zstd: zstd.transpose().map_err(|error| format!("zstd: {error}"))?, packed: vec![0; room] })
    }

    /// The payload packed; `None` where that makes it no smaller, or nothing is to be packed.
    pub(super) fn pack(&mut self, payload: &[u8]) -> Result<Option<&[u8]>, String> {
        let count = match (self.how, &mut self.zstd) {
            (Compress::None, _) => return Ok(None),
            (_, Some(zstd)) => zstd
                .compress_to_buffer(payload, self.packed.as_mut_slice())
                .map_err(|error| format!("zstd: {error}"))?,
            (_, None) => {
                lz4_flex::block::compress_into(payload, &mut self.packed).map_err(|error| format!("lz4: {error}"))?
            }
        };
        Ok((count < payload.len()).then(|| &self.packed[..count]))
    }
}

/// Unpacks what a stranger packed: never more than there is room for.
pub(super) struct Unpacker {
    how: Compress,
    zstd: Option<Decompressor<'static>>,
}

impl Unpacker {
    pub(super) fn new(how: Compress) -> Result<Self, String> {
        let zstd = match how {
            Compress::Zstd(_) => Some(Decompressor::new()),
            _ => None,
        };
        Ok(Self { how, zstd: zstd.transpose().map_err(|error| format!("zstd: {error}"))? })
    }

    /// Unpacks into the room; how many bytes it was.
    ///
    /// # Errors
    /// Bytes that nobody packed, more of them than there is room for, or no compression was agreed on.
    pub(super) fn unpack(&mut self, packed: &[u8], room: &mut [u8]) -> Result<usize, String> {
        match (self.how, &mut self.zstd) {
            (Compress::None, _) => Err("no compression was agreed on".to_owned()),
            (_, Some(zstd)) => zstd.decompress_to_buffer(packed, room).map_err(|error| format!("zstd: {error}")),
            (_, None) => lz4_flex::block::decompress_into(packed, room).map_err(|error| format!("lz4: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::prng::SplitMix64;

    const ALL: [Compress; 3] = [Compress::Lz4, Compress::Zstd(1), Compress::Zstd(3)];

    #[test]
    fn what_is_packed_comes_back_and_what_gets_no_smaller_goes_as_it_is() {
        let mut random = vec![0; 8192];
        SplitMix64(3).fill(&mut random);
        let mixed: Vec<u8> = [&random[..4096], &[0; 4096]].concat();
        for how in ALL {
            let mut packer = Packer::new(how, 8192).unwrap();
            assert!(packer.pack(&random).unwrap().is_none(), "{how}");
            let packed = packer.pack(&mixed).unwrap().expect("it gets smaller").to_vec();
            assert!((4096..4300).contains(&packed.len()), "{how}: {}", packed.len());
            let mut room = vec![1; 8192];
            let mut unpacker = Unpacker::new(how).unwrap();
            assert_eq!(unpacker.unpack(&packed, &mut room), Ok(8192), "{how}");
            assert_eq!(room, mixed, "{how}");
            assert!(packer.pack(&[]).unwrap().is_none(), "{how}");
        }
        let mut none = Packer::new(Compress::None, 8192).unwrap();
        assert!(none.pack(&mixed).unwrap().is_none());
    }

    #[test]
    fn redo_18_nothing_is_unpacked_beyond_the_room_that_there_is() {
        let bomb = vec![0; 1 << 20];
        for how in ALL {
            let mut packer = Packer::new(how, bomb.len()).unwrap();
            let packed = packer.pack(&bomb).unwrap().expect("it gets smaller").to_vec();
            let mut room = vec![0; bomb.len() - 1];
            let mut unpacker = Unpacker::new(how).unwrap();
            assert!(unpacker.unpack(&packed, &mut room).is_err(), "{how}");
        }
        let mut none = Unpacker::new(Compress::None).unwrap();
        assert!(none.unpack(&[0; 10], &mut [0; 100]).is_err());
    }

    #[test]
    fn a_compression_is_known_by_its_name_and_level() {
        for (text, how) in [
            ("none", Compress::None),
            ("LZ4", Compress::Lz4),
            ("zstd", Compress::Zstd(1)),
            ("zstd:3", Compress::Zstd(3)),
        ] {
            assert_eq!(Compress::parse(text).unwrap(), how, "{text}");
        }
        for text in ["gzip", "lz4:2", "zstd:", "zstd:0", "zstd:20", "zstd:-1"] {
            let error = Compress::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--compress {text}: ")), "{error}");
        }
    }
}
