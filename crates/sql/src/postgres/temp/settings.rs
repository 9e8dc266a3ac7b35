//! Settings of a throw-away server: those that keep it private, and those that the user requested.

use super::binaries::Binaries;
use crate::temp::settings;
pub(super) use crate::temp::settings::{Setting, listed};
use assay_run::engine::EngineError;
use std::path::Path;
use std::process::{Command, Stdio};

/// Settings of a private server that the user cannot change, with the reasons.
const OURS: [(&str, &str); 9] = [
    ("listen_addresses", "it listens only on its private socket"),
    ("port", "it listens only on its private socket"),
    ("unix_socket_directories", "its socket is private"),
    ("unix_socket_group", "its socket is private"),
    ("unix_socket_permissions", "its socket is private"),
    ("data_directory", "PG_DIR names the place"),
    ("config_file", "assay makes its configuration"),
    ("hba_file", "assay makes its configuration"),
    ("external_pid_file", "it leaves nothing outside its directory"),
];
/// Words in log lines that say why the server gave up.
pub(super) const COMPLAINTS: [&str; 5] = ["FATAL:", "PANIC:", "ERROR:", "DETAIL:", "HINT:"];
/// Port in the name of the socket; it can be fixed, since the directory is private.
pub(super) const PORT: u16 = 5432;
/// Default `max_connections`.
const STOCK_CONNECTIONS: u64 = 100;
/// Connections besides those of the sessions: superuser_reserved_connections (3), assay's for control, statistics and
/// activity, and some for an administrator.
const OTHER_CONNECTIONS: u64 = 12;

/// Parses the settings of `PG_SET`.
pub(super) fn parse(list: &str) -> Result<Vec<Setting>, EngineError> {
    settings::parse(list, "--pg-set", &OURS)
}

/// Quotes a value for `postgresql.conf` and `PG_SET`.
pub(super) fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// The requested settings, separated from those that only `initdb` can set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Settings for `postgresql.conf`.
    pub(super) server: Vec<Setting>,
    /// Options of `initdb`.
    pub(super) initdb: Vec<String>,
}

impl Asked {
    /// Sorts the requested settings and checks that this server version accepts each value.
    pub(super) fn new(settings: Vec<Setting>, binaries: &Binaries) -> Result<Self, EngineError> {
        let mut asked = Self::default();
        for (name, value) in settings {
            match name.as_str() {
                "data_checksums" => asked.initdb.extend(checksums(&value, binaries.major)?),
                "wal_segment_size" => {
                    asked.initdb.push(format!("--wal-segsize={}", value.trim_end_matches("MB").trim()))
                }
                _ => {
                    check(&name, &value, binaries)?;
                    asked.server.push((name, value));
                }
            }
        }
        Ok(asked)
    }

    fn has(&self, name: &str) -> bool {
        self.server.iter().any(|(other, _)| other == name)
    }
}

/// Page checksums are the default from 18 on; earlier versions need an option.
fn checksums(value: &str, major: u32) -> Result<Option<String>, EngineError> {
    let on = match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => true,
        "off" | "false" | "no" | "0" => false,
        _ => {
            return Err(EngineError::Usage(format!("--pg-set data_checksums={value}: write on or off")));
        }
    };
    Ok(match (on, major >= 18) {
        (true, _) => Some("--data-checksums".to_owned()),
        (false, true) => Some("--no-data-checksums".to_owned()),
        (false, false) => None,
    })
}

/// Has the server program itself check a value, which reads no data directory and writes nothing.
fn check(name: &str, value: &str, binaries: &Binaries) -> Result<(), EngineError> {
    let judged = Command::new(binaries.program("postgres"))
        .args(["-C", name, "-D", "/", "-c", "config_file=/dev/null", "-c"])
        .arg(format!("{name}={value}"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(|source| EngineError::Io {
            what: format!("running {}", binaries.program("postgres").display()),
            source,
        })?;
    if judged.status.success() {
        return Ok(());
    }
    let said = settings::complaint(&String::from_utf8_lossy(&judged.stderr), &COMPLAINTS.map(str::to_owned));
    Err(EngineError::Usage(format!("setting {name}={value}: PostgreSQL {} says: {said}", binaries.version)))
}

/// Settings a private server gets in addition to the requested ones: its own socket, and room for the sessions.
pub(super) fn needed(socket: &Path, sessions: u64, asked: &Asked) -> Vec<Setting> {
    let mut needed = vec![
        ("listen_addresses".to_owned(), String::new()),
        ("port".to_owned(), PORT.to_string()),
        ("unix_socket_directories".to_owned(), socket.display().to_string()),
    ];
    let connections = sessions.saturating_add(OTHER_CONNECTIONS);
    if connections > STOCK_CONNECTIONS && !asked.has("max_connections") {
        needed.push(("max_connections".to_owned(), connections.to_string()));
    }
    needed
}

/// Lines for the end of `postgresql.conf`, where they override earlier ones.
pub(super) fn conf(settings: &[Setting]) -> String {
    settings.iter().map(|(name, value)| format!("{name} = {}\n", quote(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<Setting> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_would_make_it_public_is_refused() {
        for list in ["listen_addresses=*", "PORT=5433"] {
            let text = parse(list).unwrap_err().to_string();
            assert!(text.contains("only on its private socket"), "{list}: {text}");
        }
    }

    #[test]
    fn what_is_quoted_reads_back() {
        for value in ["", "a;b", "it's", "a = b"] {
            let list = format!("x={}; y=1", quote(value));
            assert_eq!(parse(&list).unwrap(), pairs(&[("x", value), ("y", "1")]));
        }
    }

    #[test]
    fn many_sessions_get_room_unless_the_number_was_given() {
        let many = |asked: &Asked| {
            let needed = needed(Path::new("/s"), 500, asked);
            needed.into_iter().find(|(name, _)| name == "max_connections")
        };
        assert_eq!(many(&Asked::default()), Some(("max_connections".to_owned(), "512".to_owned())));
        let given = Asked { server: pairs(&[("max_connections", "50")]), initdb: Vec::new() };
        assert_eq!(many(&given), None);
        let few = needed(Path::new("/s"), 4, &Asked::default());
        assert_eq!(conf(&few[..1]), "listen_addresses = ''\n");
        assert_eq!(few.len(), 3);
    }

    #[test]
    fn checksums_are_asked_for_as_the_version_has_it() {
        let option = |value, major| checksums(value, major).unwrap().unwrap_or_default();
        assert_eq!(option("on", 15), "--data-checksums");
        assert_eq!(option("off", 15), "");
        assert_eq!(option("off", 18), "--no-data-checksums");
        assert!(checksums("maybe", 18).is_err());
    }
}
