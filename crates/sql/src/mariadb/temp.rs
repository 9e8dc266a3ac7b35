//! A throw-away server from installed programs: `temp:mariadb[:VERSION]`, `temp:mysql[:VERSION]`, kept by
//! [`crate::temp`].

use super::address::Address;
use super::conn::{Connection, told};
use super::files::Options;
use super::plan;
use super::product::Product;
use crate::place::Place;
use crate::temp::home::Home;
use crate::temp::owner::{self, Owner};
use crate::temp::settings::{self, Setting};
use crate::temp::{self, Brand, DATA, Ready, Request, Server, Shown, Shutdown, seconds};
use crate::url::encoded;
use assay_measure::config::Settings;
use assay_run::dataset::lines::text;
use assay_run::engine::{EngineError, Line, Progress, Started};
use assay_run::stop::Stop;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) const MARIADB: Brand = Brand { temp: "mariadb", called: "MariaDB", user: "mysql", directory: "MYSQL_DIR" };
pub(super) const MYSQL: Brand = Brand { temp: "mysql", called: "MySQL", ..MARIADB };
/// Creates the data of a MariaDB server; a MySQL server creates its own.
const INSTALLER: &str = "mariadb-install-db";
/// Where packages install the programs, besides PATH.
const PACKAGED: [&str; 4] = ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/mysql/bin"];
/// Settings of a private server that the user cannot change, with the reasons.
const OURS: [(&str, &str); 10] = [
    ("datadir", "MYSQL_DIR names the place"),
    ("tmpdir", "MYSQL_DIR names the place"),
    ("socket", "it listens only on its private socket"),
    ("port", "it listens only on its private socket"),
    ("bind_address", "it listens only on its private socket"),
    ("skip_networking", "it listens only on its private socket"),
    ("pid_file", "it leaves nothing outside its directory"),
    ("log_error", "assay reads the server's messages"),
    ("user", "assay chooses the server's user"),
    ("innodb_page_size", "BLOCK_SZ says it"),
];
/// Further settings of a MySQL server: no second protocol, and no directory that only a package installation creates.
const MYSQL_OWN: [(&str, &str); 2] = [("mysqlx", "OFF"), ("secure_file_priv", "NULL")];
/// Words in log lines that say why the server gave up.
const COMPLAINTS: [&str; 2] = ["[ERROR]", "FATAL ERROR"];
const SOCKET: &str = "server.sock";
const FLUSH_LOG: &str = "innodb_flush_log_at_trx_commit";
/// The database of the data set.
const DATABASE: &str = "assay";
/// Longest orderly shutdown, which writes pages that nobody will read.
const SHUTDOWN_S: u64 = 20;
/// Default `max_connections`.
const STOCK_CONNECTIONS: u64 = 151;
/// Connections besides those of the sessions: assay's for claim, statistics and cancelling, and some for an administrator.
const OTHER_CONNECTIONS: u64 = 12;
/// Approximate size of new data with its log.
const SERVER_BYTES: u64 = 250 << 20;

impl Product {
    fn brand(self) -> Brand {
        match self {
            Self::MariaDb => MARIADB,
            Self::MySql => MYSQL,
        }
    }

    fn server(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadbd",
            Self::MySql => "mysqld",
        }
    }

    /// Name of the program that creates the data.
    fn making(self) -> &'static str {
        match self {
            Self::MariaDb => INSTALLER,
            Self::MySql => "mysqld --initialize-insecure",
        }
    }

    /// What contains its programs.
    fn packages(self) -> &'static str {
        match self {
            Self::MariaDb => "the package (Debian: mariadb-server-core and mariadb-client-core)",
            Self::MySql => "MySQL's server (its own packages; Debian's and Ubuntu's mysql-server-core)",
        }
    }
}

/// The programs of one installed version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Programs {
    product: Product,
    server: PathBuf,
    /// Only for MariaDB.
    installer: Option<PathBuf>,
    /// As the program prints it: `10.11.19-MariaDB-0+deb12u1`, `9.7.4-2`
    version: String,
    /// Directory it was unpacked to, if not the one it was built for.
    root: Option<PathBuf>,
}

impl Programs {
    /// The first suitable programs in these directories.
    fn find(product: Product, named: &str, version: Option<&str>) -> Result<Self, EngineError> {
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
                // Two paths to one program are one installation.
                let real = |file: &Path| file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
                if file.is_file() && files.iter().all(|other| real(other) != real(&file)) {
                    files.push(file);
                }
            }
            files
        };
        let installer = match product {
            Product::MariaDb => all(INSTALLER).into_iter().next(),
            Product::MySql => None,
        };
        if product == Product::MariaDb && installer.is_none() {
            return Err(none(product, named, version, &[]));
        }
        let mut seen = Vec::new();
        for server in all(product.server()) {
            let Some(is) = version_of(&server) else {
                continue;
            };
            // MariaDB's packages also contain a mysqld.
            let whose = Product::of(&is);
            if whose != product {
                let called = whose.name();
                seen.push(format!("{} is {called}'s ({is}: temp:{})", server.display(), whose.brand().temp));
                continue;
            }
            let fits = version.is_none_or(|asked| {
                let rest = is.strip_prefix(asked);
                rest.is_some_and(|rest| rest.starts_with(['.', '-']) || rest.is_empty())
            });
            if fits {
                return Ok(Self { product, root: root_of(&server), server, installer, version: is });
            }
            seen.push(format!("{is} in {}", server.display()));
        }
        Err(none(product, named, version, &seen))
    }
}

