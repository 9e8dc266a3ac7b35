//! Option files as the clients of MariaDB read them: `my.cnf` and its includes, groups `client`, `client-server`,
//! `client-mariadb` and `assay`.
//!
//! assay uses the options about the server's location, the login and encryption, and ignores those clients' other
//! options. In the group `assay` an unknown option is an error.

use super::tls::{self, Mode};
use crate::password::Password;
use assay_run::bounded;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Files read in this order if none is named; later ones override earlier ones.
const DEFAULTS: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
const OWN: &str = ".my.cnf";
const GROUPS: [&str; 4] = ["client", "client-server", "client-mariadb", "assay"];
/// Deepest nesting of includes.
const DEPTH_MAX: u32 = 10;
/// Options for TLS features that assay does not support.
const REFUSED: [&str; 3] = ["ssl-capath", "ssl-crl", "ssl-crlpath"];

/// Settings from the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) user: Option<String>,
    pub(super) password: Option<Password>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) socket: Option<PathBuf>,
    pub(super) database: Option<String>,
    pub(super) tls: tls::Asked,
}

impl Options {
    /// Reads only `named`, or the default files.
    ///
    /// # Errors
    /// The named file cannot be read, or a line in a file is wrong. Errors repeat no value.
    pub(super) fn read(named: &str) -> Result<Self, String> {
        Self::files(named).map_err(|why| super::on_one_line(&why))
    }

    fn files(named: &str) -> Result<Self, String> {
        let mut options = Self::default();
        if !named.is_empty() {
            options.file(Path::new(named), 0)?;
            return Ok(options);
        }
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(OWN));
        let usual = DEFAULTS.iter().map(PathBuf::from).chain(home);
        for file in usual.filter(|file| file.is_file()) {
            // Skip files that only others may read.
            let opened = bounded::open(&file, bounded::OPTIONS);
            if !opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
                options.file(&file, 0)?;
            }
        }
        Ok(options)
    }

    fn file(&mut self, file: &Path, depth: u32) -> Result<(), String> {
        let name = file.display();
        if depth > DEPTH_MAX {
            return Err(format!("{name}: !include goes deeper than {DEPTH_MAX} files"));
        }
        let wrong = |why: &dyn std::fmt::Display| format!("file of options {name}: {why}");
        let about = fs::metadata(file).map_err(|error| wrong(&error))?;
        // Opening a pipe would block; reading a device might never end.
        if !about.is_file() {
            return Err(wrong(&"it is no regular file"));
        }
        if about.permissions().mode() & 0o002 != 0 {
            return Err(wrong(&"every user may write it, so assay does not trust it (chmod o-w)"));
        }
        let text = bounded::text(file, bounded::OPTIONS).map_err(|error| wrong(&error))?;
        self.text(&text, file, depth)
    }

    /// Parses the text of this file.
    fn text(&mut self, text: &str, file: &Path, depth: u32) -> Result<(), String> {
        let name = file.display();
        let mut group = String::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let at = |why: String| format!("{name}, line {}: {why}", number + 1);
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(rest) = line.strip_prefix("!includedir") {
                for included in self::included(Path::new(rest.trim())) {
                    self.file(&included, depth + 1)?;
                }
            } else if let Some(rest) = line.strip_prefix("!include") {
                self.file(Path::new(rest.trim()), depth + 1)?;
            } else if let Some(rest) = line.strip_prefix('[') {
                let end = rest.find(']').ok_or_else(|| at("] is missing".to_owned()))?;
                group = rest[..end].trim().to_ascii_lowercase();
            } else if GROUPS.contains(&group.as_str()) {
                let (key, value) = line.split_once('=').unwrap_or((line, ""));
                let key = key.trim().to_ascii_lowercase().replace('_', "-");
                let set = self.set(&key, unquoted(value.trim()), group == "assay");
                set.map_err(at)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: String, strict: bool) -> Result<(), String> {
        let (loose, key) = match key.strip_prefix("loose-") {
            Some(key) => (true, key),
            None => (false, key),
        };
        match key {
            "user" => self.user = Some(value),
            "password" if value.is_empty() => {
                return Err("password has no value: assay does not ask for one".to_owned());
            }
            "password" => self.password = Some(Password::new(value)),
            "host" => self.host = Some(value),
            "socket" => self.socket = Some(PathBuf::from(value)),
            "database" => self.database = Some(value),
            "port" => {
                let port = value.parse().ok().filter(|port| *port > 0);
                self.port = Some(port.ok_or("port is not a number from 1 to 65535")?);
            }
            key if REFUSED.contains(&key) => {
                return Err(format!("{key} is not supported; name a file of certificates with ssl-ca"));
            }
            key => {
                let known = self.protection(key, &value)?;
                if !known && strict && !loose {
                    return Err(format!("assay has no option {key}"));
                }
            }
        }
        Ok(())
    }

    /// Sets an encryption option; false if `key` is not one.
    fn protection(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let on = || match value.to_ascii_lowercase().as_str() {
            "" | "1" | "on" | "true" | "yes" => Ok(true),
            "0" | "off" | "false" | "no" => Ok(false),
            _ => Err(format!("{key} is on or off")),
        };
        let (key, off) = match key {
            "skip-ssl" => ("ssl", true),
            "disable-ssl-verify-server-cert" | "skip-ssl-verify-server-cert" => ("ssl-verify-server-cert", true),
            key => (key, false),
        };
        match key {
            "ssl" => {
                self.tls.mode = Some(if on()? && !off { Mode::Required } else { Mode::Disabled });
            }
            "ssl-verify-server-cert" => self.tls.verify = Some(on()? && !off),
            _ => return self.tls.set(key, value),
        }
        Ok(true)
    }
}

