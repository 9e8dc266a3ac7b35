//! R2: the host's CPUs are saturated.

use super::*;

const QUEUE: f64 = 5.0;
const LOAD: f64 = 1.5;

pub(super) const RULE: Rule = Rule {
    id: "R2",
    title: "The host's CPUs are saturated",
    changes_figures: true,
    fires_when: || {
        format!(
            "The host's CPUs are at least {SATURATED} % busy, and sessions or driver threads were ready without a CPU for more than {QUEUE} % of their time; where nobody counted that, the load exceeds {LOAD} per CPU; high from twice either"
        )
    },
    why: "Wait times include the time until a CPU was free.",
    what_to_do: "Use fewer sessions or more CPUs, and take the device's latency from Latency by Layer, not from wait times.",
    cannot_judge_when: "Host CPU use is n/a; or the time without a CPU is, and no load is known.",
    source: "Published load tests of the method: user and system 99.7 %, load 235 on 16 CPUs.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let busy = busy(record)?;
    if busy < SATURATED {
        return Ok(None);
    }
    let model = &record.instance.time_model;
    let waited = cpu::delayed_pct(record);
    let load = record.os.load_end.first().and_then(|load| load.value());
    if waited.is_none() && load.is_none() {
        need(&model.db_time_us, "DB time")?;
        need(&model.run_queue_us, "run queue time")?;
    }
    let per_cpu = load.zip(record.os.cpus_count.value().filter(|cpus| *cpus > 0.0)).map(|(load, cpus)| load / cpus);
    let fires = match waited {
        Some(pct) => pct > QUEUE,
        None => per_cpu.is_some_and(|load| load > LOAD),
    };
    if !fires {
        return Ok(None);
    }
    let mut evidence = vec![("busy_pct", busy)];
    evidence.extend(waited.map(|pct| ("without_cpu_pct", pct)));
    evidence.extend(per_cpu.map(|load| ("load_per_cpu", load)));
    let high = waited.map_or_else(|| per_cpu.is_some_and(|load| load >= 2.0 * LOAD), |pct| pct >= 2.0 * QUEUE);
    let text = format!(
        "The host's CPUs are saturated: {} % busy{}. {}",
        fixed(busy, 1),
        per_cpu.map_or_else(String::new, |load| format!(", load {} per CPU", fixed(load, 1))),
        waited.map_or_else(
            || "Wait times include the time until a CPU was free.".to_owned(),
            |pct| format!(
                "The sessions or driver threads were ready to run but without a CPU for {} % of their time, and wait times include that.",
                fixed(pct, 1)
            )
        )
    );
    Ok(Some(RULE.advise(high, text, &evidence)))
}
