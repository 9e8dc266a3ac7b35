//! R1: CPU-bound.

use super::*;

/// Share of DB CPU in DB time from which on one of them is wrong: Oracle rounds both up by some percent at most.
const CONTRADICTS_PCT: f64 = 110.0;
const THRESHOLD: f64 = 80.0;

pub(super) const RULE: Rule = Rule {
    id: "R1",
    title: "CPU-bound",
    changes_figures: false,
    fires_when: || format!("Execution and the run queue take at least {THRESHOLD} % of DB time"),
    why: "The run measures logical I/O and CPUs, not storage.",
    what_to_do: "Use a smaller cache or more data for a test of storage, or call the run a test of CPUs.",
    cannot_judge_when: "DB time, DB CPU or elapsed time is n/a, or an imported DB CPU exceeds DB time by more than their rounding.",
    source: "Published load tests of the method: 83 to 95 %.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let Some((pct, cpu_s)) = on_cpu(record)? else {
        return Ok(None);
    };
    if record.import.is_some() && pct > CONTRADICTS_PCT {
        return Err(Missing("DB time: DB CPU exceeds it".to_owned()));
    }
    if pct < THRESHOLD {
        return Ok(None);
    }
    let text = format!(
        "CPU-bound: {} % of DB time is execution and waiting for a CPU ({} CPUs used by {}). This run measures \
         logical I/O, not storage.",
        fixed(pct, 1),
        fixed(cpu_s, 2),
        match (&record.instance.server, &record.import) {
            (Some(_), _) => format!("the {}'s sessions", facts::kind(&record.plan.engine_facts)),
            (_, Some(_)) => "the sessions".to_owned(),
            _ => "the driver threads".to_owned(),
        }
    );
    let evidence = [("on_cpu_pct", pct), ("db_cpu_s_per_s", cpu_s)];
    Ok(Some(RULE.advise(false, text, &evidence)))
}
