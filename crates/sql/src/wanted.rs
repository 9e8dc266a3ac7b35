//! The requested data set: checked against its server, and against an existing data set.

use crate::marked::{FORMAT, Marked, Marker, Own};
use assay_measure::config::Settings;
use assay_measure::units::many;
use assay_run::dataset::lines::{bytes, count, decimal, made_otherwise, text};
use assay_run::dataset::rows::drawn_id;
use assay_run::engine::{EngineError, Line};
use assay_slob::params::SCHEMAS_MAX;
use std::collections::BTreeSet;

/// Fewest rows of a schema: with fewer, neither scatter nor a work unit is meaningful.
const FEWEST_ROWS: u64 = 1000;

/// How the load starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start<X = ()> {
    /// No data set exists.
    Fresh,
    /// A marker exists, but no usable data, and the requested settings differ: assay first removes what the marker names.
    Over(Marked<X>),
    /// Its loaded SLOB schemas are kept.
    Add(Marked<X>),
}

/// The plan of a load, for any database.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<X = ()> {
    pub(crate) marker: Marker<X>,
    pub(crate) start: Start<X>,
    /// SLOB schemas the data set will have.
    pub(crate) schemas: u32,
    /// Schemas to load, in this order. What an interrupted prepare left of them is removed first.
    pub(crate) load: Vec<u32>,
    /// Schemas an earlier prepare loaded but did not verify; only verification is left.
    pub(crate) verify: Vec<u32>,
    /// Schemas an earlier prepare began and this one does not request; they are removed.
    pub(crate) drop: Vec<u32>,
    /// Number of connections that load.
    pub(crate) degree: usize,
}

impl<X: Own> Wanted<X> {
    /// Plans the load from the existing data set, the request (settings, SLOB schemas) and the server's block (bytes,
    /// name). `place` is the location, for messages; `own` makes the database's own values of a new marker, given those
    /// of the marker it replaces.
    ///
    /// # Errors
    /// `Usage` for settings that contradict each other, the server or the data set; `Unusable`: other objects are in the place.
    pub(crate) fn new(
        found: Option<Marked<X>>,
        (settings, schemas): (&Settings, u32),
        (block, unit): (u64, &str),
        place: &str,
        own: impl Fn(Option<&X>) -> X,
    ) -> Result<Self, EngineError> {
        let fresh = |old: Option<&X>| new_marker(settings, (block, unit), drawn_id()?, own(old));
        let (start, marker) = match found {
            None => (Start::Fresh, fresh(None)?),
            Some(marked) if !marked.foreign.is_empty() => {
                return Err(EngineError::Unusable(format!(
                    "{place} contains objects that assay did not make: {}; move them elsewhere. assay loads nothing beside \
                     them",
                    marked.foreign.join(", ")
                )));
            }
            Some(marked) => match refuse_contradictions(&marked.marker, settings, block) {
                Err(_) if marked.loaded.is_empty() => {
                    let marker = fresh(Some(&marked.marker.own))?;
                    (Start::Over(marked), marker)
                }
                Err(error) => return Err(error),
                Ok(()) => {
                    let marker = marked.marker.clone();
                    (Start::Add(marked), marker)
                }
            },
        };
        let (loaded, loading) = match &start {
            Start::Add(marked) => (marked.loaded.clone(), marked.loading.clone()),
            Start::Over(marked) => (BTreeSet::new(), marked.loading.clone()),
            Start::Fresh => (BTreeSet::new(), BTreeSet::new()),
        };
        let schemas = schemas.max(loaded.last().copied().unwrap_or(0));
        let load: Vec<u32> = (1..=schemas).filter(|n| !loaded.contains(n)).collect();
        let degree = (settings.int("LOAD_PARALLEL_DEGREE") as usize).clamp(1, load.len().max(1));
        let drop = loading.into_iter().filter(|n| *n > schemas).collect();
        Ok(Self { marker, drop, start, schemas, load, verify: Vec::new(), degree })
    }

