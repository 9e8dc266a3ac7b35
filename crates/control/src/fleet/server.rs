//! `fleet up`: a NATS server of one's own, with a configuration that lets nobody in without a token.

use super::FleetError;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The server's program.
const PROGRAM: &str = "nats-server";
/// The largest message that the server takes, bytes: its usual limit.
const PAYLOAD: u64 = 1 << 20;
/// What its log says when clients can come, and before the address they come to.
const READY: &str = "Server is ready";
const LISTENS: &str = "Listening for client connections on ";
/// How long it may take until then, and how often we look.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// What a server is asked to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Address and port to listen on; port 0 is any free one.
    pub listen: &'a str,
    /// The fleet.
    pub fleet: &'a str,
    /// Name or address by which others reach it; empty: the one it listens on.
    pub reached: &'a str,
    /// Certificate and key, PEM: it speaks TLS alone.
    pub tls: Option<(&'a Path, &'a Path)>,
}

/// A server as it was configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The controller's token and the agents'.
    tokens: [String; 2],
    /// Its configuration.
    config: PathBuf,
    /// Of its URLs: the scheme, and who it is to others where that is not where it listens.
    scheme: &'static str,
    reached: String,
}

/// A server that runs.
#[derive(Debug)]
pub struct RunningServer {
    /// Its process.
    pub child: Child,
    /// Address and port it listens on.
    pub listen: String,
    /// For the controller, with its token.
    pub control_url: String,
    /// For agents, with theirs.
    pub agent_url: String,
}

/// What a host without a server is told.
#[must_use]
pub fn no_server() -> String {
    format!(
        "there is no {PROGRAM} in PATH; install it with `apt-get install nats-server`, or run one elsewhere with `docker run -p \
         4222:4222 nats -js` and set NATS_URL=nats://HOST:4222"
    )
}

/// Where the program is.
#[must_use]
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Debian has it where a user's PATH does not lead.
    let more = ["/usr/sbin", "/usr/local/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|dir| dir.join(PROGRAM)).find(|file| file.is_file())
}

/// Writes the configuration of a fleet's server into a directory that only this user can read. Tokens that are there stay:
/// agents keep theirs over a restart.
///
/// # Errors
/// The directory cannot be made or written.
pub fn configure(dir: &Path, wanted: &Wanted<'_>, token: &dyn Fn() -> io::Result<String>) -> io::Result<Server> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let [control, agent] = ["control", "agent"].map(|name| kept_token(&dir.join(format!("{name}.token")), token));
    let tokens = [control?, agent?];
    let config = dir.join("nats.conf");
    write_private(&config, &text(&fs::canonicalize(dir)?, wanted, &tokens))?;
    let scheme = if wanted.tls.is_some() { "tls" } else { "nats" };
    Ok(Server { tokens, config, scheme, reached: wanted.reached.to_owned() })
}

fn kept_token(path: &Path, token: &dyn Fn() -> io::Result<String>) -> io::Result<String> {
    match fs::read_to_string(path) {
        Ok(kept) => Ok(kept.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let new = token()?;
            write_private(path, &new)?;
            Ok(new)
        }
        Err(error) => Err(error),
    }
}

/// Writes a file that only this user can read.
///
/// # Errors
/// It cannot be written.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// The configuration. An agent can answer, say its news and keep what it measured; it can ask no other agent for anything, and
/// nobody reaches the subjects of another fleet.
fn text(dir: &Path, wanted: &Wanted<'_>, [control, agent]: &[String; 2]) -> String {
    let mut text = String::new();
    let store = dir.join("jetstream");
    let Wanted { listen, fleet, .. } = wanted;
    let listen = match listen.strip_suffix(":0") {
        // The server's word for any; its 0 is the usual one.
        Some(address) => format!("{address}:-1"),
        None => (*listen).to_owned(),
    };
    if let Some((cert, key)) = wanted.tls {
        let _ = writeln!(text, "tls {{ cert_file: {cert:?}, key_file: {key:?} }}");
    }
    let _ = writeln!(
        text,
        "listen: {listen:?}\nserver_name: \"assay-{fleet}\"\nmax_payload: {PAYLOAD}\n\
         jetstream {{ store_dir: {store:?} }}\n\
         authorization {{\n  users = [\n    {{ user: control, password: {control:?}, permissions: {{\n      \
         publish: [\"{fleet}.>\", \"$JS.API.STREAM.*.assay_{fleet}\", \"$JS.API.STREAM.*.*.assay_{fleet}\", \"$JS.API.DIRECT.GET.assay_{fleet}.>\",\n        \"_INBOX.>\"]\n      subscribe: [\"{fleet}.>\", \"_INBOX.>\"] }} }}\n    \
         {{ user: agent, password: {agent:?}, permissions: {{\n      \
         publish: [\"{fleet}.from.>\", \"{fleet}.kept.>\", \"_INBOX.>\"]\n      \
         subscribe: [\"{fleet}.all.>\", \"{fleet}.to.>\", \"_INBOX.>\"] }} }}\n  ]\n}}"
    );
    text
}

