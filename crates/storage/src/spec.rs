//! Storage jobs: every option typed, every default filled in, nothing left to resolve.
//!
//! The job language produces these; planning, patterns and the work loop read them. Names and defaults are fio's
//! (`man 1 fio`), so that a job file means the same here as in fio.

mod state;

pub use state::{Precondition, PreconditionOptions, SteadyMetric, SteadyOptions};

use crate::readings::{DIRECTIONS, Way};
use assay_measure::clock::Ns;
use assay_measure::snapshot::SettingLine;
use std::path::PathBuf;

/// Everything that one command line requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Invocation {
    /// Options before the first job and in `[global]` sections, as given, in order.
    pub global_options: Vec<GivenOption>,
    /// The jobs, in order.
    pub jobs: Vec<StorageJob>,
    /// What to do with the results, and other options that only the command line has.
    pub output: OutputOptions,
    /// Text of each job file and include, in the order of reading.
    pub files: Vec<String>,
    /// The scratch file that the default jobs create and remove.
    pub scratch: Option<PathBuf>,
}

impl Invocation {
    /// All options as given, each with its job or section.
    #[must_use]
    pub fn settings(&self) -> Vec<SettingLine> {
        let global = self.global_options.iter().map(|given| ("global", "global", given));
        let own = self
            .jobs
            .iter()
            .flat_map(|job| job.given.iter().map(|given| (job.name.as_str(), job.origin.as_str(), given)));
        let setting = |(job, origin, (name, value)): (&str, &str, &GivenOption)| SettingLine {
            name: format!("{job}.{name}"),
            value: value.clone().unwrap_or_default(),
            origin: origin.to_owned(),
        };
        global.chain(own).map(setting).collect()
    }
}

/// An option as it was typed; no value for a bare flag.
pub type GivenOption = (String, Option<String>);

/// One job: `numjobs` clones of the same work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StorageJob {
    /// `--name` or the section's title.
    pub name: String,
    /// Where it was defined: `job file FILE, line N` or `command line`.
    pub origin: String,
    /// Its own options as given, without the global ones.
    pub given: Vec<GivenOption>,
    /// The global options that apply to it, as given.
    pub inherited: Vec<GivenOption>,
    /// Index in the order of stonewalls: jobs of one wave run concurrently, and waves run one after another.
    pub wave: u32,
    /// Report group (`groupid`): a new one at each `stonewall` or `new_group`.
    pub group: u32,
    /// All options.
    pub options: JobOptions,
}

/// Report formats, in the order given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// fio's text.
    Normal,
    /// fio's JSON.
    Json,
    /// With every latency bin.
    JsonPlus,
    /// Semicolon-separated, version 3.
    Terse,
}

/// When to show the progress line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eta {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Options that only the command line has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputOptions {
    /// Empty means [`OutputFormat::Normal`].
    pub formats: Vec<OutputFormat>,
    /// `--output=FILE`: the report goes there instead of standard output.
    pub file: Option<PathBuf>,
    /// `--append-terse`.
    pub append_terse: bool,
    /// `--eta`.
    pub eta: Eta,
    /// `--eta-interval`.
    pub eta_interval_ns: Option<Ns>,
    /// `--eta-newline`.
    pub eta_newline_ns: Option<Ns>,
    /// `--status-interval`.
    pub status_interval_ns: Option<Ns>,
    /// `--readonly`.
    pub readonly: bool,
    /// `--parse-only`.
    pub parse_only: bool,
    /// `--showcmd`: print the job files as command lines and stop.
    pub show_command: bool,
    /// `--destroy PATH`, repeatable: what may be overwritten although assay did not create it.
    pub destroy: Vec<PathBuf>,
    /// `-o DIR`: the run directory.
    pub run_directory: Option<PathBuf>,
    /// `--label TEXT`: a name for the run in lists, reports and comparisons.
    pub label: Option<String>,
    /// `--until FIGURE=P%`: repeat the jobs until the figure is known.
    pub until: Option<String>,
    /// `--at-most TIME`: the longest time of all repeats.
    pub at_most: Option<String>,
    /// `--no-record`: leave no run directory.
    pub no_record: bool,
    /// Notes on options that are accepted for fio's sake (`--alloc-size`, `--max-jobs`, `--aux-path`, ...) with their
    /// effect here.
    pub notes: Vec<String>,
}

