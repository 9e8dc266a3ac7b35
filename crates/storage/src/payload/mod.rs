//! The content of writes: random bytes, bytes that compress or deduplicate as requested, a pattern, zeroes.
//!
//! Owns the content of write buffers; knows only the offset of their destination. The work loop calls it before each
//! write; it allocates nothing then. `docs/design/storage-payload.md` describes the effect of each option.

pub(super) mod proof;

use super::spec::{PayloadOptions, Verify};
use assay_measure::prng::{Purpose, Stream};

/// Bytes repeated over a buffer, with placeholders for the I/O's offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    bytes: Vec<u8>,
    /// Positions in `bytes` of eight offset bytes, little-endian.
    offsets: Vec<u32>,
}

impl Template {
    /// `None` for an empty pattern, which has no content.
    pub(super) fn new(bytes: &[u8], offsets: &[u32]) -> Option<Self> {
        (!bytes.is_empty()).then(|| Self { bytes: bytes.to_vec(), offsets: offsets.to_vec() })
    }

    /// Whether the content is the same for every offset.
    fn is_fixed(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The byte at `at` of a buffer written at `offset`.
    pub(super) fn byte(&self, at: usize, offset: u64) -> u8 {
        let at = at % self.bytes.len();
        let inside = self.offsets.iter().find(|place| (**place as usize..**place as usize + 8).contains(&at));
        match inside {
            Some(place) => offset.to_le_bytes()[at - *place as usize],
            None => self.bytes[at],
        }
    }

    /// Fills `buffer`, whose first byte is byte `phase` of the I/O.
    pub(super) fn fill(&self, buffer: &mut [u8], phase: usize, offset: u64) {
        let unit = self.bytes.len().min(buffer.len());
        for (at, byte) in buffer[..unit].iter_mut().enumerate() {
            *byte = self.byte(phase + at, offset);
        }
        repeat(buffer, unit);
    }

    /// The first byte that differs from the output of [`Template::fill`].
    pub(super) fn first_difference(&self, buffer: &[u8], phase: usize, offset: u64) -> Option<usize> {
        let unit = self.bytes.len().min(buffer.len());
        let begin = (0..unit).find(|at| buffer[*at] != self.byte(phase + at, offset));
        // After the first unit, each byte equals the one a unit before.
        begin.or_else(|| {
            let (before, after) = (&buffer[..buffer.len() - unit], &buffer[unit..]);
            if before == after {
                return None;
            }
            (0..after.len()).find(|at| before[*at] != after[*at]).map(|at| at + unit)
        })
    }
}

/// Repeats the first `unit` bytes over the whole buffer, doubling the filled part.
fn repeat(buffer: &mut [u8], unit: usize) {
    let mut made = unit;
    while made > 0 && made < buffer.len() {
        let more = made.min(buffer.len() - made);
        buffer.copy_within(..more, made);
        made += more;
    }
}

#[derive(Clone, Debug)]
enum Content {
    Zero,
    Template(Template),
    Random,
}

/// The content of one clone's writes.
#[derive(Clone, Debug)]
pub struct Payload {
    content: Content,
    /// Whether every write has new content.
    refill: bool,
    scramble: bool,
    /// Whether every sector proves its file.
    proven: bool,
    compress_percent: u64,
    /// Bytes of which `compress_percent` compress; 0 for the whole buffer.
    compress_chunk: usize,
    /// Fills the compressible part; zeroes without it.
    filler: Option<Template>,
    dedupe_percent: u64,
    /// Number of writes in the current hundred, and how many of them may still repeat an earlier one.
    hundred: (u64, u64),
    /// Seed of the content that the next repetition uses.
    last_seed: Option<u64>,
    stream: Stream,
    writes: u64,
}

/// Whether every sector written with these options [proves](proof) to which file it belongs.
pub(super) fn is_proven(options: &PayloadOptions) -> bool {
    let own = options.zero || options.pattern.is_some() || options.verify != Verify::None;
    options.scramble && !own && options.compress_percent == 0 && options.dedupe_percent == 0
}

impl Payload {
    /// The content of clone `clone` (from 0 over all jobs).
    #[must_use]
    pub fn new(options: &PayloadOptions, clone: u32, seed: u64) -> Self {
        let verifies = options.verify != Verify::None;
        let verified = options
            .verify_pattern
            .as_deref()
            .filter(|_| verifies)
            .and_then(|bytes| Template::new(bytes, &options.verify_pattern_offsets));
        let plain = options.pattern.as_deref().and_then(|bytes| Template::new(bytes, &[]));
        let compresses = options.compress_percent > 0;
        let content = match (verified, &plain) {
            (Some(template), _) => Content::Template(template),
            _ if options.zero => Content::Zero,
            (None, Some(template)) if !compresses => Content::Template(template.clone()),
            _ => Content::Random,
        };
        Self {
            content,
            refill: options.refill || compresses || options.dedupe_percent > 0 || verifies,
            scramble: options.scramble,
            proven: is_proven(options),
            compress_percent: u64::from(options.compress_percent.min(100)),
            compress_chunk: options.compress_chunk as usize,
            filler: plain,
            dedupe_percent: u64::from(options.dedupe_percent.min(100)),
            hundred: (0, 0),
            last_seed: None,
            stream: Stream::new(seed, u64::from(clone) + 1, Purpose::StoragePayload),
            writes: 0,
        }
    }

