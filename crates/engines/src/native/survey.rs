//! What is at the paths of a data set before anything is done, and how much room there is.

use super::control::{
    CONTROL_NAME, CONTROL_TEMPORARY_NAME, Control, ControlFile, State, absent, io_error,
};
use super::device;
use super::paths::{Asked, DataPath, MARKER_NAME, Marker, Places, absolute, same};
pub(super) use crate::dataset::room::Room;
use assay_run::engine::EngineError;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What one path holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Here {
    /// No such directory.
    Absent,
    /// A directory with nothing in it.
    Empty,
    /// The control file of a data set of ours, whatever its state.
    Control(Box<Control>),
    /// Another part of a data set of ours.
    Marked(Marker),
    /// A directory with something else: the first few names.
    Foreign(Vec<String>),
    /// A block device that is not ours.
    Device,
}

/// A data set and where its paths are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ours {
    /// What its control file says.
    pub(super) control: Control,
    /// Where its paths are now.
    pub(super) places: Places,
    /// Which of them carry its mark; all do unless its load has not got far.
    pub(super) present: Vec<bool>,
}

/// What the paths named hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No data set, and nothing of anybody's in the directories.
    Nothing,
    /// A data set of ours, whatever its state.
    Ours(Box<Ours>),
}

/// Looks at every path of a data set without touching any. Devices among `overwritable` that
/// belong to another data set count as blank.
///
/// # Errors
/// `Unusable` naming the path that is foreign, missing or of another data set; `Usage` for a path
/// that has another role than asked; `Damaged` when a control file or marker cannot be read; I/O errors.
pub(super) fn survey(asked: &Asked, overwritable: &[PathBuf]) -> Result<Found, EngineError> {
    let mut named = Vec::new();
    for path in asked.all() {
        named.push((path, look(path)?));
    }
    let consented = |path: &Path| overwritable.iter().any(|named| same(named, path));
    let homes: Vec<&Path> = named
        .iter()
        .filter(|(_, here)| matches!(here, Here::Control(_)))
        .map(|(path, _)| *path)
        .collect();
    if homes.len() > 1 {
        // The first path named may be the home of the data set meant, the others must go.
        for (path, here) in &mut named {
            if *path != homes[0] && consented(path) && matches!(here, Here::Control(_)) {
                *here = Here::Device;
            }
        }
        if let Some(other) = named
            .iter()
            .find(|(path, here)| *path != homes[0] && matches!(here, Here::Control(_)))
        {
            return Err(EngineError::Unusable(format!(
                "{} and {} each hold a data set of their own: name one",
                homes[0].display(),
                other.0.display()
            )));
        }
    }
    let Some(home) = homes.first() else {
        return nothing(&named, &consented);
    };
    let ours = assemble(home, &named)?;
    if !is_unfinished(&ours.control) {
        agree(asked, &ours)?;
    }
    Ok(Found::Ours(Box::new(ours)))
}

/// Whether a load, or a removal, has left nothing that could be used: then marks may be missing.
pub(super) fn is_unfinished(control: &Control) -> bool {
    control.state == State::Loading && control.loaded_schemas == 0
}

/// The verdict where no control file was found.
fn nothing(
    named: &[(&Path, Here)],
    consented: &dyn Fn(&Path) -> bool,
) -> Result<Found, EngineError> {
    for (path, here) in named {
        match here {
            Here::Marked(_) if device::is_device(path) && consented(path) => {}
            Here::Marked(marker) => {
                return Err(EngineError::Unusable(format!(
                    "{} is path {} of data set {:016x}, whose control file was in {}: name that path first",
                    path.display(),
                    marker.path + 1,
                    marker.data_set,
                    marker.home.display()
                )));
            }
            Here::Foreign(names) => return Err(foreign_error(path, names)),
            Here::Absent | Here::Empty | Here::Device | Here::Control(_) => {}
        }
    }
    Ok(Found::Nothing)
}

/// Finds every path of the data set whose control file is at `home`.
fn assemble(home: &Path, named: &[(&Path, Here)]) -> Result<Ours, EngineError> {
    let control = named
        .iter()
        .find_map(|(path, here)| match here {
            Here::Control(control) if path == &home => Some(Control::clone(control)),
            _ => None,
        })
        .expect("the home was chosen for its control file");
    let unfinished = is_unfinished(&control);
    let mut found: Vec<Option<PathBuf>> = vec![None; control.paths.len()];
    found[0] = Some(home.to_path_buf());
    for (path, here) in named.iter().filter(|(path, _)| path != &home) {
        match here {
            Here::Marked(marker) if marker.data_set == control.data_set => {
                let number = usize::from(marker.path);
                let place = found.get_mut(number).ok_or_else(|| {
                    EngineError::Damaged(format!("the marker in {} is of no path", path.display()))
                })?;
                if let Some(other) = place {
                    return Err(EngineError::Unusable(format!(
                        "{} and {} are both path {} of the same data set, one is a copy: name one",
                        other.display(),
                        path.display(),
                        number + 1
                    )));
                }
                *place = Some(path.to_path_buf());
            }
            _ if unfinished => {}
            _ => return Err(not_a_part(path, here, home, &control)),
        }
    }
    for (number, place) in found.iter_mut().enumerate() {
        let remembered = &control.paths[number].path;
        if place.is_none() && is_path(remembered, &control, number)? {
            *place = Some(remembered.clone());
        } else if place.is_none() && !unfinished {
            return Err(missing(remembered, home, number));
        }
    }
    let present = found.iter().map(Option::is_some).collect();
    let list = found
        .into_iter()
        .zip(&control.paths)
        .map(|(place, remembered)| {
            let path = place.unwrap_or_else(|| remembered.path.clone());
            DataPath {
                device: device::is_device(&path),
                path,
            }
        })
        .collect();
    Ok(Ours {
        places: Places::new(list),
        present,
        control,
    })
}

