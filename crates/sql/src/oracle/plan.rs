//! What a load would do: decided, or refused, before anything is created.

use super::address::Door;
use super::marker;
use super::server::Server;
use super::session::Session;
use crate::wanted::{Wanted, data_lines, refuse_counts};
use assay_measure::config::Settings;
use assay_run::dataset::lines::{bytes, count, text};
use assay_run::engine::{EngineError, Line};
use std::ops::Deref;

/// Block sizes for which assay places one row per block: with 99 % kept free, a row of 2.45 KB leaves no room for a second.
const BLOCKS: std::ops::RangeInclusive<u64> = 4096..=32768;
/// Approximate index bytes per key, in full blocks.
const INDEX_ROW_BYTES: u64 = 20;

/// The full plan of a load.
#[derive(Clone, Debug)]
pub(crate) struct LoadPlan {
    pub(super) server: Server,
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
    /// `Usage` for settings that contradict each other, the server or the data set; `Unusable` for a user who has other
    /// tables, a standby, or too small a quota.
    pub(super) fn new(
        session: &mut dyn Session,
        door: &Door,
        settings: &Settings,
        schemas: u32,
    ) -> Result<Self, EngineError> {
        refuse_counts(schemas)?;
        let server = Server::ask(session, settings.text("ORACLE_TABLESPACE"))?;
        server.refuse_read_only()?;
        let block = server.tablespace.block_bytes;
        if !BLOCKS.contains(&block) {
            return Err(EngineError::Unusable(format!(
                "tablespace {} has blocks of {block} bytes: assay puts one row on a block of {} to {} bytes",
                server.tablespace.name,
                BLOCKS.start(),
                BLOCKS.end()
            )));
        }
        let found = marker::find(session, door)?;
        let place = format!("the schema of user {}", server.user);
        let wanted = Wanted::new(found, (settings, schemas), (block, "block"), &place, |_| ())?;
        let plan = Self { server, wanted };
        plan.server.refuse_too_large(plan.data_bytes() + plan.index_bytes())?;
        Ok(plan)
    }

    fn index_bytes(&self) -> u64 {
        self.load.len() as u64 * self.marker.scale * INDEX_ROW_BYTES
    }

    /// The plan as lines for text and JSON output.
    pub(super) fn lines(&self) -> Vec<Line> {
        let server = &self.server;
        let tablespace = &server.tablespace;
        let mut lines = vec![
            text("server_version", "Server", format!("Oracle Database {}", server.version)),
            text(
                "database",
                "Database",
                format!("{}, container {}, instance {}", server.database, server.container, server.instance),
            ),
            text("user", "Owner of the tables", server.user.clone()),
            text("action", "Action", self.action(&format!("the schema of user {}", server.user))),
        ];
        lines.extend(data_lines(&self.marker, self.schemas, "block"));
        lines.extend([
            text(
                "tablespace",
                "Tablespace",
                format!("{} ({}, segment space {})", tablespace.name, tablespace.logging, tablespace.management),
            ),
            bytes("data_bytes", "Tables to be written", self.data_bytes()),
            bytes("index_bytes", "Index, about", self.index_bytes()),
            match tablespace.free_bytes {
                Some(free) => bytes("free_bytes", "Free now, without growing", free),
                None => text("free_bytes", "Free now", "n/a (the server does not show it to this user)".to_owned()),
            },
            count("load_connections", "Connections that load", self.degree as u64),
        ]);
        lines
    }
}
