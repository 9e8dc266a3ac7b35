//! stress-ng's metrics, as text (`--metrics`, `--metrics-brief`, `--times`) and as YAML.
//!
//! Until 0.14.01 the `cpu` stressor counted calls of kernels whose costs differ by five orders of magnitude; since
//! 0.14.02 each call has a weight. The scope keeps the two apart, so that nothing compares them by accident.

use super::lines::{PLAIN, Reader, Table};
use super::number::{self, Printed};
use super::text::At;

#[rustfmt::skip]
pub(super) const STRESS_NG: Table = Table {
    format: "stress-ng metrics",
    part: "stressor",
    marks: &[
        (92, &["^stress-ng:", "bogo ops"]),
        (92, &["stress-ng-version:", "- stressor:"]),
    ],
    lines: &[
        ("+", "setting to a ..."),
        ("+", "dispatching hogs: {=stressors}"),
        ("", "stress-ng {#} ..."),
        ("!", "unsuccessful run completed in {elapsed_s:?}[ (...]"),
        ("", "[successful] run completed in {elapsed_s:?}[ (...]"),
        (">weighted", "metrc: stressor bogo ops ..."),
        (">calls", "stressor bogo ops ..."),
        ("", "[metrc:] (secs) ..."),
        (". weighted calls", "[metrc:] {~} {stress_ops_count|bogo ops} {stress_real_s|real time} {stress_user_s|usr time} {stress_system_s|sys time} {stress_ops_per_s|bogo ops/s (real time)} {stress_cpu_ops_per_s|bogo ops/s (usr+sys time)}[ {stress_cpu_per_instance_pct|CPU used per instance}][ {stress_rss_max_bytes:KB|RSS Max}] ..."),
        ("", "for a {}s run time:"),
        ("", "{}s available CPU time"),
        ("", "{}s user time ({stress_user_pct|user time}%)"),
        ("", "{}s system time ({stress_system_pct|system time}%)"),
        ("", "{}s total time ({stress_total_pct|total time}%)"),
        ("", "load average: ..."),
        ("!", "[error:] ... terminated with an error ..."),
        (">yaml", "stress-ng-version: {#}"),
        ("", "date-yyyy-mm-dd: {^}"),
        ("", "[-] stressor: {%}"),
        (". %", "bogo-ops: {stress_ops_count|bogo ops}"),
        ("%", "wall-clock-time: {stress_real_s|real time}"),
        ("%", "user-time: {stress_user_s|usr time}"),
        ("%", "system-time: {stress_system_s|sys time}"),
        ("%", "bogo-ops-per-second-real-time: {stress_ops_per_s|bogo ops/s (real time)}"),
        ("%", "bogo-ops-per-second-usr-sys-time: {stress_cpu_ops_per_s|bogo ops/s (usr+sys time)}"),
        ("%", "cpu-usage-per-instance: {stress_cpu_per_instance_pct|CPU used per instance}"),
        ("%", "max-rss: {stress_rss_max_bytes:KB|RSS Max}"),
        ("yaml", "...: ..."),
    ],
    parts: Some(bare),
    scope,
    other: completed,
    end,
    ..PLAIN
};

/// Without the program, the level and the process; rows that begin `metrc:` came after the change of the unit.
fn bare(line: &str) -> Vec<String> {
    let is_new = line.contains(": metrc:");
    let bare = line.split_once("] ").filter(|(before, _)| before.starts_with("stress-ng: "));
    let bare = bare.map_or(line.trim(), |(_, rest)| rest.trim());
    vec![if is_new { format!("metrc: {bare}") } else { bare.to_owned() }]
}

fn is_weighted(reader: &Reader<'_>) -> bool {
    let (version, _) = reader.draft.said();
    if version.is_empty() { reader.section == "weighted" } else { version.as_str() >= "0.14.02" }
}

fn scope(reader: &Reader<'_>, stressor: &str) -> String {
    match (stressor, is_weighted(reader)) {
        ("cpu", true) => "cpu, weighted unit (0.14.02 on)".to_owned(),
        ("cpu", false) => "cpu, old unit (before 0.14.02)".to_owned(),
        (other, _) => other.to_owned(),
    }
}

