//! What a load would do: decided and refused here, before anything is created.

use crate::postgres::layout::{self, Names, Storage, TUPLE_BYTES};
use crate::postgres::marker::{self, Found, Marked, Marker, Own};
use crate::postgres::own::told;
use crate::postgres::reads;
use crate::postgres::server::{self, Server};
use crate::postgres::site::Owner;
use crate::postgres::wire::Connection;
use crate::wanted::{self, data_lines, refuse_contradictions, refuse_counts};
use assay_measure::config::Settings;
use assay_measure::units::many;
use assay_run::dataset::lines::{bytes, count, text};
use assay_run::dataset::room::Room;
use assay_run::engine::{EngineError, Line, LineValue};
use std::collections::BTreeSet;

/// Rate the time is estimated with, bytes of tables per second: a cautious figure, named where it is used.
const BYTES_PER_S: u64 = 200_000_000;

/// Bytes of write-ahead log for a row: the tuple, and what names its page.
const WAL_ROW_BYTES: u64 = TUPLE_BYTES + 60;

const WAYS_OUT: &str = "use fewer schemas or a smaller SCALE, or another TABLESPACE";

/// How the load begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing is there; the PostgreSQL schema is created too unless it is there, empty.
    Fresh,
    /// A marker is there but no usable data, and the requested settings differ: assay removes what it names first.
    Over(Marked),
    /// SLOB schemas of this marker are kept.
    Add(Marked),
    /// All are there.
    Nothing(Marked),
}

/// Everything a load has decided.
#[derive(Clone, Debug)]
pub(super) struct LoadPlan {
    pub(super) names: Names,
    pub(super) server: Server,
    pub(super) marker: Marker,
    /// Whose the data set is that is there, or the empty schema.
    pub(super) owner: Option<Owner>,
    pub(super) start: Start,
    /// SLOB schemas the data set will have.
    pub(super) schemas: u32,
    /// To be loaded, in this order.
    pub(super) load: Vec<u32>,
    /// Loaded by an earlier prepare but not verified: they only need that.
    pub(super) verify: Vec<u32>,
    /// Begun by an earlier prepare and not asked for now: they go.
    pub(super) drop: Vec<u32>,
    /// Connections that load.
    pub(super) degree: usize,
    pub(super) work_unit: u64,
    /// Room where the tables go, or why it is not known.
    room: Result<Room, String>,
}

impl LoadPlan {
    /// Decides.
    ///
    /// # Errors
    /// `Usage` for settings that contradict themselves, the server or the data set; `Unusable` for a schema that is not
    /// ours, missing rights, a standby, too few connections or too little space.
    pub(super) fn new(connection: &mut Connection, settings: &Settings, schemas: u32) -> Result<Self, EngineError> {
        let names = Names::new(settings)?;
        refuse_counts(schemas)?;
        let server = Server::ask(connection)?;
        server.refuse_read_only()?;
        let (start, marker, owner) = begin(connection, &names, &server, settings)?;
        let loaded = match &start {
            Start::Add(marked) | Start::Nothing(marked) => marked.loaded.clone(),
            Start::Fresh | Start::Over(_) => BTreeSet::new(),
        };
        let schemas = schemas.max(loaded.last().copied().unwrap_or(0));
        let missing: Vec<u32> = (1..=schemas).filter(|n| !loaded.contains(n)).collect();
        let present = match &start {
            Start::Add(_) => tables_of(connection, &names)?,
            _ => BTreeSet::new(),
        };
        let complete = |n: &u32| present.contains(&layout::rows_name(*n)) && present.contains(&layout::index_name(*n));
        let (verify, load) = missing.into_iter().partition(complete);
        let drop = match &start {
            Start::Add(marked) => marked.loading.iter().copied().filter(|n| *n > schemas).collect(),
            Start::Over(marked) => marked.loading.iter().copied().collect(),
            Start::Fresh | Start::Nothing(_) => Vec::new(),
        };
        let start = match start {
            Start::Add(marked) if marked.loading.is_empty() && schemas == marked.usable() => Start::Nothing(marked),
            other => other,
        };
        let mut plan = Self {
            room: room(connection, &server, &marker.own.tablespace)?,
            degree: (settings.int("LOAD_PARALLEL_DEGREE") as usize).max(1),
            work_unit: settings.int("WORK_UNIT"),
            names,
            server,
            marker,
            owner,
            start,
            schemas,
            load,
            verify,
            drop,
        };
        plan.degree = plan.degree.min(plan.load.len() + plan.verify.len()).max(1);
        plan.refuse_too_few_connections()?;
        if let Ok(room) = &plan.room {
            let place = match plan.tablespace() {
                "" => "the server".to_owned(),
                name => format!("tablespace {name}"),
            };
            room.fits(&place, plan.total_bytes(), WAYS_OUT)?;
        }
        Ok(plan)
    }

