//! What a load would do: decided and refused here, before anything is created.

use super::conn::Connection;
use super::layout::Sizes;
use super::marker::{self, FORMAT, Found, Marked, Marker};
use super::server::Server;
use assay_measure::config::{Settings, Value};
use assay_measure::units::many;
use assay_run::dataset::lines::{bytes, count, made_otherwise, text};
use assay_run::dataset::rows::drawn_id;
use assay_run::engine::{EngineError, Line};
use std::collections::BTreeSet;

/// Fewest rows of a schema: below, neither scatter nor a work unit means anything.
const FEWEST_ROWS: u64 = 1000;
/// Most schemas: as many as SLOB was ever run with.
const MOST_SCHEMAS: u32 = 4096;
/// What a key takes in its index, about: the entries of a live row and its pad, on pages filled to fifteen sixteenths.
const INDEX_ROW_BYTES: u64 = 48;

/// How the load begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing is there.
    Fresh,
    /// A marker is there but nothing that could be used, and other settings are asked for: what it names goes first.
    Over(Marked),
    /// Its loaded SLOB schemas are kept.
    Add(Marked),
}

/// How rows get to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Inserts of many rows.
    Insert,
    /// LOAD DATA LOCAL.
    Local,
}

/// Everything a load has decided.
#[derive(Clone, Debug)]
pub(super) struct LoadPlan {
    pub(super) database: String,
    pub(super) server: Server,
    pub(super) marker: Marker,
    pub(super) sizes: Sizes,
    pub(super) start: Start,
    /// SLOB schemas the data set will have.
    pub(super) schemas: u32,
    /// To be loaded, in this order; what an earlier prepare began of them goes first.
    pub(super) load: Vec<u32>,
    /// Begun by an earlier prepare and not asked for now: they go.
    pub(super) drop: Vec<u32>,
    /// Connections that load.
    pub(super) degree: usize,
    pub(super) way: Way,
}

impl LoadPlan {
    /// Decides.
    ///
    /// # Errors
    /// `Usage` for settings that contradict themselves, the server or the data set; `Unusable` for a database that is
    /// not ours, missing rights, a read-only server, too few connections.
    pub(super) fn new(
        connection: &mut Connection,
        database: &str,
        settings: &Settings,
        schemas: u32,
    ) -> Result<Self, EngineError> {
        refuse_counts(schemas)?;
        let server = Server::ask(connection)?;
        server.refuse_read_only()?;
        let sizes = Sizes::of_page(server.page_bytes)?;
        let (start, marker) = begin(connection, database, &server, settings)?;
        let (loaded, loading) = match &start {
            Start::Add(marked) => (marked.loaded.clone(), marked.loading.clone()),
            Start::Over(marked) => (BTreeSet::new(), marked.loading.clone()),
            Start::Fresh => (BTreeSet::new(), BTreeSet::new()),
        };
        let schemas = schemas.max(loaded.last().copied().unwrap_or(0));
        let load: Vec<u32> = (1..=schemas).filter(|n| !loaded.contains(n)).collect();
        let degree = (settings.int("LOAD_PARALLEL_DEGREE") as usize).clamp(1, load.len().max(1));
        server.refuse_too_few_connections(degree as u64, "LOAD_PARALLEL_DEGREE")?;
        Ok(Self {
            database: database.to_owned(),
            marker,
            sizes,
            drop: loading.into_iter().filter(|n| *n > schemas).collect(),
            start,
            schemas,
            load,
            degree,
            way: way(settings, &server)?,
            server,
        })
    }

    /// Live rows to be loaded, of both tables.
    pub(super) fn rows(&self) -> u64 {
        self.load.len() as u64 * (self.marker.scale + self.marker.scan_blocks)
    }

    /// Pages of the tables to be written.
    pub(super) fn data_bytes(&self) -> u64 {
        self.rows() * self.marker.block_bytes
    }

