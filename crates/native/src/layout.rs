//! Where every block of a data set is.
//!
//! Pure arithmetic: page numbers, block classes, files and offsets. It knows
//! neither files nor rings; [`PageMap::locate`] is the only place that turns a
//! page into a file and an offset, so that striping can change it alone.

/// A block of the data set by its number, unique over all its files.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Page(pub u64);

/// Pages from here on are undo blocks; all pages are below `1 << 40`.
pub const UNDO_BASE: u64 = 1 << 39;

/// Bytes of one data file, header block included; the last file is shorter.
pub const FILE_BYTES: u64 = 16 << 30;

/// Bytes of an allocation unit: contiguous data on one path before the next path's turn.
pub const UNIT_BYTES: u64 = 1 << 20;

/// Most paths the data of one data set is striped over.
pub const MAX_STRIPES: u16 = 64;

/// Most data files of one data set: file numbers are 16 bits, undo and redo included.
pub const MAX_DATA_FILES: u64 = 65_000;

/// Levels an index can have: fan-out 251 (4 KiB blocks) to the fifth exceeds 2^39 rows.
pub const MAX_LEVELS: usize = 5;

/// Bytes of an index node before its first entry.
pub const NODE_HEADER_BYTES: u32 = 80;

/// Bytes of one index entry.
pub const NODE_ENTRY_BYTES: u32 = 16;

/// The class of a block, as in the statistics.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Class {
    /// A row of the addressed table.
    Data,
    /// A node of the key index.
    Index,
    /// A row of the scan table.
    Scan,
    /// Undo.
    Undo,
}

/// What a data set is made of; everything about its layout follows from these.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub struct Geometry {
    /// Block size: a power of two from 4,096 to 65,536.
    pub block_bytes: u32,
    /// Schemas the files hold, numbered from 1.
    pub schemas: u32,
    /// Rows (= blocks) of each schema's table, keys `1..=scale`.
    pub scale: u64,
    /// Blocks of each schema's scan table; 0 is none.
    pub scan_blocks: u64,
    /// Seed of the key permutations.
    pub seed: u64,
    /// Undo blocks, the header block of the undo file not counted.
    pub undo_blocks: u64,
    /// Blocks of a full data file, its header included; at least 2.
    pub blocks_per_file: u64,
    /// Paths the data is striped over, 1 (no striping) to [`MAX_STRIPES`].
    pub stripes: u16,
}

impl Geometry {
    /// Blocks of one full data file for this block size.
    #[must_use]
    pub const fn standard_blocks_per_file(block_bytes: u32) -> u64 {
        FILE_BYTES / block_bytes as u64
    }

    /// Whether the layout arithmetic holds for these values.
    ///
    /// # Errors
    /// A fragment naming the value that does not fit and its range.
    pub fn validate(&self) -> Result<(), String> {
        if !self.block_bytes.is_power_of_two() || !(4096..=65_536).contains(&self.block_bytes) {
            return Err(format!("block size {} is not a power of two from 4096 to 65536", self.block_bytes));
        }
        if self.schemas == 0 || self.scale == 0 {
            return Err("a data set needs at least one schema and one row".into());
        }
        if self.blocks_per_file < 2 {
            return Err("a data file needs at least two blocks".into());
        }
        if !(1..=MAX_STRIPES).contains(&self.stripes) {
            return Err(format!("data on {} paths; 1 to {MAX_STRIPES} can be striped over", self.stripes));
        }
        // u128: the product of three large values must not wrap before it is judged.
        let pages = u128::from(self.schemas)
            * (u128::from(self.scale) + u128::from(self.scale) / 100 + 8 + u128::from(self.scan_blocks));
        let per_file = self.file_shape().pages;
        let most = u128::from(MAX_DATA_FILES - u64::from(self.stripes)) * u128::from(per_file);
        if pages >= u128::from(UNDO_BASE) || pages > most {
            return Err(format!(
                "{} schemas of {} blocks need about {pages} pages; a data set holds at most {}",
                self.schemas,
                self.scale,
                most.min(u128::from(UNDO_BASE) - 1)
            ));
        }
        if self.undo_blocks >= UNDO_BASE {
            return Err(format!("{} undo blocks are too many", self.undo_blocks));
        }
        Ok(())
    }

    /// The same with every derived number computed once: for hot paths.
    #[must_use]
    pub fn map(&self) -> PageMap {
        PageMap::new(*self)
    }