    fn refuse_too_few_connections(&self) -> Result<(), EngineError> {
        let free = self.server.sessions_max.saturating_sub(self.server.sessions);
        if free >= self.degree as u64 {
            return Ok(());
        }
        Err(EngineError::Unusable(format!(
            "LOAD_PARALLEL_DEGREE={} needs this number of connections, but the server allows {} and {} are in use: \
             give a smaller degree or raise max_connections",
            self.degree, self.server.sessions_max, self.server.sessions
        )))
    }

    /// How tables are stored.
    pub(super) fn storage(&self) -> Storage {
        Storage { tablespace: self.marker.own.tablespace.clone(), autovacuum: self.marker.own.autovacuum }
    }

    /// The PostgreSQL schema has to be created.
    pub(super) fn creates_schema(&self) -> bool {
        self.start == Start::Fresh && self.marker.own.made_schema
    }

    fn tablespace(&self) -> &str {
        match self.marker.own.tablespace.as_str() {
            "" => &self.server.tablespace,
            name => name,
        }
    }

    /// Rows of `cf1` to be loaded.
    pub(super) fn rows(&self) -> u64 {
        self.load.len() as u64 * self.marker.scale
    }

    /// Rows of `cf2` to be loaded.
    pub(super) fn scan_rows(&self) -> u64 {
        self.load.len() as u64 * self.marker.scan_blocks
    }

    fn index_bytes(&self) -> u64 {
        let block = self.marker.block_bytes;
        self.load.len() as u64 * layout::index_pages(self.marker.scale, block) * block
    }

    /// Tables and indexes to be written.
    pub(super) fn total_bytes(&self) -> u64 {
        (self.rows() + self.scan_rows()) * self.marker.block_bytes + self.index_bytes()
    }

    /// With `wal_level=minimal` the server logs nothing of a table that is made in the transaction that loads it.
    fn wal_bytes(&self) -> u64 {
        match self.server.wal_level.as_str() {
            "minimal" => 0,
            _ => (self.rows() + self.scan_rows()) * WAL_ROW_BYTES + self.index_bytes(),
        }
    }

    /// The plan for people and for JSON.
    pub(super) fn lines(&self) -> Vec<Line> {
        let server = &self.server;
        let mut lines = vec![
            text("server_version", "Server", format!("PostgreSQL {}", server.version)),
            text(
                "database",
                "Database",
                format!("{} (encoding {}, as {})", server.database, server.encoding, server.role),
            ),
            text("pg_schema", "PostgreSQL schema", self.names.schema().to_owned()),
            text("tablespace", "Tablespace", self.tablespace().to_owned()),
            text("action", "Action", self.action()),
        ];
        lines.extend(data_lines(&self.marker, self.schemas, "block"));
        lines.extend([
            bytes("data_bytes", "Table data", self.rows() * self.marker.block_bytes),
            bytes("index_bytes", "Index", self.index_bytes()),
            bytes("scan_bytes", "Scan tables", self.scan_rows() * self.marker.block_bytes),
            bytes("total_bytes", "To be written", self.total_bytes()),
            match &self.room {
                Ok(room) => bytes("free_bytes", "Free now", room.free_bytes),
                Err(why) => text("free_bytes", "Free now", format!("n/a ({why})")),
            },
            estimate(self.total_bytes()),
        ]);
        lines.extend(self.wal_lines());
        lines.extend(self.server_lines());
        lines
    }

    /// What log the load writes, and why so much.
    fn wal_lines(&self) -> [Line; 2] {
        let server = &self.server;
        let why = match server.wal_level.as_str() {
            "minimal" => "minimal: tables that a transaction creates are synchronised instead of logged".to_owned(),
            level => format!(
                "{level}; about {} of log remain before a checkpoint (max_wal_size)",
                assay_run::dataset::lines::mebibytes(server.max_wal_bytes)
            ),
        };
        [bytes("wal_bytes", "Write-ahead log", self.wal_bytes()), text("wal_level", "Log level", why)]
    }

