//! Combines the settings of all sources into what a session needs.

use super::names::{self, PARAMETERS, Parameter, SESSION_VARIABLES};
use super::passfile;
use super::service;
use super::surroundings::Surroundings;
use super::text;
use super::{ChannelBinding, ConnectOptions, Host, Keepalive, Password, Roots, SessionAttrs, SslMode, Tls};
use crate::patience::Patience;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default directories of server sockets: Debian's and that of PostgreSQL's own builds.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];
const PORT: u16 = 5432;
/// Default limit for connecting to an address. libpq has none, so for a host behind a silent firewall it would wait for
/// minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Parses what follows `postgres:` (`//user:password@host:port/db?name=value`, `host=a dbname=b`, or the name of a
/// database), and completes it with `from`.
///
/// # Errors
/// What is wrong, with the remedy; never the value of a secret.
pub fn options(location: &str, from: &dyn Surroundings) -> Result<ConnectOptions, String> {
    let values = Values::gather(location, from)?;
    let (hosts, default_directory) = hosts(&values, from)?;
    let user = match values.get("user") {
        Some(user) => user.to_owned(),
        None => from.user().ok_or("no user is given: name one in the URL or in PGUSER")?,
    };
    let dbname = values.get("dbname").unwrap_or(&user).to_owned();
    let password = values.get("password").map(str::to_owned).map(Password::new);
    let mut options = ConnectOptions {
        host_passwords: Vec::new(),
        password,
        user,
        dbname,
        application_name: values
            .get("application_name")
            .or(values.get("fallback_application_name"))
            .unwrap_or("assay")
            .to_owned(),
        options: values.get("options").map(str::to_owned),
        settings: SESSION_VARIABLES
            .iter()
            .filter_map(|(variable, name)| Some(((*name).to_owned(), from.variable(variable)?)))
            .collect(),
        connect_timeout: match values.whole("connect_timeout")? {
            None => Some(CONNECT_TIMEOUT),
            Some(seconds) => u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs),
        },
        tls: tls(&values, from)?,
        channel_binding: values.choice("channel_binding", CHANNEL_BINDINGS)?,
        require_auth: require_auth(&values)?,
        require_peer: values.get("requirepeer").map(str::to_owned),
        session_attrs: values.choice("target_session_attrs", SESSION_ATTRS)?,
        keepalive: keepalive(&values)?,
        protocol_minor: protocol(&values)?,
        patience: Patience::default(),
        hosts,
        warnings: Vec::new(),
    };
    if options.password.is_none() {
        read_passfile(&mut options, &values, &default_directory, from);
    }
    Ok(options)
}

/// The parameters that are set, each from the first source that has it.
struct Values(BTreeMap<String, String>);

impl Values {
    fn gather(location: &str, from: &dyn Surroundings) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        for (name, value) in text::parse(location)? {
            names::judge(&name, &value)?;
            values.insert(name, value);
        }
        values.retain(|_, value| !value.is_empty());
        let named = |name: &str, variable: &str| {
            let given: Option<&String> = values.get(name);
            given.cloned().or_else(|| from.variable(variable))
        };
        if let Some(service) = named("service", "PGSERVICE") {
            let file = named("servicefile", "PGSERVICEFILE");
            for (name, value) in service::find(&service, file.as_deref(), from)? {
                values.entry(name).or_insert(value);
            }
        }
        for Parameter { name, variable, .. } in PARAMETERS {
            if let Some(variable) = variable.first()
                && let Some(value) = from.variable(variable)
                && !values.contains_key(*name)
            {
                names::judge(name, &value).map_err(|why| format!("{variable}: {why}"))?;
                values.insert((*name).to_owned(), value);
            }
        }
        values.retain(|_, value| !value.is_empty());
        Ok(Self(values))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn whole(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number = text.trim().parse();
        number.map(Some).map_err(|_| format!("connection parameter {name}: {text:?} is not a whole number"))
    }

    fn choice<T: Copy + Default>(&self, name: &str, known: &[(&str, T)]) -> Result<T, String> {
        let Some(text) = self.get(name) else {
            return Ok(T::default());
        };
        let found = known.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            format!("connection parameter {name}: {text:?} is none of {}", words.join(", "))
        })
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, String> {
        Ok(self.whole(name)?.map_or(default, |number| number != 0))
    }
}