/// For `<root>/bin/mariadbd`: an unpacked tree has its SQL scripts and messages in `<root>/share`.
fn root_of(server: &Path) -> Option<PathBuf> {
    let root = server.parent()?.parent()?;
    let made = root.join("share/mariadb_system_tables.sql");
    made.is_file().then(|| root.to_path_buf())
}

fn none(product: Product, named: &str, version: Option<&str>, seen: &[String]) -> EngineError {
    let wanted = version.map_or(String::new(), |version| format!(" {version}"));
    let seen = match seen {
        [] => "none is installed".to_owned(),
        seen => format!("installed: {}", seen.join(", ")),
    };
    let place = match named {
        "" => String::new(),
        named => format!(" in {named} (MYSQL_BIN)"),
    };
    let Brand { temp, called, .. } = product.brand();
    let programs = match product {
        Product::MariaDb => format!("{} and {INSTALLER}", product.server()),
        Product::MySql => product.server().to_owned(),
    };
    EngineError::Unusable(format!(
        "temp:{temp}: this host has no programs of {called}{wanted}{place} ({programs}); {seen}; install {}, or name \
         the directories of its programs with MYSQL_BIN",
        product.packages()
    ))
}

/// `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)`,
/// `/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))`
fn version_of(server: &Path) -> Option<String> {
    let asked = Command::new(server)
        .args(["--no-defaults", "--version"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let said = String::from_utf8(asked.stdout).ok()?;
    let version = said.split("Ver ").nth(1)?.split_ascii_whitespace().next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// The server to start, with all choices made.
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

/// The setting that COMMIT_MODE requests.
fn flush_log(settings: &Settings, asked: &[Setting]) -> Result<Option<&'static str>, EngineError> {
    let value = match settings.text("COMMIT_MODE") {
        "sync" => "1",
        "write" => "2",
        "none" => "0",
        _ => return Ok(None),
    };
    if asked.iter().any(|(name, _)| name == FLUSH_LOG) {
        Err(EngineError::Usage(format!("COMMIT_MODE and MYSQL_SET both set {FLUSH_LOG}; keep one of them")))
    } else {
        Ok(Some(value))
    }
}

impl Choice {
    /// Finds and checks everything that is possible without creating anything.
    fn new(product: Product, version: Option<&str>, settings: &Settings) -> Result<Self, EngineError> {
        let brand = product.brand();
        let asked = settings::parse(settings.text("MYSQL_SET"), "MYSQL_SET", &OURS)?;
        let flush_log = flush_log(settings, &asked)?;
        let programs = Programs::find(product, settings.text("MYSQL_BIN"), version)?;
        let owner = owner::of_server(brand)?;
        for program in [Some(&programs.server), programs.installer.as_ref()].into_iter().flatten() {
            owner::reaches(brand, owner.as_ref(), program, "the program")?;
        }
        let home = Home::choose(brand, settings.text("MYSQL_DIR"), owner.as_ref())?;
        let (schemas, sessions) = temp::load(settings);
        let page_bytes = plan::page_bytes(settings);
        super::layout::Sizes::of_page(page_bytes)?;
        let blocks = |name| settings.blocks(name, page_bytes).unwrap_or(0);
        let pages = blocks("SCALE") + blocks("SCAN_TABLE_SZ");
        // The index, and table space allocated ahead.
        let data = schemas.saturating_mul(pages.saturating_mul(page_bytes + page_bytes / 20));
        let needed_bytes = data.saturating_add(SERVER_BYTES);
        home.room(needed_bytes)?;
        Ok(Self { programs, owner, home, asked, flush_log, page_bytes, sessions, needed_bytes })
    }

    /// Settings it gets in addition to the requested ones.
    fn own_settings(&self, data: &Path) -> Vec<Setting> {
        let root = self.programs.root.iter();
        let mut own: Vec<Setting> = root.map(|root| ("basedir".to_owned(), root.display().to_string())).collect();
        own.extend([
            ("datadir".to_owned(), data.display().to_string()),
            // A starting server removes all temporary files in its tmpdir; in /tmp also those of other servers.
            ("tmpdir".to_owned(), data.display().to_string()),
            ("socket".to_owned(), data.join(SOCKET).display().to_string()),
            ("skip_networking".to_owned(), "1".to_owned()),
            ("pid_file".to_owned(), data.join("server.pid").display().to_string()),
            ("innodb_page_size".to_owned(), self.page_bytes.to_string()),
        ]);
        if let Some(value) = self.flush_log {
            own.push((FLUSH_LOG.to_owned(), value.to_owned()));
        }
        if self.programs.product == Product::MySql {
            own.extend(MYSQL_OWN.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        let given = |name: &str| self.asked.iter().any(|(asked, _)| asked.starts_with(name));
        // MySQL instruments sessions and files by default.
        if self.programs.product == Product::MariaDb && !given("performance_schema") {
            // Instruments only reads, writes and syncs of data files, at two clock readings each.
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
            server: format!("{} {}", self.programs.product.name(), self.programs.version),
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

    /// The request to its keeper.
    fn request(&self, directory: &Path) -> Request {
        let data = directory.join(DATA);
        let own = self.own_settings(&data);
        let option = |(name, value): &Setting| format!("--{name}={value}");
        let words = |program: &Path| vec![program.display().to_string(), "--no-defaults".to_owned()];
        // Its root account has no password: only the server's user and root can reach the socket.
        let mut make = match &self.programs.installer {
            Some(installer) => {
                let mut make = words(installer);
                let special = ["auth-root-authentication-method=normal", "skip-test-db", "skip-name-resolve"];
                make.extend(special.map(|word| format!("--{word}")));
                make
            }
            None => {
                let mut make = words(&self.programs.server);
                make.push("--initialize-insecure".to_owned());
                make.extend(MYSQL_OWN.map(|(name, value)| format!("--{name}={value}")));
                make
            }
        };
        let root = self.programs.root.iter();
        make.extend(root.map(|root| format!("--basedir={}", root.display())));
        make.extend([
            format!("--datadir={}", data.display()),
            format!("--tmpdir={}", data.display()),
            format!("--innodb-page-size={}", self.page_bytes),
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
            ready: Ready::Log { word: "ready for connections".to_owned() },
            shutdown: vec![Shutdown {
                name: "normal".to_owned(),
                signal: Signal::TERM.as_raw(),
                patience_s: SHUTDOWN_S,
            }],
            complaints: COMPLAINTS.map(str::to_owned).to_vec(),
        }
    }
}

/// Describes the server that would be started; changes nothing.
pub(super) fn plan(product: Product, version: Option<&str>, settings: &Settings) -> Result<Vec<Line>, EngineError> {
    let choice = Choice::new(product, version, settings)?;
    Ok(temp::planned(&choice.home, choice.needed_bytes, |directory| choice.lines(directory)))
}

/// Starts the server.
pub(super) fn start(
    product: Product,
    version: Option<&str>,
    settings: &Settings,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Started, EngineError> {
    let choice = Choice::new(product, version, settings)?;
    let directory = choice.home.directory(SOCKET)?;
    let mut lines = choice.lines(&directory.display().to_string());
    let request = choice.request(&directory);
    let server = Server::start(product.brand(), &request, product.making(), stop, progress)?;
    lines.push(seconds("install_s", &format!("Time to create it ({}), s", product.making()), server.made_s));
    lines.push(seconds("server_start_s", "Started in, s", server.start_s));
    let socket = directory.join(DATA).join(SOCKET);
    let socket = encoded(&socket.display().to_string());
    let url = |database: &str| format!("//root@/{database}?socket={socket}");
    let place = Address::parse(&url("mysql"), Options::default()).map_err(EngineError::Usage)?;
    Connection::open(&place)?.run(&format!("create database {DATABASE}")).map_err(told("creating the database"))?;
    let url = url(DATABASE);
    lines.push(text("server_url", "Address", format!("mysql:{url}")));
    Ok(Started { location: Place::started(&url), lines, keep: Box::new(server) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_programs_the_error_names_the_packages_and_the_way_to_others() {
        let empty = tempfile::tempdir().unwrap();
        let named = empty.path().display().to_string();
        for (product, version, package) in
            [(Product::MariaDb, "10.11", "mariadb-server-core"), (Product::MySql, "8.4", "mysql-server-core")]
        {
            let found = Programs::find(product, &named, Some(version));
            let text = found.unwrap_err().to_string();
            let called = format!("{} {version}", product.name());
            for wanted in [&called, &named, package, "MYSQL_BIN"] {
                assert!(text.contains(wanted), "{wanted}: {text}");
            }
        }
    }

    #[test]
    fn whose_a_program_is_its_version_says_and_not_its_name() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("mysqld");
        let script = "#!/bin/sh\necho \"$0  Ver 10.11.19-MariaDB for Linux on x86_64\"\n";
        std::fs::write(&file, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).unwrap();
        let named = place.path().display().to_string();
        let found = Programs::find(Product::MySql, &named, None);
        let text = found.unwrap_err().to_string();
        assert!(text.contains("mysqld is MariaDB's (10.11.19-MariaDB: temp:mariadb)"), "{text}");
    }
}
