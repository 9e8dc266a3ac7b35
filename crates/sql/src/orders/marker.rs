//! The description of a data set: JSON that a server keeps as the comment on its schema.

use super::already;
use assay_measure::config::{Origin, Settings};
use assay_orders::generate::{Generator, VERSION};
use assay_orders::ledger::{BASELINE, LEDGER};
use assay_orders::model::{METADATA, SEQUENCES, TABLES, VIEWS};
use assay_orders::params;
use assay_orders::params::Indexes;
use assay_run::engine::EngineError;
use serde::{Deserialize, Serialize};

/// How to choose another place.
pub(crate) const ANOTHER: &str = "name another with --set ORDERS_SCHEMA=NAME";
/// The marker's name for a data set.
const WHAT: &str = "assay order entry data set";
/// Table that lists the loaded pieces.
pub(crate) const LOADED: &str = "soe_load";

/// Description of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    what: String,
    /// Version of the rules that generate rows.
    pub(crate) version: u32,
    pub(crate) seed: u64,
    pub(crate) scale_milli: u64,
    pub(crate) legacy: bool,
    pub(crate) indexes: String,
    /// Number of hash partitions of each partitioned table; 0 means none.
    #[serde(default, skip_serializing_if = "whole")]
    pub(crate) partitions: u32,
    /// Its functions can commit a logon separately.
    #[serde(default)]
    commits_logons: bool,
    /// Everything is loaded, indexed and verified.
    pub(crate) complete: bool,
}

/// Whether the tables are not partitioned.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn whole(partitions: &u32) -> bool {
    *partitions == 0
}

impl Marker {
    /// The data set that the settings request.
    pub(crate) fn asked(settings: &Settings) -> Result<Self, EngineError> {
        Ok(Self {
            what: WHAT.to_owned(),
            version: VERSION,
            seed: settings.int("SEED"),
            scale_milli: params::scale_milli(settings)?,
            legacy: settings.bool("ORDERS_LEGACY_CORRELATION"),
            indexes: settings.text("ORDERS_INDEXES").to_owned(),
            partitions: params::partitions(settings)?,
            commits_logons: true,
            complete: false,
        })
    }

    /// The JSON text that is stored.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the comment on `place` ("schema x"); `other` says how to choose another place.
    ///
    /// # Errors
    /// `Unusable`: assay did not make it, or made it with another version of the rules.
    pub(crate) fn read(comment: &str, place: &str, other: &str) -> Result<Self, EngineError> {
        let marker: Option<Self> = serde_json::from_str(comment).ok();
        let Some(marker) = marker.filter(|marker| marker.what == WHAT) else {
            return Err(EngineError::Unusable(format!(
                "{place} exists, but assay did not make it for order entry (it has no marker of assay): {other}"
            )));
        };
        match marker.version {
            VERSION => Ok(marker),
            other => Err(EngineError::Unusable(format!(
                "the data set in {place} was made with version {other} of the rules, but this assay has version \
                 {VERSION}: remove it with `assay orders destroy` and prepare it again"
            ))),
        }
    }

    /// The scale as text.
    pub(crate) fn scale(&self) -> String {
        assay_measure::units::six(self.scale_milli as f64 / 1000.0)
    }

    /// The generator of its rows.
    pub(crate) fn generator(&self) -> Generator {
        Generator::new(self.seed, self.scale_milli, self.legacy)
    }

    /// Its partitioning, as text.
    pub(crate) fn cut(&self) -> String {
        match self.partitions {
            0 => "none".to_owned(),
            n => format!("hash, {n} of each table that grows"),
        }
    }

    /// The indexes it has.
    pub(crate) fn which(&self) -> Indexes {
        match self.indexes.as_str() {
            "none" => Indexes::None,
            "keys" => Indexes::Keys,
            _ => Indexes::All,
        }
    }

