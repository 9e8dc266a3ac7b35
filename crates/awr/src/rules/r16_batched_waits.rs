//! R16: one wait covers many reads.

use super::*;

const THRESHOLD: f64 = 20.0;

pub(super) const RULE: Rule = Rule {
    id: "R16",
    title: "One wait covers many reads",
    changes_figures: false,
    fires_when: || format!("Batches bring at least {THRESHOLD} % of the blocks read; high from twice that"),
    why: "A wait for db file parallel read is one of a batch, not of one I/O.",
    what_to_do: "Read the time of one request under Latency by Layer.",
    cannot_judge_when: "Physical reads or prefetched blocks are n/a.",
    source: "Published load tests of the method: about 30 blocks a wait.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let parallel = named(record, "db file parallel read", "foreground");
    let Some(waits) = parallel.and_then(|event| event.count.value()).filter(|n| *n > 0.0) else {
        return Ok(None);
    };
    let reads = stat(record, "physical_reads_blocks")?;
    let prefetched = stat(record, "physical_reads_cache_prefetch_blocks")?;
    if reads <= 0.0 || 100.0 * prefetched / reads < THRESHOLD {
        return Ok(None);
    }
    let pct = 100.0 * prefetched / reads;
    // Of a batch one block is the one asked for, the others came along.
    let per_wait = (prefetched + waits) / waits;
    let text = format!(
        "{} % of the blocks were read in batches: one wait for db file parallel read covers {} blocks, not one I/O.",
        fixed(pct, 1),
        fixed(per_wait, 1)
    );
    let evidence = [("prefetched_pct", pct), ("blocks_per_wait", per_wait)];
    fired(&RULE, pct, THRESHOLD, text, &evidence)
}
