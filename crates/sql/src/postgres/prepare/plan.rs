//! What a load would do: decided, or refused, before anything is created.

use crate::postgres::layout::{self, Names, Storage, TUPLE_BYTES};
use crate::postgres::marker::{self, Found, Marker, Own};
use crate::postgres::own::told;
use crate::postgres::reads;
use crate::postgres::server::{self, Server};
use crate::postgres::site::Owner;
use crate::postgres::wire::Connection;
use crate::wanted::{self, Start, Wanted, data_lines, refuse_counts};
use assay_measure::config::Settings;
use assay_run::dataset::lines::{bytes, count, text};
use assay_run::dataset::room::Room;
use assay_run::engine::{EngineError, Line, LineValue};
use std::ops::Deref;

/// Assumed load rate for the time estimate, bytes of tables per second. It is conservative, and shown with the estimate.
const BYTES_PER_S: u64 = 200_000_000;

/// Bytes of write-ahead log per row: the tuple, and the record that names its page.
const WAL_ROW_BYTES: u64 = TUPLE_BYTES + 60;

const WAYS_OUT: &str = "use fewer schemas or a smaller SCALE, or another TABLESPACE";

/// The full plan of a load.
#[derive(Clone, Debug)]
pub(crate) struct LoadPlan {
    pub(super) names: Names,
    pub(super) server: Server,
    /// Owner of the existing data set or of the empty schema.
    pub(super) owner: Option<Owner>,
    /// Free space for the tables, or why it is unknown.
    room: Result<Room, String>,
    wanted: Wanted<Own>,
}

/// The part that is the same for any database.
impl Deref for LoadPlan {
    type Target = Wanted<Own>;

    fn deref(&self) -> &Wanted<Own> {
        &self.wanted
    }
}