/// The I/O mode of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `read`
    #[default]
    Read,
    /// `write`
    Write,
    /// `randread`
    RandRead,
    /// `randwrite`
    RandWrite,
    /// `rw`, `readwrite`
    ReadWrite,
    /// `randrw`
    RandRw,
    /// `trim`
    Trim,
    /// `randtrim`
    RandTrim,
    /// `trimwrite`: each block is trimmed, then written.
    TrimWrite,
    /// `randtrimwrite`
    RandTrimWrite,
}

impl Mode {
    /// Whether offsets are random.
    #[must_use]
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandRw | Self::RandTrim | Self::RandTrimWrite)
    }

    /// Whether it reads and writes.
    #[must_use]
    pub fn is_mixed(self) -> bool {
        matches!(self, Self::ReadWrite | Self::RandRw)
    }

    /// Whether it has I/Os of this direction.
    #[must_use]
    pub fn goes(self, way: Way) -> bool {
        match way {
            Way::Read => self.is_mixed() || matches!(self, Self::Read | Self::RandRead),
            Way::Write => self.is_mixed() || self.trims_and_writes() || matches!(self, Self::Write | Self::RandWrite),
            Way::Trim => self.trims_and_writes() || matches!(self, Self::Trim | Self::RandTrim),
        }
    }

    /// Whether each block is trimmed, then written.
    #[must_use]
    pub fn trims_and_writes(self) -> bool {
        matches!(self, Self::TrimWrite | Self::RandTrimWrite)
    }

    /// Whether the job destroys existing data.
    #[must_use]
    pub fn destroys(self) -> bool {
        self.goes(Way::Write) || self.goes(Way::Trim)
    }

    /// fio's spelling in reports: `rw` for `readwrite`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::ReadWrite => "rw",
            Self::RandRw => "randrw",
            Self::Trim => "trim",
            Self::RandTrim => "randtrim",
            Self::TrimWrite => "trimwrite",
            Self::RandTrimWrite => "randtrimwrite",
        }
    }
}

/// `ioengine`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoEngine {
    /// `psync`, `sync`, `vsync`, `pvsync`: positional calls.
    #[default]
    Psync,
    /// `pvsync2`: positional calls with flags.
    Pvsync2,
    /// `io_uring`.
    IoUring,
    /// `libaio`.
    Libaio,
    /// `null`: completes at once, never enters the kernel.
    Null,
    /// `nop` (assay's own): no-operations through the real ring.
    Nop,
}

impl IoEngine {
    /// fio's spelling in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Psync => "psync",
            Self::Pvsync2 => "pvsync2",
            Self::IoUring => "io_uring",
            Self::Libaio => "libaio",
            Self::Null => "null",
            Self::Nop => "nop",
        }
    }
}

/// An amount that may depend on the size of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the actual size.
    Percent(u32),
}

assay_measure::with_defaults! {
    /// Block sizes of one direction.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BlockSizes {
        /// Smallest, bytes.
        pub min: u32 = 4096,
        /// Largest, bytes.
        pub max: u32 = 4096,
        /// `bssplit`: (bytes, weight in percent), weights summing to 100; empty without one.
        pub split: Vec<(u32, u32)>,
    }
}

/// `sync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenSync {
    /// Neither.
    #[default]
    None,
    /// `O_SYNC`
    Sync,
    /// `O_DSYNC`
    Dsync,
}

/// `random_distribution`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// All blocks are equally likely.
    #[default]
    Random,
    /// `zipf:theta[:center]`
    Zipf(f64, Option<f64>),
    /// `pareto:h[:center]`
    Pareto(f64, Option<f64>),
    /// `normal:deviation percent[:center]`
    Normal(f64, Option<f64>),
    /// `zoned:percent of I/Os/percent of the region:...`
    Zoned(Vec<(u32, u32)>),
}

/// `random_generator` as requested; the same random streams serve all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomGenerator {
    /// `tausworthe`
    #[default]
    Tausworthe,
    /// `tausworthe64`
    Tausworthe64,
    /// `lfsr`: each block once, without a map.
    Lfsr,
}

/// `fallocate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallocate {
    /// `native`: if the file system supports it.
    #[default]
    Native,
    /// `none`
    None,
    /// `posix`
    Posix,
    /// `keep`
    Keep,
    /// `truncate`
    Truncate,
}

