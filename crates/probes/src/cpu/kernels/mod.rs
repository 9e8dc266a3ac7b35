//! The kernels: fixed work on fixed data with a known result, each a small piece of a database's CPU work.
//!
//! A call allocates nothing and makes no system call (except in the two kernels that measure those), and its result is
//! compared with the one computed when its data were made, whose sum is a constant of the set.

mod bytes;
mod compute;
mod hash;
mod rows;
mod tree;

#[cfg(test)]
mod tests;

use crate::load::Labour;

/// Version of the kernels and their data: figures of different sets are of different tests. Any change to a kernel's
/// code, data or size of call is a new one.
pub(super) const SET: &str = "db-v1";

/// What a kernel's figure is limited by on most machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// Execution units.
    Core,
    /// The caches.
    Cache,
    /// Memory, or the largest cache.
    Memory,
    /// The cache lines that CPUs pass to each other.
    Coherency,
    /// The operating system's entry.
    System,
}

impl Bound {
    /// As tables print it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Cache => "cache",
            Self::Memory => "memory",
            Self::Coherency => "lines",
            Self::System => "system",
        }
    }
}

/// What a call works on: made once, read by all threads.
pub(super) trait Work: Send + Sync {
    /// Calls until the work repeats itself.
    fn chunks(&self) -> usize {
        1
    }

    /// Bytes that each thread needs for itself.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Does one call's work; what it computed.
    fn call(&self, chunk: usize, scratch: &mut [u8]) -> u64;
}

/// One kernel.
pub(super) struct Kernel {
    /// Its name in records.
    pub(super) name: &'static str,
    /// What is counted, in the plural.
    pub(super) unit: &'static str,
    /// How many of them a call does.
    pub(super) units_per_call: u64,
    /// Sum of the results of all chunks.
    pub(super) checksum: u64,
    /// What limits it.
    pub(super) bound: Bound,
    /// The database work that it represents.
    pub(super) about: &'static str,
    /// Which code path runs here.
    pub(super) path: fn() -> &'static str,
    /// Whether the soak's rotation has it: short calls, little memory of its own.
    pub(super) in_soak: bool,
    make: fn() -> Box<dyn Work>,
}

impl Kernel {
    /// Bytes of its data, as its name says them.
    pub(super) fn set_bytes(&self) -> u64 {
        match self.name.rsplit_once('-').map_or("", |(_, size)| size) {
            "16m" => 16 << 20,
            "256m" => 256 << 20,
            "1g" => 1 << 30,
            _ => 1 << 20,
        }
    }
}

/// A kernel with its data.
pub(super) struct Ready {
    /// Which.
    pub(super) kernel: &'static Kernel,
    /// Its data.
    pub(super) work: Box<dyn Work>,
    /// What each chunk gives.
    expected: Vec<u64>,
}

/// The kernels by turns, each call an operation: what the workers of a load do.
pub(super) struct ByTurns<'a>(pub(super) &'a [Ready]);

impl Labour for ByTurns<'_> {
    /// Which worker it is, so that not all begin with the same kernel, and a buffer for any of them.
    type Own = (usize, Vec<u8>);

    fn own(&self, worker: usize) -> Self::Own {
        let bytes = self.0.iter().map(|ready| ready.work.scratch_bytes()).max();
        (worker, vec![0; bytes.unwrap_or(0)])
    }

    fn turn(&self, (worker, scratch): &mut Self::Own, turn: usize) -> (u64, Result<(), String>) {
        let turn = turn + *worker;
        let ready = &self.0[turn % self.0.len()];
        let chunk = turn / self.0.len() % ready.chunks();
        let done = ready.call(chunk, &mut scratch[..ready.work.scratch_bytes()]);
        (1, done.map_err(|wrong| wrong.to_string()))
    }
}

/// A result that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The kernel.
    pub(super) kernel: &'static str,
    /// Which of its chunks; `None` for the sum of all.
    pub(super) chunk: Option<usize>,
    /// What it gives.
    pub(super) expected: u64,
    /// What it gave.
    pub(super) found: u64,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kernel, expected, found, .. } = self;
        let of = match self.chunk {
            Some(chunk) => format!("chunk {chunk} of {kernel}"),
            None => kernel.to_string(),
        };
        let xor = expected ^ found;
        write!(f, "{of} computed {found:#018x}; the right result is {expected:#018x} (xor {xor:#018x})")
    }
}