const SSL_MODES: &[(&str, SslMode)] = &[
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

const CHANNEL_BINDINGS: &[(&str, ChannelBinding)] =
    &[("disable", ChannelBinding::Disable), ("prefer", ChannelBinding::Prefer), ("require", ChannelBinding::Require)];

const SESSION_ATTRS: &[(&str, SessionAttrs)] = &[
    ("any", SessionAttrs::Any),
    ("read-write", SessionAttrs::ReadWrite),
    ("read-only", SessionAttrs::ReadOnly),
    ("primary", SessionAttrs::Primary),
    ("standby", SessionAttrs::Standby),
    ("prefer-standby", SessionAttrs::PreferStandby),
];

/// The hosts, and the directory that counts as `localhost` in a password file.
fn hosts(values: &Values, from: &dyn Surroundings) -> Result<(Vec<Host>, PathBuf), String> {
    let list = |name: &str| -> Vec<String> {
        let text = values.get(name);
        text.map(|text| text.split(',').map(|part| part.trim().to_owned()).collect()).unwrap_or_default()
    };
    let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = names.len().max(addresses.len()).max(1);
    if !names.is_empty() && !addresses.is_empty() && names.len() != addresses.len() {
        return Err(format!(
            "{} host names for {} addresses (hostaddr): give as many of each",
            names.len(),
            addresses.len()
        ));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(format!("{} ports for {count} hosts: give one port, or one for each host", ports.len()));
    }
    let mut default_directory = PathBuf::from(SOCKET_DIRECTORIES[0]);
    let mut hosts = Vec::with_capacity(count);
    for at in 0..count {
        let part = |list: &[String]| list.get(at).filter(|text| !text.is_empty()).cloned();
        let port = match part(&ports).or_else(|| (ports.len() == 1).then(|| ports[0].clone())) {
            Some(text) if !text.is_empty() => text
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| format!("port {text:?} is not a number from 1 to 65535"))?,
            _ => PORT,
        };
        let address = part(&addresses)
            .map(|text| {
                let parsed: Result<IpAddr, _> = text.parse();
                parsed.map_err(|_| format!("hostaddr {text:?} is not an IP address"))
            })
            .transpose()?;
        hosts.push(match (part(&names), address) {
            (name, Some(address)) => {
                Host::Tcp { name: name.unwrap_or_else(|| address.to_string()), address: Some(address), port }
            }
            (Some(name), None) if name.starts_with(['/', '@']) => Host::Unix { directory: PathBuf::from(name), port },
            (Some(name), None) => Host::Tcp { address: name.parse().ok(), name, port },
            (None, None) => {
                default_directory = socket_directory(port, from);
                Host::Unix { directory: default_directory.clone(), port }
            }
        });
    }
    Ok((hosts, default_directory))
}

/// The first directory that contains the socket, else the first one.
fn socket_directory(port: u16, from: &dyn Surroundings) -> PathBuf {
    let found =
        SOCKET_DIRECTORIES.iter().find(|directory| from.exists(&Path::new(directory).join(format!(".s.PGSQL.{port}"))));
    PathBuf::from(found.unwrap_or(&SOCKET_DIRECTORIES[0]))
}

fn tls(values: &Values, from: &dyn Surroundings) -> Result<Tls, String> {
    let system = values.get("sslrootcert") == Some("system");
    let mut mode: SslMode = values.choice("sslmode", SSL_MODES)?;
    if values.get("sslmode").is_none() && values.get("requiressl") == Some("1") {
        mode = SslMode::Require;
    }
    if system {
        if values.get("sslmode").is_none() {
            mode = SslMode::VerifyFull;
        } else if mode != SslMode::VerifyFull {
            return Err(
                "sslrootcert=system needs sslmode=verify-full: anyone can get a certificate from a public authority"
                    .to_owned(),
            );
        }
    }
    let in_home = |name: &str| {
        let path = from.home()?.join(".postgresql").join(name);
        from.exists(&path).then_some(path)
    };
    let given_or_home = |parameter: &str, name: &str| {
        let given = values.get(parameter).map(PathBuf::from);
        given.or_else(|| in_home(name))
    };
    let roots =
        if system { Roots::System } else { given_or_home("sslrootcert", "root.crt").map_or(Roots::None, Roots::File) };
    if roots == Roots::None && mode >= SslMode::VerifyCa {
        return Err(
            "sslmode=verify-ca and verify-full need the authority's certificate: name it with sslrootcert, or \
            use sslrootcert=system"
                .to_owned(),
        );
    }
    if let Roots::File(path) = &roots
        && mode >= SslMode::VerifyCa
        && !from.exists(path)
    {
        return Err(format!("sslrootcert {} does not exist", path.display()));
    }
    let direct = values.choice("sslnegotiation", &[("postgres", false), ("direct", true)])?;
    if direct && mode < SslMode::Require {
        return Err("sslnegotiation=direct needs sslmode=require or stricter: direct TLS cannot fall back".to_owned());
    }
    let versions = (version(values, "ssl_min_protocol_version")?, version(values, "ssl_max_protocol_version")?);
    if versions.1 == Some(11) {
        return Err("ssl_max_protocol_version: assay supports TLS 1.2 and newer".to_owned());
    }
    Ok(Tls {
        mode,
        roots,
        revoked: given_or_home("sslcrl", "root.crl"),
        client: client_certificate(values, &given_or_home)?,
        direct,
        hide_name: !values.flag("sslsni", true)?,
        versions,
    })
}

/// TLS versions as 11 (or older), 12, 13.
fn version(values: &Values, name: &str) -> Result<Option<u8>, String> {
    let known = [("TLSv1", Some(11)), ("TLSv1.1", Some(11)), ("TLSv1.2", Some(12)), ("TLSv1.3", Some(13))];
    values.choice(name, &known)
}