    /// Undo block `i`, from 0.
    #[must_use]
    pub fn undo_page(&self, i: u64) -> Page {
        Page(UNDO_BASE + i)
    }

    /// Data files; also the file index of the undo file.
    #[must_use]
    pub fn data_files(&self) -> u16 {
        self.map().data_files
    }

    /// Pages of all schemas together.
    #[must_use]
    pub fn data_pages(&self) -> u64 {
        self.map().pages
    }

    /// Bytes of data file `file` (from 0), its header included.
    #[must_use]
    pub fn data_file_bytes(&self, file: u16) -> u64 {
        let blocks = self.map().file_pages(file).1 + self.file_shape().head;
        blocks * u64::from(self.block_bytes)
    }

    /// Bytes of a data file that can take no more pages, its header included.
    #[must_use]
    pub fn full_file_bytes(&self) -> u64 {
        let shape = self.file_shape();
        (shape.head + shape.pages) * u64::from(self.block_bytes)
    }

    /// Blocks of one allocation unit.
    #[must_use]
    pub fn unit_blocks(&self) -> u64 {
        UNIT_BYTES / u64::from(self.block_bytes).max(1)
    }

    /// One path: a header block, then pages to the end. Several: a header of one allocation
    /// unit, then whole units, so that units are aligned in their file.
    fn file_shape(&self) -> FileShape {
        if self.stripes <= 1 {
            return FileShape { head: 1, pages: self.blocks_per_file.saturating_sub(1).max(1) };
        }
        let unit = self.unit_blocks();
        FileShape { head: unit, pages: ((self.blocks_per_file / unit).max(2) - 1) * unit }
    }

    /// Bytes of the undo file, its header block included.
    #[must_use]
    pub fn undo_file_bytes(&self) -> u64 {
        (self.undo_blocks + 1) * u64::from(self.block_bytes)
    }

    /// Shape of each schema's index.
    #[must_use]
    pub fn index(&self) -> IndexGeometry {
        IndexGeometry::new(self.block_bytes, self.scale)
    }
}

/// What a full data file is made of, in blocks.
struct FileShape {
    head: u64,
    pages: u64,
}

/// A [`Geometry`] with its derived numbers computed once. Cheap to copy.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct PageMap {
    /// What it was made from.
    pub geometry: Geometry,
    /// Shape of each schema's index.
    pub index: IndexGeometry,
    /// Blocks of one schema.
    pub schema_blocks: u64,
    /// Data files; also the file index of the undo file.
    pub data_files: u16,
    pages_per_file: u64,
    /// Blocks of a data file before its first page.
    head_blocks: u64,
    /// Pages of all schemas.
    pages: u64,
    stripes: u64,
    /// Pages of an allocation unit, as a power of two.
    unit_shift: u32,
}