impl Ready {
    /// Makes the data and computes every chunk once.
    pub(super) fn new(kernel: &'static Kernel) -> Self {
        let work = (kernel.make)();
        let mut scratch = vec![0; work.scratch_bytes()];
        let expected = (0..work.chunks()).map(|chunk| work.call(chunk, &mut scratch));
        Self { kernel, expected: expected.collect(), work }
    }

    /// Whether the sum over all chunks is the set's constant.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let found = self.sum();
        let expected = self.kernel.checksum;
        if found == expected {
            return Ok(());
        }
        Err(Wrong { kernel: self.kernel.name, chunk: None, expected, found })
    }

    /// Sum of the results of all chunks.
    pub(super) fn sum(&self) -> u64 {
        self.expected.iter().fold(0, |sum, result| sum.wrapping_add(*result))
    }

    /// Chunks before the work repeats itself.
    pub(super) fn chunks(&self) -> usize {
        self.expected.len()
    }

    /// One call, checked.
    pub(super) fn call(&self, chunk: usize, scratch: &mut [u8]) -> Result<(), Wrong> {
        let found = std::hint::black_box(self.work.call(chunk, scratch));
        let expected = self.expected[chunk];
        if found == expected {
            return Ok(());
        }
        Err(Wrong { kernel: self.kernel.name, chunk: Some(chunk), expected, found })
    }

    /// With a result that no chunk gives: what a broken CPU looks like.
    #[cfg(test)]
    pub(super) fn broken(mut self) -> Self {
        self.expected[0] ^= 1 << 17;
        self
    }
}

fn portable() -> &'static str {
    "portable"
}