fn client_certificate(
    values: &Values,
    given_or_home: &dyn Fn(&str, &str) -> Option<PathBuf>,
) -> Result<Option<(PathBuf, PathBuf)>, String> {
    match values.get("sslcertmode").unwrap_or("allow") {
        "disable" => return Ok(None),
        "allow" => {}
        _ => {
            return Err(
                "connection parameter sslcertmode is not supported with this value: write allow or disable".to_owned()
            );
        }
    }
    let Some(certificate) = given_or_home("sslcert", "postgresql.crt") else {
        return Ok(None);
    };
    match given_or_home("sslkey", "postgresql.key") {
        Some(key) => Ok(Some((certificate, key))),
        None => Err(format!("the client certificate {} has no key: name the key with sslkey", certificate.display())),
    }
}

fn keepalive(values: &Values) -> Result<Keepalive, String> {
    let seconds = |name: &str| -> Result<Option<Duration>, String> {
        let number = values.whole(name)?;
        Ok(number
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs))
    };
    let count = values.whole("keepalives_count")?;
    let user_timeout = values.whole("tcp_user_timeout")?;
    Ok(Keepalive {
        on: values.flag("keepalives", true)?,
        idle: seconds("keepalives_idle")?,
        interval: seconds("keepalives_interval")?,
        count: count.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0),
        user_timeout: user_timeout
            .and_then(|ms| u64::try_from(ms).ok())
            .filter(|ms| *ms > 0)
            .map(Duration::from_millis),
    })
}

/// Authentication methods that libpq has names for.
const WAYS: [&str; 7] = ["password", "md5", "gss", "sspi", "scram-sha-256", "oauth", "none"];

/// The accepted methods; a list of exclusions (`!md5`) is inverted. As in libpq, each name may occur only once, and
/// nothing is trimmed: a lenient parser could accept a method that the user meant to exclude.
fn require_auth(values: &Values) -> Result<Vec<String>, String> {
    let Some(text) = values.get("require_auth") else {
        return Ok(Vec::new());
    };
    let wrong = |why: String| format!("connection parameter require_auth={text}: {why}");
    let words: Vec<&str> = text.split(',').collect();
    let excludes = words[0].starts_with('!');
    let mut named = Vec::with_capacity(words.len());
    for word in words {
        let (excluded, name) = match word.strip_prefix('!') {
            Some(name) => (true, name),
            None => (false, word),
        };
        if excluded != excludes {
            return Err(wrong(format!("{word:?} does not fit the others: write ! before all methods or before none")));
        }
        if !WAYS.contains(&name) {
            return Err(wrong(format!("{word:?} is none of {}", WAYS.join(", "))));
        }
        if named.contains(&name) {
            return Err(wrong(format!("{name:?} is listed twice")));
        }
        named.push(name);
    }
    let accepted = |way: &&&str| named.contains(*way) != excludes;
    let accepted: Vec<String> = WAYS.iter().filter(accepted).map(|way| (*way).to_owned()).collect();
    if accepted.is_empty() {
        return Err(wrong("no method is left: login would be impossible".to_owned()));
    }
    Ok(accepted)
}

/// Lowest and highest minor version of protocol 3. Like libpq 18, defaults to 3.0: some poolers accept no other version.
fn protocol(values: &Values) -> Result<(u16, u16), String> {
    let known = [("3.0", Some(0)), ("3.2", Some(2)), ("latest", Some(2))];
    let lowest = values.choice("min_protocol_version", &known)?.unwrap_or(0);
    let highest = values.choice("max_protocol_version", &known)?;
    let highest = highest.unwrap_or(lowest);
    if lowest > highest {
        return Err("min_protocol_version is above max_protocol_version".to_owned());
    }
    Ok((lowest, highest))
}

fn read_passfile(options: &mut ConnectOptions, values: &Values, default_directory: &Path, from: &dyn Surroundings) {
    let named = values.get("passfile").map(PathBuf::from);
    let path = named.or_else(|| from.home().map(|home| home.join(".pgpass")));
    let Some(path) = path else { return };
    let content = match from.read(&path) {
        Ok(Some(content)) => content,
        Ok(None) => return,
        Err(why) => return options.warnings.push(format!("password file {why}")),
    };
    if !content.regular {
        return options.warnings.push(format!("password file {} is ignored: it is not a regular file", path.display()));
    }
    if content.mode & 0o077 != 0 {
        return options.warnings.push(format!(
            "password file {path} is ignored: other users can read it; run chmod 600 {path}",
            path = path.display()
        ));
    }
    let found = options.hosts.iter().map(|host| {
        let (name, port) = match host {
            Host::Tcp { name, port, .. } => (name.clone(), *port),
            Host::Unix { directory, port } if directory == default_directory => ("localhost".to_owned(), *port),
            Host::Unix { directory, port } => (directory.display().to_string(), *port),
        };
        let wanted = passfile::Wanted { host: &name, port, dbname: &options.dbname, user: &options.user };
        passfile::find(&content.text, wanted)
    });
    options.host_passwords = found.collect();
}
