//! What exists at the paths of a data set before anything is done, and how much space there is.

use super::control::{CONTROL_NAME, CONTROL_TEMPORARY_NAME, Control, State};
use super::control_file::ControlFile;
use super::control_format::Stored;
use super::device;
use super::errors::{absent, io_error};
use super::paths::{Asked, DataPath, MARKER_BYTES, MARKER_NAME, Marker, Places, absolute, same};
pub(super) use assay_run::dataset::room::Room;
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
    Control(Box<Stored>),
    /// Another part of a data set of ours.
    Marked(Marker),
    /// A directory with other content: the first few names.
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
    /// Which of them carry its mark; all do unless its load has not got far, or it is looked at to be removed.
    pub(super) present: Vec<bool>,
    /// Why those that do not carry it are not taken for its own, as far as there is anything to say.
    pub(super) skipped: Vec<String>,
}

impl Ours {
    /// The places of the paths that carry its mark, the one with the control file first.
    pub(super) fn own_places(&self) -> Places {
        let list = self.places.list().iter().zip(&self.present);
        let own = list.filter(|(_, present)| **present);
        Places::new(own.map(|(place, _)| place.clone()).collect())
    }
}

/// What a data set is looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// To be used: every path must be there.
    Use,
    /// To be removed: what can be proven to be its own goes, whatever became of the rest.
    Removal,
}

/// What the paths named hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No data set, and the directories are empty.
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
    survey_for(Aim::Use, asked, overwritable)
}

/// As [`survey`], for a removal: paths that are damaged, missing or of another data set are left out and told.
///
/// # Errors
/// As [`survey`], but for these.
pub(super) fn survey_for_removal(asked: &Asked) -> Result<Found, EngineError> {
    survey_for(Aim::Removal, asked, &[])
}

fn survey_for(aim: Aim, asked: &Asked, overwritable: &[PathBuf]) -> Result<Found, EngineError> {
    let mut named = Vec::new();
    let mut unreadable = Vec::new();
    for path in asked.all() {
        match look(path) {
            Ok(here) => named.push((path, here)),
            Err(error @ EngineError::Damaged(_)) if aim == Aim::Removal => unreadable.push(error),
            Err(error) => return Err(error),
        }
    }
    let consented = |path: &Path| overwritable.iter().any(|named| same(named, path));
    let homes: Vec<&Path> =
        named.iter().filter(|(_, here)| matches!(here, Here::Control(_))).map(|(path, _)| *path).collect();
    if homes.len() > 1 {
        // The first path named may be the home of the data set meant, the others must go.
        for (path, here) in &mut named {
            if *path != homes[0] && consented(path) && matches!(here, Here::Control(_)) {
                *here = Here::Device;
            }
        }
        if let Some(other) = named.iter().find(|(path, here)| *path != homes[0] && matches!(here, Here::Control(_))) {
            return Err(EngineError::Unusable(format!(
                "{} and {} each have their own data set: name one",
                homes[0].display(),
                other.0.display()
            )));
        }
    }
    let Some(home) = homes.first() else {
        if let Some(error) = unreadable.pop() {
            return Err(error);
        }
        return nothing(&named, &consented);
    };
    let ours = assemble(aim, home, &named)?;
    if aim == Aim::Use && !is_unfinished(&ours.control) {
        agree(asked, &ours)?;
    }
    Ok(Found::Ours(Box::new(ours)))
}

/// Whether a load, or a removal, has left nothing that could be used: then marks may be missing.
pub(super) fn is_unfinished(control: &Control) -> bool {
    control.state == State::Loading && control.loaded_schemas == 0
}