/// `file_service_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileService {
    /// `roundrobin[:n]`
    #[default]
    RoundRobin,
    /// `random[:n]`
    Random,
    /// `sequential`
    Sequential,
}

/// `verify`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// No verification.
    #[default]
    None,
    /// `crc32c`: a header with a checksum in each interval.
    Crc32c,
    /// `pattern`: only the pattern.
    Pattern,
}

/// Options of the ring (`registerfiles`, ...).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingWishes {
    /// `fixedbufs`; `None`: if it helps.
    pub fixed_buffers: Option<bool>,
    /// `registerfiles`; `None`: if it helps.
    pub registered_files: Option<bool>,
    /// `hipri`
    pub polled: bool,
    /// `sqthread_poll`
    pub sq_thread: bool,
    /// `sqthread_poll_cpu`
    pub sq_thread_cpu: Option<u32>,
    /// `nonvectored`; `None` for the default.
    pub nonvectored: Option<bool>,
    /// `force_async=N`: every n-th I/O.
    pub force_async: u32,
    /// `nowait`
    pub nowait: bool,
}

assay_measure::with_defaults! {
    /// Names and sizes of files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct JobFileOptions {
        /// `filename`, split at its colons; if empty, names are generated.
        pub names: Vec<PathBuf>,
        /// `filename_format`; `None`: `$jobname.$jobnum.$filenum`.
        pub name_format: Option<String>,
        /// `directory`, split at its colons; clones use them in turn.
        pub directories: Vec<PathBuf>,
        /// `nrfiles`
        pub count: u32 = 1,
        /// `openfiles`
        pub open_at_once: Option<u32>,
        /// `file_service_type`, and the number of I/Os before it switches.
        pub service: (FileService, u32) = (FileService::RoundRobin, 1),
        /// `size`; `None`: the whole file or device.
        pub size: Option<Amount>,
        /// `filesize`: range for each file's size.
        pub file_size: Option<(u64, u64)>,
        /// `offset`
        pub offset: Amount = Amount::Bytes(0),
        /// `offset_increment`
        pub offset_increment: Amount = Amount::Bytes(0),
        /// `direct`
        pub direct: bool,
        /// `sync`
        pub sync: OpenSync,
        /// `create_serialize`, `create_fsync`, `create_on_open`, `create_only`, `unlink`, `overwrite`
        pub create_serialize: bool = true,
        /// See above.
        pub create_fsync: bool = true,
        /// See above.
        pub create_on_open: bool,
        /// See above.
        pub create_only: bool,
        /// See above.
        pub unlink: bool,
        /// See above.
        pub overwrite: bool,
        /// `allow_file_create`
        pub allow_create: bool = true,
        /// `allow_mounted_write`: recognised, but refused.
        pub allow_mounted_write: bool,
        /// `fallocate`
        pub fallocate: Fallocate,
        /// `invalidate`
        pub invalidate: bool = true,
        /// `pre_read`
        pub pre_read: bool,
        /// `end_fsync`
        pub end_fsync: bool,
        /// `fsync_on_close`
        pub fsync_on_close: bool,
    }

    /// Offsets, lengths, directions and amounts.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PatternOptions {
        /// `rw`
        pub mode: Mode,
        /// `rw=...:N`: I/Os per random offset, or bytes of the gap of a sequential job.
        pub mode_argument: Option<i64>,
        /// `rwmixread`: percentage of reads in a mixed job.
        pub read_percent: u32 = 50,
        /// `bs`, `bsrange`, `bssplit`, by direction.
        pub blocks: [BlockSizes; DIRECTIONS],
        /// `bs_is_seq_rand`
        pub blocks_by_sequence: bool,
        /// `blockalign`, by direction; `None`: the smallest block.
        pub align: [Option<u64>; DIRECTIONS],
        /// `io_size`; `None`: the region.
        pub io_size: Option<Amount>,
        /// `number_ios`
        pub number_ios: Option<u64>,
        /// `loops`
        pub loops: u64 = 1,
        /// `norandommap`
        pub no_map: bool,
        /// `softrandommap`
        pub soft_map: bool,
        /// `random_generator`
        pub generator: RandomGenerator,
        /// `random_distribution`
        pub distribution: Distribution,
        /// `percentage_random`, by direction.
        pub random_percent: [u32; DIRECTIONS] = [100; DIRECTIONS],
        /// `randrepeat`
        pub repeat: bool = true,
        /// `allrandrepeat`
        pub repeat_all: bool,
        /// `randseed`
        pub seed: Option<u64>,
    }

    /// What to write, and how to verify it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PayloadOptions {
        /// `zero_buffers`
        pub zero: bool,
        /// `refill_buffers`
        pub refill: bool,
        /// `scramble_buffers`
        pub scramble: bool = true,
        /// `buffer_compress_percentage`
        pub compress_percent: u32,
        /// `buffer_compress_chunk`, bytes; 0: the block.
        pub compress_chunk: u32 = 512,
        /// `dedupe_percentage`
        pub dedupe_percent: u32,
        /// `buffer_pattern`, expanded to bytes.
        pub pattern: Option<Vec<u8>>,
        /// `verify`
        pub verify: Verify,
        /// `do_verify`
        pub do_verify: bool = true,
        /// `verify_fatal`
        pub verify_fatal: bool,
        /// `verify_only`
        pub verify_only: bool,
        /// `verify_backlog`, blocks; 0: only at the end.
        pub verify_backlog: u64,
        /// `verify_interval`, bytes; 0: the block.
        pub verify_interval: u32,
        /// `verify_pattern`, expanded to bytes.
        pub verify_pattern: Option<Vec<u8>>,
        /// Positions of the I/O's offset in the pattern (`%o`), eight bytes each, ascending.
        pub verify_pattern_offsets: Vec<u32>,
    }

    /// When to issue I/Os, and when to stop.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PaceOptions {
        /// `iodepth`
        pub depth: u32 = 1,
        /// `iodepth_batch_submit`; `None`: not given (fio uses 1, the work loop whatever is free).
        pub batch_submit: Option<u32>,
        /// `iodepth_batch_complete_min`; `None`: not given.
        pub batch_complete_min: Option<u32>,
        /// `iodepth_batch_complete_max`
        pub batch_complete_max: Option<u32>,
        /// `iodepth_low`
        pub depth_low: Option<u32>,
        /// `runtime`
        pub runtime_ns: Option<Ns>,
        /// `time_based`
        pub time_based: bool,
        /// `ramp_time`
        pub ramp_ns: Ns,
        /// `wait_for`: the name of an earlier job that must end first.
        pub wait_for: Option<String>,
        /// `startdelay`: range.
        pub start_delay_ns: (Ns, Ns),
        /// `thinktime`
        pub think_ns: Ns,
        /// `thinktime_spin`
        pub think_spin_ns: Ns,
        /// `thinktime_blocks`
        pub think_blocks: u32 = 1,
        /// `rate`, bytes per second, by direction.
        pub rate: [Option<u64>; DIRECTIONS],
        /// `rate_min`
        pub rate_min: [Option<u64>; DIRECTIONS],
        /// `rate_iops`
        pub rate_iops: [Option<u64>; DIRECTIONS],
        /// `rate_iops_min`
        pub rate_iops_min: [Option<u64>; DIRECTIONS],
        /// `rate_cycle`: interval over which a minimum is judged.
        pub rate_cycle_ns: Ns = 1_000_000_000,
        /// `rate_process=poisson`
        pub rate_poisson: bool,
        /// `rate_ignore_thinktime`
        pub rate_ignores_think: bool,
        /// `fsync`: after this many writes; 0: never.
        pub fsync_every: u32,
        /// `fdatasync`
        pub fdatasync_every: u32,
        /// `continue_on_error`, by what fails: reads, writes, verification.
        pub pass_errors: PassErrors,
        /// `exitall`
        pub exit_all: bool,
        /// `exitall_on_error`
        pub exit_all_on_error: bool,
        /// `max_latency`
        pub max_latency_ns: Option<Ns>,
        /// `latency_target` and related options.
        pub latency: LatencyGoal,
        /// `steadystate`
        pub steady: Option<SteadyOptions>,
        /// `steadystate_duration`
        pub steady_duration_ns: Ns,
        /// `steadystate_ramp_time`
        pub steady_ramp_ns: Ns,
    }
}

