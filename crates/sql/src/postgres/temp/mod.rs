//! A throw-away server from installed binaries: `temp:postgres[:VERSION]`.
//!
//! Made by `initdb` in a private directory, on a private socket, with no port open; gone with the command that
//! asked for it, however that ends ([`keeper`]). As root it belongs to another user, since the server refuses to be
//! root's ([`owner`]).

mod binaries;
mod den;
mod home;
mod keeper;
mod owner;
mod settings;

pub use keeper::{BECOME, KEEP, become_server, keep};

use super::place::Place;
use assay_measure::config::Settings;
use assay_measure::config::Value;
use assay_run::dataset::lines::text;
use assay_run::engine::{EngineError, Line, LineValue, Progress, Running, Started};
use assay_run::left;
use assay_run::stop::Stop;
use binaries::Binaries;
use den::DATA;
use home::Home;
use keeper::{Request, Said};
use settings::Asked;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Schemas where nobody says how many, as the commands take them.
const DEFAULT_SCHEMAS: u64 = 4;
/// Between two looks at a stop request.
const TICK: Duration = Duration::from_millis(50);
/// Longest start, `initdb` on a slow disk included.
const START: Duration = Duration::from_secs(300);
/// Longest end: both shutdowns of the keeper, and the removal of large files.
const END: Duration = Duration::from_secs(60);

/// What is wanted, with every choice made.
#[derive(Clone, Debug)]
struct Choice {
    binaries: Binaries,
    owner: Option<owner::Owner>,
    home: Home,
    asked: Asked,
    sessions: u64,
    needed_bytes: u64,
}

impl Choice {
    /// Everything is found and checked that can be without making anything.
    fn new(version: Option<&str>, settings: &Settings) -> Result<Self, EngineError> {
        let named = settings.text("PG_BIN");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut asked = settings::parse(settings.text("PG_SET"))?;
        for (name, value) in super::reads::server_settings(settings)? {
            // What somebody set by name stays as it was set.
            if asked.iter().all(|(given, _)| given != name) {
                asked.push((name.to_owned(), value));
            }
        }
        let binaries = binaries::choose(&binaries::installed(named, &path), named, version)?;
        let owner = owner::of_server()?;
        owner::reaches(owner.as_ref(), &binaries.bin, "the programs in")?;
        let asked = Asked::new(asked, &binaries)?;
        let home = Home::choose(settings.text("PG_DIR"), owner.as_ref())?;
        let schemas = number(settings, "SCHEMAS").unwrap_or(DEFAULT_SCHEMAS);
        let needed_bytes = home::needed_bytes(settings, schemas);
        home.room(needed_bytes)?;
        let threads = number(settings, "THREADS_PER_SCHEMA").unwrap_or(1);
        let sessions = number(settings, "SESSIONS").filter(|sessions| *sessions > 0);
        Ok(Self {
            binaries,
            owner,
            home,
            asked,
            sessions: sessions.unwrap_or(schemas.saturating_mul(threads)),
            needed_bytes,
        })
    }

    /// For people, before and after.
    fn lines(&self, directory: &str) -> Vec<Line> {
        let socket = PathBuf::from(directory).join(DATA);
        let private = settings::needed(&socket, self.sessions, &self.asked);
        let mut lines = vec![
            text(
                "server",
                "Throw-away server",
                format!("PostgreSQL {}", self.binaries.version),
            ),
            text(
                "server_programs",
                "Its programs",
                self.binaries.bin.display().to_string(),
            ),
            text("server_directory", "Its directory", directory.to_owned()),
            text(
                "server_file_system",
                "On file system",
                self.home.file_system(),
            ),
        ];
        if let Some(owner) = &self.owner {
            lines.push(text("server_user", "Its user", owner.name.clone()));
        }
        lines.push(text(
            "server_settings",
            "Its own settings",
            settings::listed(&private),
        ));
        let given = match (self.asked.server.is_empty(), self.asked.initdb.is_empty()) {
            (true, true) => "none: otherwise default settings".to_owned(),
            (false, true) => settings::listed(&self.asked.server),
            (true, false) => format!("initdb {}", self.asked.initdb.join(" ")),
            (false, false) => format!(
                "{}; initdb {}",
                settings::listed(&self.asked.server),
                self.asked.initdb.join(" ")
            ),
        };
        lines.push(text("server_settings_given", "Settings asked for", given));
        if let Some(command) = left::command(&left::found(&self.home.base)) {
            lines.push(text(
                "server_left_behind",
                "Left by a killed command",
                format!("remove with: {command}"),
            ));
        }
        lines
    }
}

fn number(settings: &Settings, name: &str) -> Option<u64> {
    match settings.get(name).value {
        Value::Int(n) => Some(n),
        _ => None,
    }
}

fn seconds(key: &'static str, label: &str, value: f64) -> Line {
    Line {
        key,
        label: label.to_owned(),
        value: LineValue::Decimal(value),
    }
}