impl LoadPlan {
    /// Plans a load.
    ///
    /// # Errors
    /// `Usage` for settings that contradict each other, the server or the data set; `Unusable` for a foreign schema,
    /// missing rights, a standby, too few connections or too little space.
    pub(in crate::postgres) fn new(
        connection: &mut Connection,
        names: &Names,
        settings: &Settings,
        schemas: u32,
    ) -> Result<Self, EngineError> {
        refuse_counts(schemas)?;
        let server = Server::ask(connection)?;
        server.refuse_read_only()?;
        let found = marker::find(connection, names)?;
        let owner = writable(connection, names, &server, &found)?;
        let made_schema = matches!(found, Found::Nothing);
        let ours = match found {
            Found::Ours(ours) => Some(*ours),
            Found::Nothing | Found::Empty(_) => None,
        };
        let present = ours.as_ref().map(|ours| ours.present.clone()).unwrap_or_default();
        let place = format!("schema {}", names.schema());
        let own = |old: Option<&Own>| own_of(settings, old.map_or(made_schema, |old| old.made_schema));
        let mut wanted =
            Wanted::new(ours.map(|ours| ours.marked), (settings, schemas), (server.block_bytes, "page"), &place, own)?;
        refuse_too_large(settings, &wanted.marker)?;
        let room = room(connection, &server, &wanted.marker.own.tablespace)?;
        if !wanted.is_new() {
            // Tables and their index are created in one transaction.
            let complete =
                |n: &u32| present.contains(&layout::rows_name(*n)) && present.contains(&layout::index_name(*n));
            (wanted.verify, wanted.load) = wanted.load.into_iter().partition(complete);
        }
        let plan = Self { names: names.clone(), server, owner, room, wanted };
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

    /// No data set exists; an empty PostgreSQL schema may.
    pub(super) fn is_fresh(&self) -> bool {
        self.start == Start::Fresh
    }

    /// Whether the PostgreSQL schema must be created.
    pub(super) fn creates_schema(&self) -> bool {
        self.is_fresh() && self.marker.own.made_schema
    }

    fn tablespace(&self) -> &str {
        match self.marker.own.tablespace.as_str() {
            "" => &self.server.tablespace,
            name => name,
        }
    }

    fn index_bytes(&self) -> u64 {
        let block = self.marker.block_bytes;
        self.load.len() as u64 * layout::index_pages(self.marker.scale, block) * block
    }

    /// Bytes of tables and indexes to write.
    pub(super) fn total_bytes(&self) -> u64 {
        self.data_bytes() + self.index_bytes()
    }

    /// With `wal_level=minimal` the server does not log a table that the loading transaction created.
    fn wal_bytes(&self) -> u64 {
        match self.server.wal_level.as_str() {
            "minimal" => 0,
            _ => self.rows() * WAL_ROW_BYTES + self.index_bytes(),
        }
    }

    /// The plan as lines for text and JSON output.
    pub(in crate::postgres) fn lines(&self) -> Vec<Line> {
        let server = &self.server;
        let state = if self.marker.own.made_schema { "new" } else { "empty" };
        let place = format!("the {state} schema {}", self.names.schema());
        let mut lines = vec![
            text("server_version", "Server", format!("PostgreSQL {}", server.version)),
            text(
                "database",
                "Database",
                format!("{} (encoding {}, as {})", server.database, server.encoding, server.role),
            ),
            text("pg_schema", "PostgreSQL schema", self.names.schema().to_owned()),
            text("tablespace", "Tablespace", self.tablespace().to_owned()),
            text("action", "Action", self.action(&place)),
        ];
        lines.extend(data_lines(&self.marker, self.schemas, "block"));
        lines.extend([
            bytes("data_bytes", "Tables to be written", self.data_bytes()),
            bytes("index_bytes", "Index", self.index_bytes()),
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

    /// How much log the load writes, and why.
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
}

/// What would be loaded into a server that does not run yet.
pub(in crate::postgres) fn imagined(
    version: Option<&str>,
    settings: &Settings,
    schemas: u32,
) -> Result<Vec<Line>, EngineError> {
    let names = Names::new(settings)?;
    refuse_counts(schemas)?;
    let block_bytes = settings.int("BLOCK_SZ");
    let marker = wanted::new_marker(settings, (block_bytes, "page"), 0, own_of(settings, true))?;
    refuse_too_large(settings, &marker)?;
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

/// Whether this role may load there; returns the owner of an existing schema or data set, who will own the tables.
fn writable(
    connection: &mut Connection,
    names: &Names,
    server: &Server,
    found: &Found,
) -> Result<Option<Owner>, EngineError> {
    match found {
        Found::Nothing if server.may_create => Ok(None),
        Found::Nothing => Err(EngineError::Unusable(format!(
            "role {0} may not create a schema in database {1}: have its owner run GRANT CREATE ON DATABASE {2} TO {3}, or CREATE SCHEMA {4} AUTHORIZATION {3}",
            server.role,
            server.database,
            layout::quote(&server.database),
            layout::quote(&server.role),
            names.schema_sql()
        ))),
        Found::Empty(owner) => {
            refuse_unwritable(connection, names, server)?;
            Ok(Some(owner.clone()).filter(|owner| owner.may_act))
        }
        Found::Ours(ours) => {
            refuse_unwritable(connection, names, server)?;
            refuse_owner(names, server, &ours.owner)?;
            Ok(Some(ours.owner.clone()))
        }
    }
}

/// Refuses a second owner: neither role could then maintain or remove the data set.
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

/// Marker values of a new data set that only PostgreSQL has.
fn own_of(settings: &Settings, made_schema: bool) -> Own {
    Own { tablespace: settings.text("TABLESPACE").to_owned(), autovacuum: settings.bool("AUTOVACUUM"), made_schema }
}

/// A block number has 32 bits, of which the last two values are reserved.
fn refuse_too_large(settings: &Settings, marker: &Marker) -> Result<(), EngineError> {
    if marker.scale < u64::from(u32::MAX) - 1 {
        return Ok(());
    }
    Err(EngineError::Usage(format!(
        "SCALE={} is {} blocks; a table of PostgreSQL has fewer than 2^32: use more schemas",
        settings.get("SCALE").text,
        marker.scale
    )))
}

/// Free space for the tables. The inner error says why it is unknown.
fn room(connection: &mut Connection, server: &Server, asked: &str) -> Result<Result<Room, String>, EngineError> {
    let name = if asked.is_empty() { &server.tablespace } else { asked };
    let tablespace = server::tablespace(connection, name)?;
    let found = reads::directory(connection, server.data_directory.as_deref(), tablespace.directory.as_deref());
    Ok(found.and_then(|path| Room::of(&path).map_err(|error| error.to_string())))
}