    /// Fills `buffer` with the content of the write at `offset` of the file numbered `file`. `fresh` means that the
    /// buffer was never prepared, or that something was read into it since.
    #[inline]
    pub fn prepare(&mut self, buffer: &mut [u8], file: u64, offset: u64, fresh: bool) {
        self.writes += 1;
        match &self.content {
            Content::Random if self.refill => {
                self.refill(buffer, offset);
                if self.proven {
                    proof::stamp(file, buffer, offset, self.writes);
                }
            }
            Content::Random => {
                if fresh {
                    self.stream.fill(buffer);
                }
                if self.scramble {
                    proof::stamp(file, buffer, offset, self.writes);
                }
            }
            Content::Zero if fresh || self.refill => buffer.fill(0),
            Content::Template(template) if fresh || self.refill || !template.is_fixed() => {
                template.fill(buffer, 0, offset);
            }
            Content::Zero | Content::Template(_) => {}
        }
    }

    fn refill(&mut self, buffer: &mut [u8], offset: u64) {
        let seed = self.content_seed();
        let mut content = Stream::new(seed, 0, Purpose::StoragePayload);
        if self.compress_percent == 0 {
            content.fill(buffer);
            return;
        }
        let chunk = match self.compress_chunk {
            0 => buffer.len(),
            bytes => bytes.min(buffer.len()),
        };
        let mut phase = 0;
        for piece in buffer.chunks_mut(chunk.max(1)) {
            let fills = (piece.len() as u64 * self.compress_percent / 100) as usize;
            let random = piece.len() - fills;
            content.fill(&mut piece[..random]);
            match &self.filler {
                Some(template) => template.fill(&mut piece[random..], phase + random, offset),
                None => piece[random..].fill(0),
            }
            phase += piece.len();
        }
    }