    /// The first explicit setting that requests a different kind of data set.
    fn other_than(&self, settings: &Settings) -> Result<Option<&'static str>, EngineError> {
        let partitions = params::partitions(settings)?;
        let count = settings.int("ORDERS_PARTITION_COUNT");
        let shape = [
            ("ORDERS_SCALE", self.scale_milli != params::scale_milli(settings)?),
            ("ORDERS_LEGACY_CORRELATION", self.legacy != settings.bool("ORDERS_LEGACY_CORRELATION")),
            ("ORDERS_INDEXES", self.indexes != settings.text("ORDERS_INDEXES")),
            ("ORDERS_PARTITIONS", (self.partitions > 0) != (partitions > 0)),
            ("ORDERS_PARTITION_COUNT", u64::from(self.partitions) != count),
        ];
        let other = |(name, differs): &(&str, bool)| *differs && is_given(settings, name);
        Ok(shape.into_iter().find(other).map(|(name, _)| name))
    }

    /// The data set, for a run.
    ///
    /// # Errors
    /// `Unusable`: `place` has no completely loaded data set; `Usage`: the settings request another one.
    pub(crate) fn complete(found: Option<Self>, place: &str, settings: &Settings) -> Result<Self, EngineError> {
        let found = found
            .filter(|found| found.complete)
            .ok_or_else(|| EngineError::Unusable(format!("{place} has no completely loaded data set")))?;
        let called = settings.text("ORDERS_FORM") == "server";
        if settings.bool("COMMIT_LOGON") && called && !found.commits_logons {
            return Err(EngineError::Usage(format!(
                "the data set in {place} is from a version whose functions could not commit a logon separately \
                 (COMMIT_LOGON): give --form client, or remove it with `assay orders destroy` and prepare it again"
            )));
        }
        match found.other_than(settings)? {
            None => Ok(found),
            Some(name) => Err(EngineError::Usage(format!(
                "{place} has a data set of scale {} (ORDERS_INDEXES={}, ORDERS_LEGACY_CORRELATION={}, partitions: {}), and {name} asks for another: \
                 leave {name} out to run on this one, or remove it with `assay orders destroy` and prepare another",
                found.scale(),
                found.indexes,
                if found.legacy { "TRUE" } else { "FALSE" },
                found.cut(),
            ))),
        }
    }

    /// [`Self::resumed`], unless `place` has a complete data set.
    pub(crate) fn unfinished(
        found: Option<Self>,
        place: &str,
        settings: &Settings,
    ) -> Result<(Self, bool), EngineError> {
        match found {
            Some(found) if found.complete => Err(already(place, &found)),
            found => Self::resumed(found, settings),
        }
    }

    /// The data set to load, and whether this continues an earlier load, whose settings then stay.
    pub(crate) fn resumed(found: Option<Self>, settings: &Settings) -> Result<(Self, bool), EngineError> {
        let asked = Self::asked(settings)?;
        let Some(found) = found else {
            return Ok((asked, false));
        };
        // The seed determines the rows here, but not in a run.
        let seed = (found.seed != asked.seed && is_given(settings, "SEED")).then_some("SEED");
        if let Some(name) = found.other_than(settings)?.or(seed) {
            return Err(EngineError::Usage(format!(
                "a load of scale {} with seed {} began there but did not finish, and {name} asks for another: leave \
                 {name} out to finish it, or remove it with `assay orders destroy`",
                found.scale(),
                found.seed
            )));
        }
        Ok((found, true))
    }
}

fn is_given(settings: &Settings, name: &str) -> bool {
    let origin = &settings.get(name).origin;
    !matches!(origin, Origin::Default | Origin::Implied(_))
}

/// All tables of a data set.
pub(crate) fn tables() -> impl Iterator<Item = &'static str> {
    TABLES.into_iter().map(|table| table.name()).chain([METADATA, BASELINE, LEDGER, LOADED])
}

/// All relations of a data set: tables, sequences and views.
pub(crate) fn relations() -> Vec<&'static str> {
    tables().chain(SEQUENCES.map(|(name, ..)| name)).chain(VIEWS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::settings_of;
    use assay_orders::params::PARAMS;

    fn settings(given: &[(&str, &str)]) -> Settings {
        settings_of("postgres", PARAMS, given)
    }

    #[test]
    fn a_run_refuses_a_data_set_that_it_did_not_ask_for() {
        let mut found = Marker::asked(&settings(&[("ORDERS_SCALE", ".002"), ("SEED", "7")])).unwrap();
        let open = |found: &Marker, given: &[(&str, &str)]| {
            Marker::complete(Some(found.clone()), "schema s", &settings(given)).map_err(|e| e.to_string())
        };
        assert!(open(&found, &[]).unwrap_err().contains("no completely loaded"));
        found.complete = true;
        // Nothing said, the same, and a seed of the run's own.
        for given in [&[][..], &[("ORDERS_SCALE", "0.002")], &[("SEED", "8")]] {
            assert_eq!(open(&found, given), Ok(found.clone()));
        }
        for (name, value) in [
            ("ORDERS_SCALE", "1"),
            ("ORDERS_INDEXES", "keys"),
            ("ORDERS_LEGACY_CORRELATION", "TRUE"),
            ("ORDERS_PARTITIONS", "hash"),
            ("ORDERS_PARTITION_COUNT", "32"),
        ] {
            let refused = open(&found, &[(name, value)]).unwrap_err();
            assert!(refused.contains(&format!("{name} asks for another")), "{refused}");
            assert!(refused.contains("scale 0.002"), "{refused}");
        }
        found.commits_logons = false;
        let early = ("COMMIT_LOGON", "TRUE");
        assert!(open(&found, &[early]).unwrap_err().contains("--form client"));
        assert!(open(&found, &[early, ("ORDERS_FORM", "client")]).is_ok());
        // A data set whose marker says nothing of partitions has none; of one that has some, the kind is enough.
        let bare = found.json().replace("\"commits_logons\":false,", "");
        assert!(!bare.contains("partitions"));
        assert_eq!(Marker::read(&bare, "schema s", ANOTHER).unwrap(), found);
        found.partitions = 8;
        let hash = ("ORDERS_PARTITIONS", "hash");
        for given in [&[][..], &[hash], &[hash, ("ORDERS_PARTITION_COUNT", "8")]] {
            assert_eq!(open(&found, given), Ok(found.clone()));
        }
        let other = [hash, ("ORDERS_PARTITION_COUNT", "16")];
        assert!(open(&found, &other).unwrap_err().contains("ORDERS_PARTITION_COUNT asks"));
        let none = open(&found, &[("ORDERS_PARTITIONS", "none")]).unwrap_err();
        assert!(none.contains("partitions: hash, 8 of each"), "{none}");
    }
}
