//! Kernels of rows and values: sort, slotted pages, decimals, text.

use super::Work;
use assay_measure::prng::SplitMix64;

/// Rows of one sort: 1 MiB, few enough that even a short window sees several.
pub(super) const SORTED: u64 = 1 << 16;
const ROW_BYTES: usize = 16;

struct Sort {
    rows: Vec<u8>,
}

pub(super) fn sort() -> Box<dyn Work> {
    let mut rows = vec![0; SORTED as usize * ROW_BYTES];
    SplitMix64(0x5047).fill(&mut rows);
    Box::new(Sort { rows })
}

impl Work for Sort {
    fn scratch_bytes(&self) -> usize {
        self.rows.len()
    }

    fn call(&self, _: usize, scratch: &mut [u8]) -> u64 {
        scratch.copy_from_slice(&self.rows);
        let (rows, _) = scratch.as_chunks_mut::<ROW_BYTES>();
        rows.sort_unstable();
        let every = rows.iter().step_by(64);
        every.fold(0, |sum: u64, row| {
            let low = u64::from_le_bytes([row[8], row[9], row[10], row[11], row[12], row[13], row[14], row[15]]);
            sum.rotate_left(5).wrapping_add(low)
        })
    }
}

const PAGE_BYTES: usize = 8192;
const PAGES: usize = 64;
const PAGES_PER_CALL: usize = 8;
const ROWS_PER_PAGE: usize = 64;
const COLUMNS: usize = 10;
/// Rows of one call.
pub(super) const ROWS_PER_CALL: u64 = (PAGES_PER_CALL * ROWS_PER_PAGE) as u64;
/// The column that is summed, and the one that decides whether it is.
const SUMMED: usize = 3;
const FILTERED: usize = 7;

/// Pages with a directory of rows at their begin and the rows at their end; a row is columns, each behind its length.
struct Tuple {
    pages: Vec<u8>,
}

pub(super) fn tuple() -> Box<dyn Work> {
    let mut random = SplitMix64(0x70F1E);
    let mut pages = vec![0; PAGES * PAGE_BYTES];
    for page in pages.chunks_mut(PAGE_BYTES) {
        fill(page, &mut random);
    }
    Box::new(Tuple { pages })
}

fn fill(page: &mut [u8], random: &mut SplitMix64) {
    let mut end = PAGE_BYTES;
    for row in 0..ROWS_PER_PAGE {
        let mut bytes = Vec::new();
        for column in 0..COLUMNS {
            let length = if column == SUMMED { 8 } else { random.next_u64() % 16 + 1 };
            bytes.push(length as u8);
            bytes.extend((0..length).map(|_| random.next_u64() as u8));
        }
        end -= bytes.len();
        page[end..end + bytes.len()].copy_from_slice(&bytes);
        page[2 * row..2 * row + 2].copy_from_slice(&(end as u16).to_le_bytes());
    }
}

/// Where each column of a row begins, and its value.
fn decode(page: &[u8], row: usize) -> [&[u8]; COLUMNS] {
    let mut at = usize::from(u16::from_le_bytes([page[2 * row], page[2 * row + 1]]));
    let mut columns = [&page[..0]; COLUMNS];
    for column in &mut columns {
        let length = usize::from(page[at]);
        *column = &page[at + 1..at + 1 + length];
        at += 1 + length;
    }
    columns
}

impl Work for Tuple {
    fn chunks(&self) -> usize {
        PAGES / PAGES_PER_CALL
    }

    fn call(&self, chunk: usize, _: &mut [u8]) -> u64 {
        let size = PAGES_PER_CALL * PAGE_BYTES;
        let (mut sum, mut lengths) = (0_u64, 0_u64);
        for page in self.pages[chunk * size..][..size].chunks(PAGE_BYTES) {
            for row in 0..ROWS_PER_PAGE {
                let columns = decode(page, row);
                lengths += columns.iter().map(|column| column.len() as u64).sum::<u64>();
                let value = columns[SUMMED].first_chunk().copied().map_or(0, u64::from_le_bytes);
                if columns[FILTERED].first().is_some_and(|byte| *byte < 0x40) {
                    sum = sum.wrapping_add(value);
                }
            }
        }
        sum ^ lengths
    }
}

const DIGITS: usize = 8;
const BASE: u32 = 10_000;
const NUMBERS: usize = 512;
/// An addition and a multiplication of each number with the next.
pub(super) const DECIMAL_OPS: u64 = 2 * (NUMBERS as u64 - 1);

type Number = [u32; DIGITS];

