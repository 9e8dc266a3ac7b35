//! R6: redo-bound.

use super::*;

const THRESHOLD: f64 = 15.0;

pub(super) const RULE: Rule = Rule {
    id: "R6",
    title: "Redo-bound",
    changes_figures: false,
    fires_when: || {
        format!(
            "Waits for the log (commits, buffer space, switches) take at least {THRESHOLD} % of DB time; high from twice that"
        )
    },
    why: "Commits and changes wait for the log.",
    what_to_do: "Put the log on storage with a shorter flush, enlarge the log files, or commit larger transactions.",
    cannot_judge_when: "DB time is n/a.",
    source: "Published load tests of the method: 37.5 %.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let pct = share(record, is_log)?;
    if pct < THRESHOLD {
        return Ok(None);
    }
    let writes = stat(record, "redo_writes_count").ok().filter(|writes| *writes > 0.0);
    let per_write = |key: &str| Some(stat(record, key).ok()? / writes?);
    let switches = stat(record, "redo_log_switches_count").ok();
    let per_hour =
        switches.zip(elapsed(record).ok().filter(|seconds| *seconds >= LEAST_S)).map(|(n, s)| n * 3600.0 / s);
    let log = named(record, "log file parallel write", "background");
    let p99 = log.and_then(|log| log.us_p99.value());
    let (bytes, commits) = (per_write("redo_bytes_written"), per_write("user_commits_count"));
    let text = format!(
        "Redo-bound: {} % of DB time waits for the log.{}",
        fixed(pct, 1),
        said(&[
            p99.map(|us| format!("log write p99 {}", told(us, "us", 0))),
            bytes.map(|bytes| format!("{} bytes per write", fixed(bytes, 0))),
            commits.map(|commits| format!("{} commits per write", fixed(commits, 2))),
            per_hour.map(|switches| format!("{} switches per hour", fixed(switches, 0))),
        ])
    );
    let mut evidence = vec![("log_waits_pct", pct)];
    let more = [
        ("log_write_us_p99", p99),
        ("bytes_per_log_write", bytes),
        ("commits_per_log_write", commits),
        ("log_switches_per_hour", per_hour),
    ];
    evidence.extend(more.into_iter().filter_map(|(name, value)| Some((name, value?))));
    fired(&RULE, pct, THRESHOLD, text, &evidence)
}