impl PageMap {
    /// Computes the derived numbers.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        let index = geometry.index();
        let schema_blocks = geometry.scale + index.total_nodes + geometry.scan_blocks;
        let FileShape { head: head_blocks, pages: pages_per_file } = geometry.file_shape();
        let pages = schema_blocks * u64::from(geometry.schemas);
        let stripes = u64::from(geometry.stripes.max(1));
        let unit_shift = geometry.unit_blocks().max(1).ilog2();
        // The first path has the most units; every path has as many files as it.
        let most = match stripes {
            1 => pages,
            _ => pages.div_ceil(1 << unit_shift).div_ceil(stripes) << unit_shift,
        };
        let files = most.div_ceil(pages_per_file) * stripes;
        let data_files = u16::try_from(files).unwrap_or(u16::MAX);
        Self { geometry, index, schema_blocks, data_files, pages_per_file, head_blocks, pages, stripes, unit_shift }
    }

    /// First page of `schema`, which is also its data slot 0.
    #[must_use]
    #[inline]
    pub fn schema_base(&self, schema: u32) -> u64 {
        u64::from(schema - 1) * self.schema_blocks
    }

    /// The block at `slot` (from 0) of the table of `schema` (from 1).
    #[must_use]
    #[inline]
    pub fn data_page(&self, schema: u32, slot: u64) -> Page {
        Page(self.schema_base(schema) + slot)
    }

    /// Index node `node` of `schema`; node 0 is the root.
    #[must_use]
    #[inline]
    pub fn index_page(&self, schema: u32, node: u64) -> Page {
        Page(self.schema_base(schema) + self.geometry.scale + node)
    }

    /// Block `i` (from 0) of the scan table of `schema`.
    #[must_use]
    #[inline]
    pub fn scan_page(&self, schema: u32, i: u64) -> Page {
        Page(self.schema_base(schema) + self.geometry.scale + self.index.total_nodes + i)
    }

    /// What `page` holds.
    #[must_use]
    #[inline]
    pub fn class(&self, page: Page) -> Class {
        if page.0 >= UNDO_BASE {
            return Class::Undo;
        }
        let within = page.0 % self.schema_blocks;
        if within < self.geometry.scale {
            Class::Data
        } else if within < self.geometry.scale + self.index.total_nodes {
            Class::Index
        } else {
            Class::Scan
        }
    }

    /// Schema (from 1) that owns a page below [`UNDO_BASE`].
    #[must_use]
    #[inline]
    pub fn schema_of(&self, page: Page) -> u32 {
        u32::try_from(page.0 / self.schema_blocks + 1).unwrap_or(u32::MAX)
    }

    /// File index and byte offset of `page`, data files first, then the undo file: the one place that knows where a
    /// page is.
    #[must_use]
    #[inline]
    pub fn locate(&self, page: Page) -> (u16, u64) {
        let block_bytes = u64::from(self.geometry.block_bytes);
        if page.0 >= UNDO_BASE {
            return (self.data_files, (page.0 - UNDO_BASE + 1) * block_bytes);
        }
        let (lane, within) = if self.stripes == 1 { (0, page.0) } else { self.lane_of(page) };
        let file = within / self.pages_per_file * self.stripes + lane;
        let block = within % self.pages_per_file + self.head_blocks;
        // Truncation cannot happen: `validate` bounds the number of data files.
        (file as u16, block * block_bytes)
    }

    /// Whether a page is in the data set.
    #[must_use]
    #[inline]
    pub fn holds(&self, page: Page) -> bool {
        page.0 < self.pages || (UNDO_BASE..UNDO_BASE + self.geometry.undo_blocks).contains(&page.0)
    }

    /// The path a page of the data files is on, and its place among the pages there.
    #[inline]
    fn lane_of(&self, page: Page) -> (u64, u64) {
        let unit = page.0 >> self.unit_shift;
        let within = page.0 & ((1 << self.unit_shift) - 1);
        let row = unit / self.stripes;
        (unit % self.stripes, row << self.unit_shift | within)
    }

    /// Consecutive pages in one file from `page` on, including it.
    #[must_use]
    #[inline]
    pub fn pages_in_run(&self, page: Page) -> u64 {
        if page.0 >= UNDO_BASE {
            return (UNDO_BASE + self.geometry.undo_blocks).saturating_sub(page.0);
        }
        if self.stripes == 1 {
            return self.pages_per_file - page.0 % self.pages_per_file;
        }
        let unit = 1 << self.unit_shift;
        unit - page.0 % unit
    }

    /// First page of data file `file` and how many it holds. With several paths they are not
    /// consecutive, and the file may hold none.
    #[must_use]
    pub fn file_pages(&self, file: u16) -> (Page, u64) {
        let (lane, round) = (u64::from(file) % self.stripes, u64::from(file) / self.stripes);
        let before = round * self.pages_per_file;
        if self.stripes == 1 {
            let here = self.pages.saturating_sub(before).min(self.pages_per_file);
            return (Page(before), here);
        }
        let unit = 1_u64 << self.unit_shift;
        let first = ((before >> self.unit_shift) * self.stripes + lane) << self.unit_shift;
        // Whole units of this path, the last one of all perhaps cut short.
        let units = self.pages.div_ceil(unit);
        let mine = (units + self.stripes - 1 - lane) / self.stripes;
        let last_is_mine = units > 0 && (units - 1) % self.stripes == lane;
        let missing = if last_is_mine { units * unit - self.pages } else { 0 };
        let on_path = mine * unit - missing;
        (Page(first), on_path.saturating_sub(before).min(self.pages_per_file))
    }
}

/// The shape of a static B-tree over keys `1..=scale`, every node but the last of a level full.
///
/// Levels count from the leaves (0) up. Nodes are numbered root first, then
/// level by level downwards, leaves last. There are always a root, a branch
/// level and a leaf level, so that a range costs the three index gets a
/// database shows.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub struct IndexGeometry {
    /// Entries of a full node.
    pub fanout: u64,
    /// Levels, 3 or more; the root is level `levels - 1`.
    pub levels: u32,
    /// Nodes of each level, by level (leaf = 0); 0 above the root.
    pub nodes: [u64; MAX_LEVELS],
    /// Number of the first node of each level, by level (leaf = 0).
    pub first: [u64; MAX_LEVELS],
    /// Nodes of all levels.
    pub total_nodes: u64,
    /// Rows indexed.
    pub keys: u64,
}

