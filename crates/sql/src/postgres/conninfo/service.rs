//! Service files: named groups of connection parameters.

use super::names;
use super::surroundings::Surroundings;
use std::path::{Path, PathBuf};

/// Where distributions keep the system-wide file; the first is Debian's.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/etc/postgresql-common", "/etc/sysconfig/pgsql", "/etc"];
const FILE_NAME: &str = "pg_service.conf";

/// Parameters of a service, from the user's file or else from the system's.
pub(super) fn find(
    service: &str,
    file: Option<&str>,
    from: &dyn Surroundings,
) -> Result<Vec<(String, String)>, String> {
    let mut looked = Vec::new();
    for (path, must_be) in places(file, from) {
        let Some(content) = from.read(&path)? else {
            if must_be {
                return Err(format!("service {service:?}: there is no file {}", path.display()));
            }
            continue;
        };
        if let Some(found) = group(&content.text, service, &path)? {
            return Ok(found);
        }
        looked.push(path.display().to_string());
    }
    Err(if looked.is_empty() {
        format!("service {service:?}: there is no service file; make ~/.pg_service.conf or set PGSERVICEFILE")
    } else {
        format!("service {service:?} is not in {}", looked.join(", "))
    })
}

fn places(file: Option<&str>, from: &dyn Surroundings) -> Vec<(PathBuf, bool)> {
    let mut places = Vec::new();
    match file {
        Some(file) => places.push((PathBuf::from(file), true)),
        None => places.extend(from.home().map(|home| (home.join(".pg_service.conf"), false))),
    }
    match from.variable("PGSYSCONFDIR") {
        Some(directory) => places.push((Path::new(&directory).join(FILE_NAME), false)),
        None => places.extend(SYSTEM_DIRECTORIES.iter().map(|directory| (Path::new(directory).join(FILE_NAME), false))),
    }
    places
}

/// The group of this name in a file's text; the first value of a parameter wins.
pub(super) fn group(text: &str, service: &str, path: &Path) -> Result<Option<Vec<(String, String)>>, String> {
    let mut found: Option<Vec<(String, String)>> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = || format!("{}:{number}", path.display());
        if let Some(name) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if name.strip_suffix(']') == Some(service) {
                found = Some(Vec::new());
            }
            continue;
        }
        let Some(values) = &mut found else { continue };
        if line.starts_with("ldap") {
            return Err(format!(
                "{}: assay does not support service lookup by LDAP: write the parameters here",
                place()
            ));
        }
        let (name, value) = line.split_once('=').ok_or_else(|| format!("{}: expected name=value", place()))?;
        if name == "service" || name == "servicefile" {
            return Err(format!("{}: a service cannot name another service", place()));
        }
        names::judge(name, value).map_err(|why| format!("{}: {why}", place()))?;
        if !values.iter().any(|(known, _)| known == name) {
            values.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(found)
}
