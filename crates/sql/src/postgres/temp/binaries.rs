//! Finds the PostgreSQL servers installed here, and selects the one the user means.

use assay_run::engine::EngineError;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Major versions whose views and settings assay knows.
const KNOWN: std::ops::RangeInclusive<u32> = 13..=18;
/// Where packages install a version's programs: `{dir}/{prefix}{version}/bin`. Debian's, then the PostgreSQL project's
/// for the Red Hat family.
const PACKAGED: [(&str, &str); 2] = [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")];
/// Default directory of a build from source.
const BUILT: &str = "/usr/local/pgsql/bin";

/// The programs of one installed version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binaries {
    /// For example 15
    pub(super) major: u32,
    /// As the program prints it: `15.14 (Debian 15.14-0+deb12u1)`
    pub(super) version: String,
    /// Directory of `postgres` and `initdb`.
    pub(super) bin: PathBuf,
    /// The user named the directory; it was not found by search.
    pub(super) named: bool,
}

impl Binaries {
    /// Path of a program.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// The server in a directory, if there is one.
    fn at(bin: &Path, named: bool) -> Option<Self> {
        let program = bin.join("postgres");
        if !program.is_file() || !bin.join("initdb").is_file() {
            return None;
        }
        let asked = Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        let said = String::from_utf8(asked.stdout).ok()?;
        let version = said.trim().strip_prefix("postgres (PostgreSQL) ")?;
        let digits = version.find(|c: char| !c.is_ascii_digit());
        Some(Self {
            major: version[..digits.unwrap_or(version.len())].parse().ok()?,
            version: version.to_owned(),
            bin: bin.to_path_buf(),
            named,
        })
    }
}

/// All installed servers: those in the named directories (`PG_BIN`, separated by colons) first, each only once.
pub(super) fn installed(named: &str, path: &str) -> Vec<Binaries> {
    let mut found: Vec<Binaries> = Vec::new();
    let mut look = |bin: &Path, is_named: bool| {
        // Two paths to one directory are one installation; keep a path that the user named as it is.
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if found.iter().all(|other| real(&other.bin) != real(bin)) {
            found.extend(Binaries::at(bin, is_named));
        }
    };
    for bin in split(named) {
        look(&bin, true);
    }
    for (directory, prefix) in PACKAGED {
        for version in KNOWN.rev() {
            look(&Path::new(directory).join(format!("{prefix}{version}/bin")), false);
        }
    }
    look(Path::new(BUILT), false);
    for bin in split(path) {
        look(&bin, false);
    }
    found
}

/// Splits a list of directories in the form of `PATH`.
fn split(list: &str) -> impl Iterator<Item = PathBuf> {
    list.split(':').filter(|part| !part.is_empty()).map(PathBuf::from)
}

/// Selects the requested version, else the newest; named directories come before others.
pub(super) fn choose(installed: &[Binaries], named: &str, asked: Option<&str>) -> Result<Binaries, EngineError> {
    if let Some(nothing) = split(named).find(|bin| installed.iter().all(|one| one.bin != *bin)) {
        // A link to a directory listed earlier is not an error.
        if Binaries::at(&nothing, true).is_none() {
            return Err(EngineError::Usage(format!(
                "PG_BIN: {} has no postgres and initdb that run on this host; name the directory of a server's \
                 programs",
                nothing.display()
            )));
        }
    }
    let asked = asked.map(major).transpose()?;
    let fits = |one: &&Binaries| match asked {
        Some(major) => one.major == major,
        None => KNOWN.contains(&one.major),
    };
    let newest = |named: bool| {
        installed
            .iter()
            .filter(|one| one.named == named)
            .filter(fits)
            // Of equal versions, the first one found.
            .reduce(|best, one| if one.major > best.major { one } else { best })
    };
    newest(true).or_else(|| newest(false)).cloned().ok_or_else(|| {
        let wanted = asked.map_or_else(
            || format!("PostgreSQL {} to {}", KNOWN.start(), KNOWN.end()),
            |major| format!("PostgreSQL {major}"),
        );
        EngineError::Unusable(format!(
            "temp:postgres: this host has no programs of {wanted}; {}; install the package (Debian: postgresql-{}), \
             or name the directory of its programs with PG_BIN",
            listed(installed),
            asked.unwrap_or(*KNOWN.end()),
        ))
    })
}

/// Parses the version after `temp:postgres:`.
fn major(text: &str) -> Result<u32, EngineError> {
    match text.parse::<u32>() {
        Ok(major) if KNOWN.contains(&major) => Ok(major),
        Ok(_) => Err(EngineError::Usage(format!(
            "temp:postgres:{text}: assay supports PostgreSQL {} to {}",
            KNOWN.start(),
            KNOWN.end()
        ))),
        Err(_) => Err(EngineError::Usage(format!(
            "temp:postgres:{text}: write the major version, as in temp:postgres:{}",
            KNOWN.end()
        ))),
    }
}

fn listed(installed: &[Binaries]) -> String {
    if installed.is_empty() {
        return "none is installed".to_owned();
    }
    let each: Vec<String> = installed.iter().map(|one| format!("{} in {}", one.version, one.bin.display())).collect();
    format!("installed: {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(major: u32, bin: &str, named: bool) -> Binaries {
        Binaries { major, version: format!("{major}.1"), bin: PathBuf::from(bin), named }
    }

    #[test]
    fn the_newest_is_taken_and_what_was_named_goes_first() {
        let all = [one(15, "/d/15", false), one(17, "/d/17", false)];
        let chosen = |all: &[Binaries], asked| choose(all, "", asked).map(|one| one.bin);
        assert_eq!(chosen(&all, None).unwrap(), PathBuf::from("/d/17"));
        assert_eq!(chosen(&all, Some("15")).unwrap(), PathBuf::from("/d/15"));
        let named = [one(14, "/n", true), all[0].clone(), all[1].clone()];
        assert_eq!(chosen(&named, None).unwrap(), PathBuf::from("/n"));
        assert_eq!(chosen(&named, Some("17")).unwrap(), PathBuf::from("/d/17"));
        // One that is newer than what we know is only an answer to nobody.
        let newer = [one(19, "/d/19", false), all[0].clone()];
        assert_eq!(chosen(&newer, None).unwrap(), PathBuf::from("/d/15"));
    }

    #[test]
    fn a_version_that_is_not_there_lists_what_is() {
        let all = [one(15, "/d/15", false)];
        let text = |asked| choose(&all, "", Some(asked)).unwrap_err().to_string();
        assert!(text("16").contains("15.1 in /d/15"), "{}", text("16"));
        assert!(text("16").contains("postgresql-16"));
        assert!(text("12").contains("13 to 18"));
        assert!(text("fifteen").contains("major version"));
        let none = choose(&[], "", None).unwrap_err().to_string();
        assert!(none.contains("none is installed"), "{none}");
        let empty = choose(&all, "/nowhere/bin", None).unwrap_err().to_string();
        assert!(empty.contains("PG_BIN: /nowhere/bin"), "{empty}");
    }

    #[test]
    fn a_directory_without_a_server_is_none() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(Binaries::at(empty.path(), true), None);
        for name in ["postgres", "initdb"] {
            std::fs::write(empty.path().join(name), "no program").unwrap();
        }
        assert_eq!(Binaries::at(empty.path(), true), None);
    }
}