/// What would be started; nothing is touched.
pub(super) fn plan(version: Option<&str>, settings: &Settings) -> Result<Vec<Line>, EngineError> {
    let choice = Choice::new(version, settings)?;
    let base = choice.home.base.display();
    let mut lines = choice.lines(&format!("{base}/{}...", home::PREFIX));
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
    let directory = choice.home.directory()?;
    let socket = directory.join(DATA);
    let mut all = settings::needed(&socket, choice.sessions, &choice.asked);
    all.extend(choice.asked.server.iter().cloned());
    let request = Request {
        bin: choice.binaries.bin.clone(),
        directory: directory.clone(),
        owner: choice.owner.clone(),
        initdb: choice.asked.initdb.clone(),
        conf: settings::conf(&all),
    };
    let shown = directory.display().to_string();
    let mut lines = choice.lines(&shown);
    let server = Server::start(&request, stop, progress)?;
    lines.push(seconds(
        "initdb_s",
        "Time to create it (initdb), s",
        server.initdb_s,
    ));
    lines.push(seconds("server_start_s", "Started in, s", server.start_s));
    let host = encoded(&socket.display().to_string());
    let url = format!("//postgres@/postgres?host={host}&port={}", settings::PORT);
    lines.push(text("server_url", "Address", format!("postgres:{url}")));
    Ok(Started {
        location: Place::started(&url),
        lines,
        keep: Box::new(server),
    })
}

/// A path as a value in a URL.
fn encoded(path: &str) -> String {
    path.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// A server that runs, by its keeper.
#[derive(Debug)]
struct Server {
    keeper: Child,
    /// While it is open the server lives.
    pipe: Option<ChildStdin>,
    said: Receiver<Said>,
    initdb_s: f64,
    start_s: f64,
    ended: bool,
}

impl Server {
    fn start(request: &Request, stop: &Stop, progress: &dyn Progress) -> Result<Self, EngineError> {
        let cannot = |source: std::io::Error| EngineError::Io {
            what: "starting the process that keeps the temporary server".to_owned(),
            source,
        };
        let mut keeper = keeper::again(KEEP)
            .map_err(cannot)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C on a terminal is for us: we end the server when we are done with it.
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let output = keeper.stdout.take().expect("its output is piped");
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(said) = serde_json::from_str(&line)
                    && sender.send(said).is_err()
                {
                    break;
                }
            }
        });
        let mut server = Self {
            pipe: keeper.stdin.take(),
            keeper,
            said,
            initdb_s: 0.0,
            start_s: 0.0,
            ended: false,
        };
        let mut line = serde_json::to_vec(request).map_err(|error| cannot(error.into()))?;
        line.push(b'\n');
        if let Some(pipe) = &mut server.pipe {
            pipe.write_all(&line).map_err(cannot)?;
        }
        server.wait_until_ready(stop, progress)?;
        Ok(server)
    }

    fn wait_until_ready(
        &mut self,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<(), EngineError> {
        let failed = |why: String| EngineError::Unusable(format!("temp:postgres: {why}"));
        let begun = Instant::now();
        progress.update("initdb", 0, 0);
        loop {
            if stop.requested() {
                return Err(EngineError::Interrupted);
            }
            match self.said.recv_timeout(TICK) {
                Ok(Said::Made { initdb_s }) => {
                    self.initdb_s = initdb_s;
                    progress.update("starting the server", 0, 0);
                }
                Ok(Said::Ready { start_s, .. }) => {
                    self.start_s = start_s;
                    return Ok(());
                }
                Ok(Said::Failed { why } | Said::Left { why }) => return Err(failed(why)),
                Ok(Said::Gone { .. }) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(failed("its keeper ended by itself".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() > START => {
                    return Err(failed(format!("the server was not up after {START:?}")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Has it stopped and removed; what is told of that.
    fn end_it(&mut self) -> Result<Vec<Line>, EngineError> {
        self.ended = true;
        if let Some(mut pipe) = self.pipe.take() {
            // A keeper that is gone does not read it.
            let _ = pipe.write_all(b".");
        }
        let mut lines = Vec::new();
        let mut problem = None;
        let begun = Instant::now();
        loop {
            match self.said.recv_timeout(TICK) {
                Ok(Said::Gone { stop_s, how }) => {
                    lines.push(seconds(
                        "server_stop_s",
                        "Time to stop and remove it, s",
                        stop_s,
                    ));
                    lines.push(text("server_stop", "Shutdown", how));
                }
                Ok(Said::Failed { why }) => lines.push(text("server_lost", "Server lost", why)),
                Ok(Said::Left { why }) => problem = Some(why),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if begun.elapsed() > END => {
                    // Its death is the server's (see `become_server`).
                    let _ = self.keeper.kill();
                    problem = Some(format!("the server did not stop within {END:?}"));
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let _ = self.keeper.wait();
        match problem {
            None => Ok(lines),
            Some(why) => Err(EngineError::Unusable(format!(
                "temp:postgres: not everything was removed: {why}"
            ))),
        }
    }
}

impl Running for Server {
    fn end(mut self: Box<Self>) -> Result<Vec<Line>, EngineError> {
        self.end_it()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.ended {
            // Who drops it without asking does not want to know.
            let _ = self.end_it();
        }
    }
}