/// Starts the server by the command that `run` makes of its program, and waits until it listens; its log is `nats.log` beside the
/// configuration.
///
/// # Errors
/// There is no program, it cannot be started, or it does not get ready.
pub fn start(server: &Server, run: fn(&Path) -> io::Result<Command>) -> Result<RunningServer, FleetError> {
    let program = find().ok_or_else(|| FleetError::Unusable(no_server()))?;
    let log = server.config.with_file_name("nats.log");
    let cannot = |what: &Path, error: io::Error| FleetError::Unusable(format!("{}: {error}", what.display()));
    let out = fs::File::create(&log).map_err(|error| cannot(&log, error))?;
    let errors = out.try_clone().map_err(|error| cannot(&log, error))?;
    let mut command = run(&program).map_err(|error| cannot(&program, error))?;
    command.arg("-c").arg(&server.config).stdin(Stdio::null()).stdout(out).stderr(errors);
    let mut child = command.spawn().map_err(|error| cannot(&program, error))?;
    let begun = Instant::now();
    loop {
        let told = fs::read_to_string(&log).unwrap_or_default();
        if let (true, Some(listen)) = (told.contains(READY), told.lines().find_map(|line| line.split_once(LISTENS))) {
            let listen = listen.1.trim().to_owned();
            // Everybody on this host can reach a server that listens on every address.
            let reached = match (server.reached.as_str(), listen.rsplit_once(':')) {
                ("", _) | (_, None) => listen.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:"),
                (name, Some((_, port))) => format!("{name}:{port}"),
            };
            let [control_url, agent_url] = [("control", &server.tokens[0]), ("agent", &server.tokens[1])]
                .map(|(user, token)| format!("{}://{user}:{token}@{reached}", server.scheme));
            return Ok(RunningServer { child, listen, control_url, agent_url });
        }
        let ended = child.try_wait().map_err(|error| cannot(&program, error))?;
        if ended.is_some() || begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(FleetError::Unusable(format!("nats-server does not start: {}", last_words(&log))));
        }
        std::thread::sleep(LOOK);
    }
}

/// What the server said last, and where.
#[must_use]
pub fn last_words(log: &Path) -> String {
    let told = fs::read_to_string(log).unwrap_or_default();
    format!("{} (its log is {})", told.lines().last().unwrap_or("nothing"), log.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_private_and_keeps_its_tokens() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("fleet");
        let wanted = Wanted { listen: "0.0.0.0:4222", fleet: "f", ..Wanted::default() };
        let server = configure(&place, &wanted, &|| Ok("secret".to_owned())).expect("written");
        assert_eq!(server.tokens, ["secret", "secret"]);
        let again = configure(&place, &wanted, &|| Ok("other".to_owned())).expect("written");
        assert_eq!(again, server, "agents keep their token");
        let config = fs::read_to_string(&server.config).expect("readable");
        assert!(config.contains("publish: [\"f.from.>\", \"f.kept.>\", \"_INBOX.>\"]"), "{config}");
        let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).expect("there")) & 0o777;
        assert_eq!((mode(&place), mode(&server.config), mode(&place.join("agent.token"))), (0o700, 0o600, 0o600));
    }
}
