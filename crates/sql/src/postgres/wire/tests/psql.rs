//! libpq itself is the judge: what psql reaches by an environment, files and a URL, we reach.

use super::server::{PASSWORD, shared};
use super::{encoded, value};
use crate::postgres::conninfo;
use crate::postgres::conninfo::tests::Made;
use crate::postgres::wire::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const ASKED: &str = "select concat_ws('|', current_user, current_database(), inet_server_addr(), \
    inet_server_port(), current_setting('application_name'), current_setting('TimeZone'), \
    current_setting('work_mem'), (select ssl from pg_stat_ssl where pid = pg_backend_pid()))";

/// What psql is told, or that it is not let in.
fn by_psql(home: &Path, variables: &[(String, String)], url: &str) -> Option<String> {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-A", "-t", "-q", "-w", "-c", ASKED]).arg(url);
    psql.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home);
    let done = psql.envs(variables.iter().cloned()).output().expect("psql runs");
    let text = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    done.status.success().then_some(text)
}

/// This host, with variables and a home of the test's.
struct Told<'a>(Made, &'a Path);

impl conninfo::Surroundings for Told<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.variable(name)
    }

    fn read(&self, path: &Path) -> Result<Option<conninfo::FileText>, String> {
        conninfo::ThisHost.read(path)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn home(&self) -> Option<std::path::PathBuf> {
        Some(self.1.to_owned())
    }

    fn user(&self) -> Option<String> {
        conninfo::ThisHost.user()
    }
}

fn by_us(home: &Path, variables: &[(String, String)], url: &str) -> Option<String> {
    let mut made = Made::default();
    for (name, value) in variables {
        made = made.set(name, value);
    }
    // The one difference meant: what we call ourselves.
    let made = if variables.iter().any(|(name, _)| name == "PGAPPNAME") { made } else { made.set("PGAPPNAME", "psql") };
    let location = url.strip_prefix("postgres:").unwrap_or(url);
    let options = conninfo::options(location, &Told(made, home)).ok()?;
    let mut session = Connection::open(&options).ok()?;
    Some(value(&mut session, ASKED))
}

#[test]
fn psql_and_we_reach_the_same_session() {
    let Some(server) = shared() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let write = |name: &str, mode: u32, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).expect("ours");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("ours");
        path.display().to_string()
    };
    let (port, socket) = (server.port, server.directory.display().to_string());
    let escaped = PASSWORD.replace('\\', "\\\\").replace(':', "\\:");
    write(".pgpass", 0o600, &format!("# all\nnowhere:*:*:*:x\n127.0.0.1:{port}:*:scram:{escaped}\n"));
    let open = write("open", 0o644, &format!("*:*:*:*:{escaped}\n"));
    write(
        ".pg_service.conf",
        0o644,
        &format!(
            "[here]\nhost=127.0.0.1\nport={port}\nuser=scram\ndbname=postgres\napplication_name=served\n[sock]\nhost={socket}\nport={port}\nuser=trusted\ndbname=template1\n"
        ),
    );
    let (port, password) = (port.to_string(), encoded());
    let cases: &[(&[(&str, &str)], String)] = &[
        (
            &[("PGHOST", &socket), ("PGPORT", &port), ("PGUSER", "trusted"), ("PGDATABASE", "postgres")],
            "postgres:///".into(),
        ),
        (&[("PGHOST", &socket), ("PGPORT", &port), ("PGUSER", "trusted")], "postgres:///template1".into()),
        (&[("PGPORT", &port), ("PGUSER", "x")], format!("postgres://trusted@127.0.0.1/postgres?host={socket}")),
        (&[], format!("postgres://trusted@{}:{port}/postgres", socket.replace('/', "%2F"))),
        (&[], format!("postgres://scram:{password}@127.0.0.1:{port}/postgres?sslmode=disable")),
        (
            &[],
            format!("postgres://scram@127.0.0.1:{port}/postgres?application_name=a%20b&options=-c%20work_mem%3D99kB"),
        ),
        (&[("PGTZ", "Asia/Tokyo"), ("PGAPPNAME", "named")], format!("postgres://scram@127.0.0.1:{port}/postgres")),
        (&[("PGPASSFILE", &open)], format!("postgres://scram@127.0.0.1:{port}/postgres")),
        (&[("PGPASSWORD", PASSWORD)], format!("postgres://md5role@127.0.0.1:{port}/postgres")),
        (&[("PGPASSWORD", "wrong")], format!("postgres://scram@127.0.0.1:{port}/postgres")),
        (&[("PGSERVICE", "here")], "postgres:///".into()),
        (
            &[("PGSERVICE", "here"), ("PGUSER", "nobody"), ("PGSSLMODE", "disable")],
            "postgres:///?application_name=url".into(),
        ),
        (&[], "postgres:///?service=sock".into()),
        (&[], "postgres:///?service=none".into()),
        (&[("PGSSLMODE", "require")], format!("postgres://trusted@127.0.0.1:{port}/postgres")),
        (&[("PGREQUIRESSL", "1")], format!("postgres://plainly@127.0.0.1:{port}/postgres")),
        (&[("PGTARGETSESSIONATTRS", "standby")], format!("postgres://trusted@127.0.0.1:{port}/postgres")),
        (
            &[("PGOPTIONS", "-c work_mem=65kB")],
            format!("postgres://trusted@/postgres?host=/nowhere,{socket}&port={port}"),
        ),
        (&[], format!("host=127.0.0.1 port={port} user='trusted' dbname=postgres application_name='it\\'s'")),
        (&[], format!("postgres://trusted@h.invalid:{port}/postgres?hostaddr=127.0.0.1")),
        (&[], format!("postgres://trusted@127.0.0.1:{port}/postgres?ssl=true")),
        (&[], format!("postgres://trusted@127.0.0.1:{port}/postgres?hots=1")),
    ];
    let mut let_in = 0;
    for (variables, url) in cases {
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let judge = by_psql(home.path(), &variables, url);
        assert_eq!(by_us(home.path(), &variables, url), judge, "{variables:?} {url}");
        let_in += usize::from(judge.is_some());
    }
    assert!(let_in >= 15, "psql itself was let in {let_in} times only");
}