/// The files of a directory, sorted by name.
fn included(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "cnf")).collect();
    files.sort();
    files
}

/// A value without quotes and comment, with escapes replaced.
fn unquoted(value: &str) -> String {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inner = match quote {
        Some(quote) => match value[1..].rfind(quote) {
            Some(end) => &value[1..=end],
            None => value,
        },
        // A comment starts after a blank.
        None => value.split(" #").next().unwrap_or(value).trim_end(),
    };
    let mut text = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('b') => text.push('\u{8}'),
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('s') => text.push(' '),
            Some('\\') => text.push('\\'),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

/// For fuzzing: the settings in a text, without following includes and without any password.
#[doc(hidden)]
pub fn read_text(text: &str) -> Result<String, String> {
    let mut options = Options::default();
    options.text(text, Path::new("my.cnf"), DEPTH_MAX).map_err(|why| super::on_one_line(&why))?;
    Ok(format!("{options:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Options, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("my.cnf");
        fs::write(&file, text).unwrap();
        Options::read(&file.display().to_string())
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        for include in ["/dev/zero", "/"] {
            let refused = read(&format!("!include {include}\n")).unwrap_err();
            assert!(refused.contains("no regular file"), "{refused}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_on_one_line_that_does_nothing_to_a_terminal() {
        let refused = read("[assay]\nno\u{1b}[2Jway=1\n").unwrap_err();
        assert!(refused.ends_with("no option no [2jway"), "{refused}");
    }

    #[test]
    fn groups_of_clients_and_of_assay_are_read_and_a_later_one_overrides() {
        let read = read(
            "# mine\n[mysqld]\nport=1\nuser = server\n[client]\nuser=me\npassword = \"p#s\\\\s\"\nport=3307\n\
             default-character-set=utf8mb4\nssl\n; more\n[assay]\nuser=other # who\nsocket=/run/s\nssl_ca=/ca.pem\n",
        )
        .unwrap();
        assert_eq!(read.user.as_deref(), Some("other"));
        assert_eq!(read.password, Some(Password::new("p#s\\s".to_owned())));
        assert_eq!((read.port, read.host), (Some(3307), None));
        assert_eq!(read.socket, Some(PathBuf::from("/run/s")));
        assert_eq!(read.tls.mode, Some(Mode::Required));
        assert_eq!(read.tls.ca, Some(PathBuf::from("/ca.pem")));
    }

    #[test]
    fn what_is_wrong_is_told_by_file_and_line_and_never_with_the_password() {
        for (text, wanted) in [
            ("[client\nuser=x", "line 1: ] is missing"),
            ("[assay]\nuser=x\nhots=y", "line 3: assay has no option hots"),
            ("[client]\npassword=Kq9\nport=Kq9", "line 3: port"),
            ("[client]\npassword", "line 2: password has no value"),
            ("[client]\nssl-crl=/x", "ssl-crl is not supported"),
            ("[client]\nssl=Kq9", "ssl is on or off"),
            ("[client]\nssl-mode=Kq9", "ssl-mode"),
            ("!include /no/such", "/no/such"),
        ] {
            let why = read(text).expect_err(text);
            assert!(why.contains(wanted) && !why.contains("Kq9"), "{text}: {why}");
        }
        assert!(read("[client]\nhots=y\n[assay]\nloose-hots=y").is_ok());
        assert!(Options::read("/no/such/my.cnf").is_err());
    }

    #[test]
    fn directories_are_included_by_name_and_a_file_anybody_may_write_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = dir.path().join(name);
            fs::write(&file, text).unwrap();
            file
        };
        write("b.cnf", "[client]\nhost=b");
        let a = write("a.cnf", "[client]\nhost=a\nuser=a");
        write("c.txt", "[client]\nhost=c");
        let main = write("main", &format!("!includedir {}\n", dir.path().display()));
        let read = || Options::read(&main.display().to_string());
        let options = read().unwrap();
        assert_eq!(options.host.as_deref(), Some("b"));
        assert_eq!(options.user.as_deref(), Some("a"));
        fs::set_permissions(&a, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(read().unwrap_err().contains("every user may write it"));
        let own = write("own.cnf", "");
        fs::write(&own, format!("!include {}", own.display())).unwrap();
        assert!(Options::read(&own.display().to_string()).unwrap_err().contains("deeper"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(lines in proptest::collection::vec(".{0,40}", 0..6), value in ".{0,20}") {
            let _ = read(&format!("[assay]\n{}\npassword={value}\nuser={value}\n", lines.join("\n")));
        }
    }
}
