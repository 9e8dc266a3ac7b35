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
            "The host's CPUs are at least {SATURATED} % busy, and sessions spend more than {QUEUE} % of DB time in the run queue or the load exceeds {LOAD} per CPU; high from twice either"
        )
    },
    why: "Wait times include scheduling delay, so they are no device latency.",
    what_to_do: "Use fewer sessions or more CPUs, and do not read wait times as device latency.",
    cannot_judge_when: "Host CPU use is n/a; or DB time or run queue time is, and no load is known.",
    source: "Published load tests of the method: user and system 99.7 %, load 235 on 16 CPUs.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let busy = busy(record)?;
    if busy < SATURATED {
        return Ok(None);
    }
    let model = &record.instance.time_model;
    let load_known = !record.os.load_end.is_empty();
    let queue = match (model.db_time_us.value(), model.run_queue_us.value()) {
        (Some(db_time), Some(queue)) if db_time > 0.0 => Some(100.0 * queue / db_time),
        (Some(_), Some(_)) => Some(0.0),
        // Of an import the load is all there is.
        _ if load_known => None,
        _ => {
            need(&model.db_time_us, "DB time")?;
            need(&model.run_queue_us, "run queue time")?;
            None
        }
    };
    let load = record.os.load_end.first().and_then(|load| load.value());
    let per_cpu = load.zip(record.os.cpus_count.value().filter(|cpus| *cpus > 0.0)).map(|(load, cpus)| load / cpus);
    let queued = per_cpu.is_some_and(|load| load > LOAD);
    if queue.is_none_or(|queue| queue <= QUEUE) && !queued {
        return Ok(None);
    }
    let mut evidence = vec![("busy_pct", busy)];
    evidence.extend(queue.map(|queue| ("run_queue_pct", queue)));
    evidence.extend(per_cpu.map(|load| ("load_per_cpu", load)));
    let high = queue.is_some_and(|queue| queue >= 2.0 * QUEUE) || per_cpu.is_some_and(|load| load >= 2.0 * LOAD);
    let text = format!(
        "The host's CPUs are saturated: {} % busy{}{}. \
         Wait times include scheduling delay.",
        fixed(busy, 1),
        queue
            .filter(|queue| *queue > QUEUE)
            .map_or_else(String::new, |queue| format!(", {} % of DB time in the run queue", fixed(queue, 1))),
        per_cpu.map_or_else(String::new, |load| format!(", load {} per CPU", fixed(load, 1)))
    );
    Ok(Some(RULE.advise(high, text, &evidence)))
}
