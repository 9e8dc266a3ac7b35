//! Settings of a throw-away server: what it needs to be private, and what was asked for.

use super::binaries::Binaries;
use assay_run::engine::EngineError;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a private server must have its own way, with the reason.
const OURS: [(&str, &str); 9] = [
    ("listen_addresses", "it listens only on its private socket"),
    ("port", "it listens only on its private socket"),
    ("unix_socket_directories", "its socket is private"),
    ("unix_socket_group", "its socket is private"),
    ("unix_socket_permissions", "its socket is private"),
    ("data_directory", "PG_DIR names the place"),
    ("config_file", "assay makes its configuration"),
    ("hba_file", "assay makes its configuration"),
    (
        "external_pid_file",
        "it leaves nothing outside its directory",
    ),
];
/// Port in the name of the socket; the directory is private, so it need not differ.
pub(super) const PORT: u16 = 5432;
/// `max_connections` of a stock server.
const STOCK_CONNECTIONS: u64 = 100;
/// Connections beside those of the sessions: superuser_reserved_connections (3), ours for control, statistics and
/// activity, and some for a person who looks.
const OTHER_CONNECTIONS: u64 = 12;

/// Name and value of a setting.
pub(super) type Setting = (String, String);

/// Settings of a list `NAME=VALUE; NAME='VALUE with ; in it'`, in their order; the last of a name wins.
pub(super) fn parse(list: &str) -> Result<Vec<Setting>, EngineError> {
    let mut settings: Vec<Setting> = Vec::new();
    for part in parts(list) {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            EngineError::Usage(format!("--pg-set {part}: write --pg-set NAME=VALUE"))
        })?;
        let name = name.trim().to_ascii_lowercase();
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '$';
        if name.is_empty() || !name.chars().all(legal) {
            return Err(EngineError::Usage(format!(
                "--pg-set {part}: {name:?} is not the name of a setting"
            )));
        }
        if let Some((_, why)) = OURS.iter().find(|(ours, _)| *ours == name) {
            return Err(EngineError::Usage(format!(
                "--pg-set {name}: not allowed for a temporary server: {why}"
            )));
        }
        settings.retain(|(other, _)| *other != name);
        settings.push((name, unquote(value.trim())));
    }
    Ok(settings)
}

/// Parts between semicolons outside quotes.
fn parts(list: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            ';' if !quoted => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts.into_iter().map(str::trim).collect()
}

fn unquote(value: &str) -> String {
    match value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'"),
        None => value.to_owned(),
    }
}

/// A value as `postgresql.conf` and `PG_SET` take any.
pub(super) fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// What was asked for, apart from what only `initdb` can set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// For `postgresql.conf`.
    pub(super) server: Vec<Setting>,
    /// Options of `initdb`.
    pub(super) initdb: Vec<String>,
}

