//! What a load would do: decided, or refused, before anything is created.

use super::conn::Connection;
use super::layout::Sizes;
use super::marker;
use super::server::Server;
use crate::wanted::{Wanted, data_lines, new_marker, refuse_counts};
use assay_measure::config::Settings;
use assay_run::dataset::lines::{bytes, count, text};
use assay_run::engine::{EngineError, Line};
use std::ops::Deref;

/// Approximate index bytes per key: the entries of a live row and its pad, on pages filled to fifteen sixteenths.
const INDEX_ROW_BYTES: u64 = 48;

/// How rows are sent to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Multi-row INSERT.
    Insert,
    /// LOAD DATA LOCAL.
    Local,
}

/// The full plan of a load.
#[derive(Clone, Debug)]
pub(crate) struct LoadPlan {
    pub(super) database: String,
    pub(super) server: Server,
    pub(super) sizes: Sizes,
    pub(super) way: Way,
    wanted: Wanted,
}

/// The part that is the same for any database.
impl Deref for LoadPlan {
    type Target = Wanted;

    fn deref(&self) -> &Wanted {
        &self.wanted
    }
}

impl LoadPlan {
    /// Plans a load.
    ///
    /// # Errors
    /// `Usage` for settings that contradict each other, the server or the data set; `Unusable` for a foreign database,
    /// missing rights, a read-only server, too few connections.
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
        let wanted = Wanted::new(
            marker::find(connection, database)?,
            (settings, schemas),
            (server.page_bytes, "page"),
            &format!("database {database}"),
            |_| (),
        )?;
        server.refuse_too_few_connections(wanted.degree as u64, "LOAD_PARALLEL_DEGREE")?;
        Ok(Self { database: database.to_owned(), sizes, way: way(settings, &server)?, server, wanted })
    }

    /// The plan as lines for text and JSON output.
    pub(super) fn lines(&self) -> Vec<Line> {
        let server = &self.server;
        let mut lines = vec![
            text("server_version", "Server", server.version.clone()),
            text("database", "Database", format!("{} (as {})", self.database, server.user)),
            text("action", "Action", self.action(&format!("database {}", self.database))),
        ];
        lines.extend(data_lines(&self.marker, self.schemas, "page"));
        let index = self.load.len() as u64 * self.marker.scale * INDEX_ROW_BYTES;
        lines.extend([
            bytes("data_bytes", "Tables to be written", self.data_bytes()),
            bytes("index_bytes", "Index, about", index),
            text("free_bytes", "Free now", "n/a (the server does not report it)".to_owned()),
            count("load_connections", "Connections that load", self.degree as u64),
            count("max_connections", "Sessions allowed by the server", server.sessions_max),
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
}

/// The requested way; by default the faster one, if the server lets clients send files.
pub(super) fn way(settings: &Settings, server: &Server) -> Result<Way, EngineError> {
    match (settings.text("MYSQL_LOAD"), server.local_infile) {
        ("insert", _) | ("auto", false) => Ok(Way::Insert),
        (_, true) => Ok(Way::Local),
        (_, false) => Err(EngineError::Usage(
            "MYSQL_LOAD=local, but the server refuses it (local_infile is off): switch it on, or use MYSQL_LOAD=insert"
                .to_owned(),
        )),
    }
}

/// What would be loaded into a server that does not run yet.
pub(super) fn imagined(settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    refuse_counts(schemas)?;
    let page = page_bytes(settings);
    Sizes::of_page(page)?;
    let marker = new_marker(settings, (page, "page"), 0, ())?;
    let mut lines = data_lines(&marker, schemas, "page");
    let rows = u64::from(schemas) * (marker.scale + marker.scan_blocks);
    lines.push(bytes("data_bytes", "Tables to be written", rows * page));
    Ok(lines)
}

/// Page size of a server started for this command.
pub(super) fn page_bytes(settings: &Settings) -> u64 {
    if settings.is_given("BLOCK_SZ") { settings.int("BLOCK_SZ") } else { super::PAGE_BYTES }
}