/// Numbers of 32 decimal digits, four to a word, the lowest first.
struct Decimal {
    numbers: Vec<Number>,
}

pub(super) fn decimal() -> Box<dyn Work> {
    let mut random = SplitMix64(0xDEC);
    let digit = |random: &mut SplitMix64| (random.next_u64() % u64::from(BASE)) as u32;
    let number = |_| std::array::from_fn(|_| digit(&mut random));
    Box::new(Decimal { numbers: (0..NUMBERS).map(number).collect() })
}

fn plus(left: &Number, right: &Number) -> [u32; DIGITS + 1] {
    let mut sum = [0; DIGITS + 1];
    let mut carry = 0;
    for at in 0..DIGITS {
        let digit = left[at] + right[at] + carry;
        carry = u32::from(digit >= BASE);
        sum[at] = digit - carry * BASE;
    }
    sum[DIGITS] = carry;
    sum
}

fn times(left: &Number, right: &Number) -> [u32; 2 * DIGITS] {
    let mut product = [0; 2 * DIGITS];
    for (at, a) in left.iter().enumerate() {
        let mut carry = 0;
        for (beside, b) in right.iter().enumerate() {
            let digit = product[at + beside] + a * b + carry;
            carry = digit / BASE;
            product[at + beside] = digit % BASE;
        }
        product[at + DIGITS] = carry;
    }
    product
}

fn folded(digits: &[u32]) -> u64 {
    digits.iter().fold(0, |sum, digit| sum.wrapping_mul(31).wrapping_add(u64::from(*digit)))
}

impl Work for Decimal {
    fn call(&self, _: usize, _: &mut [u8]) -> u64 {
        self.numbers.windows(2).fold(0_u64, |sum, pair| {
            let sum = sum.rotate_left(3) ^ folded(&plus(&pair[0], &pair[1]));
            sum ^ folded(&times(&pair[0], &pair[1]))
        })
    }
}

const TEXTS: usize = 256;
const TEXT: usize = 128;
/// Bytes of one call.
pub(super) const TEXT_BYTES: u64 = (TEXTS * TEXT) as u64;
/// `LIKE '%ab_ba%'`.
const PATTERN: &[u8] = b"ab_ba";

/// Texts of few letters, one of eight with characters of several bytes.
struct Utf8Like {
    text: Vec<u8>,
}

pub(super) fn utf8_like() -> Box<dyn Work> {
    let mut random = SplitMix64(0x07F8);
    let mut text = Vec::new();
    for number in 0..TEXTS {
        let end = text.len() + TEXT;
        while text.len() < end {
            let drawn = random.next_u64();
            let is_wide = number % 8 == 0 && drawn >> 8 & 3 == 0 && text.len() + 2 <= end;
            if is_wide { text.extend("\u{e9}".as_bytes()) } else { text.push(b"abcdefgh"[(drawn & 7) as usize]) }
        }
    }
    Box::new(Utf8Like { text })
}

fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    let fits = |window: &[u8]| {
        let mut pairs = window.iter().zip(pattern);
        pairs.all(|(byte, wanted)| *wanted == b'_' || byte == wanted)
    };
    text.windows(pattern.len()).any(fits)
}

impl Work for Utf8Like {
    fn call(&self, _: usize, _: &mut [u8]) -> u64 {
        let texts = self.text.chunks(TEXT);
        texts.fold(0, |sum: u64, text| {
            let characters = std::str::from_utf8(text).map_or(0, |text| text.chars().count());
            sum.wrapping_mul(3) + characters as u64 + u64::from(is_like(text, PATTERN))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(digits: &[u32]) -> u128 {
        digits.iter().rev().fold(0, |sum, digit| sum * u128::from(BASE) + u128::from(*digit))
    }

    #[test]
    fn decimals_add_and_multiply_as_numbers_do() {
        let number = |low: u32| -> Number { [low, 9999, 1234, 7, 0, 0, 0, 0] };
        let (a, b) = (number(9999), number(42));
        assert_eq!(value(&plus(&a, &b)), value(&a) + value(&b));
        assert_eq!(value(&times(&a, &b)), value(&a) * value(&b));
        let full = [BASE - 1; DIGITS];
        assert_eq!(value(&plus(&full, &full)), 2 * value(&full));
    }

    #[test]
    fn like_finds_with_one_letter_left_open() {
        assert!(is_like(b"xxabcbaxx", PATTERN));
        assert!(is_like(b"ab_ba", PATTERN));
        assert!(!is_like(b"abccba", PATTERN));
        assert!(!is_like(b"ab", PATTERN));
    }
}
