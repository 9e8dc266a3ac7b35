//! R4: writer-bound.

use super::*;

const THRESHOLD: f64 = 10.0;

pub(super) const RULE: Rule = Rule {
    id: "R4",
    title: "Writer-bound",
    changes_figures: false,
    fires_when: || {
        format!(
            "Free buffer waits and write complete waits take at least {THRESHOLD} % of DB time; high from twice that"
        )
    },
    why: "Sessions wait until the database writers have cleaned buffers.",
    what_to_do: "Use a larger CACHE_MB, more DB_WRITERS or faster writes.",
    cannot_judge_when: "DB time is n/a.",
    source: "Published load tests of the method: 17 to 60 %.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let pct = share(record, is_writer)?;
    if pct < THRESHOLD {
        return Ok(None);
    }
    let mut text = format!(
        "Writer-bound: {} % of DB time waits for the database writers: sessions wait until they have cleaned \
         buffers.",
        fixed(pct, 1)
    );
    let mut evidence = vec![("writer_waits_pct", pct)];
    let submit = named(record, "db file async I/O submit", "background").and_then(|event| event.total_us.value());
    let background = record.instance.time_model.bg_elapsed_us.value().filter(|us| *us > 0.0);
    if let Some((submit, background)) = submit.zip(background) {
        let submit_pct = 100.0 * submit / background;
        evidence.push(("writer_submit_pct", submit_pct));
        if submit_pct > 50.0 {
            text.push_str(&format!(
                " The writers spend {} % of background time submitting: submission blocks (synchronous I/O mode or a full queue).",
                fixed(submit_pct, 0)
            ));
        }
    }
    if let Ok(busy) = busy(record).as_ref() {
        evidence.push(("busy_pct", *busy));
        if *busy >= SATURATED {
            text.push_str(" The host's CPUs are saturated: the writers themselves may lack CPU.");
        }
    }
    fired(&RULE, pct, THRESHOLD, text, &evidence)
}
