//! A real server with every way of logging in, for the tests of the wire alone: roles by method, TLS, a port of its own.

use crate::postgres::conninfo::{self, ConnectOptions};
use crate::postgres::wire::{Connection, PgError};
use assay_testkit::port::free_port;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Passwords of all roles that have one.
pub(super) const PASSWORD: &str = "s3cret/pass:word@";

const HBA: &str = "\
local   all all                      trust
host    all trusted  127.0.0.1/32    trust
host    all trusted  ::1/128         trust
host    all nologin  127.0.0.1/32    trust
host    all few      127.0.0.1/32    trust
host    all md5role  127.0.0.1/32    md5
host    all scram    127.0.0.1/32    scram-sha-256
host    all clear    127.0.0.1/32    password
hostssl all overtls  127.0.0.1/32    scram-sha-256
hostssl all bycert   127.0.0.1/32    cert
hostnossl all plainly 127.0.0.1/32   trust
";

const ROLES: &str = "\
CREATE ROLE trusted LOGIN;
CREATE ROLE nologin NOLOGIN;
CREATE ROLE few LOGIN CONNECTION LIMIT 1;
CREATE ROLE bycert LOGIN;
CREATE ROLE plainly LOGIN;
CREATE ROLE unlisted LOGIN;
SET password_encryption = 'md5';
CREATE ROLE md5role LOGIN PASSWORD 's3cret/pass:word@';
SET password_encryption = 'scram-sha-256';
CREATE ROLE scram LOGIN PASSWORD 's3cret/pass:word@';
CREATE ROLE clear LOGIN PASSWORD 's3cret/pass:word@';
CREATE ROLE overtls LOGIN PASSWORD 's3cret/pass:word@';
";

/// Waits for the end of the test's process (its end of the pipe closes), then stops the server and removes all.
const KEEPER: &str = r#"
"$1/postgres" -D "$2/data" >"$2/log" 2>&1 &
server=$!
read -r _
kill -INT $server 2>/dev/null
wait $server
rm -rf "$2"
"#;

/// A running server.
pub(super) struct Server {
    /// Socket, certificates, data directory and log lie here.
    pub(super) directory: PathBuf,
    /// For the socket and for 127.0.0.1.
    pub(super) port: u16,
    keeper: Child,
}