impl Asked {
    /// Sorts and checks what was asked for: each value is one that this version of the server takes.
    pub(super) fn new(settings: Vec<Setting>, binaries: &Binaries) -> Result<Self, EngineError> {
        let mut asked = Self::default();
        for (name, value) in settings {
            match name.as_str() {
                "data_checksums" => asked.initdb.extend(checksums(&value, binaries.major)?),
                "wal_segment_size" => asked.initdb.push(format!(
                    "--wal-segsize={}",
                    value.trim_end_matches("MB").trim()
                )),
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

/// From 18 on checksums are what one gets; before, one asks for them.
fn checksums(value: &str, major: u32) -> Result<Option<String>, EngineError> {
    let on = match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => true,
        "off" | "false" | "no" | "0" => false,
        _ => {
            return Err(EngineError::Usage(format!(
                "--pg-set data_checksums={value}: write on or off"
            )));
        }
    };
    Ok(match (on, major >= 18) {
        (true, _) => Some("--data-checksums".to_owned()),
        (false, true) => Some("--no-data-checksums".to_owned()),
        (false, false) => None,
    })
}

/// Has the server itself judge a value; it reads no data directory for that and writes nothing.
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
    let said = complaint(&String::from_utf8_lossy(&judged.stderr));
    Err(EngineError::Usage(format!(
        "setting {name}={value}: PostgreSQL {} says: {said}",
        binaries.version
    )))
}

/// The lines of a server's log that say why it gave up, without their time stamps; else the last lines.
pub(super) fn complaint(log: &str) -> String {
    let of = |line: &str| {
        ["FATAL:", "PANIC:", "ERROR:", "DETAIL:", "HINT:"]
            .iter()
            .find_map(|level| line.find(level))
            .map(|at| line[at..].trim_start_matches("FATAL:").trim().to_owned())
    };
    let mut told: Vec<String> = log.lines().filter_map(of).collect();
    if told.is_empty() {
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.len().saturating_sub(3);
        told = lines[last..]
            .iter()
            .map(|line| line.trim().to_owned())
            .collect();
    }
    told.dedup();
    match told.is_empty() {
        true => "nothing".to_owned(),
        false => told.join("; "),
    }
}

/// What a private server gets beside what was asked for: a socket of its own, and room for the sessions.
pub(super) fn needed(socket: &Path, sessions: u64, asked: &Asked) -> Vec<Setting> {
    let mut needed = vec![
        ("listen_addresses".to_owned(), String::new()),
        ("port".to_owned(), PORT.to_string()),
        (
            "unix_socket_directories".to_owned(),
            socket.display().to_string(),
        ),
    ];
    let connections = sessions.saturating_add(OTHER_CONNECTIONS);
    if connections > STOCK_CONNECTIONS && !asked.has("max_connections") {
        needed.push(("max_connections".to_owned(), connections.to_string()));
    }
    needed
}

/// Lines for the end of `postgresql.conf`, where they override what comes before.
pub(super) fn conf(settings: &[Setting]) -> String {
    settings
        .iter()
        .map(|(name, value)| format!("{name} = {}\n", quote(value)))
        .collect()
}

/// Settings for people: `name=value, name=value`.
pub(super) fn listed(settings: &[Setting]) -> String {
    let each: Vec<String> = settings
        .iter()
        .map(|(name, value)| match value.is_empty() {
            true => format!("{name}=''"),
            false => format!("{name}={value}"),
        })
        .collect();
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<Setting> {
        list.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_list_of_settings_is_read_with_its_quotes_and_the_last_of_a_name_wins() {
        let read = parse("shared_buffers = 1GB; Work_Mem=4MB;; x.y='a;b''c'; shared_buffers=2GB;");
        let wanted = pairs(&[
            ("work_mem", "4MB"),
            ("x.y", "a;b'c"),
            ("shared_buffers", "2GB"),
        ]);
        assert_eq!(read.unwrap(), wanted);
        assert_eq!(parse("").unwrap(), Vec::new());
    }

    #[test]
    fn what_is_no_setting_or_would_make_it_public_is_refused() {
        for (list, wanted) in [
            ("shared_buffers", "NAME=VALUE"),
            ("a b=1", "not the name"),
            ("=1", "not the name"),
            ("listen_addresses=*", "only on its private socket"),
            ("PORT=5433", "only on its private socket"),
        ] {
            let text = parse(list).unwrap_err().to_string();
            assert!(text.contains(wanted), "{list}: {text}");
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
    fn a_log_is_cut_down_to_why_the_server_gave_up() {
        let log = "2026-01-01 00:00:00.0 UTC [7] LOG:  starting\n\
                   2026-01-01 00:00:00.1 UTC [7] FATAL:  could not map anonymous shared memory: Cannot allocate memory\n\
                   2026-01-01 00:00:00.1 UTC [7] HINT:  reduce shared_buffers\n\
                   2026-01-01 00:00:00.2 UTC [7] LOG:  database system is shut down\n";
        assert_eq!(
            complaint(log),
            "could not map anonymous shared memory: Cannot allocate memory; HINT:  reduce shared_buffers"
        );
        assert_eq!(complaint("one\n\ntwo\n"), "one; two");
        assert_eq!(complaint(""), "nothing");
    }

    #[test]
    fn many_sessions_get_room_unless_the_number_was_given() {
        let many = |asked: &Asked| {
            let needed = needed(Path::new("/s"), 500, asked);
            needed
                .into_iter()
                .find(|(name, _)| name == "max_connections")
        };
        assert_eq!(
            many(&Asked::default()),
            Some(("max_connections".to_owned(), "512".to_owned()))
        );
        let given = Asked {
            server: pairs(&[("max_connections", "50")]),
            initdb: Vec::new(),
        };
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