    /// The plan for people and for JSON.
    pub(super) fn lines(&self) -> Vec<Line> {
        let server = &self.server;
        let mut lines = vec![
            text("server_version", "Server", server.version.clone()),
            text(
                "database",
                "Database",
                format!("{} (as {})", self.database, server.user),
            ),
            text("action", "Action", self.action()),
        ];
        lines.extend(data_lines(&self.marker, self.schemas));
        let index = self.load.len() as u64 * self.marker.scale * INDEX_ROW_BYTES;
        lines.extend([
            bytes("data_bytes", "Tables to be written", self.data_bytes()),
            bytes("index_bytes", "Index, about", index),
            text(
                "free_bytes",
                "Free now",
                "n/a (the server does not tell)".to_owned(),
            ),
            count(
                "load_connections",
                "Connections that load",
                self.degree as u64,
            ),
            count(
                "max_connections",
                "Sessions allowed by the server",
                server.sessions_max,
            ),
            text(
                "load_way",
                "Rows are sent by",
                match self.way {
                    Way::Insert => "inserts of many rows",
                    Way::Local => "LOAD DATA LOCAL from memory",
                }
                .to_owned(),
            ),
            bytes("buffer_pool_bytes", "Buffer pool", server.pool_bytes),
        ]);
        lines
    }

    fn action(&self) -> String {
        let all = many(u64::from(self.schemas), "SLOB schema");
        let database = &self.database;
        match &self.start {
            Start::Fresh => format!("create a data set of {all} in database {database}"),
            Start::Over(_) => format!(
                "start over: an earlier prepare did not finish; remove its tables and create {all}"
            ),
            Start::Add(_) if self.load.is_empty() && self.drop.is_empty() => {
                format!("nothing: {all} there already")
            }
            Start::Add(marked) => {
                let resume = match marked.loading.is_empty() {
                    true => "",
                    false => "resume: an earlier prepare did not finish; ",
                };
                let more = many(self.load.len() as u64, "SLOB schema");
                format!("{resume}load {more}, so that there are {}", self.schemas)
            }
        }
    }
}

/// What was asked for; without a wish what is faster, where the server lets clients send files.
fn way(settings: &Settings, server: &Server) -> Result<Way, EngineError> {
    match (settings.text("MYSQL_LOAD"), server.local_infile) {
        ("insert", _) | ("auto", false) => Ok(Way::Insert),
        (_, true) => Ok(Way::Local),
        (_, false) => Err(EngineError::Usage(
            "MYSQL_LOAD=local, but the server refuses it (local_infile is off): set it on, or use MYSQL_LOAD=insert"
                .to_owned(),
        )),
    }
}

/// What would be loaded into a server that does not run yet.
pub(super) fn imagined(settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    refuse_counts(schemas)?;
    let page = page_bytes(settings);
    Sizes::of_page(page)?;
    let marker = new_marker(settings, page, 0)?;
    let mut lines = data_lines(&marker, schemas);
    let rows = u64::from(schemas) * (marker.scale + marker.scan_blocks);
    lines.push(bytes("data_bytes", "Tables to be written", rows * page));
    Ok(lines)
}

/// The page of a server that is started for this command.
pub(super) fn page_bytes(settings: &Settings) -> u64 {
    match settings.is_given("BLOCK_SZ") {
        true => settings.int("BLOCK_SZ"),
        false => super::PAGE_BYTES,
    }
}

fn data_lines(marker: &Marker, schemas: u32) -> Vec<Line> {
    let content = match (marker.obfuscate, marker.compress_pct) {
        (false, _) => "the letter X".to_owned(),
        (true, 0) => "random text, different in each row".to_owned(),
        (true, pct) => format!("random text, different in each row, {pct} % constant"),
    };
    let index = if marker.unique {
        "unique"
    } else {
        "not unique"
    };
    vec![
        count("format_version", "Format version", u64::from(FORMAT)),
        count("schemas", "SLOB schemas", u64::from(schemas)),
        count("scale_blocks", "Rows (= pages) per schema", marker.scale),
        count(
            "scan_blocks",
            "Scan table pages per schema",
            marker.scan_blocks,
        ),
        count("block_bytes", "Page size, bytes", marker.block_bytes),
        count("seed", "Seed of the key order", marker.seed),
        text("content", "Columns", content),
        text("index", "Index", index.to_owned()),
    ]
}