assay_measure::with_defaults! {
    /// The latency goal of the search for a depth.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LatencyGoal {
        /// `latency_target`; `None`: no search.
        pub target_ns: Option<Ns>,
        /// `latency_window`: how long to try each depth.
        pub window_ns: Ns,
        /// `latency_percentile`: percentage of the I/Os of a window that must meet the target.
        pub percentile: f64 = 100.0,
        /// `latency_run`: adapt the depth until the end, and measure all of it.
        pub adapts: bool,
    }
}

/// Errors that are counted without ending the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassErrors {
    /// Failed reads.
    pub read: bool,
    /// Failed writes.
    pub write: bool,
    /// Blocks that failed verification.
    pub verify: bool,
}

assay_measure::with_defaults! {
    /// What to measure and report.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MeasureOptions {
        /// `percentile_list`, ascending as given.
        pub percentiles: Vec<f64> = vec![1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99],
        /// `slat_percentiles`
        pub slat_percentiles: bool,
        /// `clat_percentiles`
        pub clat_percentiles: bool = true,
        /// `lat_percentiles`
        pub lat_percentiles: bool,
        /// `disable_slat`; `gtod_reduce` sets this and the next three.
        pub no_slat: bool,
        /// `disable_clat`
        pub no_clat: bool,
        /// `disable_lat`
        pub no_lat: bool,
        /// `disable_bw_measurement`
        pub no_bw: bool,
        /// `bwavgtime`
        pub bw_average_ns: Ns = 500_000_000,
        /// `iopsavgtime`
        pub iops_average_ns: Ns = 500_000_000,
        /// `significant_figures`
        pub significant_figures: u32 = 4,
        /// `group_reporting`
        pub group_reporting: bool,
        /// `write_lat_log`: prefix; an empty prefix stands for the job's name.
        pub lat_log: Option<String>,
        /// `write_bw_log`
        pub bw_log: Option<String>,
        /// `write_iops_log`
        pub iops_log: Option<String>,
        /// `write_hist_log`
        pub hist_log: Option<String>,
        /// `log_hist_msec`
        pub hist_log_ns: Ns,
        /// `log_avg_msec`; 0: every I/O.
        pub log_average_ns: Ns,
        /// `log_window_value`: the mean is logged.
        pub log_mean: bool = true,
        /// `log_window_value=max|both`
        pub log_max: bool,
        /// `log_offset`
        pub log_offset: bool,
        /// `per_job_logs`
        pub per_job_logs: bool = true,
    }
}

