//! R39: the host swapped.

use super::*;

pub(super) const RULE: Rule = Rule {
    id: "R39",
    title: "The host swapped",
    changes_figures: true,
    fires_when: || "The kernel moved a page to or from swap during the window".to_owned(),
    why: "A page that is swapped in waits for the device as a read does.",
    what_to_do: "Use a smaller cache.",
    cannot_judge_when: "Never: without the counters of the kernel the rule is silent.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let swaps = record.os.vmstat_count.iter().filter(|(name, _)| name.contains("swp"));
    let pages: f64 = swaps.filter_map(|(_, count)| count.value()).sum();
    if pages == 0.0 {
        return Ok(None);
    }
    let text = format!(
        "The host swapped {} pages during the window: memory was short, and latencies include paging. Use a smaller {}.",
        fixed(pages, 0),
        if record.instance.server.is_some() { cache_parameter(record) } else { "CACHE_MB" }
    );
    Ok(Some(RULE.finding(false, text, &[("swapped_pages_count", pages)])))
}