/// `unsuccessful run completed in 1 hour, 15 mins, 12.25 secs`
fn completed(reader: &mut Reader<'_>, at: At, text: &str) -> bool {
    const UNITS: [(&str, f64); 4] = [("sec", 1.0), ("min", 60.0), ("hour", 3600.0), ("day", 86_400.0)];
    let Some((before, duration)) = text.split_once("run completed in ") else {
        return false;
    };
    if before.starts_with("unsuccessful") {
        reader.draft.note(at, format!("stress-ng says: {text}"));
    }
    let seconds = |part: &str| {
        let (number, unit) = part.trim().split_once(' ')?;
        let (_, factor) = UNITS.iter().find(|(name, _)| unit.strip_suffix('s').unwrap_or(unit) == *name)?;
        let printed = number::measure(number)?;
        Some((printed.value.value()? * factor, printed.rounding * factor))
    };
    // The last part is the finest: it says how far the sum may be off.
    let sum =
        |parts: Vec<(f64, f64)>| (parts.iter().map(|(s, _)| s).sum::<f64>(), parts.last().map_or(0.0, |(_, off)| *off));
    let parts: Option<Vec<(f64, f64)>> = duration.split(", ").map(seconds).collect();
    match parts.map(sum) {
        Some((s, rounding)) => {
            let printed = Printed { value: s.into(), rounding, text: duration.to_owned() };
            reader.put(at, "elapsed_s", "run completed in", "", printed, None);
        }
        None => reader.draft.note(at, format!("{duration} was not read")),
    }
    true
}

fn end(reader: &mut Reader<'_>) {
    let which = if is_weighted(reader) { "0.14.02 on" } else { "before 0.14.02" };
    if let Some(at) = reader.draft.at(&scope(reader, "cpu"), "stress_ops_count") {
        let text = format!(
            "operations of the cpu stressor have the unit of versions {which}: do not compare them with other versions"
        );
        reader.draft.note(at, text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, info, number, record_of, sample, survives, told};

    const SAMPLES: [&str; 4] =
        ["stress-ng-cpu.txt", "stress-ng-0.15-metrics.txt", "stress-ng-0.15-brief.txt", "stress-ng-0.15.yaml"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn the_two_units_never_share_a_scope() {
        let (old, new) = (imported("stress-ng-cpu.txt"), imported("stress-ng-0.15-brief.txt"));
        assert_eq!(number(&old, "cpu, old unit (before 0.14.02)", "stress_ops_per_s"), 4494.5);
        assert_eq!(number(&old, "cpu, old unit (before 0.14.02)", "stress_cpu_ops_per_s"), 279.4);
        assert_eq!(number(&new, "cpu, weighted unit (0.14.02 on)", "stress_ops_per_s"), 977.86);
        assert_eq!(old.interval.elapsed_s.value(), Some(912.25));
    }

    #[test]
    fn a_failed_run_is_noted_and_a_time_in_parts_is_their_sum() {
        let text = sample("stress-ng-0.15-brief.txt");
        let line = text.lines().find(|line| line.contains("run completed in")).expect("such a line");
        let (head, _) = line.split_once("] ").expect("a process");
        for (said, elapsed_s, is_failed) in [
            ("unsuccessful run completed in 10.01s", Some(10.01), true),
            ("unsuccessful run completed in 10.01 secs", Some(10.01), true),
            ("successful run completed in 1 min, 2.50 secs", Some(62.5), false),
            ("successful run completed in 15 mins, 12.25 secs", Some(912.25), false),
            ("unsuccessful run completed in 1 hour, 15 mins, 12.25 secs", Some(4512.25), true),
            ("successful run completed in 3 moons, 12.25 secs", None, false),
        ] {
            let record = record_of(said, &text.replace(line, &format!("{head}] {said}")));
            assert_eq!(record.interval.elapsed_s.value(), elapsed_s, "{said}");
            let notes = &info(&record).notes;
            assert_eq!(notes.iter().any(|note| note.text.contains("unsuccessful run")), is_failed, "{notes:#?}");
            let is_told = elapsed_s.is_some() || notes.iter().any(|note| note.text.contains("moons"));
            assert!(is_told, "{notes:#?}");
        }
    }

    #[test]
    fn text_and_yaml_of_one_run_agree() {
        let (text, yaml) = (imported("stress-ng-0.15-brief.txt"), imported("stress-ng-0.15.yaml"));
        for key in ["stress_ops_per_s", "stress_cpu_ops_per_s", "stress_ops_count"] {
            let of = |record| number(record, "cpu, weighted unit (0.14.02 on)", key);
            assert!((of(&text) - of(&yaml)).abs() < 0.006, "{key}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
