//! A throw-away server from installed programs: `temp:mariadb[:VERSION]`, made and kept as [`crate::temp`] does it.

use super::address::{Address, encoded};
use super::files::Options;
use super::load::connect;
use super::plan;
use crate::place::Place;
use crate::temp::home::Home;
use crate::temp::owner::{self, Owner};
use crate::temp::settings::{self, Setting};
use crate::temp::{Brand, DATA, Ready, Request, Server, Shown, Shutdown, seconds};
use assay_measure::config::{Settings, Value};
use assay_run::dataset::lines::text;
use assay_run::engine::{EngineError, Line, LineValue, Progress, Started};
use assay_run::stop::Stop;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) const BRAND: Brand = Brand {
    temp: "mariadb",
    called: "MariaDB",
    user: "mysql",
    directory: "MYSQL_DIR",
};
const SERVER: &str = "mariadbd";
const INSTALLER: &str = "mariadb-install-db";
/// Where packages put them, beside PATH.
const PACKAGED: [&str; 4] = [
    "/usr/sbin",
    "/usr/bin",
    "/usr/libexec",
    "/usr/local/mysql/bin",
];
/// What a private server must have its own way, with the reason.
const OURS: [(&str, &str); 10] = [
    ("datadir", "MYSQL_DIR names the place"),
    ("tmpdir", "MYSQL_DIR names the place"),
    ("socket", "it listens only on its private socket"),
    ("port", "it listens only on its private socket"),
    ("bind_address", "it listens only on its private socket"),
    ("skip_networking", "it listens only on its private socket"),
    ("pid_file", "it leaves nothing outside its directory"),
    ("log_error", "assay reads what the server says"),
    ("user", "assay chooses the server's user"),
    ("innodb_page_size", "BLOCK_SZ says it"),
];
/// Words of the lines of its log that say why it gave up.
const COMPLAINTS: [&str; 2] = ["[ERROR]", "FATAL ERROR"];
const SOCKET: &str = "server.sock";
const FLUSH_LOG: &str = "innodb_flush_log_at_trx_commit";
/// The database of the data set.
const DATABASE: &str = "assay";
/// Longest orderly shutdown: it writes out pages that nobody will read.
const SHUTDOWN_S: u64 = 20;
/// `max_connections` of a stock server.
const STOCK_CONNECTIONS: u64 = 151;
/// Connections beside those of the sessions: ours for claim, statistics and cancelling, and some for a person who looks.
const OTHER_CONNECTIONS: u64 = 12;
/// Schemas where nobody says how many, as the commands take them.
const DEFAULT_SCHEMAS: u64 = 4;
/// What new data and its log take, about.
const SERVER_BYTES: u64 = 250 << 20;

/// The programs of one installed version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Programs {
    server: PathBuf,
    installer: PathBuf,
    /// As it says itself: `10.11.19-MariaDB-0+deb12u1`
    version: String,
    /// Where it was unpacked, if that is not where it was built for.
    root: Option<PathBuf>,
}

impl Programs {
    /// The first that fits in these directories.
    fn find(named: &str, version: Option<&str>) -> Result<Self, EngineError> {
        let path = std::env::var("PATH").unwrap_or_default();
        let split = |list: &str| -> Vec<PathBuf> {
            let parts = list.split(':').filter(|part| !part.is_empty());
            parts.map(PathBuf::from).collect()
        };
        let mut places = split(named);
        if places.is_empty() {
            places = PACKAGED.map(PathBuf::from).to_vec();
            places.extend(split(&path));
        }
        let all = |program: &str| -> Vec<PathBuf> {
            let mut files: Vec<PathBuf> = Vec::new();
            for file in places.iter().map(|place| place.join(program)) {
                // Two ways to one program are one.
                let real = |file: &Path| file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
                if file.is_file() && files.iter().all(|other| real(other) != real(&file)) {
                    files.push(file);
                }
            }
            files
        };
        let Some(installer) = all(INSTALLER).into_iter().next() else {
            return Err(none(named, version, &[]));
        };
        let mut seen = Vec::new();
        for server in all(SERVER) {
            let Some(is) = version_of(&server) else {
                continue;
            };
            let fits = version.is_none_or(|asked| {
                let rest = is.strip_prefix(asked);
                rest.is_some_and(|rest| rest.starts_with(['.', '-']) || rest.is_empty())
            });
            if fits {
                return Ok(Self {
                    root: root_of(&server),
                    server,
                    installer,
                    version: is,
                });
            }
            seen.push(format!("{is} in {}", server.display()));
        }
        Err(none(named, version, &seen))
    }
}

/// Of `<root>/bin/mariadbd`: a tree of its own has its statements and messages in `<root>/share`.
fn root_of(server: &Path) -> Option<PathBuf> {
    let root = server.parent()?.parent()?;
    let made = root.join("share/mariadb_system_tables.sql");
    made.is_file().then(|| root.to_path_buf())
}