fn refuse_counts(schemas: u32) -> Result<(), EngineError> {
    if (1..=MOST_SCHEMAS).contains(&schemas) {
        return Ok(());
    }
    Err(EngineError::Usage(format!(
        "{schemas} schemas cannot be loaded; the range is 1 to {MOST_SCHEMAS}"
    )))
}

/// Looks at what is there, and decides what the data set is.
fn begin(
    connection: &mut Connection,
    database: &str,
    server: &Server,
    settings: &Settings,
) -> Result<(Start, Marker), EngineError> {
    let fresh = || new_marker(settings, server.page_bytes, drawn_id()?);
    let marked = match marker::find(connection, database)? {
        Found::Nothing => return Ok((Start::Fresh, fresh()?)),
        Found::Ours(marked) => *marked,
    };
    if !marked.foreign.is_empty() {
        return Err(EngineError::Unusable(format!(
            "database {database} contains objects that assay did not make: {}; move them elsewhere. assay loads \
             nothing beside them",
            marked.foreign.join(", ")
        )));
    }
    match refuse_contradictions(&marked.marker, settings, server.page_bytes) {
        Err(_) if marked.loaded.is_empty() => Ok((Start::Over(marked), fresh()?)),
        Err(error) => Err(error),
        Ok(()) => {
            let marker = marked.marker.clone();
            Ok((Start::Add(marked), marker))
        }
    }
}

/// The settings of a new data set.
fn new_marker(settings: &Settings, page: u64, data_set: u64) -> Result<Marker, EngineError> {
    if settings.is_given("BLOCK_SZ") && settings.int("BLOCK_SZ") != page {
        return Err(EngineError::Usage(format!(
            "BLOCK_SZ={}, but this server has pages of {page} bytes: leave BLOCK_SZ out",
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
        seed: match settings.get("SEED").value {
            Value::Int(seed) => seed,
            _ => drawn_id()?,
        },
        block_bytes: page,
        scale,
        scan_blocks: settings.blocks("SCAN_TABLE_SZ", page).unwrap_or(0),
        obfuscate: settings.bool("OBFUSCATE_COLUMNS"),
        compress_pct: settings.int("COMPRESS_PCT"),
        unique: settings.bool("UNIQUE_INDEX"),
    })
}

/// Settings somebody gave that the data set that is there cannot follow.
fn refuse_contradictions(
    marker: &Marker,
    settings: &Settings,
    page: u64,
) -> Result<(), EngineError> {
    let blocks = |name| settings.blocks(name, page).unwrap_or(0).to_string();
    let flag = |name| settings.bool(name).to_string();
    let pairs = [
        (
            "BLOCK_SZ",
            settings.int("BLOCK_SZ").to_string(),
            marker.block_bytes.to_string(),
        ),
        ("SCALE", blocks("SCALE"), marker.scale.to_string()),
        (
            "SCAN_TABLE_SZ",
            blocks("SCAN_TABLE_SZ"),
            marker.scan_blocks.to_string(),
        ),
        (
            "OBFUSCATE_COLUMNS",
            flag("OBFUSCATE_COLUMNS"),
            marker.obfuscate.to_string(),
        ),
        (
            "COMPRESS_PCT",
            settings.int("COMPRESS_PCT").to_string(),
            marker.compress_pct.to_string(),
        ),
        (
            "UNIQUE_INDEX",
            flag("UNIQUE_INDEX"),
            marker.unique.to_string(),
        ),
    ];
    let contradictions: Vec<String> = pairs
        .into_iter()
        .filter(|(name, asked, has)| settings.is_given(name) && asked != has)
        .map(|(name, _, has)| format!("{name}={} but it has {has}", settings.get(name).text))
        .collect();
    made_otherwise(&contradictions)
}
