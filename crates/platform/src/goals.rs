//! What a database needs of a box: where a figure becomes a warning and where a failure, each with its source.

use assay_measure::units::six;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Two limits of a need.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// From where on it is a warning.
    pub warn: f64,
    /// From where on it is a failure.
    pub fail: f64,
}

/// Limits by need, instead of those that a need brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Goals(BTreeMap<String, Limits>);

impl Goals {
    /// Reads a file of goals: a table for each need, with `warn` and `fail`.
    ///
    /// # Errors
    /// What the file says wrong and where, in one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let given: BTreeMap<String, Limits> = toml::from_str(text).map_err(|error| error.to_string())?;
        let needs = crate::needs::NEEDS;
        for (name, limits) in &given {
            let Some(need) = needs.iter().find(|need| need.name == name) else {
                let known: Vec<&str> = needs.iter().map(|need| need.name).collect();
                return Err(format!("there is no need \"{name}\"; there are {}", known.join(", ")));
            };
            let in_order = if need.is_higher_better { limits.warn >= limits.fail } else { limits.warn <= limits.fail };
            if !in_order || !limits.warn.is_finite() || !limits.fail.is_finite() {
                let sense = if need.is_higher_better { "less" } else { "more" };
                return Err(format!(
                    "{name}: warn {} and fail {}: a failure must be {sense} than a warning",
                    six(limits.warn),
                    six(limits.fail)
                ));
            }
        }
        Ok(Self(given))
    }

    /// The limits that the file gives for a need.
    pub(crate) fn of(&self, need: &str) -> Option<Limits> {
        self.0.get(need).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{Goals, Limits};

    #[test]
    fn a_file_of_goals_names_needs_and_keeps_their_order() {
        let goals = Goals::parse("[commit_us_p50]\nwarn = 300\nfail = 2000.5\n").expect("good");
        assert_eq!(goals.of("commit_us_p50"), Some(Limits { warn: 300.0, fail: 2000.5 }));
        let error = |text: &str| Goals::parse(text).expect_err(text);
        assert!(error("[commits]\nwarn = 1\nfail = 2\n").contains("there is no need \"commits\""));
        assert!(error("[commit_us_p50]\nwarn = 3\nfail = 2\n").contains("must be more"));
        assert!(error("[commit_us_p50]\nwarn = 3\n").contains("fail"));
    }
}
