//! The tests of a platform: which probe, with which words, for how long.

use std::path::Path;
use std::time::Duration;

/// How thoroughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Some five minutes.
    Quick,
    /// An hour: the same tests, longer, and one that needs minutes.
    Full,
    /// A second for each: how the tests follow each other, without figures worth a word.
    Brief,
}

impl Plan {
    /// As the record says it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::Brief => "brief",
        }
    }
}

/// What a test measures against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The directory asked for.
    Place,
    /// The other host, where there is one.
    Peer,
    /// This host.
    Host,
}

/// A test of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name in the record and its directory.
    pub name: &'static str,
    /// The probe that measures it, by the name in the registry.
    pub probe: &'static str,
    /// What the progress says.
    pub about: &'static str,
    /// Against what it measures.
    pub against: Against,
    /// How long it measures, s.
    pub seconds: u64,
    /// Words in the probe's own language.
    pub words: Vec<String>,
}

impl Test {
    /// How long it measures.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Depths of the random reads, each a job of its own: what a session waits for (1) to where devices are full.
pub(crate) const DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

// The names of the tests.
pub(crate) const READS: &str = "reads";
pub(crate) const STREAMS: &str = "streams";
pub(crate) const CAPS: &str = "caps";
pub(crate) const COLD: &str = "cold";
pub(crate) const WRITES: &str = "writes";
pub(crate) const TOGETHER: &str = "together";
pub(crate) const COMMITS: &str = "commits";
pub(crate) const DURABILITY: &str = "durability";
pub(crate) const CLOCK: &str = "clock";
pub(crate) const MEMORY: &str = "memory";
pub(crate) const CPU: &str = "cpu";
pub(crate) const ROUND_TRIPS: &str = "round-trips";
pub(crate) const NETWORK: &str = "network";

/// The tests, in the order in which they are run: short ones first, those that wear the device last.
#[must_use]
pub fn tests(plan: Plan, file: &Path, file_bytes: u64, has_peer: bool) -> Vec<Test> {
    let long = |quick: u64, full: u64| match plan {
        Plan::Quick => quick,
        Plan::Full => full,
        Plan::Brief => 1,
    };
    let test = |name, probe, about, against, seconds| Test { name, probe, about, against, seconds, words: Vec::new() };
    let io = |name, about, seconds: u64, jobs: &[Job]| Test {
        words: jobs_words(file, file_bytes, &seconds.to_string(), jobs),
        ..test(name, "io", about, Against::Place, seconds * jobs.len() as u64)
    };
    let depths = DEPTHS.map(|depth| Job { name: format!("depth {depth}"), rw: "randread", block: "8k", depth });
    let stream = |name: &str, rw| Job { name: name.to_owned(), rw, block: "1m", depth: 8 };
    let mut tests = vec![
        test(CLOCK, "clock", "what reading the clock costs", Against::Host, long(5, 30)),
        test(MEMORY, "memory", "memory bandwidth and latency", Against::Host, long(20, 300)),
        test(CPU, "cpu", "the computations of a database", Against::Host, long(30, 480)),
        Test {
            // Before anything is written there: what assay writes is warm.
            words: vec!["unreadable-is-unknown".to_owned()],
            ..test(COLD, "first-touch", "blocks that are slow at their first read", Against::Place, long(15, 300))
        },
        test(COMMITS, "sync", "durable writes, the cost of a commit", Against::Place, long(35, 480)),
        test(
            DURABILITY,
            "durability",
            "what the device announces, what page images cost",
            Against::Place,
            long(10, 60),
        ),
        test(CAPS, "throttle", "caps and bursts of reads, bytes and commits", Against::Place, long(60, 900)),
        io(READS, "random reads of 8 KiB at rising depth", long(6, 120), &depths),
        io(
            STREAMS,
            "sequential reads and writes of 1 MiB",
            long(8, 120),
            &[stream("read", "read"), stream("write", "write")],
        ),
        io(
            WRITES,
            "random writes of 16 KiB",
            long(10, 300),
            &[Job { name: "random".to_owned(), rw: "randwrite", block: "16k", depth: 32 }],
        ),
    ];
    if plan == Plan::Full {
        let about = "what a backup, a scan and a checkpoint do to commits and reads";
        tests.push(test(TOGETHER, "interference", about, Against::Place, 300));
    }
    if has_peer {
        tests.push(test(ROUND_TRIPS, "ping", "round trips to the peer", Against::Peer, long(10, 120)));
        tests.push(test(NETWORK, "net", "throughput to the peer", Against::Peer, long(10, 120)));
    }
    tests
}

pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) rw: &'static str,
    pub(crate) block: &'static str,
    pub(crate) depth: u32,
}

/// The jobs in the words of the storage probe, each for this time.
pub(crate) fn jobs_words(file: &Path, file_bytes: u64, runtime: &str, jobs: &[Job]) -> Vec<String> {
    jobs.iter()
        .flat_map(|job| {
            [
                format!("--name={}", job.name),
                "--stonewall".to_owned(),
                "--ioengine=io_uring".to_owned(),
                "--direct=1".to_owned(),
                format!("--filename={}", file.display()),
                format!("--size={file_bytes}"),
                format!("--rw={}", job.rw),
                format!("--bs={}", job.block),
                format!("--iodepth={}", job.depth),
                "--time_based".to_owned(),
                format!("--runtime={runtime}"),
            ]
        })
        .collect()
}
