//! What a data set is, as a marker beside its tables says: values with a checksum, and which SLOB schemas are loaded.
//!
//! How a database keeps them is its folder's business: the words of its SQL differ, what is said does not.

use assay_run::engine::{DataSet, EngineError};
use std::collections::BTreeSet;

/// Version of the marker and of everything it stands for.
pub(crate) const FORMAT: u32 = 1;

/// What a data set is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
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
    pub(crate) compress_pct: u64,
    /// The index is unique.
    pub(crate) unique: bool,
}

/// A marker as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) marker: Marker,
    /// When it was made, by the server's clock, UTC.
    pub(crate) created: String,
    /// SLOB schemas loaded and verified.
    pub(crate) loaded: BTreeSet<u32>,
    /// SLOB schemas whose load has begun and not ended.
    pub(crate) loading: BTreeSet<u32>,
    /// Tables, routines and events that are not of it.
    pub(crate) foreign: Vec<String>,
}

/// What is in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing, or what a killed prepare left before it had made anything.
    Nothing,
    /// A data set of ours.
    Ours(Box<Marked>),
}

/// The rows of a table, as text.
type Rows = [Vec<Option<String>>];

impl Marked {
    /// What the column `format` says is a format of ours; `place` is where the data set is, for people.
    ///
    /// # Errors
    /// `Unusable`: a newer one; `Damaged`: none.
    pub(crate) fn known_format(place: &str, formats: &Rows) -> Result<(), EngineError> {
        let [format] = formats else {
            let what = format!("has {} rows instead of one", formats.len());
            return Err(damaged(place, &what));
        };
        let format = format.first().cloned().flatten().unwrap_or_default();
        match format.parse::<u32>() {
            Ok(FORMAT) => Ok(()),
            Ok(newer) if newer > FORMAT => Err(EngineError::Unusable(format!(
                "the data set in {place} has format {newer}, but this version of assay knows formats up to {FORMAT}: use \
                 the version that made it"
            ))),
            _ => Err(damaged(place, &format!("says format {format}"))),
        }
    }

    /// From the row of the data set (see [`Marker::parse`]) and the rows of its SLOB schemas (number, state).
    ///
    /// # Errors
    /// `Damaged`: they say something that no assay wrote.
    pub(crate) fn read(
        place: &str,
        values: Vec<Vec<Option<String>>>,
        states: &Rows,
    ) -> Result<Self, EngineError> {
        let values = values.into_iter().flatten();
        let values: Vec<String> = values.map(Option::unwrap_or_default).collect();
        let (marker, created) = Marker::parse(&values).map_err(|what| damaged(place, &what))?;
        let (mut loaded, mut loading) = (BTreeSet::new(), BTreeSet::new());
        for row in states {
            let value = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
            match (value(0).parse::<u32>(), value(1).as_str()) {
                (Ok(n), "loaded") if n > 0 => loaded.insert(n),
                (Ok(n), "loading") if n > 0 => loading.insert(n),
                (_, state) => {
                    let what = format!("says schema {} is {state}", value(0));
                    return Err(damaged(place, &what));
                }
            };
        }
        Ok(Self {
            marker,
            created,
            loaded,
            loading,
            foreign: Vec::new(),
        })
    }

    /// SLOB schemas 1 to this one are loaded.
    pub(crate) fn usable(&self) -> u32 {
        (1..)
            .take_while(|n| self.loaded.contains(n))
            .last()
            .unwrap_or(0)
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

fn damaged(place: &str, what: &str) -> EngineError {
    EngineError::Damaged(format!(
        "the marker in {place} {what}, which no version of assay writes: compare it with the tables, or remove them by \
         hand"
    ))
}

impl Marker {
    /// As the table has them, in its order, without format, checksum and time.
    pub(crate) fn values(&self) -> [String; 8] {
        let flag = |value: bool| if value { "t" } else { "f" }.to_owned();
        [
            format!("{:016x}", self.data_set),
            self.seed.to_string(),
            self.block_bytes.to_string(),
            self.scale.to_string(),
            self.scan_blocks.to_string(),
            flag(self.obfuscate),
            self.compress_pct.to_string(),
            flag(self.unique),
        ]
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
            checksum,
            created,
        ] = values
        else {
            return Err(format!("has {} values", values.len()));
        };
        let number = |name: &str, text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("says {name} is {text}"))
        };
        let marker = Self {
            data_set: u64::from_str_radix(data_set, 16)
                .map_err(|_| format!("says data_set is {data_set}"))?,
            seed: number("seed", seed)?,
            block_bytes: number("block_bytes", block_bytes)?,
            scale: number("scale_blocks", scale)?,
            scan_blocks: number("scan_blocks", scan_blocks)?,
            obfuscate: obfuscate == "t",
            compress_pct: number("compress_pct", compress_pct)?,
            unique: unique == "t",
        };
        let wanted = marker.checksum();
        if *checksum != wanted {
            return Err(format!(
                "has checksum {checksum}, but its values give {wanted}"
            ));
        }
        if marker.scale == 0 {
            return Err("says the scale is 0".to_owned());
        }
        Ok((marker, created.clone()))
    }
}