    fn server_lines(&self) -> Vec<Line> {
        let server = &self.server;
        let checkpoint = if server.may_checkpoint {
            "yes"
        } else if server.major >= 15 {
            "no: GRANT pg_checkpoint to this role, or the first run may write pages that the load left dirty"
        } else {
            "no: this needs a superuser, so the first run may write pages that the load left dirty"
        };
        vec![
            count("load_connections", "Connections that load", self.degree as u64),
            count("max_connections", "Sessions allowed by the server", server.sessions_max),
            count("sessions_now", "Sessions in use now", server.sessions),
            bytes("shared_buffers_bytes", "Shared buffers", server.shared_buffers_bytes),
            text(
                "full_page_writes",
                "Full page images",
                if server.full_page_writes {
                    "on: the first change of a page after a checkpoint logs the page"
                } else {
                    "off"
                }
                .to_owned(),
            ),
            text("checkpoint", "Checkpoint after the load", checkpoint.to_owned()),
            text(
                "autovacuum",
                "Autovacuum of the tables",
                if self.marker.own.autovacuum { "on" } else { "off" }.to_owned(),
            ),
        ]
    }

    fn action(&self) -> String {
        let name = self.names.schema();
        let n = self.schemas;
        let list = |schemas: &[u32]| {
            let list: Vec<String> = schemas.iter().take(8).map(u32::to_string).collect();
            let more = if schemas.len() > 8 { ", ..." } else { "" };
            format!("{}{more}", list.join(", "))
        };
        let all = many(u64::from(n), "SLOB schema");
        match &self.start {
            Start::Fresh if self.marker.own.made_schema => {
                format!("create schema {name} and a data set of {all}")
            }
            Start::Fresh => {
                format!("create a data set of {all} in the empty schema {name}")
            }
            Start::Over(_) => {
                format!("start over: an earlier prepare did not finish; remove its tables and create {all}")
            }
            Start::Nothing(_) => format!("nothing: {all} already there"),
            Start::Add(marked) => {
                let mut parts = Vec::new();
                if !marked.loading.is_empty() {
                    parts.push("resume: an earlier prepare did not finish".to_owned());
                }
                if !self.drop.is_empty() {
                    parts.push(format!("remove SLOB schemas {}", list(&self.drop)));
                }
                if !self.verify.is_empty() {
                    parts.push(format!("verify SLOB schemas {}", list(&self.verify)));
                }
                if !self.load.is_empty() {
                    parts.push(format!("load SLOB schemas {}", list(&self.load)));
                }
                parts.join("; ")
            }
        }
    }
}

/// What would be loaded into a server that does not run yet.
pub(super) fn imagined(version: Option<&str>, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    let names = Names::new(settings)?;
    refuse_counts(schemas)?;
    let block_bytes = settings.int("BLOCK_SZ");
    let marker = new_marker(settings, block_bytes, 0, true)?;
    let rows = u64::from(schemas) * (marker.scale + marker.scan_blocks);
    let index = u64::from(schemas) * layout::index_pages(marker.scale, block_bytes);
    let total = (rows + index) * block_bytes;
    let newest = version.map_or("newest installed version".to_owned(), |v| format!("version {v}"));
    let mut lines = vec![
        text("server_version", "Server", format!("a temporary PostgreSQL server, {newest}, started for this command")),
        text("pg_schema", "PostgreSQL schema", names.schema().to_owned()),
    ];
    lines.extend(data_lines(&marker, schemas, "block"));
    lines.push(bytes("total_bytes", "To be written", total));
    lines.push(estimate(total));
    Ok(lines)
}

fn estimate(total_bytes: u64) -> Line {
    let seconds = total_bytes as f64 / BYTES_PER_S as f64;
    Line {
        key: "estimated_s",
        label: format!("Estimated time, s, at an assumed {} MB/s", BYTES_PER_S / 1_000_000),
        value: LineValue::Decimal((seconds * 10.0).round() / 10.0),
    }
}