impl IndexGeometry {
    /// The index of `scale` keys in blocks of `block_bytes`.
    #[must_use]
    pub fn new(block_bytes: u32, scale: u64) -> Self {
        let room = block_bytes.saturating_sub(NODE_HEADER_BYTES) / NODE_ENTRY_BYTES;
        let fanout = u64::from(room.max(2));
        let mut nodes = [0; MAX_LEVELS];
        let mut levels = 0;
        let mut entries = scale.max(1);
        while levels < MAX_LEVELS && (levels < 3 || nodes[levels - 1] > 1) {
            entries = entries.div_ceil(fanout);
            nodes[levels] = entries;
            levels += 1;
        }
        let mut first = [0; MAX_LEVELS];
        for level in (0..levels - 1).rev() {
            first[level] = first[level + 1] + nodes[level + 1];
        }
        Self {
            fanout,
            // At most MAX_LEVELS.
            levels: levels as u32,
            nodes,
            first,
            total_nodes: nodes.iter().sum(),
            keys: scale,
        }
    }

    /// Keys below one full node of `level`.
    #[must_use]
    pub fn keys_per_node(&self, level: u32) -> u64 {
        (0..=level).fold(1, |keys: u64, _| keys.saturating_mul(self.fanout))
    }

    /// Level of `node`, leaf = 0.
    #[must_use]
    pub fn level_of(&self, node: u64) -> u32 {
        let mut level = self.levels - 1;
        while level > 0 && node >= self.first[level as usize - 1] {
            level -= 1;
        }
        level
    }

    /// First key below `node`.
    #[must_use]
    pub fn first_key(&self, node: u64) -> u64 {
        let level = self.level_of(node);
        let within = node - self.first[level as usize];
        within.saturating_mul(self.keys_per_node(level)) + 1
    }

    /// Entries of `node`: keys of a leaf, children of any other.
    #[must_use]
    pub fn entries(&self, node: u64) -> u64 {
        let level = self.level_of(node) as usize;
        let within = node - self.first[level];
        let below = if level == 0 { self.keys } else { self.nodes[level - 1] };
        below.saturating_sub(within * self.fanout).min(self.fanout)
    }