/// The verdict where no control file was found.
fn nothing(named: &[(&Path, Here)], consented: &dyn Fn(&Path) -> bool) -> Result<Found, EngineError> {
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
fn assemble(aim: Aim, home: &Path, named: &[(&Path, Here)]) -> Result<Ours, EngineError> {
    let stored = named
        .iter()
        .find_map(|(path, here)| match here {
            Here::Control(stored) if path == &home => Some(Stored::clone(stored)),
            _ => None,
        })
        .expect("the home was chosen for its control file");
    let control = stored.control;
    if let (Aim::Use, State::Loading, Some(damage)) = (aim, control.state, stored.damage) {
        return Err(half_a_control(home, &damage));
    }
    let lenient = aim == Aim::Removal || is_unfinished(&control);
    let mut found: Vec<Option<PathBuf>> = vec![None; control.paths.len()];
    found[0] = Some(home.to_path_buf());
    let mut skipped = Vec::new();
    for (path, here) in named.iter().filter(|(path, _)| path != &home) {
        let number = match own_number(here, path, home, &control) {
            Ok(number) => number,
            Err(_) if is_unfinished(&control) => continue,
            Err(error) if aim == Aim::Removal => {
                skipped.push(error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        if let Some(other) = &found[number] {
            return Err(EngineError::Unusable(format!(
                "{} and {} are both path {} of the same data set, so one is a copy: name one",
                other.display(),
                path.display(),
                number + 1
            )));
        }
        found[number] = Some(path.to_path_buf());
    }
    for (number, place) in found.iter_mut().enumerate().filter(|(_, p)| p.is_none()) {
        let remembered = &control.paths[number].path;
        let own = look(remembered).and_then(|here| match own_number(&here, remembered, home, &control) {
            Ok(own) if own == number => its_own(&here, remembered, home),
            Err(copy) if matches!(here, Here::Marked(_)) => Err(copy),
            _ => Err(missing(remembered, home, number)),
        });
        match own {
            Ok(()) => *place = Some(remembered.clone()),
            Err(_) if is_unfinished(&control) => {}
            Err(error) if lenient => skipped.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    let present = found.iter().map(Option::is_some).collect();
    let list = found
        .into_iter()
        .zip(&control.paths)
        .map(|(place, remembered)| {
            let path = place.unwrap_or_else(|| remembered.path.clone());
            DataPath { device: device::is_device(&path), path }
        })
        .collect();
    Ok(Ours { places: Places::new(list), present, skipped, control })
}

/// Whether a path that nobody named belongs to the data set in `home`: one that was moved and one that is a copy look alike, until
/// [`super::adopt`] has settled it.
///
/// # Errors
/// `Unusable`: its marker leads to another place, where no data set is any more.
fn its_own(here: &Here, path: &Path, home: &Path) -> Result<(), EngineError> {
    let Here::Marked(marker) = here else { return Ok(()) };
    if same(&marker.home, home) {
        return Ok(());
    }
    let (path, home) = (path.display(), home.display());
    Err(EngineError::Unusable(format!(
        "{path} belongs to the data set that was made in {}, and its control file is now in {home}, which may be a \
         copy: if the data set was moved, `assay check --target native:{home},{path}` takes {path} over",
        marker.home.display()
    )))
}

/// Which path of the data set in `home` this is.
///
/// # Errors
/// `Unusable` for what is no part of it, or a part that belongs to the data set this is a copy of.
fn own_number(here: &Here, path: &Path, home: &Path, control: &Control) -> Result<usize, EngineError> {
    let Here::Marked(marker) = here else {
        return Err(not_a_part(path, here, home, control));
    };
    let number = usize::from(marker.path);
    if marker.data_set != control.data_set {
        return Err(not_a_part(path, here, home, control));
    }
    if number == 0 || number >= control.paths.len() {
        return Err(EngineError::Damaged(format!("the marker in {} names no path", path.display())));
    }
    if belongs_to_original(marker, path, home) {
        return Err(EngineError::Unusable(format!(
            "{} has a copy of the control file in {}, and {} belongs to the data set of that control file: name the \
             copy's own path {} beside it, or use the original",
            home.display(),
            marker.home.display(),
            path.display(),
            number + 1
        )));
    }
    Ok(number)
}

/// Whether the marked path belongs to a data set that is still where it was made, and which `home` is a copy of: a data
/// set that was moved, or copied with all its paths, has none there or one with other paths.
fn belongs_to_original(marker: &Marker, path: &Path, home: &Path) -> bool {
    if same(&marker.home, home) {
        return false;
    }
    match look(&marker.home) {
        Ok(Here::Control(original)) => {
            let control = &original.control;
            let known = control.paths.get(usize::from(marker.path));
            control.data_set == marker.data_set && known.is_some_and(|known| same(&known.path, path))
        }
        // Whose control file it is cannot be read: then it may be the original's.
        Err(EngineError::Damaged(_)) => true,
        _ => false,
    }
}

fn half_a_control(home: &Path, damage: &str) -> EngineError {
    EngineError::Damaged(format!(
        "{} is damaged ({damage}): the remaining record says that a load had not finished, but the lost record may \
         be newer, so assay loads nothing over the existing data; `assay destroy` removes the data set",
        home.join(CONTROL_NAME).display()
    ))
}

fn missing(path: &Path, home: &Path, number: usize) -> EngineError {
    EngineError::Unusable(format!(
        "path {} of the data set in {} is missing: it is not in {}; mount it there, or name its present place beside \
         {}",
        number + 1,
        home.display(),
        path.display(),
        home.display()
    ))
}

fn not_a_part(path: &Path, here: &Here, home: &Path, control: &Control) -> EngineError {
    let paths: Vec<String> = control.paths.iter().map(|known| known.path.display().to_string()).collect();
    let what = match here {
        Here::Marked(marker) => format!("it belongs to data set {:016x}", marker.data_set),
        Here::Absent => "it does not exist".into(),
        Here::Empty => "it is empty".into(),
        Here::Device => "the device is not marked as ours".into(),
        Here::Control(_) | Here::Foreign(_) => "it contains something else".into(),
    };
    EngineError::Unusable(format!(
        "{} is not part of the data set in {} ({what}), which was made in {}: leave it out (paths, REDO_DIR and \
         UNDO_DIR are fixed when a data set is made), or run `assay destroy` first",
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
                "{} contains redo or undo of the data set in {}, not data: name it with REDO_DIR or UNDO_DIR, or \
                 leave it out",
                path.display(),
                ours.places.home().display()
            )));
        }
    }
    let others = [("REDO_DIR", &asked.redo, control.redo_path), ("UNDO_DIR", &asked.undo, control.undo_path)];
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
                "{} is not a directory; the native target needs its own directory, or a block device",
                path.display()
            )));
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && is_device_name(path) => {
            return Err(EngineError::Unusable(format!(
                "{} does not exist: a name below /dev must be an existing device",
                path.display()
            )));
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Here::Absent),
        Err(e) => return Err(io_error("examining", path, e)),
    }
    if let Some(stored) = ControlFile::look(path)? {
        return Ok(Here::Control(Box::new(stored)));
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
        Some(marker) if marker.path == 0 => match ControlFile::look(path)? {
            Some(stored) => Ok(Here::Control(Box::new(stored))),
            None => Ok(Here::Device),
        },
        Some(marker) => Ok(Here::Marked(marker)),
        None => Ok(Here::Device),
    }
}

