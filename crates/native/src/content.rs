//! The content of freshly loaded blocks: rows, scan rows, index nodes.
//!
//! Pure functions of the control file and the page, so that any thread makes
//! any piece and a check can make it again.

use super::block_format::{self, COLUMN_BYTES, FILL, HEADER_BYTES, HeaderSealer, Kind, row_range};
use super::bulk::Piece;
use super::control::Control;
use super::layout::{Page, PageMap};
use assay_measure::permutation::Permutation;
use assay_run::dataset::rows::{Random, compressible};
use std::ops::RangeInclusive;

/// Makes the blocks of some schemas.
pub(super) struct Content {
    map: PageMap,
    data_set: u64,
    obfuscate: bool,
    compress_pct: u32,
    first_schema: u32,
    permutations: Vec<Permutation>,
    /// A block with an unobfuscated row and no header.
    template: Vec<u8>,
    sealer: HeaderSealer,
}

impl Content {
    /// For `schemas` of the data set of `control`.
    pub(super) fn new(control: &Control, schemas: RangeInclusive<u32>) -> Self {
        let geometry = control.geometry;
        let mut template = vec![0; geometry.block_bytes as usize];
        template[row_range()].fill(FILL);
        Self {
            map: geometry.map(),
            data_set: control.data_set,
            obfuscate: control.obfuscate,
            compress_pct: control.compress_pct,
            first_schema: *schemas.start(),
            permutations: schemas.map(|schema| Permutation::new(geometry.seed, schema, geometry.scale)).collect(),
            sealer: HeaderSealer::new(&template),
            template,
        }
    }

    /// The permutation of one of its schemas.
    pub(super) fn permutation(&self, schema: u32) -> &Permutation {
        &self.permutations[(schema - self.first_schema) as usize]
    }

    /// Puts the row's constant part into every block of a buffer, so that
    /// [`Content::fill_rows`] need only write headers.
    pub(super) fn dress_rows(&self, buffer: &mut [u8]) {
        for block in buffer.chunks_exact_mut(self.template.len()) {
            block.copy_from_slice(&self.template);
        }
    }

    /// Makes a piece of data blocks or of scan blocks in a dressed buffer.
    pub(super) fn fill_rows(&self, piece: &Piece, buffer: &mut [u8], kind: Kind) {
        let first = piece.first.expect("rows have pages");
        let blocks = buffer.chunks_exact_mut(self.template.len());
        for (page, block) in (first.0..).map(Page).zip(blocks) {
            let schema = self.map.schema_of(page);
            let key = self.row_key(kind, schema, page);
            block_format::format_header(block, kind, page, schema, key, self.data_set);
            if self.obfuscate {
                self.obfuscate(page, block);
                block_format::seal(block);
            } else {
                self.sealer.seal(block);
            }
        }
    }

    /// The key word of a data or scan block: the key that belongs in its slot, or the row's number.
    pub(super) fn row_key(&self, kind: Kind, schema: u32, page: Page) -> u64 {
        if kind == Kind::Scan {
            page.0 - self.map.scan_page(schema, 0).0 + 1
        } else {
            let slot = page.0 - self.map.schema_base(schema);
            self.permutation(schema).key_of_slot(slot)
        }
    }

    /// Makes a piece of index nodes.
    pub(super) fn fill_index(&self, piece: &Piece, buffer: &mut [u8]) {
        let first = piece.first.expect("index nodes have pages");
        let blocks = buffer.chunks_exact_mut(self.template.len());
        for (page, block) in (first.0..).map(Page).zip(blocks) {
            self.index_node(page, block);
        }
    }

    /// Makes one index node.
    fn index_node(&self, page: Page, block: &mut [u8]) {
        let schema = self.map.schema_of(page);
        let node = page.0 - self.map.index_page(schema, 0).0;
        let index = &self.map.index;
        block[HEADER_BYTES..].fill(0);
        let first_key = index.first_key(node);
        block_format::format_header(block, Kind::Index, page, schema, first_key, self.data_set);
        let entries = index.entries(node);
        block_format::format_node(block, entries as u32, index.level_of(node));
        for i in 0..entries {
            let (key, child) = self.index_entry(schema, node, first_key, i);
            block_format::put_node_entry(block, i as usize, key, child);
        }
        block_format::seal(block);
    }