    /// A new seed, or the last one again for the requested number of writes per hundred. The very first write repeats
    /// nothing.
    fn content_seed(&mut self) -> u64 {
        let (left, repeats) = &mut self.hundred;
        if *left == 0 {
            (*left, *repeats) = (100, self.dedupe_percent);
        }
        let again = *repeats > 0 && self.stream.below(*left) < *repeats;
        *left -= 1;
        *repeats -= u64::from(again);
        match self.last_seed.filter(|_| again) {
            Some(seed) => seed,
            None => {
                let seed = self.stream.next_u64();
                self.last_seed = Some(seed);
                seed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    const LEN: usize = 4096;

    fn payload(set: impl FnOnce(&mut PayloadOptions)) -> Payload {
        let mut options = PayloadOptions::default();
        set(&mut options);
        Payload::new(&options, 0, 1)
    }

    /// Prepares `count` writes one after another in a single buffer.
    fn written(payload: &mut Payload, count: usize) -> Vec<Vec<u8>> {
        let mut buffer = vec![0xee; LEN];
        (0..count)
            .map(|i| {
                payload.prepare(&mut buffer, 7, (i * LEN) as u64, i == 0);
                buffer.clone()
            })
            .collect()
    }

    fn gzipped_percent(blocks: &[Vec<u8>]) -> f64 {
        let mut gzip =
            Command::new("gzip").args(["-9", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let all: Vec<u8> = blocks.concat();
        let (mut input, bytes) = (gzip.stdin.take().unwrap(), all.len());
        let feeder = std::thread::spawn(move || input.write_all(&all));
        let out = gzip.wait_with_output().unwrap().stdout.len();
        feeder.join().unwrap().unwrap();
        100.0 * out as f64 / bytes as f64
    }

    #[test]
    fn by_default_content_is_random_and_no_sector_repeats() {
        let blocks = written(&mut payload(|_| {}), 200);
        assert!(gzipped_percent(&blocks[..1]) > 99.0);
        let sectors: HashSet<&[u8]> = blocks.iter().flat_map(|b| b.chunks(512)).collect();
        assert_eq!(sectors.len(), 200 * 8);
        // The same clone writes the same content in the next run; another clone does not.
        assert_eq!(blocks, written(&mut payload(|_| {}), 200));
        let mut other = Payload::new(&PayloadOptions::default(), 1, 1);
        assert_ne!(blocks, written(&mut other, 200));
    }

    #[test]
    fn without_scrambling_a_buffer_stays_as_it_is_and_refilling_makes_it_new() {
        let mut still = payload(|o| o.scramble = false);
        let blocks = written(&mut still, 20);
        assert!(blocks.iter().all(|block| *block == blocks[0]));
        let mut refilled = payload(|o| o.refill = true);
        assert!(gzipped_percent(&written(&mut refilled, 20)) > 99.0);
    }

    #[test]
    fn what_is_said_to_be_proven_is_and_nothing_else() {
        type Set = fn(&mut PayloadOptions);
        let cases: [(Set, bool); 8] = [
            (|_| {}, true),
            (|o| o.refill = true, true),
            (|o| o.scramble = false, false),
            (|o| o.zero = true, false),
            (|o| o.pattern = Some(b"x".to_vec()), false),
            (|o| o.compress_percent = 50, false),
            (|o| o.dedupe_percent = 50, false),
            (|o| o.verify = Verify::Crc32c, false),
        ];
        for (number, (set, expected)) in cases.into_iter().enumerate() {
            let mut options = PayloadOptions::default();
            set(&mut options);
            assert_eq!(is_proven(&options), expected, "case {number}");
            let blocks = written(&mut payload(set), 300);
            let sectors = blocks.iter().flat_map(|block| block.chunks(512)).zip(0_u64..);
            let proven = sectors.filter(|(sector, at)| proof::proves(7, sector, at * 512));
            assert_eq!(proven.count(), if expected { 2400 } else { 0 }, "case {number}");
        }
    }

    #[test]
    fn content_compresses_as_far_as_asked() {
        for percent in [10, 50, 75, 90] {
            for chunk in [0, 512] {
                let mut payload = payload(|o| {
                    o.compress_percent = percent;
                    o.compress_chunk = chunk;
                });
                let found = 100.0 - gzipped_percent(&written(&mut payload, 200));
                // Marking where zeroes begin and end costs a little of each chunk.
                let off = f64::from(percent) - found;
                assert!((-1.0..2.5).contains(&off), "{percent} % in {chunk}: {found}");
            }
        }
        let mut all = payload(|o| o.compress_percent = 100);
        assert!(written(&mut all, 3).iter().flatten().all(|byte| *byte == 0));
        // With a pattern, the pattern is the compressible part.
        let mut filled = payload(|o| {
            o.compress_percent = 50;
            o.pattern = Some(b"xy".to_vec());
        });
        let block = &written(&mut filled, 1)[0];
        assert_eq!(&block[256..260], b"xyxy");
        assert_eq!(&block[508..512], b"xyxy");
    }

    #[test]
    fn blocks_repeat_as_often_as_asked() {
        for percent in [0, 1, 30, 80, 100] {
            let mut payload = payload(|o| {
                o.refill = true;
                o.dedupe_percent = percent;
            });
            let blocks = written(&mut payload, 1000);
            let different: HashSet<&Vec<u8>> = blocks.iter().collect();
            let repeated = 1000 - different.len() as u32;
            assert!(repeated.abs_diff(percent * 10) <= 1, "{percent} %: {repeated}");
        }
    }

    #[test]
    fn patterns_and_zeroes_fill_the_buffer_and_come_back_after_a_read() {
        let mut zeroes = payload(|o| o.zero = true);
        assert!(written(&mut zeroes, 2).iter().flatten().all(|b| *b == 0));
        let mut three = payload(|o| o.pattern = Some(b"abc".to_vec()));
        let mut buffer = written(&mut three, 2).pop().unwrap();
        assert!(buffer.iter().zip("abc".bytes().cycle()).all(|(a, b)| *a == b));
        buffer.fill(7);
        three.prepare(&mut buffer, 7, 0, true);
        assert_eq!(&buffer[4093..], b"bca");
        zeroes.prepare(&mut buffer, 7, 0, true);
        assert!(buffer.iter().all(|b| *b == 0));
    }

    #[test]
    fn an_offset_in_a_pattern_is_that_of_the_io() {
        let mut offsets = payload(|o| {
            o.verify = Verify::Pattern;
            o.verify_pattern = Some([&[0; 8], &b"abcd"[..]].concat());
            o.verify_pattern_offsets = vec![0];
        });
        let mut buffer = vec![0; 100];
        offsets.prepare(&mut buffer, 7, 0x0102_0304, true);
        assert_eq!(&buffer[..16], &[4, 3, 2, 1, 0, 0, 0, 0, b'a', b'b', b'c', b'd', 4, 3, 2, 1]);
        let template = Template::new(&[0; 8], &[0]).unwrap();
        let mut part = vec![0; 50];
        template.fill(&mut part, 3, 0x55);
        assert_eq!(part[..6], [0, 0, 0, 0, 0, 0x55]);
        assert_eq!(template.first_difference(&part, 3, 0x55), None);
        for at in 0..50 {
            let mut bad = part.clone();
            bad[at] ^= 0x80;
            assert_eq!(template.first_difference(&bad, 3, 0x55), Some(at));
        }
    }
}
