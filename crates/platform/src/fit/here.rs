//! What a step had here, beside what was asked for and what was had there.

use super::load::{COMMIT_US, COMMITS, DatabaseLoad, LOG_WRITE_US, READ_US, READS, REDO, SCANNED, WRITES};
use super::offer::Offer;
use super::rise::metric;
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Record};

/// A figure there, as asked for, and here.
#[figures(group = Host, scope = "{side}")]
pub(crate) struct SideRow {
    #[column("At 1 x")]
    pub side: String,
    #[column("Had there", 1)]
    pub there_value: Figure,
    #[column("Offered", 1)]
    pub offered_value: Figure,
    #[column("Had here", 1)]
    #[metric("had here at 1 x")]
    pub here_value: Figure,
    #[column("Here / there", 2)]
    pub ratio: Figure,
}

/// A step that held.
pub(super) const HELD: &str = "yes";

/// A step of the rise.
#[figures(group = Host, scope = "{multiple} x")]
pub(crate) struct FitStepRow {
    #[column("x")]
    pub multiple: String,
    pub factor: Figure,
    /// Length of its window, s.
    pub elapsed_s: Figure,
    #[column("Asked, ops/s")]
    pub asked_per_s: u64,
    #[column("Done, ops/s", 1)]
    #[metric("operations of the step")]
    pub done_per_s: Figure,
    #[column("Reads/s", 1)]
    pub reads_per_s: Figure,
    #[column("Writes/s", 1)]
    pub writes_per_s: Figure,
    #[column("Commits/s", 1)]
    pub commits_per_s: Figure,
    #[column("Read, us", 0)]
    #[metric("mean read")]
    pub read_us: Figure,
    #[column("Commit, us", 0)]
    #[metric("mean commit")]
    pub commit_us: Figure,
    #[column("Held")]
    pub held: String,
    /// Why it missed.
    #[column("Why not")]
    pub missed: String,
    /// What limited it, by its own record.
    #[column("Limit of the step")]
    pub limit: String,
    pub limit_evidence: String,
    /// What part of the reads this box's page cache answered.
    pub page_cache_pct: Figure,
    /// What others took of the host's CPUs meanwhile, in words; empty: little.
    pub disturbed: String,
    #[column("Directory")]
    pub directory: String,
}

/// A figure of the load, its key in a step's record, and what is offered of it.
type SideOf = (&'static str, &'static str, fn(&Offer) -> Option<f64>);

const SIDES: [SideOf; 8] = [
    (READS, "reads_per_s", |offer| Some(offer.expected.reads)),
    (WRITES, "writes_per_s", |offer| (!offer.is_server).then_some(offer.expected.writes)),
    (COMMITS, "transactions_per_s", |offer| Some(offer.expected.commits)),
    (REDO, "redo_bytes_per_s", |offer| (!offer.is_server).then_some(offer.expected.redo)),
    (SCANNED, "physical_reads_direct_bytes_per_s", |offer| Some(offer.expected.scanned)),
    (READ_US, "db_file_sequential_read_us_avg", |_| None),
    (COMMIT_US, "log_file_sync_us_avg", |_| None),
    (LOG_WRITE_US, "background_log_file_parallel_write_us_avg", |_| None),
];

/// The sides, as far as they are known before a step ran.
pub(super) fn sides(load: &DatabaseLoad, offer: Option<&Offer>, step: Option<&Record>) -> Vec<SideRow> {
    let row = |(name, key, offered): &SideOf| {
        let there_value = load.figure(name);
        let here_value = match step {
            None => Figure::na("nothing was offered here"),
            Some(step) if *name == SCANNED => direct(step),
            Some(step) => metric(step, key),
        };
        let ratio = here_value.value().zip(there_value.value()).filter(|(_, there)| *there > 0.0);
        let offered = offer.map_or_else(
            || Figure::na("nothing is offered"),
            |offer| Figure::known(offered(offer), "it follows from what is offered"),
        );
        SideRow {
            side: (*name).to_owned(),
            there_value,
            offered_value: offered,
            here_value,
            ratio: Figure::known(ratio.map(|(here, there)| here / there), "a side is not known"),
        }
    };
    SIDES.iter().map(row).collect()
}

fn direct(step: &Record) -> Figure {
    let seconds = step.interval.elapsed_s.value().unwrap_or(0.0);
    step.instance.scan.direct_bytes.per(seconds, "no time passed")
}
