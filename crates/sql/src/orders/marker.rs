//! What a data set says of itself: JSON that a server keeps as the comment on its schema.

use assay_measure::config::{Origin, Settings};
use assay_orders::generate::{Generator, VERSION};
use assay_orders::ledger::{BASELINE, LEDGER};
use assay_orders::model::{METADATA, SEQUENCES, TABLES, VIEWS};
use assay_orders::params;
use assay_orders::params::Indexes;
use assay_run::engine::EngineError;
use serde::{Deserialize, Serialize};

/// How another place is asked for.
pub(crate) const ANOTHER: &str = "name another with --set ORDERS_SCHEMA=NAME";
/// What the marker calls a data set.
const WHAT: &str = "assay order entry data set";
/// The table of pieces that are loaded.
pub(crate) const LOADED: &str = "soe_load";

/// What is known of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    what: String,
    /// Version of the rows' rules.
    pub(crate) version: u32,
    pub(crate) seed: u64,
    pub(crate) scale_milli: u64,
    pub(crate) legacy: bool,
    pub(crate) indexes: String,
    /// Everything is loaded, indexed and verified.
    pub(crate) complete: bool,
}

impl Marker {
    /// What the settings ask for.
    pub(crate) fn asked(settings: &Settings) -> Result<Self, EngineError> {
        Ok(Self {
            what: WHAT.to_owned(),
            version: VERSION,
            seed: settings.int("SEED"),
            scale_milli: params::scale_milli(settings)?,
            legacy: settings.bool("ORDERS_LEGACY_CORRELATION"),
            indexes: settings.text("ORDERS_INDEXES").to_owned(),
            complete: false,
        })
    }

    /// As it is kept.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what says what `place` ("schema x") is; `other` is how another one is asked for.
    ///
    /// # Errors
    /// `Unusable`: assay did not make it, or by other rules.
    pub(crate) fn read(comment: &str, place: &str, other: &str) -> Result<Self, EngineError> {
        let marker: Option<Self> = serde_json::from_str(comment).ok();
        let Some(marker) = marker.filter(|marker| marker.what == WHAT) else {
            return Err(EngineError::Unusable(format!(
                "{place} exists and assay did not make it for order entry (it has no mark of assay's): {other}"
            )));
        };
        match marker.version {
            VERSION => Ok(marker),
            other => Err(EngineError::Unusable(format!(
                "the data set in {place} was made by rules of version {other}, this assay has version {VERSION}: remove it \
                 with `assay orders destroy` and prepare it again"
            ))),
        }
    }

    /// The scale as it is written.
    pub(crate) fn scale(&self) -> String {
        assay_measure::units::six(self.scale_milli as f64 / 1000.0)
    }

    /// What the data set holds.
    pub(crate) fn generator(&self) -> Generator {
        Generator::new(self.seed, self.scale_milli, self.legacy)
    }

    /// Which indexes it has.
    pub(crate) fn which(&self) -> Indexes {
        match self.indexes.as_str() {
            "none" => Indexes::None,
            "keys" => Indexes::Keys,
            _ => Indexes::All,
        }
    }

    /// What is to be loaded, and whether it goes on: what was begun goes on as it was.
    pub(crate) fn resumed(
        found: Option<Self>,
        settings: &Settings,
    ) -> Result<(Self, bool), EngineError> {
        let asked = Self::asked(settings)?;
        let Some(found) = found else {
            return Ok((asked, false));
        };
        let given = |name: &str| {
            let origin = &settings.get(name).origin;
            !matches!(origin, Origin::Default | Origin::Implied(_))
        };
        let differs = [
            ("ORDERS_SCALE", found.scale_milli != asked.scale_milli),
            ("SEED", found.seed != asked.seed),
            ("ORDERS_LEGACY_CORRELATION", found.legacy != asked.legacy),
            ("ORDERS_INDEXES", found.indexes != asked.indexes),
        ];
        if let Some((name, _)) = differs
            .iter()
            .find(|(name, differs)| *differs && given(name))
        {
            return Err(EngineError::Usage(format!(
                "a load of scale {} with seed {} has begun there and did not finish, and {name} asks for another: leave \
                 {name} out to finish it, or remove it with `assay orders destroy`",
                found.scale(),
                found.seed
            )));
        }
        Ok((found, true))
    }
}

/// Relations of a data set, views included.
pub(crate) fn relations() -> Vec<&'static str> {
    let tables = TABLES.into_iter().map(|table| table.name());
    let sequences = SEQUENCES.into_iter().map(|(name, ..)| name);
    tables
        .chain([METADATA, BASELINE, LEDGER, LOADED])
        .chain(sequences)
        .chain(VIEWS)
        .collect()
}
