//! The marker beside a data set's tables: values with a checksum, and which SLOB schemas are loaded.
//!
//! Each database's folder decides how to store it: the SQL differs, the content does not.

use assay_measure::config::Settings;
use assay_run::dataset::lines::{count, text};
use assay_run::engine::{DataSet, EngineError, Line};
use assay_run::plan::Plan;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// Version of the marker and of the data set it describes.
pub(crate) const FORMAT: u32 = 1;

/// Marker values that only one database has.
pub(crate) trait Own: Clone + Debug + Eq {
    /// Values in the column order of the marker's table.
    fn values(&self) -> Vec<String>;

    /// Parses these values; `None` if their number is wrong.
    fn parse(values: &[String]) -> Option<Self>;

    /// Parameters that determine these values: name, requested value, actual value.
    fn asked(&self, settings: &Settings) -> Vec<(&'static str, String, String)>;
}

/// No further values.
impl Own for () {
    fn values(&self) -> Vec<String> {
        Vec::new()
    }

    fn parse(values: &[String]) -> Option<Self> {
        values.is_empty().then_some(())
    }

    fn asked(&self, _settings: &Settings) -> Vec<(&'static str, String, String)> {
        Vec::new()
    }
}

/// Text of a flag in a marker's table.
pub(crate) fn flag(value: bool) -> String {
    if value { "t" } else { "f" }.to_owned()
}

/// Description of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker<X = ()> {
    /// Random identifier, drawn at creation.
    pub(crate) data_set: u64,
    /// Seed of the key order.
    pub(crate) seed: u64,
    /// Page size of the server.
    pub(crate) block_bytes: u64,
    /// Live rows of each `cf1`.
    pub(crate) scale: u64,
    /// Live rows of each `cf2`.
    pub(crate) scan_blocks: u64,
    /// Columns contain random text, different in each row.
    pub(crate) obfuscate: bool,
    /// With `obfuscate`: percent of each column that stays constant.
    pub(crate) compress_pct: u32,
    /// The index is unique.
    pub(crate) unique: bool,
    /// Values that only this database has.
    pub(crate) own: X,
}

/// A marker as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marked<X = ()> {
    pub(crate) marker: Marker<X>,
    /// Creation time by the server's clock, UTC.
    pub(crate) created: String,
    /// SLOB schemas loaded and verified.
    pub(crate) loaded: BTreeSet<u32>,
    /// SLOB schemas whose load has begun but not ended.
    pub(crate) loading: BTreeSet<u32>,
    /// Tables, routines and events that do not belong to the data set.
    pub(crate) foreign: Vec<String>,
}

impl<X> AsRef<Self> for Marked<X> {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The rows of a table, as text.
type Rows = [Vec<Option<String>>];

/// Where a data set is, for messages, and how to recover from a wrong marker.
pub(crate) struct At<'a> {
    pub(crate) place: &'a str,
    pub(crate) way_out: &'a str,
}

impl<'a> At<'a> {
    /// A place whose tables the user removes one by one.
    pub(crate) fn tables(place: &'a str) -> Self {
        let way_out = "remove them by hand";
        Self { place, way_out }
    }

    fn damaged(&self, what: &str) -> EngineError {
        EngineError::Damaged(format!(
            "the marker in {} {what}, which no version of assay writes: compare it with the tables, or {}",
            self.place, self.way_out
        ))
    }
}

impl<X: Own> Marked<X> {
    /// Accepts the content of the column `format` if it is a format of assay.
    ///
    /// # Errors
    /// `Unusable`: a newer format; `Damaged`: not a format.
    pub(crate) fn known_format(at: &At<'_>, formats: &Rows) -> Result<(), EngineError> {
        let [format] = formats else {
            let what = format!("has {} rows instead of one", formats.len());
            return Err(at.damaged(&what));
        };
        let format = format.first().cloned().flatten().unwrap_or_default();
        match format.parse::<u32>() {
            Ok(FORMAT) => Ok(()),
            Ok(newer) if newer > FORMAT => Err(EngineError::Unusable(format!(
                "the data set in {} has format {newer}, but this version of assay knows formats up to {FORMAT}: use the \
                 version that made it",
                at.place
            ))),
            _ => Err(at.damaged(&format!("says format {format}"))),
        }
    }

    /// Parses the row of the data set (see [`Marker::parse`]) and the rows of its SLOB schemas (number, state).
    ///
    /// # Errors
    /// `Damaged`: a value that no assay wrote.
    pub(crate) fn read(at: &At<'_>, values: Vec<Vec<Option<String>>>, states: &Rows) -> Result<Self, EngineError> {
        let values = values.into_iter().flatten();
        let values: Vec<String> = values.map(Option::unwrap_or_default).collect();
        let (marker, created) = Marker::parse(&values).map_err(|what| at.damaged(&what))?;
        let (mut loaded, mut loading) = (BTreeSet::new(), BTreeSet::new());
        for row in states {
            let value = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
            match (value(0).parse::<u32>(), value(1).as_str()) {
                (Ok(n), "loaded") if n > 0 => loaded.insert(n),
                (Ok(n), "loading") if n > 0 => loading.insert(n),
                (_, state) => {
                    let what = format!("says schema {} is {state}", value(0));
                    return Err(at.damaged(&what));
                }
            };
        }
        Ok(Self { marker, created, loaded, loading, foreign: Vec::new() })
    }