    /// Entry `i` of `node`, whose first key is `first_key`: of a leaf the key and the page of its
    /// row, of any other node the first key and the page of a child.
    pub(super) fn index_entry(&self, schema: u32, node: u64, first_key: u64, i: u64) -> (u64, Page) {
        match self.map.index.first_child(node) {
            None => {
                let key = first_key + i;
                let slot = self.permutation(schema).slot_of_key(key);
                (key, self.map.data_page(schema, slot))
            }
            Some(first_child) => {
                let child = first_child + i;
                let key = self.map.index.first_key(child);
                (key, self.map.index_page(schema, child))
            }
        }
    }

    /// Fills the columns with random upper-case alphanumerics and the rest with random bytes,
    /// all but the compressible share of each; different for every page of every data set.
    fn obfuscate(&self, page: Page, block: &mut [u8]) {
        let mut random = Random::of_row(self.data_set, page.0);
        let (columns, tail) = block[HEADER_BYTES..].split_at_mut(row_range().len());
        for column in columns.chunks_exact_mut(COLUMN_BYTES) {
            random.fill_column(column, self.compress_pct);
        }
        let varied = tail.len() - compressible(tail.len(), self.compress_pct);
        random.fill(&mut tail[..varied]);
        tail[varied..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::sample_control;
    use std::collections::BTreeSet;

    fn rows(obfuscate: bool, compress_pct: u32) -> Vec<Vec<u8>> {
        let mut control = sample_control();
        control.obfuscate = obfuscate;
        control.compress_pct = compress_pct;
        let content = Content::new(&control, 1..=2);
        let mut buffer = vec![0xee; 64 * 8192];
        content.dress_rows(&mut buffer);
        let piece = Piece { file: 0, offset: 8192, bytes: buffer.len(), first: Some(Page(100)) };
        content.fill_rows(&piece, &mut buffer, Kind::Data);
        buffer.chunks(8192).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn rows_carry_the_key_of_their_slot_and_a_valid_checksum() {
        let control = sample_control();
        let permutation = Permutation::new(control.geometry.seed, 1, control.geometry.scale);
        for (obfuscate, pct) in [(false, 0), (true, 0), (true, 50)] {
            for (slot, block) in (100..).zip(rows(obfuscate, pct)) {
                block_format::verify(&block, Kind::Data, Page(slot), 1, control.data_set, true).unwrap();
                block_format::verify_key(&block, permutation.key_of_slot(slot)).unwrap();
                assert!(block_format::is_sealed(&block));
            }
        }
    }

    #[test]
    fn slob_43_payload_is_the_same_or_never_the_same() {
        let payloads = |obfuscate, pct| -> BTreeSet<Vec<u8>> {
            let rows = rows(obfuscate, pct);
            rows.into_iter().map(|block| block[64..].to_vec()).collect()
        };
        assert_eq!(payloads(false, 0).len(), 1);
        assert_eq!(payloads(true, 0).len(), 64);
        assert_eq!(payloads(true, 90).len(), 64);
        for block in payloads(true, 0) {
            let columns = &block[..2432];
            assert!(columns.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()));
            // Entropy per byte bounds what any compressor of single bytes can gain: below 1.7 : 1.
            let mut counts = [0f64; 256];
            columns.iter().for_each(|b| counts[usize::from(*b)] += 1.0);
            let entropy: f64 = counts.iter().filter(|n| **n > 0.0).map(|n| -(n / 2432.0) * (n / 2432.0).log2()).sum();
            assert!(8.0 / entropy < 1.7, "{entropy} bits per byte");
        }
    }

    #[test]
    fn an_index_leads_every_key_to_its_page() {
        let control = sample_control();
        let map = control.geometry.map();
        let content = Content::new(&control, 1..=2);
        let node_block = |schema: u32, node: u64| {
            let mut block = vec![0xee; 8192];
            content.index_node(map.index_page(schema, node), &mut block);
            block
        };
        for schema in [1, 2] {
            for key in [1, 2, 507, 508, 1014, control.geometry.scale] {
                let mut page = map.index_page(schema, 0);
                for level in (0..map.index.levels).rev() {
                    let block = node_block(schema, page.0 - map.index_page(schema, 0).0);
                    let set = control.data_set;
                    block_format::verify(&block, Kind::Index, page, schema, set, true).unwrap();
                    let (entries, found_level) = block_format::node(&block);
                    assert_eq!(found_level, level);
                    page = (0..entries as usize)
                        .map(|i| block_format::node_entry(&block, i))
                        .rfind(|(first, _)| *first <= key)
                        .unwrap()
                        .1;
                }
                let slot = content.permutation(schema).slot_of_key(key);
                assert_eq!(page, map.data_page(schema, slot));
            }
        }
    }
}
