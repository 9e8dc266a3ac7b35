//! Kernels that go over pages byte by byte: checksums, hashes, encryption, copies.

use super::Work;
use assay_measure::prng::SplitMix64;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

const PAGE_BYTES: usize = 8192;
const PAGES: usize = 8;
const CHUNKS: usize = 4;
/// Bytes of one call: 8 pages of 8 KiB; four calls go over 256 KiB.
pub(super) const SET_BYTES: u64 = (PAGES * PAGE_BYTES) as u64;

/// Pages and what is computed of each.
struct Pages<F> {
    bytes: Vec<u8>,
    of: F,
}

fn over<F: Fn(&[u8]) -> u64 + Send + Sync + 'static>(of: F) -> Box<dyn Work> {
    let mut bytes = vec![0; CHUNKS * PAGES * PAGE_BYTES];
    SplitMix64(0x8192).fill(&mut bytes);
    Box::new(Pages { bytes, of })
}

fn chunk_of(bytes: &[u8], chunk: usize) -> std::slice::Chunks<'_, u8> {
    let size = PAGES * PAGE_BYTES;
    bytes[chunk * size..][..size].chunks(PAGE_BYTES)
}

impl<F: Fn(&[u8]) -> u64 + Send + Sync> Work for Pages<F> {
    fn chunks(&self) -> usize {
        CHUNKS
    }

    fn call(&self, chunk: usize, _: &mut [u8]) -> u64 {
        chunk_of(&self.bytes, chunk).fold(0, |sum, page| sum.rotate_left(7) ^ (self.of)(page))
    }
}

pub(super) fn crc32c_hw() -> Box<dyn Work> {
    over(|page| u64::from(crc32c::crc32c(page)))
}

pub(super) fn crc32c_table() -> Box<dyn Work> {
    over(|page| u64::from(crc_by_tables(page)))
}

pub(super) fn pagesum() -> Box<dyn Work> {
    over(|page| u64::from(fnv_lanes(page)))
}

pub(super) fn xor_fold() -> Box<dyn Work> {
    over(|page| {
        let (words, _) = page.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        words.fold(0, |sum, word| sum ^ word)
    })
}

pub(super) fn xxh64() -> Box<dyn Work> {
    over(|page| xxhash(page, 0))
}

pub(super) fn sha256() -> Box<dyn Work> {
    over(|page| {
        let digest = Sha256::digest(page);
        digest.first_chunk().copied().map_or(0, u64::from_be_bytes)
    })
}