    /// The highest n for which SLOB schemas 1 to n are loaded.
    pub(crate) fn usable(&self) -> u32 {
        (1..).take_while(|n| self.loaded.contains(n)).last().unwrap_or(0)
    }

    /// Lines for what a destroy removes at `place`, and what stays.
    pub(crate) fn going(&self, place: Line, stays: &str) -> Vec<Line> {
        let foreign = self.foreign.join(", ");
        let also = if foreign.is_empty() { "" } else { ", and " };
        let schemas = self.loaded.union(&self.loading).count();
        vec![
            place,
            count("schemas", "SLOB schemas", schemas as u64),
            count("scale_blocks", "Rows per schema", self.marker.scale),
            text("created", "Made", self.created.clone()),
            text("stays", "Stays", format!("{stays}{also}{foreign}")),
        ]
    }

    /// Compares the data set with the plan once it is claimed, since it may have been replaced meanwhile. `unit` is the
    /// server's term for a block.
    ///
    /// # Errors
    /// `Unusable`: the plan no longer fits the data set.
    pub(crate) fn refuse_changed(&self, plan: &Plan, place: &str, unit: &str) -> Result<(), EngineError> {
        let marker = &self.marker;
        let is = (self.usable(), marker.scale, marker.scan_blocks);
        let wanted = (plan.schemas, plan.scale, plan.scan_blocks);
        let fits = is.0 >= wanted.0 && is.1 >= wanted.1 && (plan.scan_pct == 0 || is.2 >= wanted.2);
        let alike = marker.block_bytes == plan.block_bytes;
        if fits && alike {
            return Ok(());
        }
        let of = |bytes: u64| if alike { String::new() } else { format!(" of {bytes} bytes") };
        Err(EngineError::Unusable(format!(
            "the data set in {place} has changed since assay checked it: it has {} SLOB schemas of {} rows and {} scan \
             {unit}s{}, but {} of {} and {}{} were planned; run again",
            is.0,
            is.1,
            is.2,
            of(marker.block_bytes),
            wanted.0,
            wanted.1,
            wanted.2,
            of(plan.block_bytes)
        )))
    }

    /// The data set for a run; `None` while it has no usable schemas.
    pub(crate) fn data_set(&self) -> Option<DataSet> {
        let usable = self.usable();
        let last = self.loaded.union(&self.loading).last().copied();
        let marker = &self.marker;
        (usable > 0).then(|| DataSet {
            schemas: usable,
            scale_blocks: marker.scale,
            scan_blocks: marker.scan_blocks,
            block_bytes: marker.block_bytes,
            state: format!(
                "format {FORMAT}, created {}, seed {}, data set {:016x}",
                self.created, marker.seed, marker.data_set
            ),
            unfinished: last.filter(|_| !self.loading.is_empty()),
        })
    }
}

impl<X: Own> Marker<X> {
    /// Size of the tables of a SLOB schema.
    pub(crate) fn schema_bytes(&self) -> u64 {
        (self.scale + self.scan_blocks) * self.block_bytes
    }

    /// Values in the order of the table, without format, checksum and time.
    pub(crate) fn values(&self) -> Vec<String> {
        let mut values = vec![
            format!("{:016x}", self.data_set),
            self.seed.to_string(),
            self.block_bytes.to_string(),
            self.scale.to_string(),
            self.scan_blocks.to_string(),
            flag(self.obfuscate),
            self.compress_pct.to_string(),
            flag(self.unique),
        ];
        values.extend(self.own.values());
        values
    }

    /// CRC-32C of the values: detects a marker that was edited by hand.
    pub(crate) fn checksum(&self) -> String {
        let text = format!("{FORMAT}|{}", self.values().join("|"));
        format!("{:08x}", crc32c::crc32c(text.as_bytes()))
    }

    /// Parses the values of a row, followed by the checksum and the creation time, which is returned too.
    pub(crate) fn parse(values: &[String]) -> Result<(Self, String), String> {
        let [
            data_set,
            seed,
            block_bytes,
            scale,
            scan_blocks,
            obfuscate,
            compress_pct,
            unique,
            own @ ..,
            checksum,
            created,
        ] = values
        else {
            return Err(format!("has {} values", values.len()));
        };
        let own = X::parse(own).ok_or_else(|| format!("has {} values", values.len()))?;
        let number = |name: &str, text: &str| text.parse::<u64>().map_err(|_| format!("says {name} is {text}"));
        let marker = Self {
            data_set: u64::from_str_radix(data_set, 16).map_err(|_| format!("says data_set is {data_set}"))?,
            seed: number("seed", seed)?,
            block_bytes: number("block_bytes", block_bytes)?,
            scale: number("scale_blocks", scale)?,
            scan_blocks: number("scan_blocks", scan_blocks)?,
            obfuscate: obfuscate == "t",
            compress_pct: number("compress_pct", compress_pct)? as u32,
            unique: unique == "t",
            own,
        };
        let wanted = marker.checksum();
        if *checksum != wanted {
            return Err(format!("has checksum {checksum}, but its values give {wanted}"));
        }
        if marker.scale == 0 {
            return Err("says the scale is 0".to_owned());
        }
        Ok((marker, created.clone()))
    }
}