    /// Number of the first child of a node above the leaves.
    #[must_use]
    pub fn first_child(&self, node: u64) -> Option<u64> {
        let level = self.level_of(node) as usize;
        let below = level.checked_sub(1)?;
        Some(self.first[below] + (node - self.first[level]) * self.fanout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn geometry(scale: u64, scan_blocks: u64, schemas: u32, blocks_per_file: u64) -> Geometry {
        Geometry {
            block_bytes: 8192,
            schemas,
            scale,
            scan_blocks,
            seed: 1,
            undo_blocks: 10,
            blocks_per_file,
            stripes: 1,
        }
    }

    #[test]
    fn a_default_schema_has_root_branch_and_leaves() {
        let index = geometry(32_768, 128, 4, 1 << 21).index();
        assert_eq!(index.fanout, 507);
        assert_eq!(index.levels, 3);
        assert_eq!(index.nodes[..3], [65, 1, 1]);
        assert_eq!(index.first[..3], [2, 1, 0]);
    }

    #[test]
    fn a_large_index_grows_a_fourth_level() {
        let index = geometry(507 * 507 * 507 + 1, 0, 1, 1 << 21).index();
        assert_eq!(index.levels, 4);
        assert_eq!(index.nodes[3], 1);
        assert_eq!(index.nodes[2], 2);
    }

    #[test]
    fn the_smallest_block_indexes_the_largest_table() {
        let index = IndexGeometry::new(4096, UNDO_BASE);
        assert_eq!(index.nodes[index.levels as usize - 1], 1);
    }

    #[test]
    fn oversized_geometries_are_refused() {
        assert!(geometry(1 << 38, 0, 4, 1 << 21).validate().is_err());
        assert!(geometry(u64::MAX, u64::MAX, u32::MAX, 2).validate().is_err());
        assert!(geometry(10_000, 128, 4096, 1 << 21).validate().is_ok());
        let mut odd = geometry(10_000, 128, 4, 1 << 21);
        odd.block_bytes = 12_288;
        assert!(odd.validate().is_err());
    }

    #[test]
    fn four_paths_take_turns_by_the_mebibyte() {
        let mut g = geometry(100_000, 0, 1, 1 << 21);
        g.stripes = 4;
        let unit = |n: u64| g.map().locate(Page(n * 128));
        assert_eq!(unit(0), (0, UNIT_BYTES));
        assert_eq!(unit(3), (3, UNIT_BYTES));
        assert_eq!(unit(4), (0, 2 * UNIT_BYTES));
        assert_eq!(g.map().locate(Page(130)), (1, UNIT_BYTES + 2 * 8192));
        assert_eq!(g.data_files(), 4);
        g.stripes = 0;
        assert!(g.validate().is_err());
    }

    #[test]
    fn undo_follows_the_data_files() {
        let g = geometry(1000, 16, 3, 512);
        assert_eq!(g.map().class(g.undo_page(3)), Class::Undo);
        assert_eq!(g.map().locate(g.undo_page(0)), (g.data_files(), 8192));
        assert_eq!(g.undo_file_bytes(), 11 * 8192);
    }

    proptest! {
        #[test]
        fn every_page_has_one_place_and_one_owner(
            scale in 1u64..3000, scan in 0u64..50, schemas in 1u32..5, per_file in 2u64..700,
            stripes in 1u16..6,
        ) {
            let mut g = geometry(scale, scan, schemas, per_file);
            g.stripes = stripes;
            prop_assert!(g.validate().is_ok());
            let map = g.map();
            let head = if stripes == 1 { 8192u64 } else { UNIT_BYTES };
            let mut next_offset = vec![head; g.data_files() as usize];
            for page in 0..g.data_pages() {
                let (file, offset) = map.locate(Page(page));
                prop_assert_eq!(offset, next_offset[file as usize]);
                next_offset[file as usize] += 8192;
                let run = map.pages_in_run(Page(page));
                prop_assert!(run >= 1);
                if run > 1 {
                    prop_assert_eq!(map.locate(Page(page + 1)), (file, offset + 8192));
                }
                if stripes > 1 {
                    prop_assert_eq!(u64::from(file) % u64::from(stripes),
                        page / g.unit_blocks() % u64::from(stripes));
                    prop_assert_eq!(offset % UNIT_BYTES / 8192, page % g.unit_blocks());
                }
            }
            for (file, end) in next_offset.iter().enumerate() {
                prop_assert_eq!(*end, g.data_file_bytes(file as u16));
                prop_assert!(*end <= g.full_file_bytes());
                let (first, count) = map.file_pages(file as u16);
                if count > 0 {
                    prop_assert_eq!(map.locate(first), (file as u16, head));
                }
            }
            for schema in 1..=schemas {
                for slot in [0, scale / 2, scale - 1] {
                    let page = map.data_page(schema, slot);
                    prop_assert_eq!(map.class(page), Class::Data);
                    prop_assert_eq!(map.schema_of(page), schema);
                }
                for node in [0, g.index().total_nodes - 1] {
                    let page = map.index_page(schema, node);
                    prop_assert_eq!(map.class(page), Class::Index);
                    prop_assert_eq!(map.schema_of(page), schema);
                }
                for i in 0..scan {
                    let page = map.scan_page(schema, i);
                    prop_assert_eq!(map.class(page), Class::Scan);
                    prop_assert_eq!(map.schema_of(page), schema);
                }
            }
        }

        #[test]
        fn the_nodes_of_an_index_cover_each_key_once(scale in 1u64..2_000_000) {
            let index = IndexGeometry::new(8192, scale);
            let leaves = index.first[0]..index.total_nodes;
            let keys: u64 = leaves.map(|node| index.entries(node)).sum();
            prop_assert_eq!(keys, scale);
            let mut child = 1;
            for node in 0..index.first[0] {
                prop_assert_eq!(index.first_child(node), Some(child));
                prop_assert_eq!(index.first_key(node), index.first_key(child));
                child += index.entries(node);
            }
            prop_assert_eq!(child, index.total_nodes);
            for key in [1, scale / 2 + 1, scale] {
                let leaf = index.first[0] + (key - 1) / index.fanout;
                prop_assert_eq!(index.level_of(leaf), 0);
                prop_assert!(key - index.first_key(leaf) < index.entries(leaf));
            }
        }
    }
}
