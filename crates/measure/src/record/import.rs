//! The origin of a record's figures if assay did not measure them.

use super::Figure;
use crate::figures::figures;

/// The content of another tool's output; only in a record of `assay import`.
///
/// Every figure of such a record that was read (not derived) has its line here.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportInfo {
    /// `awr`, `statspack`, `fio`, `iperf3`, `ping`, `oratcptest`, `stress-ng`, `swingbench`, `slob`, `pgio`,
    /// `pgbench`, `sysbench`, `vdbench` or `assay`.
    pub tool: String,
    /// Its version as printed in the output; empty if absent.
    pub tool_version: String,
    /// What was recognised, in words: `AWR text, 19c layout`, `fio JSON`.
    pub format: String,
    /// Files read, in the order given.
    pub files: Vec<ImportedFile>,
    /// Every value that was read, in the order of the files and their lines.
    pub values: Vec<ImportedValue>,
    /// Notes on what was tolerated or left out, and where.
    pub notes: Vec<ImportNote>,
}

/// One file that was read.
#[figures]
#[derive(Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportedFile {
    /// Path as given; `-` for standard input.
    pub path: String,
    /// Its length.
    pub size_bytes: u64,
    /// Its lines.
    pub lines_count: u64,
}

/// One value as printed, and its interpretation.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportedValue {
    /// Our name with unit last, e.g. `tcp_throughput_bits_per_s_mean`; unique among the values that share `scope`.
    pub key: String,
    /// What it belongs to where a file has several of its kind: a job, a stream, a transaction, an event; empty
    /// otherwise.
    pub scope: String,
    /// The name the tool prints.
    pub name: String,
    /// The value in the unit that `key` ends in; n/a if the printed value is not reliable (a torn column).
    pub value: Figure,
    /// Half a unit of the last place printed, in the unit of `value`: the possible rounding error. 0 for exact.
    pub rounding: f64,
    /// `client`, `engine`, `syscall`, `device` or `network`.
    pub layer: String,
    /// JSON pointer of the figure in this record that holds it (`/load_profile/0/per_s`); empty if it is only here.
    #[serde(deserialize_with = "super::spelling::key")]
    pub at: String,
    /// The value as printed, its unit included.
    pub printed: String,
    /// Index into [`ImportInfo::files`].
    pub file: u64,
    /// Line in that file, from 1.
    pub line: u64,
}

/// Damage that was tolerated, or a part that was left out.
#[figures]
#[derive(Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportNote {
    /// Index into [`ImportInfo::files`].
    pub file: u64,
    /// Line in that file, from 1; 0 for the whole file.
    pub line: u64,
    /// What, in a sentence.
    pub text: String,
}