/// Whether `path` carries the mark of path `number` of the data set.
fn is_path(path: &Path, control: &Control, number: usize) -> Result<bool, EngineError> {
    Ok(match look(path)? {
        Here::Marked(marker) => {
            marker.data_set == control.data_set && usize::from(marker.path) == number
        }
        _ => false,
    })
}

fn missing(path: &Path, home: &Path, number: usize) -> EngineError {
    EngineError::Unusable(format!(
        "path {} of the data set in {} is missing: {} does not hold it; mount it there, or name the place where it is now beside {}",
        number + 1,
        home.display(),
        path.display(),
        home.display()
    ))
}

fn not_a_part(path: &Path, here: &Here, home: &Path, control: &Control) -> EngineError {
    let paths: Vec<String> = control
        .paths
        .iter()
        .map(|known| known.path.display().to_string())
        .collect();
    let what = match here {
        Here::Marked(marker) => format!("it belongs to data set {:016x}", marker.data_set),
        Here::Absent => "it does not exist".into(),
        Here::Empty => "it is empty".into(),
        Here::Device => "the device is not marked as ours".into(),
        Here::Control(_) | Here::Foreign(_) => "it holds something else".into(),
    };
    EngineError::Unusable(format!(
        "{} is no part of the data set in {} ({what}), which was made in {}: leave it out (paths, REDO_DIR and UNDO_DIR are settled when a data set is made), or run `assay destroy` first",
        path.display(),
        home.display(),
        paths.join(", ")
    ))
}

/// Whether every path named has the role it was named for.
fn agree(asked: &Asked, ours: &Ours) -> Result<(), EngineError> {
    let control = &ours.control;
    let number = |path: &Path| {
        let list = ours.places.list();
        list.iter().position(|place| same(&place.path, path))
    };
    for path in &asked.data {
        if number(path).is_some_and(|number| number >= usize::from(control.geometry.stripes)) {
            return Err(EngineError::Usage(format!(
                "{} holds redo or undo of the data set in {}, not data: name it with REDO_DIR or UNDO_DIR, or leave it out",
                path.display(),
                ours.places.home().display()
            )));
        }
    }
    let others = [
        ("REDO_DIR", &asked.redo, control.redo_path),
        ("UNDO_DIR", &asked.undo, control.undo_path),
    ];
    for (name, path, right) in others {
        let Some(path) = path else { continue };
        if number(path) != Some(usize::from(right)) {
            return Err(EngineError::Usage(format!(
                "{name}={}, but the data set in {} has it in {}: leave {name} out, or run `assay destroy` first",
                path.display(),
                ours.places.home().display(),
                ours.places.list()[usize::from(right)].path.display()
            )));
        }
    }
    Ok(())
}

/// Looks at one path without touching it.
///
/// # Errors
/// `Unusable` when it is neither directory nor block device, `Damaged` when what marks it as ours cannot be read;
/// I/O errors.
pub(super) fn look(path: &Path) -> Result<Here, EngineError> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) if device::is_device(path) => return look_at_device(path),
        Ok(_) => {
            return Err(EngineError::Unusable(format!(
                "{} is not a directory; the native target needs one of its own, or a block device",
                path.display()
            )));
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && is_device_name(path) => {
            return Err(EngineError::Unusable(format!(
                "{} does not exist: what is named below /dev must be a device that is there",
                path.display()
            )));
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Here::Absent),
        Err(e) => return Err(io_error("examining", path, e)),
    }
    if let Some(control) = ControlFile::read(path)? {
        return Ok(Here::Control(Box::new(control)));
    }
    if let Some(marker) = marker_in(path)? {
        return Ok(Here::Marked(marker));
    }
    let mut foreign = names(path)?;
    foreign.retain(|name| !is_harmless(path, name));
    if foreign.is_empty() {
        return Ok(Here::Empty);
    }
    foreign.truncate(5);
    Ok(Here::Foreign(foreign))
}

