//! Keys in the one grammar: unit, then statistic. Records of this schema before it had some the other way round, `op_p99_us`.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// `op_us_p99` of `op_p99_us`, in a place `/op/us_p99` of `/op/p99_us`; any other key as it is.
fn spelled(key: String) -> String {
    let is_statistic = |word: &str| {
        let digits = word.strip_prefix('p').is_some_and(|rank| rank.parse::<u32>().is_ok());
        digits || ["avg", "mean", "min", "max", "stddev", "mdev"].contains(&word)
    };
    let turned = key.strip_suffix("_us").and_then(|rest| {
        let at = rest.rfind(['_', '/']).map_or(0, |at| at + 1);
        is_statistic(&rest[at..]).then(|| format!("{}us_{}", &rest[..at], &rest[at..]))
    });
    turned.unwrap_or(key)
}

/// A key or a place.
pub(super) fn key<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(spelled)
}

/// A key that may be absent.
pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(spelled))
}

/// The keys of a table.
pub(super) fn keys<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<BTreeMap<String, T>, D::Error> {
    Ok(BTreeMap::<String, T>::deserialize(from)?.into_iter().map(|(key, value)| (spelled(key), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_unit_before_its_statistic() {
        for (before, now) in [
            ("op_p99_us", "op_us_p99"),
            ("avg_us", "us_avg"),
            ("/instance/events/3/avg_us", "/instance/events/3/us_avg"),
            ("total_us", "total_us"),
            ("db_time_us", "db_time_us"),
            ("stop_us", "stop_us"),
            ("op_us_p99", "op_us_p99"),
        ] {
            assert_eq!(spelled(before.to_owned()), now);
        }
    }
}
