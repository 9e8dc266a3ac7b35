//! What a data set is, as a marker beside its tables says: values with a checksum, and which SLOB schemas are loaded.
//!
//! How a database keeps them is its folder's business: the words of its SQL differ, what is said does not.

use assay_measure::config::Settings;
use assay_run::dataset::lines::{count, text};
use assay_run::engine::{DataSet, EngineError, Line};
use assay_run::plan::Plan;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// Version of the marker and of everything it stands for.
pub(crate) const FORMAT: u32 = 1;

/// What the data sets of one database have beside what all have.
pub(crate) trait Own: Clone + Debug + Eq {
    /// As the marker's table has it, in its order.
    fn values(&self) -> Vec<String>;

    /// From these values, if they are as many as it has.
    fn parse(values: &[String]) -> Option<Self>;

    /// Parameters that decide on it: what they ask for, and what it has.
    fn asked(&self, settings: &Settings) -> Vec<(&'static str, String, String)>;
}

/// Nothing more.
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

/// As the table of a marker has a flag.
pub(crate) fn flag(value: bool) -> String {
    if value { "t" } else { "f" }.to_owned()
}

/// What a data set is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker<X = ()> {
    /// Drawn when it was made.
    pub(crate) data_set: u64,
    /// Of the key order.
    pub(crate) seed: u64,
    /// The server's page.
    pub(crate) block_bytes: u64,
    /// Live rows of each `cf1`.
    pub(crate) scale: u64,
    /// Live rows of each `cf2`.
    pub(crate) scan_blocks: u64,
    /// Columns hold random text, another for each row.
    pub(crate) obfuscate: bool,
    /// Percent of each column that stays constant then.
    pub(crate) compress_pct: u32,
    /// The index is unique.
    pub(crate) unique: bool,
    /// What only this database has.
    pub(crate) own: X,
}

/// A marker as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marked<X = ()> {
    pub(crate) marker: Marker<X>,
    /// When it was made, by the server's clock, UTC.
    pub(crate) created: String,
    /// SLOB schemas loaded and verified.
    pub(crate) loaded: BTreeSet<u32>,
    /// SLOB schemas whose load has begun and not ended.
    pub(crate) loading: BTreeSet<u32>,
    /// Tables, routines and events that are not of it.
    pub(crate) foreign: Vec<String>,
}

impl<X> AsRef<Self> for Marked<X> {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The rows of a table, as text.
type Rows = [Vec<Option<String>>];

/// Where a data set is, for people, and what to do where its marker is wrong.
pub(crate) struct At<'a> {
    pub(crate) place: &'a str,
    pub(crate) way_out: &'a str,
}

impl<'a> At<'a> {
    /// Tables that are removed one by one.
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
    /// What the column `format` says is a format of ours.
    ///
    /// # Errors
    /// `Unusable`: a newer one; `Damaged`: none.
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

    /// From the row of the data set (see [`Marker::parse`]) and the rows of its SLOB schemas (number, state).
    ///
    /// # Errors
    /// `Damaged`: they say something that no assay wrote.
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

    /// SLOB schemas 1 to this one are loaded.
    pub(crate) fn usable(&self) -> u32 {
        (1..).take_while(|n| self.loaded.contains(n)).last().unwrap_or(0)
    }

    /// What goes with it, at `place`, and what stays.
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

    /// The data set as it is once it is claimed: what was seen before may have been another. `unit` is what the server
    /// calls a block.
    ///
    /// # Errors
    /// `Unusable`: the plan does not fit what is at `place` now.
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

    /// For those who run on it; `None` while there is nothing to run on.
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
    /// As the table has them, in its order, without format, checksum and time.
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

    /// CRC-32C of the values: what was edited by hand is not what was loaded.
    pub(crate) fn checksum(&self) -> String {
        let text = format!("{FORMAT}|{}", self.values().join("|"));
        format!("{:08x}", crc32c::crc32c(text.as_bytes()))
    }

    /// From the values of its row, the checksum and the time after them; also the time it was made.
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