/// Whether a path that does not exist was meant to be a device: a directory of that name would be made in
/// the memory behind /dev.
fn is_device_name(path: &Path) -> bool {
    let whole = absolute(path);
    whole.starts_with("/dev") && !whole.starts_with("/dev/shm")
}

fn look_at_device(path: &Path) -> Result<Here, EngineError> {
    match device::marker(path)? {
        Some(marker) if marker.path == 0 => match ControlFile::read(path)? {
            Some(control) => Ok(Here::Control(Box::new(control))),
            None => Ok(Here::Device),
        },
        Some(marker) => Ok(Here::Marked(marker)),
        None => Ok(Here::Device),
    }
}

/// The marker in a directory.
fn marker_in(dir: &Path) -> Result<Option<Marker>, EngineError> {
    let path = dir.join(MARKER_NAME);
    match fs::read(&path) {
        Ok(bytes) => match Marker::decode(&bytes) {
            None => Ok(None),
            Some(Ok(marker)) => Ok(Some(marker)),
            Some(Err(why)) => Err(EngineError::Damaged(format!("{}: {why}", path.display()))),
        },
        Err(e) if absent(&e) => Ok(None),
        Err(e) => Err(io_error("reading", &path, e)),
    }
}

/// All names in a directory, sorted.
pub(super) fn names(dir: &Path) -> Result<Vec<String>, EngineError> {
    let failed = |e| io_error("listing", dir, e);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// A fresh file system's own directory, or the first step of a `prepare` that was killed.
fn is_harmless(dir: &Path, name: &str) -> bool {
    name == "lost+found"
        || (name == CONTROL_TEMPORARY_NAME && is_unborn(&dir.join(name)))
        || (name == MARKER_NAME && is_unborn(&dir.join(name)))
}

/// Whether the temporary control file is one of ours: it begins with a slot of zeroes or is shorter.
pub(super) fn is_unborn_control(dir: &Path) -> bool {
    is_unborn(&dir.join(CONTROL_TEMPORARY_NAME))
}

fn is_unborn(path: &Path) -> bool {
    let mut start = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(4096).read_to_end(&mut start))
        .is_ok()
        && start.iter().all(|byte| *byte == 0)
}

/// The refusal of a directory that holds something else.
pub(super) fn foreign_error(dir: &Path, names: &[String]) -> EngineError {
    EngineError::Unusable(format!(
        "{} is not empty and holds no data set of assay ({} and perhaps more, no {CONTROL_NAME}); name an empty or new directory",
        dir.display(),
        names.join(", ")
    ))
}

/// What tells one file system, or one device, from another: whether it is a device, and its number.
pub(super) fn file_system_of(path: &Path, device: bool) -> Result<(bool, u64), EngineError> {
    use std::os::unix::fs::MetadataExt;
    let whole = absolute(path);
    for at in whole.ancestors() {
        match fs::metadata(at) {
            Ok(meta) => return Ok((device, if device { meta.rdev() } else { meta.dev() })),
            Err(e) if absent(&e) => {}
            Err(e) => return Err(io_error("examining", at, e)),
        }
    }
    Ok((device, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::tempdir;

    #[test]
    fn what_is_there_is_told_apart() {
        let dir = tempdir().unwrap();
        let path = dir.path();
        assert_eq!(look(&path.join("none")).unwrap(), Here::Absent);
        assert_eq!(look(path).unwrap(), Here::Empty);
        let error = look(Path::new("/dev/no-such-disk"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("must be a device"), "{error}");
        fs::create_dir(path.join("lost+found")).unwrap();
        fs::write(path.join(CONTROL_TEMPORARY_NAME), [0; 100]).unwrap();
        assert_eq!(look(path).unwrap(), Here::Empty);
        fs::write(path.join(CONTROL_TEMPORARY_NAME), "my notes").unwrap();
        assert!(matches!(look(path).unwrap(), Here::Foreign(_)));
        fs::remove_file(path.join(CONTROL_TEMPORARY_NAME)).unwrap();
        fs::write(path.join("a.txt"), "x").unwrap();
        assert_eq!(look(path).unwrap(), Here::Foreign(vec!["a.txt".into()]));
        let error = look(&path.join("a.txt")).unwrap_err();
        assert!(error.to_string().contains("not a directory"));
        fs::write(path.join(CONTROL_NAME), "nonsense").unwrap();
        assert!(matches!(look(path), Err(EngineError::Damaged(_))));
    }

    #[test]
    fn room_is_that_of_the_nearest_directory_there_is() {
        let dir = tempdir().unwrap();
        let here = Room::of(dir.path()).unwrap();
        let there = Room::of(&dir.path().join("a/b/c")).unwrap();
        assert_eq!(here.keep_bytes, there.keep_bytes);
        assert!(here.fits("x", 0, "y").is_ok());
        let error = here.fits("x", u64::MAX, "y").unwrap_err().to_string();
        assert!(error.contains("must stay free"), "{error}");
        assert!(Room::of(Path::new("relative/none")).is_ok());
    }
}