/// An entry of the set with what most have in common.
const fn kernel(
    name: &'static str,
    (unit, units_per_call): (&'static str, u64),
    checksum: u64,
    about: &'static str,
    make: fn() -> Box<dyn Work>,
) -> Kernel {
    Kernel { name, unit, units_per_call, checksum, bound: Bound::Core, about, path: portable, in_soak: true, make }
}

/// The same, limited by something else than the core.
const fn bound(bound: Bound, kernel: Kernel) -> Kernel {
    Kernel { bound, ..kernel }
}

/// The same with a code path that is chosen where it runs.
const fn path(path: fn() -> &'static str, kernel: Kernel) -> Kernel {
    Kernel { path, ..kernel }
}

/// The same, left out of the soak's rotation.
const fn alone(kernel: Kernel) -> Kernel {
    Kernel { in_soak: false, ..kernel }
}

/// The largest sets, which are worth their memory only where somebody asks for them.
pub(super) const LARGE: [&str; 2] = ["btree-1g", "hash-join-1g"];

/// The set, in the order of its tables.
pub(super) static KERNELS: &[Kernel] = &[
    kernel(
        "add-dep",
        ("cycles", compute::CHAIN),
        0x1B6D_968E_54F1_DEF1,
        "chain of dependent one-cycle operations: the effective clock",
        compute::add_dep,
    ),
    kernel(
        "alu-ilp",
        ("ops", compute::ILP_OPS),
        0x6CAA_B009_3BF9_E872,
        "8 independent integer chains: issue width",
        compute::alu_ilp,
    ),
    kernel(
        "branchy",
        ("decisions", compute::DECISIONS),
        0xFB78_B645_BBD1_0999,
        "compare and jump on random data",
        compute::branchy,
    ),
    kernel(
        "branchy-predictable",
        ("decisions", compute::DECISIONS),
        0xE24D_1DC0_A029_D42D,
        "the same code on sorted data: the difference is mispredictions",
        compute::branchy_sorted,
    ),
    bound(
        Bound::Cache,
        kernel(
            "btree-256k",
            ("lookups", tree::LOOKUPS),
            0xA15C_4755_1139_6EC8,
            "index lookups, 8 KiB pages, 16-byte keys, in 256 KiB",
            tree::small,
        ),
    ),
    bound(
        Bound::Cache,
        alone(kernel(
            "btree-16m",
            ("lookups", tree::LOOKUPS),
            0xF48A_0B46_F181_CA4E,
            "the same in 16 MiB",
            tree::medium,
        )),
    ),
    bound(
        Bound::Memory,
        alone(kernel("btree-1g", ("lookups", tree::LOOKUPS), 0x0220_82B3_D2DF_93B4, "the same in 1 GiB", tree::large)),
    ),
    bound(
        Bound::Cache,
        kernel(
            "hash-join-256k",
            ("probes", hash::PROBES),
            0x19EA_5BE0_B2BE_49B5,
            "probes of a hash table, 8-byte keys, half of them found, in 256 KiB",
            hash::small,
        ),
    ),
    bound(
        Bound::Cache,
        alone(kernel(
            "hash-join-16m",
            ("probes", hash::PROBES),
            0xDF81_38A6_722D_1781,
            "the same in 16 MiB",
            hash::medium,
        )),
    ),
    bound(
        Bound::Memory,
        alone(kernel(
            "hash-join-1g",
            ("probes", hash::PROBES),
            0xACA7_A963_B09E_FC85,
            "the same in 1 GiB",
            hash::large,
        )),
    ),
    alone(kernel(
        "sort",
        ("rows", rows::SORTED),
        0x7E65_A248_148B_B6B1,
        "65,536 rows of 16 bytes by memcmp",
        rows::sort,
    )),
    kernel(
        "tuple",
        ("rows", rows::ROWS_PER_CALL),
        0xD53A_53B7_3D40_C8E7,
        "slotted pages: 10 columns decoded, one summed, one a filter",
        rows::tuple,
    ),
    kernel(
        "decimal",
        ("ops", rows::DECIMAL_OPS),
        0x3CF5_3F27_FC57_1883,
        "numeric add and multiply in base 10^4",
        rows::decimal,
    ),
    kernel(
        "utf8-like",
        ("bytes", rows::TEXT_BYTES),
        0x2F2B_8C7D_5480_893C,
        "UTF-8 check and LIKE search",
        rows::utf8_like,
    ),
    path(
        bytes::crc_path,
        kernel(
            "crc32c-hw",
            ("bytes", bytes::SET_BYTES),
            0xFE14_4CFF_DC70_3FAC,
            "page and log checksums by the instruction",
            bytes::crc32c_hw,
        ),
    ),
    kernel(
        "crc32c-table",
        ("bytes", bytes::SET_BYTES),
        0xFE14_4CFF_DC70_3FAC,
        "the same by tables (slicing by 8)",
        bytes::crc32c_table,
    ),
    kernel(
        "pagesum",
        ("bytes", bytes::SET_BYTES),
        0x2A6B_2523_8DAD_5AA8,
        "page checksum as in PostgreSQL: FNV in 32 lanes",
        bytes::pagesum,
    ),
    kernel(
        "xor-fold",
        ("bytes", bytes::SET_BYTES),
        0x83DD_4B5E_D15A_179E,
        "block check as in Oracle: XOR of a block",
        bytes::xor_fold,
    ),
    kernel("xxh64", ("bytes", bytes::SET_BYTES), 0x5139_1BB7_8CFD_3D94, "hash of pages", bytes::xxh64),
    path(
        bytes::sha_path,
        kernel("sha256", ("bytes", bytes::SET_BYTES), 0xAB1D_1268_7F5D_AA5F, "hash of pages", bytes::sha256),
    ),
    path(
        bytes::aes_path,
        kernel(
            "aes-gcm",
            ("bytes", bytes::SET_BYTES),
            0xAFF3_F3A3_AAE0_2ABE,
            "AES-256-GCM of pages: encrypted tablespaces, TLS",
            bytes::aes_gcm,
        ),
    ),
    kernel("memcpy-8k-l1", ("bytes", bytes::COPIED), 0x0000_0000_5555_5555, "page copies from 16 KiB", bytes::copy_l1),
    bound(
        Bound::Cache,
        kernel(
            "memcpy-8k-l2",
            ("bytes", bytes::COPIED),
            0x0000_0000_08F8_F707,
            "the same from 256 KiB",
            bytes::copy_l2,
        ),
    ),
    bound(
        Bound::Memory,
        alone(kernel(
            "memcpy-8k-256m",
            ("bytes", bytes::COPIED),
            0x007F_FFFF_FFFF_DC00,
            "the same from 256 MiB",
            bytes::copy_memory,
        )),
    ),
    bound(
        Bound::Coherency,
        alone(kernel(
            "atomic-own",
            ("ops", compute::ATOMICS),
            0x0000_0000_0000_1000,
            "fetch-add on a cache line private to each thread",
            compute::atomic_own,
        )),
    ),
    bound(
        Bound::Coherency,
        alone(kernel(
            "atomic-shared",
            ("ops", compute::ATOMICS),
            0x0000_0000_0000_1000,
            "fetch-add on one cache line that all threads share",
            compute::atomic_shared,
        )),
    ),
    bound(
        Bound::System,
        alone(kernel(
            "syscall",
            ("calls", compute::SYSCALLS),
            0x0000_0000_0000_0100,
            "getppid: one round trip into the kernel",
            compute::syscall,
        )),
    ),
];
