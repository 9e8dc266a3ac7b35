//! stress-ng's metrics, as text (`--metrics`, `--metrics-brief`, `--times`) and as YAML.
//!
//! Until 0.14.01 the `cpu` stressor counted calls of kernels whose costs differ by five orders of magnitude; since
//! 0.14.02 each call has a weight. The scope keeps the two apart, so that nothing compares them by accident.

use super::lines::{PLAIN, Reader, Table};

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
        ("", "[successful] run completed in {elapsed_s:?} ..."),
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
    use super::super::testing::{imported, number, survives, told};

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