impl Server {
    /// Makes and starts one, with lines for `postgresql.conf`.
    pub(super) fn start(more: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("assay-wire-").tempdir_in("/tmp").expect("a directory").keep();
        if is_root() {
            run(Command::new("chown").arg("postgres:").arg(&directory));
        }
        let binaries = binaries().expect("the caller has looked");
        let at = |name: &str| directory.join(name);
        make_certificates(&directory);
        let mut initdb = as_server(&binaries.join("initdb"));
        initdb.args(["-N", "-A", "trust", "-U", "postgres", "-D"]);
        run(initdb.arg(at("data")));
        let port = free_port();
        let settings = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{dir}'\n\
             fsync = off\nshared_buffers = '16MB'\nmax_connections = 40\nmax_wal_senders = 0\n\
             autovacuum = off\nhba_file = '{dir}/hba'\nssl_cert_file = '{dir}/server.crt'\n\
             ssl_key_file = '{dir}/server.key'\nssl_ca_file = '{dir}/ca.crt'\n{more}\n",
            dir = directory.display()
        );
        write_as_server(&at("hba"), HBA);
        let conf = at("data").join("postgresql.conf");
        let old = std::fs::read_to_string(&conf).expect("initdb wrote it");
        write_as_server(&conf, &(old + &settings));
        let mut keeper = as_server(Path::new("sh"));
        keeper.args(["-c", KEEPER, "keeper"]).arg(&binaries);
        let keeper = keeper.arg(&directory).stdin(Stdio::piped());
        let keeper = keeper.spawn().expect("sh starts");
        let server = Self { directory, port, keeper };
        server.wait_until_up();
        server
    }

    fn wait_until_up(&self) {
        let begun = Instant::now();
        loop {
            match self.connect("?user=postgres&dbname=postgres") {
                Ok(_) => return,
                Err(error) => assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "{error}: {}",
                    std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
                ),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs statements as the superuser.
    pub(super) fn as_superuser(&self, sql: &str) {
        self.connect("?user=postgres&dbname=postgres")
            .expect("the superuser may always connect")
            .query(sql)
            .expect("the statement is right");
    }

    /// Options over the socket: `?name=value&...`.
    pub(super) fn options(&self, query: &str) -> ConnectOptions {
        let glue = if query.is_empty() { "?" } else { "&" };
        let url = format!("//{query}{glue}host={}&port={}", self.directory.display(), self.port);
        options(&url)
    }

    /// A session over the socket.
    pub(super) fn connect(&self, query: &str) -> Result<Connection, PgError> {
        Connection::open(&self.options(query))
    }

    /// Options over TCP for a role, with more of the URL's parameters.
    pub(super) fn tcp(&self, role: &str, more: &str) -> ConnectOptions {
        options(&format!("//{role}@127.0.0.1:{}/postgres?{more}", self.port))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// This host's files, and nothing else of it: no variables, no home.
struct FilesAlone;

impl conninfo::Surroundings for FilesAlone {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn read(&self, path: &Path) -> Result<Option<conninfo::FileText>, String> {
        conninfo::Surroundings::read(&conninfo::ThisHost, path)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }

    fn user(&self) -> Option<String> {
        None
    }
}

/// Options of a URL with an empty environment.
pub(super) fn options(url: &str) -> ConnectOptions {
    conninfo::options(url, &FilesAlone).expect("the test's URL is right")
}

/// The server most tests share.
pub(super) fn shared() -> Option<&'static Server> {
    static SERVER: OnceLock<Server> = OnceLock::new();
    installed().then(|| {
        SERVER.get_or_init(|| {
            let server = Server::start("ssl = on");
            server.as_superuser(ROLES);
            server
        })
    })
}

/// Whether there is a server to start; if not, it is said, or fails where one is required.
pub(super) fn installed() -> bool {
    let there = binaries().is_some();
    assert!(there || std::env::var_os("ASSAY_REQUIRE_POSTGRES").is_none(), "no PostgreSQL in /usr/lib/postgresql");
    if !there {
        let _ = writeln!(std::io::stderr(), "skipped: no PostgreSQL in /usr/lib/postgresql");
    }
    there
}

/// The newest installed binaries.
fn binaries() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .filter(|(_, bin)| bin.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().map(|(_, bin)| bin)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command as the user the server runs as: it refuses root.
fn as_server(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(program);
    command
}

pub(super) fn run(command: &mut Command) {
    let done = command.output().expect("it starts");
    assert!(
        done.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
}

fn write_as_server(path: &Path, text: &str) {
    std::fs::write(path, text).expect("it can be written");
    if is_root() {
        run(Command::new("chown").arg("postgres:").arg(path));
    }
}

/// An authority; certificates of it for `db.example`, expired, without a name, and for role `bycert`; another authority.
fn make_certificates(directory: &Path) {
    let script = r#"
set -e
cd "$1"
ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.crt" -days 30 -subj "/CN=$1"; }
ca ca; ca other
issue() { # name, subject, extension, days
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2"
    printf '%s\n' "$3" >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days "$4" -extfile "$1.ext"
}
issue server /CN=db.example "subjectAltName=DNS:db.example,DNS:*.wild.example" 30
issue commonname /CN=by.common.name "keyUsage=digitalSignature" 30
issue expired /CN=db.example "subjectAltName=DNS:db.example" -1
issue client /CN=bycert "extendedKeyUsage=clientAuth" 30
# Of version 1, as the tool made them for years: no extension, and a serial alone.
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout old.key -out old.csr -subj /CN=db.example
openssl x509 -req -in old.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out old.crt -days 30
openssl x509 -in old.crt -noout -text | grep -q "Version: 1 "
chmod 600 ./*.key
"#;
    run(Command::new("bash").args(["-c", script, "certificates"]).arg(directory));
    if is_root() {
        for name in ["server", "commonname", "expired", "other", "old"] {
            run(Command::new("chown").arg("postgres:").arg(directory.join(format!("{name}.key"))));
        }
    }
}