#[cfg(target_arch = "x86_64")]
macro_rules! has {
    ($x86:tt, $arm:tt) => {
        std::arch::is_x86_feature_detected!($x86)
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! has {
    ($x86:tt, $arm:tt) => {
        std::arch::is_aarch64_feature_detected!($arm)
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
macro_rules! has {
    ($x86:tt, $arm:tt) => {
        false
    };
}

pub(super) fn crc_path() -> &'static str {
    if has!("sse4.2", "crc") { "CRC instruction" } else { "no instruction" }
}

pub(super) fn sha_path() -> &'static str {
    if has!("sha", "sha2") { "SHA instructions" } else { "no instructions" }
}

pub(super) fn aes_path() -> &'static str {
    if has!("aes", "aes") { "AES instructions" } else { "no instructions" }
}

/// The polynomial of CRC-32C, reflected (RFC 3720, appendix B.4).
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// Remainders of a byte followed by 0 to 7 zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// CRC-32C by eight tables at a time (Kounavis and Berry, "A Systematic Approach to Building High Performance
/// Software-based CRC Generators", 2005).
fn crc_by_tables(bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut crc = !0_u32;
    for eight in eights {
        let mixed = u64::from_le_bytes(*eight) ^ u64::from(crc);
        let [a, b, c, d, e, f, g, h] = mixed.to_le_bytes().map(usize::from);
        crc = TABLES[7][a] ^ TABLES[6][b] ^ TABLES[5][c] ^ TABLES[4][d];
        crc ^= TABLES[3][e] ^ TABLES[2][f] ^ TABLES[1][g] ^ TABLES[0][h];
    }
    for byte in rest {
        crc = crc >> 8 ^ TABLES[0][((crc ^ u32::from(*byte)) & 0xFF) as usize];
    }
    !crc
}

const LANES: usize = 32;
const FNV_PRIME: u32 = 16_777_619;

/// FNV-1a with a shift, in 32 lanes that do not wait for each other: the shape of PostgreSQL's page checksum
/// (`storage/checksum_impl.h`), with lanes that begin at their own number.
fn fnv_lanes(page: &[u8]) -> u32 {
    let mut lanes: [u32; LANES] = std::array::from_fn(|lane| lane as u32);
    let (words, _) = page.as_chunks::<4>();
    let (rows, _) = words.as_chunks::<LANES>();
    let step = |lane: u32, value: u32| {
        let mixed = lane ^ value;
        mixed.wrapping_mul(FNV_PRIME) ^ mixed >> 17
    };
    for row in rows {
        for (lane, word) in lanes.iter_mut().zip(row) {
            *lane = step(*lane, u32::from_le_bytes(*word));
        }
    }
    for _ in 0..2 {
        lanes = lanes.map(|lane| step(lane, 0));
    }
    lanes.iter().fold(0, |sum, lane| sum ^ lane)
}

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

fn xx_round(lane: u64, word: u64) -> u64 {
    let mixed = lane.wrapping_add(word.wrapping_mul(P2));
    mixed.rotate_left(31).wrapping_mul(P1)
}

/// XXH64 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
fn xxhash(bytes: &[u8], seed: u64) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut hash = seed.wrapping_add(P5);
    if !blocks.is_empty() {
        let begin = seed.wrapping_add(P1);
        let mut lanes = [begin.wrapping_add(P2), seed.wrapping_add(P2), seed, seed.wrapping_sub(P1)];
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = xx_round(*lane, u64::from_le_bytes(*word));
            }
        }
        let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, by)| lane.rotate_left(by));
        hash = turned.fold(0, u64::wrapping_add);
        for lane in lanes {
            hash = (hash ^ xx_round(0, lane)).wrapping_mul(P1).wrapping_add(P4);
        }
    }
    hash = hash.wrapping_add(bytes.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        hash = (hash ^ xx_round(0, u64::from_le_bytes(*word))).rotate_left(27);
        hash = hash.wrapping_mul(P1).wrapping_add(P4);
    }
    let (halves, rest) = rest.as_chunks::<4>();
    for half in halves {
        hash = (hash ^ u64::from(u32::from_le_bytes(*half)).wrapping_mul(P1)).rotate_left(23);
        hash = hash.wrapping_mul(P2).wrapping_add(P3);
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(P2);
    hash = (hash ^ hash >> 29).wrapping_mul(P3);
    hash ^ hash >> 32
}

struct AesGcm {
    key: LessSafeKey,
    bytes: Vec<u8>,
}

pub(super) fn aes_gcm() -> Box<dyn Work> {
    let mut key = [0; 32];
    SplitMix64(0xAE5).fill(&mut key);
    let mut bytes = vec![0; CHUNKS * PAGES * PAGE_BYTES];
    SplitMix64(0x8192).fill(&mut bytes);
    let key = UnboundKey::new(&AES_256_GCM, &key).expect("32 bytes are a key");
    Box::new(AesGcm { key: LessSafeKey::new(key), bytes })
}

impl Work for AesGcm {
    fn chunks(&self) -> usize {
        CHUNKS
    }

    fn scratch_bytes(&self) -> usize {
        PAGE_BYTES
    }

    /// Each page is copied and encrypted where the copy lies; the copy is in the time, some 3 % of it.
    fn call(&self, chunk: usize, scratch: &mut [u8]) -> u64 {
        let pages = chunk_of(&self.bytes, chunk).enumerate();
        pages.fold(0, |sum, (number, page)| {
            scratch.copy_from_slice(page);
            let mut nonce = [0; NONCE_LEN];
            nonce[0] = (chunk * PAGES + number) as u8;
            let nonce = Nonce::assume_unique_for_key(nonce);
            let sealed = self.key.seal_in_place_separate_tag(nonce, Aad::empty(), scratch);
            let tag = sealed.map_or(0, |tag| tag.as_ref().first_chunk().copied().map_or(0, u64::from_le_bytes));
            sum.rotate_left(7) ^ tag
        })
    }
}

