//! A throw-away server from installed binaries: `temp:postgres[:VERSION]`.
//!
//! `initdb` creates it, and [`crate::temp`] keeps it.

mod binaries;
mod settings;

use crate::place::Place;
use crate::temp::home::Home;
use crate::temp::owner::{self, Owner};
use crate::temp::{self, Brand, DATA, Ready, Request, Server, Shown, Shutdown, seconds};
use crate::url::encoded;
use assay_measure::config::Settings;
use assay_run::dataset::lines::text;
use assay_run::engine::{EngineError, Line, Progress, Started};
use assay_run::stop::Stop;
use binaries::Binaries;
use rustix::process::Signal;
use settings::Asked;
use std::path::{Path, PathBuf};

pub(super) const BRAND: Brand = Brand { temp: "postgres", called: "PostgreSQL", user: "postgres", directory: "PG_DIR" };
/// Shutdown modes and their time limits, s. A fast shutdown writes a checkpoint that nobody will read; after an
/// immediate one the server itself kills its processes after 5 s.
const SHUTDOWN: [(&str, Signal, u64); 2] = [("fast", Signal::INT, 5), ("immediate", Signal::QUIT, 10)];
/// Approximate size of a new cluster and its first log segments.
const CLUSTER_BYTES: u64 = 96 << 20;
/// Default `max_wal_size`: log that may accumulate between two checkpoints.
const LOG_BYTES: u64 = 1 << 30;
const BLOCK_BYTES: u64 = 8192;

/// The server to start, with all choices made.
#[derive(Clone, Debug)]
struct Choice {
    binaries: Binaries,
    owner: Option<Owner>,
    home: Home,
    asked: Asked,
    sessions: u64,
    needed_bytes: u64,
}

impl Choice {
    /// Finds and checks everything that is possible without creating anything.
    fn new(version: Option<&str>, settings: &Settings) -> Result<Self, EngineError> {
        let named = settings.text("PG_BIN");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut asked = settings::parse(settings.text("PG_SET"))?;
        for (name, value) in super::reads::server_settings(settings)? {
            // A setting that the user gave stays as it is.
            if asked.iter().all(|(given, _)| given != name) {
                asked.push((name.to_owned(), value));
            }
        }
        let binaries = binaries::choose(&binaries::installed(named, &path), named, version)?;
        let owner = owner::of_server(BRAND)?;
        owner::reaches(BRAND, owner.as_ref(), &binaries.bin, "the programs in")?;
        let asked = Asked::new(asked, &binaries)?;
        let home = Home::choose(BRAND, settings.text("PG_DIR"), owner.as_ref())?;
        let (schemas, sessions) = temp::load(settings);
        let needed_bytes = needed_bytes(settings, schemas);
        home.room(needed_bytes)?;
        Ok(Self { binaries, owner, home, asked, sessions, needed_bytes })
    }

    /// Lines for the plan and the result.
    fn lines(&self, directory: &str) -> Vec<Line> {
        let socket = PathBuf::from(directory).join(DATA);
        let private = settings::needed(&socket, self.sessions, &self.asked);
        let given = match (self.asked.server.is_empty(), self.asked.initdb.is_empty()) {
            (true, true) => "none: otherwise default settings".to_owned(),
            (false, true) => settings::listed(&self.asked.server),
            (true, false) => format!("initdb {}", self.asked.initdb.join(" ")),
            (false, false) => {
                format!("{}; initdb {}", settings::listed(&self.asked.server), self.asked.initdb.join(" "))
            }
        };
        let shown = Shown {
            server: format!("PostgreSQL {}", self.binaries.version),
            programs: &self.binaries.bin,
            directory: directory.to_owned(),
            own_settings: settings::listed(&private),
            settings_given: given,
        };
        shown.lines(&self.home, self.owner.as_ref())
    }

    /// The request to its keeper.
    fn request(&self, directory: &Path) -> Request {
        let data = directory.join(DATA);
        let mut all = settings::needed(&data, self.sessions, &self.asked);
        all.extend(self.asked.server.iter().cloned());
        let words = |program: &str, more: &[&str]| {
            let program = self.binaries.program(program);
            [program.display().to_string(), "-D".to_owned()]
                .into_iter()
                .chain([data.display().to_string()])
                .chain(more.iter().map(|word| (*word).to_owned()))
                .collect::<Vec<String>>()
        };
        let stock = [
            "-U",
            "postgres",
            "--auth=trust",
            "--locale=C",
            "--encoding=UTF8",
            // initdb's files need not survive a power failure; the server syncs its own writes as its settings say.
            "--no-sync",
        ];
        let mut make = words("initdb", &stock);
        make.extend(self.asked.initdb.iter().cloned());
        Request {
            directory: directory.to_path_buf(),
            owner: self.owner.clone(),
            make,
            serve: words("postgres", &[]),
            conf: Some(("postgresql.conf".to_owned(), settings::conf(&all))),
            // PGDATA, PGOPTIONS and similar variables.
            foreign_variables: vec!["PG".to_owned()],
            ready: Ready::Line { file: "postmaster.pid".to_owned(), line: 8, word: "ready".to_owned() },
            shutdown: SHUTDOWN
                .map(|(name, signal, patience_s)| Shutdown {
                    name: name.to_owned(),
                    signal: signal.as_raw(),
                    patience_s,
                })
                .to_vec(),
            complaints: settings::COMPLAINTS.map(str::to_owned).to_vec(),
        }
    }
}

/// Describes the server that would be started; changes nothing.
pub(super) fn plan(version: Option<&str>, settings: &Settings) -> Result<Vec<Line>, EngineError> {
    let choice = Choice::new(version, settings)?;
    Ok(temp::planned(&choice.home, choice.needed_bytes, |directory| choice.lines(directory)))
}

/// Starts the server.
pub(super) fn start(
    version: Option<&str>,
    settings: &Settings,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Started, EngineError> {
    let choice = Choice::new(version, settings)?;
    let directory = choice.home.directory(&format!(".s.PGSQL.{}", settings::PORT))?;
    let socket = directory.join(DATA);
    let mut lines = choice.lines(&directory.display().to_string());
    let server = Server::start(BRAND, &choice.request(&directory), "initdb", stop, progress)?;
    lines.push(seconds("initdb_s", "Time to create it (initdb), s", server.made_s));
    lines.push(seconds("server_start_s", "Started in, s", server.start_s));
    let host = encoded(&socket.display().to_string());
    let url = format!("//postgres@/postgres?host={host}&port={}", settings::PORT);
    lines.push(text("server_url", "Address", format!("postgres:{url}")));
    Ok(Started { location: Place::started(&url), lines, keep: Box::new(server) })
}

/// Approximate space for a server with this data set: one row fills a block, an index entry takes 20 bytes plus half of
/// that for partly filled pages, and the log of the load is added.
fn needed_bytes(settings: &Settings, schemas: u64) -> u64 {
    let rows = settings.blocks("SCALE", BLOCK_BYTES).unwrap_or(0);
    let scan = settings.blocks("SCAN_TABLE_SZ", BLOCK_BYTES).unwrap_or(0);
    let each = rows.saturating_mul(BLOCK_BYTES + 30).saturating_add(scan.saturating_mul(BLOCK_BYTES));
    let data = each.saturating_mul(schemas);
    data.saturating_add(data.min(LOG_BYTES)).saturating_add(CLUSTER_BYTES)
}