/// Which CPUs a clone runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementOptions {
    /// `cpus_allowed`, `cpumask`; `None`: any.
    pub cpus: Option<Vec<u32>>,
    /// `cpus_allowed_policy=split`: clone k uses the k-th.
    pub split: bool,
    /// `thread`: clones are threads in any case.
    pub thread: bool,
    /// `nice`
    pub nice: Option<i32>,
}

/// All options of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOptions {
    /// `description`
    pub description: Option<String>,
    /// `numjobs`; at least 1.
    pub clones: u32,
    /// `stonewall`
    pub stonewall: bool,
    /// `new_group`
    pub new_group: bool,
    /// `ioengine`
    pub engine: IoEngine,
    /// The engine's name as typed, for reports; empty if none was given, which means `psync`.
    pub engine_name: String,
    /// Options of io_uring.
    pub ring: RingWishes,
    /// Files.
    pub files: JobFileOptions,
    /// The state of the files before the run.
    pub precondition: PreconditionOptions,
    /// Offsets.
    pub pattern: PatternOptions,
    /// Content.
    pub payload: PayloadOptions,
    /// Time.
    pub pace: PaceOptions,
    /// Results.
    pub measure: MeasureOptions,
    /// CPUs.
    pub placement: PlacementOptions,
    /// Every how many requests one completes short ([`assay_block::Lanes::shorten`]); set only by tests, no option sets
    /// it.
    pub shorten: u32,
}

/// The part of a file that a clone works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Index of the file among the clone's files.
    pub file: u16,
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
}

/// An invalid job: one line that names the origin, the value and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {what}")]
pub struct SpecError {
    /// `job file FILE, line N`, `command line`, `job NAME`.
    pub origin: String,
    /// The wrong value, the reason, and what would be accepted.
    pub what: String,
}
