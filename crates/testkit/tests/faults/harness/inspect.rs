//! What is on the disk: every block judged, every row read.

use super::base::{BLOCK_BYTES, Base};
use super::model::{Key, Row, Table, parse_row};
use assay_native::block_format::{self, Kind, word};
use assay_native::layout::{Class, Page, PageMap};
use assay_testkit::sim::SimImage;
use std::collections::HashMap;
use std::path::PathBuf;

/// A whole data set as it was found.
pub(super) struct Found {
    pub(super) table: Table,
    /// Blocks that are not what they must be, each with the reason.
    pub(super) bad: Vec<String>,
    /// Those among them that carry a good checksum: somebody sealed bytes that nobody can have written.
    pub(super) sealed: Vec<String>,
}

/// Why a block is bad.
enum Bad {
    /// Its header or its checksum says so.
    Named(String),
    /// Only its content does.
    Sealed(String),
}

/// Looks at data sets made from one base.
pub(super) struct Inspector<'a> {
    base: &'a Base,
    map: PageMap,
    /// Files with blocks, in the order of their index, and the blocks of each.
    files: Vec<(PathBuf, usize)>,
    pages: HashMap<(usize, usize), Page>,
    keys: HashMap<Page, Key>,
}

impl<'a> Inspector<'a> {
    pub(super) fn new(base: &'a Base) -> Self {
        let geometry = &base.control.geometry;
        let map = geometry.map();
        let undo = usize::from(geometry.data_files());
        let names = base.control.file_names();
        let block = u64::from(BLOCK_BYTES);
        let mut files = Vec::new();
        let mut pages = HashMap::new();
        for name in names.iter().take(undo + 1) {
            let path = base.path(name);
            let found = base.image.files().find(|(file, _)| *file == path);
            files.push((path, found.map_or(0, |(_, bytes)| (bytes / block) as usize)));
        }
        let schema_pages = geometry.data_pages();
        let undo_pages = (0..geometry.undo_blocks).map(|i| geometry.undo_page(i));
        for page in (0..schema_pages).map(Page).chain(undo_pages) {
            let (file, offset) = map.locate(page);
            pages.insert((usize::from(file), (offset / block) as usize), page);
        }
        let mut keys = HashMap::new();
        for (schema, key) in Table::keys() {
            let permutation = assay_measure::permutation::Permutation::new(geometry.seed, schema, geometry.scale);
            let page = map.data_page(schema, permutation.slot_of_key(key));
            keys.insert(page, (schema, key));
        }
        Self { base, map, files, pages, keys }
    }

    /// The rows in `bytes` bytes at `offset` of a file.
    pub(super) fn rows_at(&self, path: &std::path::Path, offset: u64, bytes: usize) -> Vec<Key> {
        let block = u64::from(BLOCK_BYTES);
        let file = self.files.iter().position(|(name, _)| name == path);
        let blocks = offset / block..(offset + bytes as u64).div_ceil(block);
        let pages = blocks.filter_map(|i| self.pages.get(&(file?, i as usize)));
        pages.filter_map(|page| self.keys.get(page).copied()).collect()
    }

    /// Judges every block of a clean data set whose log ends at `log_end`. `known` is an image that was found good before, with its rows.
    pub(super) fn look(&self, image: &SimImage, log_end: u64, known: Option<(&SimImage, &Table)>) -> Found {
        let mut found = Found {
            table: known.map_or_else(Table::new, |(_, table)| table.clone()),
            bad: Vec::new(),
            sealed: Vec::new(),
        };
        for (file, (path, blocks)) in self.files.iter().enumerate() {
            for index in 0..*blocks {
                if known.is_some_and(|(before, _)| image.shares_block(before, path, index)) {
                    continue;
                }
                let block = image.block(path, index).unwrap_or_default();
                let page = self.pages.get(&(file, index)).copied();
                let loaded = self.base.image.block(path, index).unwrap_or_default();
                let into = (&mut found.table, log_end);
                let place = format_args!("{}, block {index}", path.display());
                match self.judge(page, block, loaded, into) {
                    Ok(()) => {}
                    Err(Bad::Named(why)) => found.bad.push(format!("{place}: {why}")),
                    Err(Bad::Sealed(why)) => {
                        found.bad.push(format!("{place}: {why}"));
                        found.sealed.push(format!("{place}: {why}"));
                    }
                }
            }
        }
        found
    }

    fn judge(
        &self,
        page: Option<Page>,
        block: &[u8],
        loaded: &[u8],
        (table, log_end): (&mut Table, u64),
    ) -> Result<(), Bad> {
        let Some(page) = page else {
            // A file header: never changed.
            return same(block, loaded);
        };
        let verified = |kind, schema| {
            let data_set = self.base.control.data_set;
            block_format::verify(block, kind, page, schema, data_set, true)
                .and_then(|()| block_format::verify_lsn(block, log_end))
                .map_err(|mismatch| Bad::Named(format!("page {}: {mismatch}", page.0)))
        };
        match self.map.class(page) {
            Class::Index | Class::Scan => same(block, loaded),
            Class::Undo if block.iter().all(|byte| *byte == 0) => Ok(()),
            Class::Undo => verified(Kind::Undo, 0).or_else(|why| verified(Kind::UndoHeader, 0).map_err(|_| why)),
            Class::Data => {
                let key = self.keys[&page];
                verified(Kind::Data, key.0)?;
                if block_format::get(block, word::KEY) != key.1 {
                    return Err(Bad::Named(format!("page {} holds another key", page.0)));
                }
                let row: Row = parse_row(block).map_err(Bad::Sealed)?;
                *table.row_mut(key) = row;
                Ok(())
            }
        }
    }
}

fn same(block: &[u8], loaded: &[u8]) -> Result<(), Bad> {
    if block == loaded {
        Ok(())
    } else {
        let why = "it is not as it was loaded, and nothing may change it";
        Err(Bad::Named(why.to_owned()))
    }
}
