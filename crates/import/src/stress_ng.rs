//! stress-ng's metrics, as text (`--metrics`, `--metrics-brief`) and as YAML.
//!
//! Until 0.14.01 the `cpu` stressor counted calls of kernels whose costs differ by five orders of magnitude; since
//! 0.14.02 each call has a weight. The scope keeps the two apart, so that nothing compares them by accident.

use super::Confidence;
use super::ImportError;
use super::draft::{Draft, Reading};
use super::located_number::between;
use super::number::{self, Printed};
use super::text::{At, Text};

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    let title = |text: &Text| {
        let mut lines = text.head().iter();
        lines.any(|line| line.text.contains("stressor ") && line.text.contains("bogo ops"))
    };
    let metrics = Confidence::of(
        92,
        &[
            ("lines that begin with stress-ng:", text.head_begins("stress-ng:")),
            ("a line stressor bogo ops ... (add --metrics-brief)", title(text)),
        ],
    );
    let yaml = Confidence::of(
        92,
        &[("stress-ng-version:", has("stress-ng-version:")), ("metrics: with - stressor:", has("- stressor:"))],
    );
    metrics.or(yaml)
}

/// What the output says of itself.
#[derive(Default)]
struct Era {
    version: Option<(u32, u32, u32)>,
    /// Rows that begin `metrc:` came after the change of the unit.
    is_new_prefix: bool,
}

impl Era {
    fn is_weighted(&self) -> bool {
        match self.version {
            Some(version) => version >= (0, 14, 2),
            None => self.is_new_prefix,
        }
    }

    fn scope(&self, stressor: &str) -> String {
        match (stressor, self.is_weighted()) {
            ("cpu", true) => "cpu, weighted unit (0.14.02 on)".to_owned(),
            ("cpu", false) => "cpu, old unit (before 0.14.02)".to_owned(),
            (other, _) => other.to_owned(),
        }
    }
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    for text in texts {
        let era = era(text);
        let version = era.version.map_or_else(String::new, |(a, b, c)| format!("{a}.{b:02}.{c:02}"));
        if text.head_has("stress-ng-version:") {
            draft.recognised(&version, "stress-ng YAML");
            yaml(text, &era, draft);
        } else {
            draft.recognised(&version, "stress-ng metrics");
            metrics(text, &era, draft);
        }
    }
    Ok(())
}

fn era(text: &Text) -> Era {
    let mut era = Era::default();
    for line in &text.lines {
        era.is_new_prefix |= line.text.contains("metrc:");
        let version = between(&line.text, "stress-ng-version:", "\n");
        let version = version.or_else(|| line.text.split("stress-ng-version:").nth(1));
        let version = version.or_else(|| between(&line.text, "] stress-ng ", " "));
        era.version = era.version.or(version.and_then(parse_version));
    }
    era
}

fn parse_version(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.trim().split('.').map(|part| part.parse::<u32>().ok());
    Some((parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
}

/// Key, name and unit of the columns behind the stressor's name.
const COLUMNS: [(&str, &str, f64); 8] = [
    ("stress_ops_count", "bogo ops", 1.0),
    ("stress_real_s", "real time", 1.0),
    ("stress_user_s", "usr time", 1.0),
    ("stress_system_s", "sys time", 1.0),
    ("stress_ops_per_s", "bogo ops/s (real time)", 1.0),
    ("stress_cpu_ops_per_s", "bogo ops/s (usr+sys time)", 1.0),
    ("stress_cpu_per_instance_pct", "CPU used per instance", 1.0),
    ("stress_rss_max_bytes", "RSS Max", 1024.0),
];

fn metrics(text: &Text, era: &Era, draft: &mut Draft) {
    let mut in_table = false;
    for line in &text.lines {
        let Some((_, rest)) = line.text.split_once(']').filter(|_| line.text.contains("stress-ng:")) else {
            continue;
        };
        if rest.contains("successful run completed in") || rest.contains("run completed in") {
            completed(line.at, rest, draft);
            in_table = in_table && !rest.contains("completed");
        } else if rest.contains("stressor ") && rest.contains("bogo ops") {
            in_table = true;
        } else if rest.contains("(secs)") {
        } else if in_table {
            row(line.at, rest, era, draft);
        } else if rest.contains("dispatching hogs") {
            super::rows::setting(draft, "stressors", rest.trim());
        }
    }
}

/// `successful run completed in 912.25s (15 mins, 12.25 secs)`
fn completed(at: At, rest: &str, draft: &mut Draft) {
    let token = rest.split("completed in ").nth(1).unwrap_or_default();
    let token = token.split_whitespace().next().unwrap_or_default();
    let printed = token.ends_with('s').then(|| number::duration_us(token, 1e6)).flatten();
    if let Some(printed) = printed {
        let reading = Reading::new(at, "elapsed_s", printed.scaled(1e-6)).name("completed in");
        put!(draft, reading.layer("client"), interval.elapsed_s);
    }
}

fn put_alone(draft: &mut Draft, at: At, column: (&str, &str, f64), scope: &str, printed: Option<Printed>) {
    let (key, name, factor) = column;
    if let Some(printed) = printed {
        let reading = Reading::new(at, key, printed.scaled(factor)).name(name);
        draft.alone(reading.scope(scope).layer("client"));
    }
}

fn row(at: At, rest: &str, era: &Era, draft: &mut Draft) {
    let mut tokens = rest.split_whitespace();
    let Some(stressor) = tokens.next() else {
        return;
    };
    let cells: Vec<&str> = tokens.collect();
    let are_numbers = cells.iter().all(|cell| number::measure(cell).is_some());
    if cells.len() < 6 || cells.len() > COLUMNS.len() || !are_numbers {
        return;
    }
    let scope = era.scope(stressor);
    if draft.has(&scope, COLUMNS[0].0) {
        draft.note(at, format!("a second row of {stressor} was skipped"));
        return;
    }
    for (column, cell) in COLUMNS.into_iter().zip(&cells) {
        let printed = if column.0.ends_with("_count") { number::count(cell) } else { number::measure(cell) };
        put_alone(draft, at, column, &scope, printed);
    }
    if stressor == "cpu" {
        let which = if era.is_weighted() { "0.14.02 on" } else { "before 0.14.02" };
        draft.note(
            at,
            format!(
                "operations of the cpu stressor have the unit of versions {which}: do not compare \
            them with other versions"
            ),
        );
    }
}

const YAML: [(&str, usize); 8] = [
    ("bogo-ops", 0),
    ("wall-clock-time", 1),
    ("user-time", 2),
    ("system-time", 3),
    ("bogo-ops-per-second-real-time", 4),
    ("bogo-ops-per-second-usr-sys-time", 5),
    ("cpu-usage-per-instance", 6),
    ("max-rss", 7),
];

fn yaml(text: &Text, era: &Era, draft: &mut Draft) {
    let mut scope = String::new();
    for line in &text.lines {
        let bare = line.text.trim();
        let Some((name, value)) = bare.trim_start_matches("- ").split_once(':') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        if name == "stressor" {
            scope = era.scope(value);
        } else if name == "date-yyyy-mm-dd" {
            value.replace(':', "-").clone_into(&mut draft.record.run.started);
        } else if let (Some((_, column)), false) = (YAML.iter().find(|(yaml, _)| *yaml == name), scope.is_empty()) {
            let column = COLUMNS[*column];
            let printed = if column.0.ends_with("_count") { number::count(value) } else { number::measure(value) };
            put_alone(draft, line.at, column, &scope, printed);
        }
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