/// Looks at what is there, and decides what the data set is.
fn begin(
    connection: &mut Connection,
    names: &Names,
    server: &Server,
    settings: &Settings,
) -> Result<(Start, Marker, Option<Owner>), EngineError> {
    let fresh =
        |made_schema| new_marker(settings, server.block_bytes, assay_run::dataset::rows::drawn_id()?, made_schema);
    match marker::find(connection, names)? {
        Found::Nothing => {
            if !server.may_create {
                return Err(EngineError::Unusable(format!(
                    "role {0} may not create a schema in database {1}: have its owner run GRANT CREATE ON DATABASE {2} TO {3}, or CREATE SCHEMA {4} AUTHORIZATION {3}",
                    server.role,
                    server.database,
                    layout::quote(&server.database),
                    layout::quote(&server.role),
                    names.schema_sql()
                )));
            }
            Ok((Start::Fresh, fresh(true)?, None))
        }
        Found::Empty(owner) => {
            refuse_unwritable(connection, names, server)?;
            let owner = Some(owner).filter(|owner| owner.may_act);
            Ok((Start::Fresh, fresh(false)?, owner))
        }
        Found::Ours(ours) => {
            refuse_unwritable(connection, names, server)?;
            if !ours.marked.foreign.is_empty() {
                return Err(EngineError::Unusable(format!(
                    "schema {} contains objects that assay did not make: {}; move them elsewhere. assay loads \
                     nothing beside them",
                    names.schema(),
                    ours.marked.foreign.join(", ")
                )));
            }
            refuse_owner(names, server, &ours.owner)?;
            let (marked, owner) = (ours.marked, Some(ours.owner));
            let contradicted = refuse_contradictions(&marked.marker, settings, server.block_bytes);
            match contradicted {
                Err(_) if marked.loaded.is_empty() => {
                    let marker = new_marker(
                        settings,
                        server.block_bytes,
                        assay_run::dataset::rows::drawn_id()?,
                        marked.marker.own.made_schema,
                    )?;
                    Ok((Start::Over(marked), marker, owner))
                }
                Err(error) => Err(error),
                Ok(()) => {
                    let marker = marked.marker.clone();
                    Ok((Start::Add(marked), marker, owner))
                }
            }
        }
    }
}

/// Tables of two owners would make a data set that neither can keep or remove.
fn refuse_owner(names: &Names, server: &Server, owner: &Owner) -> Result<(), EngineError> {
    if !owner.other || owner.may_act {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "the data set in schema {0} belongs to role {1}, but {2} may not act as that role: connect as {1}, or name \
         another schema with PG_SCHEMA",
        names.schema(),
        owner.role,
        server.role
    )))
}

fn refuse_unwritable(connection: &mut Connection, names: &Names, server: &Server) -> Result<(), EngineError> {
    let asked = connection
        .query(&format!("select has_schema_privilege({}, 'create')", layout::literal(names.schema())))
        .map_err(told("reading the privileges on the schema"))?;
    if asked.rows.first().and_then(|row| row.first()).cloned().flatten().as_deref() == Some("t") {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "role {} may not create tables in schema {}: have its owner run GRANT CREATE, USAGE ON SCHEMA {} TO {}, or \
         name another schema with PG_SCHEMA",
        server.role,
        names.schema(),
        names.schema_sql(),
        layout::quote(&server.role)
    )))
}

/// Tables and indexes of the PostgreSQL schema.
fn tables_of(connection: &mut Connection, names: &Names) -> Result<BTreeSet<String>, EngineError> {
    match marker::find(connection, names)? {
        Found::Ours(ours) => Ok(ours.present),
        Found::Nothing | Found::Empty(_) => Err(super::super::check::nothing_here(names)),
    }
}

/// The settings of a new data set.
fn new_marker(settings: &Settings, block_bytes: u64, data_set: u64, made_schema: bool) -> Result<Marker, EngineError> {
    let own = Own {
        tablespace: settings.text("TABLESPACE").to_owned(),
        autovacuum: settings.bool("AUTOVACUUM"),
        made_schema,
    };
    let marker = wanted::new_marker(settings, (block_bytes, "page"), data_set, own)?;
    // A block number has 32 bits, and the last two are taken.
    if marker.scale >= u64::from(u32::MAX) - 1 {
        return Err(EngineError::Usage(format!(
            "SCALE={} is {} blocks; a table of PostgreSQL has fewer than 2^32: use more schemas",
            settings.get("SCALE").text,
            marker.scale
        )));
    }
    Ok(marker)
}

/// Room where the tables go. The error inside says why it is not known.
fn room(connection: &mut Connection, server: &Server, asked: &str) -> Result<Result<Room, String>, EngineError> {
    let name = if asked.is_empty() { &server.tablespace } else { asked };
    let tablespace = server::tablespace(connection, name)?;
    let found = reads::directory(connection, server.data_directory.as_deref(), tablespace.directory.as_deref());
    Ok(found.and_then(|path| Room::of(&path).map_err(|error| error.to_string())))
}
