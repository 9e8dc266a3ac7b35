//! R18: the cache answers.

use super::*;

const ALL: f64 = 99.9;
const SOME: f64 = 20.0;
/// Share of DB time that makes an imported run one of storage, %.
const OF_STORAGE_PCT: f64 = 50.0;

pub(super) const RULE: Rule = Rule {
    id: "R18",
    title: "The cache answers",
    changes_figures: false,
    fires_when: || {
        format!(
            "Buffer Hit is more than {SOME} % (high from twice that, and a note from {ALL} % on: then it is a test of memory); of an import only where User I/O takes {OF_STORAGE_PCT} % of DB time"
        )
    },
    why: "A test of storage that hardly reads says little of it.",
    what_to_do: "Make the cache smaller or the data larger for a test of storage.",
    cannot_judge_when: "DB time of an import is n/a, or most of its reads were direct.",
    source: "Published load tests of the method: 7.6 % with data 16 times the cache.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let mut rows = record.instance.efficiency.iter();
    let printed = rows.find(|row| row.name.trim() == "Buffer Hit %" && record.import.is_some());
    let measured = match printed {
        Some(row) => &row.value_pct,
        None => &record.checks.hit_measured_pct,
    };
    let Ok(pct) = need(measured, "Buffer Hit") else {
        return Ok(None);
    };
    // A report of a database at work is no test of storage, and its hits need no advice.
    if record.import.is_some() && share(record, |event| event.class == "User I/O")? < OF_STORAGE_PCT {
        return Ok(None);
    }
    // Direct reads pass the cache by, and are in no hit ratio.
    let direct = stat(record, "physical_reads_direct_blocks").unwrap_or(0.0);
    if record.import.is_some() && direct > stat(record, "physical_reads_cache_blocks").unwrap_or(0.0) {
        return Err(Missing("Buffer Hit: most reads were direct and not of the cache".to_owned()));
    }
    let evidence = [("buffer_hit_pct", pct)];
    let cache = match (&record.instance.reads, &record.import) {
        (Some(_), _) => {
            format!("the {}'s buffers ({})", facts::kind(&record.plan.engine_facts), cache_parameter(record))
        }
        (None, Some(_)) => "the buffer cache".to_owned(),
        (None, None) => "CACHE_MB".to_owned(),
    };
    if pct >= ALL {
        let text = format!(
            "The data fits in the cache (Buffer Hit {} %): there were hardly any reads from storage. For a test of \
             storage make {cache} smaller or SCALE larger.",
            fixed(pct, 2)
        );
        return Ok(Some(RULE.finding(false, text, &evidence)));
    }
    if pct <= SOME {
        return Ok(None);
    }
    let text = format!(
        "The cache answered {} % of the gets: the physical reads understate what the sessions asked for. For a test \
         of storage make {cache} smaller or SCALE larger.",
        fixed(pct, 1)
    );
    Ok(Some(RULE.finding(pct >= 2.0 * SOME, text, &evidence)))
}
