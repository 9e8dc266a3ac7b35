//! From our keys, which end in unit and statistic, to names in base units: seconds, bytes, ratios.

/// A key in base units.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Base {
    /// Lower case, base unit last.
    pub(super) name: String,
    /// `p99`, `mean`, ...; empty if the key has none.
    pub(super) stat: String,
    /// What our value is multiplied by.
    pub(super) factor: f64,
    /// The base unit, which is how the name ends; empty where it has no name of its own.
    pub(super) unit: &'static str,
}

const STATS: [&str; 14] =
    ["avg", "mean", "min", "max", "stddev", "mdev", "p50", "p90", "p95", "p99", "p999", "p9999", "median", "p9995"];

/// Ending of a key, ending of the name, factor, unit of the family. The first that fits counts.
const UNITS: [(&str, &str, f64, &str); 18] = [
    ("_count_per_s", "_per_second", 1.0, ""),
    ("_mib_per_s", "_bytes_per_second", 1_048_576.0, ""),
    ("_mb_per_s", "_bytes_per_second", 1e6, ""),
    ("_bytes_per_s", "_bytes_per_second", 1.0, ""),
    ("_bits_per_s", "_bytes_per_second", 0.125, ""),
    ("_blocks_per_s", "_blocks_per_second", 1.0, ""),
    ("_ns_per_s", "_seconds_per_second", 1e-9, ""),
    ("_s_per_s", "_seconds_per_second", 1.0, ""),
    ("_per_s", "_per_second", 1.0, ""),
    ("_per_min", "_per_second", 1.0 / 60.0, ""),
    ("_us_per_op", "_seconds_per_op", 1e-6, ""),
    ("_us", "_seconds", 1e-6, "seconds"),
    ("_ms", "_seconds", 1e-3, "seconds"),
    ("_ns", "_seconds", 1e-9, "seconds"),
    ("_s", "_seconds", 1.0, "seconds"),
    ("_pct", "_ratio", 0.01, "ratio"),
    ("_bytes", "_bytes", 1.0, "bytes"),
    ("_blocks", "_blocks", 1.0, "blocks"),
];

/// The name of a key in base units.
pub(super) fn base(key: &str) -> Base {
    let mut words: Vec<&str> = key.split('_').filter(|word| !word.is_empty()).collect();
    // Behind its unit as in `op_us_p99`, or before a count as in `active_max_count`.
    let last = words.len().saturating_sub(1);
    let at = [last, last.saturating_sub(1)].into_iter().find(|at| {
        let word = words.get(*at);
        *at > 0 && word.is_some_and(|word| STATS.contains(word))
    });
    let stat = at.map_or_else(String::new, |at| words.remove(at).to_owned());
    let key = words.join("_");
    let found = UNITS.iter().find_map(|(ending, name, factor, unit)| {
        let stem = key.strip_suffix(ending).filter(|stem| !stem.is_empty())?;
        Some((format!("{stem}{name}"), *factor, *unit))
    });
    let (name, factor, unit) = found.unwrap_or_else(|| {
        // A plain count is what its name says.
        let stem = key.strip_suffix("_count").unwrap_or(&key);
        (stem.to_owned(), 1.0, "")
    });
    Base { name: clean(&name), stat, factor, unit }
}

/// Letters, digits and `_`.
pub(super) fn clean(name: &str) -> String {
    let fits = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }
    };
    name.chars().map(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::base;

    #[test]
    fn keys_become_names_in_base_units() {
        let cases = [
            ("read_us_p99", "read_seconds", "p99", 1e-6, "seconds"),
            ("reads_per_s", "reads_per_second", "", 1.0, ""),
            ("redo_mib_per_s", "redo_bytes_per_second", "", 1_048_576.0, ""),
            ("host_idle_pct", "host_idle_ratio", "", 0.01, "ratio"),
            ("cpu_us_per_op", "cpu_seconds_per_op", "", 1e-6, ""),
            ("db_cpu_s_per_s", "db_cpu_seconds_per_second", "", 1.0, ""),
            ("checkpoints_count", "checkpoints", "", 1.0, ""),
            ("active_max_count", "active", "max", 1.0, ""),
            ("max", "max", "", 1.0, ""),
        ];
        for (key, name, stat, factor, unit) in cases {
            let found = base(key);
            assert_eq!(
                (found.name.as_str(), found.stat.as_str(), found.factor, found.unit),
                (name, stat, factor, unit),
                "{key}"
            );
        }
    }
}
