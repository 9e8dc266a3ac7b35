//! R36: the driver threads were out of CPU.

use super::*;

const THRESHOLD: f64 = 95.0;

pub(super) const RULE: Rule = Rule {
    id: "R36",
    title: "The driver threads were out of CPU",
    changes_figures: true,
    fires_when: || format!("Driver threads used at least {THRESHOLD} % of one CPU each"),
    why: "No figure says what storage or server could do.",
    what_to_do: "Increase WORK_UNIT, use LOOP=server, or use more DRIVER_THREADS where CPUs are free.",
    cannot_judge_when: "Never: without the CPU time of the threads the rule is silent.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let Some(pct) = record.driver.thread_cpu_pct.value().filter(|pct| *pct >= THRESHOLD) else {
        return Ok(None);
    };
    let way_out = if facts::IN_PROCESS.find(&record.plan.engine_facts).is_some() {
        "Each session keeps one thread: more sessions raise throughput only if CPUs are free."
    } else if record.instance.server.is_some() {
        "Increase WORK_UNIT, use LOOP=server, or use more DRIVER_THREADS if CPUs are free."
    } else {
        "More sessions will not raise throughput; more DRIVER_THREADS may, if CPUs are free."
    };
    let text = format!(
        "The driver threads used {} % of {} CPUs: this run measures CPU, not storage. {way_out}",
        fixed(pct, 1),
        record.driver.threads_count
    );
    Ok(Some(RULE.finding(false, text, &[("thread_cpu_pct", pct)])))
}