fn none(named: &str, version: Option<&str>, seen: &[String]) -> EngineError {
    let wanted = version.map_or(String::new(), |version| format!(" {version}"));
    let seen = match seen {
        [] => "none is installed".to_owned(),
        seen => format!("installed: {}", seen.join(", ")),
    };
    let place = match named {
        "" => String::new(),
        named => format!(" in {named} (MYSQL_BIN)"),
    };
    EngineError::Unusable(format!(
        "temp:mariadb: this host has no programs of MariaDB{wanted}{place} ({SERVER} and {INSTALLER}); {seen}; install \
         the package (Debian: mariadb-server-core and mariadb-client-core), or name the directories of its programs \
         with MYSQL_BIN"
    ))
}

/// `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)`
fn version_of(server: &Path) -> Option<String> {
    let asked = Command::new(server)
        .args(["--no-defaults", "--version"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let said = String::from_utf8(asked.stdout).ok()?;
    let version = said.split("Ver ").nth(1)?.split_ascii_whitespace().next()?;
    version.contains("MariaDB").then(|| version.to_owned())
}

/// What is wanted, with every choice made.
struct Choice {
    programs: Programs,
    owner: Option<Owner>,
    home: Home,
    asked: Vec<Setting>,
    /// COMMIT_MODE as the server's setting.
    flush_log: Option<&'static str>,
    page_bytes: u64,
    sessions: u64,
    needed_bytes: u64,
}

/// What COMMIT_MODE asks for.
fn flush_log(settings: &Settings, asked: &[Setting]) -> Result<Option<&'static str>, EngineError> {
    let value = match settings.text("COMMIT_MODE") {
        "sync" => "1",
        "write" => "2",
        "none" => "0",
        _ => return Ok(None),
    };
    match asked.iter().any(|(name, _)| name == FLUSH_LOG) {
        false => Ok(Some(value)),
        true => Err(EngineError::Usage(format!(
            "COMMIT_MODE and MYSQL_SET both say {FLUSH_LOG}; keep one of them"
        ))),
    }
}

fn number(settings: &Settings, name: &str) -> Option<u64> {
    match settings.get(name).value {
        Value::Int(n) => Some(n),
        _ => None,
    }
}

impl Choice {
    /// Everything is found and checked that can be without making anything.
    fn new(version: Option<&str>, settings: &Settings) -> Result<Self, EngineError> {
        let asked = settings::parse(settings.text("MYSQL_SET"), "MYSQL_SET", &OURS)?;
        let flush_log = flush_log(settings, &asked)?;
        let programs = Programs::find(settings.text("MYSQL_BIN"), version)?;
        let owner = owner::of_server(BRAND)?;
        for program in [&programs.server, &programs.installer] {
            owner::reaches(BRAND, owner.as_ref(), program, "the program")?;
        }
        let home = Home::choose(BRAND, settings.text("MYSQL_DIR"), owner.as_ref())?;
        let schemas = number(settings, "SCHEMAS").unwrap_or(DEFAULT_SCHEMAS);
        let page_bytes = plan::page_bytes(settings);
        super::layout::Sizes::of_page(page_bytes)?;
        let blocks = |name| settings.blocks(name, page_bytes).unwrap_or(0);
        let pages = blocks("SCALE") + blocks("SCAN_TABLE_SZ");
        // The index, and room of the tables that is taken ahead.
        let data = schemas.saturating_mul(pages.saturating_mul(page_bytes + page_bytes / 20));
        let needed_bytes = data.saturating_add(SERVER_BYTES);
        home.room(needed_bytes)?;
        let threads = number(settings, "THREADS_PER_SCHEMA").unwrap_or(1);
        let sessions = number(settings, "SESSIONS").filter(|sessions| *sessions > 0);
        Ok(Self {
            programs,
            owner,
            home,
            asked,
            flush_log,
            page_bytes,
            sessions: sessions.unwrap_or(schemas.saturating_mul(threads)),
            needed_bytes,
        })
    }

    /// What it gets beside what was asked for.
    fn own_settings(&self, data: &Path) -> Vec<Setting> {
        let root = self.programs.root.iter();
        let mut own: Vec<Setting> = root
            .map(|root| ("basedir".to_owned(), root.display().to_string()))
            .collect();
        own.extend([
            ("datadir".to_owned(), data.display().to_string()),
            // A server that starts removes all temporary files that lie there: in /tmp those of other servers too.
            ("tmpdir".to_owned(), data.display().to_string()),
            ("socket".to_owned(), data.join(SOCKET).display().to_string()),
            ("skip_networking".to_owned(), "1".to_owned()),
            (
                "pid_file".to_owned(),
                data.join("server.pid").display().to_string(),
            ),
            ("innodb_page_size".to_owned(), self.page_bytes.to_string()),
        ]);
        if let Some(value) = self.flush_log {
            own.push((FLUSH_LOG.to_owned(), value.to_owned()));
        }
        let given = |name: &str| self.asked.iter().any(|(asked, _)| asked.starts_with(name));
        if !given("performance_schema") {
            // Reads, writes and syncs of data files are counted and timed, and nothing else: two clock readings each.
            let one = format!("{}=ON", super::stats::INSTRUMENT);
            for (name, value) in [
                ("performance_schema", "ON"),
                ("performance_schema_instrument", "%=OFF"),
                ("performance_schema_instrument", &one),
            ] {
                own.push((name.to_owned(), value.to_owned()));
            }
        }
        let connections = self.sessions.saturating_add(OTHER_CONNECTIONS);
        let is_given = self.asked.iter().any(|(name, _)| name == "max_connections");
        if connections > STOCK_CONNECTIONS && !is_given {
            own.push(("max_connections".to_owned(), connections.to_string()));
        }
        own
    }

    fn lines(&self, directory: &str) -> Vec<Line> {
        let own = self.own_settings(&Path::new(directory).join(DATA));
        let shown = Shown {
            server: format!("MariaDB {}", self.programs.version),
            programs: &self.programs.server,
            directory: directory.to_owned(),
            own_settings: settings::listed(&own),
            settings_given: match self.asked.as_slice() {
                [] => "none: otherwise default settings".to_owned(),
                asked => settings::listed(asked),
            },
        };
        shown.lines(&self.home, self.owner.as_ref())
    }

    /// What its keeper is asked for.
    fn request(&self, directory: &Path) -> Request {
        let data = directory.join(DATA);
        let own = self.own_settings(&data);
        let option = |(name, value): &Setting| format!("--{name}={value}");
        let words =
            |program: &Path| vec![program.display().to_string(), "--no-defaults".to_owned()];
        let mut make = words(&self.programs.installer);
        let root = self.programs.root.iter();
        make.extend(root.map(|root| format!("--basedir={}", root.display())));
        make.extend([
            format!("--datadir={}", data.display()),
            format!("--tmpdir={}", data.display()),
            format!("--innodb-page-size={}", self.page_bytes),
            // Its root has no password: nobody reaches the socket but the server's user and root.
            "--auth-root-authentication-method=normal".to_owned(),
            "--skip-test-db".to_owned(),
            "--skip-name-resolve".to_owned(),
        ]);
        let mut serve = words(&self.programs.server);
        serve.extend(own.iter().chain(&self.asked).map(option));
        Request {
            directory: directory.to_path_buf(),
            owner: self.owner.clone(),
            make,
            serve,
            conf: None,
            foreign_variables: vec!["MYSQL".to_owned(), "MARIADB".to_owned()],
            ready: Ready::Log {
                word: "ready for connections".to_owned(),
            },
            shutdown: vec![Shutdown {
                name: "normal".to_owned(),
                signal: Signal::TERM.as_raw(),
                patience_s: SHUTDOWN_S,
            }],
            complaints: COMPLAINTS.map(str::to_owned).to_vec(),
        }
    }
}

/// What would be started; nothing is touched.
pub(super) fn plan(version: Option<&str>, settings: &Settings) -> Result<Vec<Line>, EngineError> {
    let choice = Choice::new(version, settings)?;
    let base = choice.home.base.display();
    let mut lines = choice.lines(&format!("{base}/{}...", choice.home.prefix()));
    lines.push(Line {
        key: "server_needed_bytes",
        label: "Approximate space needed there, bytes".to_owned(),
        value: LineValue::Count(choice.needed_bytes),
    });
    Ok(lines)
}

/// Starts it.
pub(super) fn start(
    version: Option<&str>,
    settings: &Settings,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Started, EngineError> {
    let choice = Choice::new(version, settings)?;
    let directory = choice.home.directory(SOCKET)?;
    let mut lines = choice.lines(&directory.display().to_string());
    let request = choice.request(&directory);
    let server = Server::start(BRAND, &request, INSTALLER, stop, progress)?;
    lines.push(seconds(
        "install_s",
        "Time to create it (mariadb-install-db), s",
        server.made_s,
    ));
    lines.push(seconds("server_start_s", "Started in, s", server.start_s));
    let socket = directory.join(DATA).join(SOCKET);
    let socket = encoded(&socket.display().to_string());
    let url = |database: &str| format!("//root@/{database}?socket={socket}");
    let place = Address::parse(&url("mysql"), Options::default()).map_err(EngineError::Usage)?;
    connect(&place)?
        .run(&format!("create database {DATABASE}"))
        .map_err(super::conn::told("creating the database"))?;
    let url = url(DATABASE);
    lines.push(text("server_url", "Address", format!("mysql:{url}")));
    Ok(Started {
        location: Place::started(&url),
        lines,
        keep: Box::new(server),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_programs_the_error_names_the_packages_and_the_way_to_others() {
        let empty = tempfile::tempdir().unwrap();
        let named = empty.path().display().to_string();
        let text = Programs::find(&named, Some("10.11"))
            .unwrap_err()
            .to_string();
        for wanted in ["MariaDB 10.11", &named, "mariadb-server-core", "MYSQL_BIN"] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
}