    /// Schemas an earlier prepare began; their remains are removed first.
    pub(crate) fn left(&self) -> Vec<u32> {
        match &self.start {
            Start::Fresh => Vec::new(),
            Start::Over(marked) | Start::Add(marked) => marked.loading.iter().copied().collect(),
        }
    }

    /// Whether the marker must be created.
    pub(crate) fn is_new(&self) -> bool {
        !matches!(self.start, Start::Add(_))
    }

    /// Live rows to load, in both tables.
    pub(crate) fn rows(&self) -> u64 {
        self.load.len() as u64 * (self.marker.scale + self.marker.scan_blocks)
    }

    /// Bytes of table blocks to write.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.rows() * self.marker.block_bytes
    }

    /// Result of a load that took so many seconds; `verified` says whether that includes verification.
    pub(crate) fn summary(&self, load_s: f64, verified: &str) -> Vec<Line> {
        if self.load.is_empty() {
            let all = many(self.schemas.into(), "SLOB schema");
            let action = format!("nothing loaded: {all} already there");
            return vec![text("action", "Action", action)];
        }
        let seconds = load_s.max(1e-9);
        vec![
            count("loaded_schemas", "SLOB schemas loaded", self.load.len() as u64),
            count("loaded_rows", "Rows loaded", self.load.len() as u64 * self.marker.scale),
            count("loaded_scan_rows", "Scan table rows loaded", self.load.len() as u64 * self.marker.scan_blocks),
            bytes("load_bytes", "Table data written", self.data_bytes()),
            decimal("load_s", &format!("Load time with the index{verified}, s"), load_s),
            decimal("load_rows_per_s", "Load rate in rows", self.rows() as f64 / seconds),
            decimal("load_mb_per_s", "Load rate, MB/s (10^6)", self.data_bytes() as f64 / 1e6 / seconds),
            count("load_connections", "Connections that loaded", self.degree as u64),
        ]
    }

    /// What a load would do at `place`, as a sentence.
    pub(crate) fn action(&self, place: &str) -> String {
        let all = many(u64::from(self.schemas), "SLOB schema");
        match &self.start {
            Start::Fresh => format!("create a data set of {all} in {place}"),
            Start::Over(_) => {
                format!("start over: an earlier prepare did not finish; remove its tables and create {all}")
            }
            Start::Add(_) if [&self.load, &self.verify, &self.drop].iter().all(|some| some.is_empty()) => {
                format!("nothing: {all} already there")
            }
            Start::Add(marked) => {
                let resume = if marked.loading.is_empty() { "" } else { "resume: an earlier prepare did not finish; " };
                let more = |what: &str, some: &[u32]| {
                    let some = many(some.len() as u64, "SLOB schema");
                    (!some.starts_with('0')).then(|| format!("{what} {some}"))
                };
                let steps = [more("remove", &self.drop), more("verify", &self.verify), more("load", &self.load)];
                let steps: Vec<String> = steps.into_iter().flatten().collect();
                format!("{resume}{}, {} in total", steps.join(", "), self.schemas)
            }
        }
    }
}

/// Lines of a plan; `unit` is the server's term for a block.
pub(crate) fn data_lines<X>(marker: &Marker<X>, schemas: u32, unit: &str) -> Vec<Line> {
    let (first, rest) = unit.split_at(1);
    let content = match (marker.obfuscate, marker.compress_pct) {
        (false, _) => "the letter X".to_owned(),
        (true, 0) => "random text, different in each row".to_owned(),
        (true, pct) => format!("random text, different in each row, {pct} % constant"),
    };
    let index = if marker.unique { "unique" } else { "not unique" };
    vec![
        count("format_version", "Format version", u64::from(FORMAT)),
        count("schemas", "SLOB schemas", u64::from(schemas)),
        count("scale_blocks", &format!("Rows (= {unit}s) per schema"), marker.scale),
        count("scan_blocks", &format!("Scan table {unit}s per schema"), marker.scan_blocks),
        count("block_bytes", &format!("{}{rest} size, bytes", first.to_uppercase()), marker.block_bytes),
        count("seed", "Seed of the key order", marker.seed),
        text("content", "Columns", content),
        text("index", "Index", index.to_owned()),
    ]
}