/// The marker in a directory.
fn marker_in(dir: &Path) -> Result<Option<Marker>, EngineError> {
    let path = dir.join(MARKER_NAME);
    match start_of(&path, MARKER_BYTES as u64) {
        Ok(bytes) => match Marker::decode(&bytes) {
            None => Ok(None),
            Some(Ok(marker)) => Ok(Some(marker)),
            Some(Err(why)) => Err(EngineError::Damaged(format!("{}: {why}", path.display()))),
        },
        Err(e) if absent(&e) => Ok(None),
        Err(e) => Err(io_error("reading", &path, e)),
    }
}

/// The first bytes of a plain file; none of anything else, which might have to be waited for.
fn start_of(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    if fs::symlink_metadata(path)?.is_file() {
        fs::File::open(path)?.take(most).read_to_end(&mut start)?;
    }
    Ok(start)
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
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
        && start_of(path, 4096).is_ok_and(|start| start.iter().all(|byte| *byte == 0))
}

/// The refusal of a directory that holds something else.
pub(super) fn foreign_error(dir: &Path, names: &[String]) -> EngineError {
    EngineError::Unusable(format!(
        "{} is not empty and has no data set of assay ({} and perhaps more, no {CONTROL_NAME}); name an empty or new \
         directory",
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
        let error = look(Path::new("/dev/no-such-disk")).unwrap_err().to_string();
        assert!(error.contains("must be an existing device"), "{error}");
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