const COPIES: usize = 32;
/// Bytes copied by one call.
pub(super) const COPIED: u64 = (COPIES * PAGE_BYTES) as u64;

/// Pages of a shared set, copied one after the other into a page of the thread's own.
struct Copy {
    bytes: Vec<u8>,
}

pub(super) fn copy_l1() -> Box<dyn Work> {
    Box::new(Copy::of(2))
}

pub(super) fn copy_l2() -> Box<dyn Work> {
    Box::new(Copy::of(32))
}

pub(super) fn copy_memory() -> Box<dyn Work> {
    Box::new(Copy::of(1 << 15))
}

impl Copy {
    fn of(pages: usize) -> Self {
        let mut first = vec![0; PAGE_BYTES];
        SplitMix64(0xC0B1).fill(&mut first);
        let mut bytes = vec![0; pages * PAGE_BYTES];
        for (number, page) in bytes.chunks_mut(PAGE_BYTES).enumerate() {
            page.copy_from_slice(&first);
            page[PAGE_BYTES / 2..][..8].copy_from_slice(&(number as u64).to_le_bytes());
        }
        Self { bytes }
    }

    fn pages(&self) -> usize {
        self.bytes.len() / PAGE_BYTES
    }
}

impl Work for Copy {
    fn chunks(&self) -> usize {
        (self.pages() / COPIES).max(1)
    }

    fn scratch_bytes(&self) -> usize {
        PAGE_BYTES
    }

    fn call(&self, chunk: usize, scratch: &mut [u8]) -> u64 {
        let pages = self.pages();
        let mut sum = 0_u64;
        for number in 0..COPIES {
            let page = (chunk * COPIES + number) % pages;
            scratch.copy_from_slice(&self.bytes[page * PAGE_BYTES..][..PAGE_BYTES]);
            let copied = std::hint::black_box(&*scratch)[PAGE_BYTES / 2..].first_chunk();
            sum = sum.rotate_left(1) ^ copied.copied().map_or(0, u64::from_le_bytes);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_05_crc32c_of_the_nine_digits_in_both_versions() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc_by_tables(b"123456789"), 0xE306_9283);
        let mut bytes = vec![0; 300];
        SplitMix64(1).fill(&mut bytes);
        for end in 0..bytes.len() {
            assert_eq!(crc_by_tables(&bytes[..end]), crc32c::crc32c(&bytes[..end]), "{end}");
        }
    }

    #[test]
    fn cpu_05_xxh64_and_sha256_match_published_vectors() {
        // xxHash's own: of nothing, of "a", of "abc", and of a text longer than a block.
        assert_eq!(xxhash(b"", 0), 0xEF46_DB37_51D8_E999);
        assert_eq!(xxhash(b"a", 0), 0xD24E_C4F1_A98C_6E5B);
        assert_eq!(xxhash(b"abc", 0), 0x44BC_2CF5_AD77_0999);
        let long = b"Nobody inspects the spammish repetition";
        assert_eq!(xxhash(long, 0), 0xFBCE_A83C_8A37_8BF1);
        // FIPS 180-4: SHA-256 of "abc".
        let digest = Sha256::digest(b"abc");
        assert_eq!(digest[..8], [0xBA, 0x78, 0x16, 0xBF, 0x8F, 0x01, 0xCF, 0xEA]);
    }

    #[test]
    fn what_aes_gcm_seals_opens_again() {
        let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).unwrap();
        let key = LessSafeKey::new(key);
        let mut page = b"a page".to_vec();
        let nonce = || Nonce::assume_unique_for_key([1; NONCE_LEN]);
        key.seal_in_place_append_tag(nonce(), Aad::empty(), &mut page).unwrap();
        let opened = key.open_in_place(nonce(), Aad::empty(), &mut page).unwrap();
        assert_eq!(opened, b"a page");
    }
}