/// # Errors
/// `Usage`: this number of schemas cannot be loaded.
pub(crate) fn refuse_counts(schemas: u32) -> Result<(), EngineError> {
    if (1..=SCHEMAS_MAX).contains(&schemas.into()) {
        return Ok(());
    }
    Err(EngineError::Usage(format!("{schemas} schemas cannot be loaded; the range is 1 to {SCHEMAS_MAX}")))
}

/// Settings of a new data set, for the server's block (bytes, name).
///
/// # Errors
/// `Usage`: they contradict each other or the server.
pub(crate) fn new_marker<X>(
    settings: &Settings,
    (page, unit): (u64, &str),
    data_set: u64,
    own: X,
) -> Result<Marker<X>, EngineError> {
    if settings.is_given("BLOCK_SZ") && settings.int("BLOCK_SZ") != page {
        return Err(EngineError::Usage(format!(
            "BLOCK_SZ={}, but this server has {unit}s of {page} bytes: leave BLOCK_SZ out",
            settings.get("BLOCK_SZ").text
        )));
    }
    let scale = settings.blocks("SCALE", page).unwrap_or(0);
    let fewest = FEWEST_ROWS.max(settings.int("WORK_UNIT"));
    if scale < fewest {
        return Err(EngineError::Usage(format!(
            "SCALE={} is {scale} blocks of {page} bytes; at least {fewest} are needed",
            settings.get("SCALE").text
        )));
    }
    Ok(Marker {
        data_set,
        seed: settings.whole("SEED").map_or_else(drawn_id, Ok)?,
        block_bytes: page,
        scale,
        scan_blocks: settings.blocks("SCAN_TABLE_SZ", page).unwrap_or(0),
        obfuscate: settings.bool("OBFUSCATE_COLUMNS"),
        compress_pct: settings.int("COMPRESS_PCT") as u32,
        unique: settings.bool("UNIQUE_INDEX"),
        own,
    })
}

/// Refuses explicit settings that the existing data set cannot follow.
///
/// # Errors
/// `Usage`, with all of them.
pub(crate) fn refuse_contradictions<X: Own>(
    marker: &Marker<X>,
    settings: &Settings,
    page: u64,
) -> Result<(), EngineError> {
    let blocks = |name| settings.blocks(name, page).unwrap_or(0).to_string();
    let flag = |name| settings.bool(name).to_string();
    let pairs = [
        ("BLOCK_SZ", settings.int("BLOCK_SZ").to_string(), marker.block_bytes.to_string()),
        ("SCALE", blocks("SCALE"), marker.scale.to_string()),
        ("SCAN_TABLE_SZ", blocks("SCAN_TABLE_SZ"), marker.scan_blocks.to_string()),
        ("OBFUSCATE_COLUMNS", flag("OBFUSCATE_COLUMNS"), marker.obfuscate.to_string()),
        ("COMPRESS_PCT", settings.int("COMPRESS_PCT").to_string(), marker.compress_pct.to_string()),
        ("UNIQUE_INDEX", flag("UNIQUE_INDEX"), marker.unique.to_string()),
    ];
    let contradictions: Vec<String> = pairs
        .into_iter()
        .chain(marker.own.asked(settings))
        .filter(|(name, asked, has)| settings.is_given(name) && asked != has)
        .map(|(name, _, has)| {
            let has = if has.is_empty() { "none" } else { &has };
            format!("{name}={} but it has {has}", settings.get(name).text)
        })
        .collect();
    made_otherwise(&contradictions)
}
