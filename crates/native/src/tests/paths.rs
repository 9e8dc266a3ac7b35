//! Data sets in several directories: striping, redo and undo of their own, and what is refused.

use super::*;
use crate::control::{CONTROL_NAME, data_name};
use crate::layout::UNIT_BYTES;
use crate::paths::MARKER_NAME;

/// Directories of one test, and the words that name them.
pub(super) struct Homes {
    root: TempDir,
}

impl Homes {
    pub(super) fn new() -> Self {
        Self { root: directory() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// `native:A,B` of these names.
    pub(super) fn location(&self, names: &[&str]) -> String {
        let paths: Vec<String> = names.iter().map(|name| self.path(name).to_str().unwrap().to_owned()).collect();
        format!("native:{}", paths.join(","))
    }

    /// Small settings with REDO_DIR and UNDO_DIR, where given.
    fn settings(&self, redo: Option<&str>, undo: Option<&str>) -> Settings {
        let text =
            |name: Option<&str>| name.map(|name| self.path(name).to_str().unwrap().to_owned()).unwrap_or_default();
        let (redo, undo) = (text(redo), text(undo));
        let given: Vec<(&str, &str)> = [("REDO_DIR", &redo), ("UNDO_DIR", &undo)]
            .into_iter()
            .filter(|(_, path)| !path.is_empty())
            .map(|(name, path)| (name, path.as_str()))
            .collect();
        settings(&given)
    }

    pub(super) fn prepare(&self, names: &[&str], settings: &Settings, schemas: u32) -> Vec<Line> {
        let location = self.location(names);
        life::load(&Native, &location, settings, schemas, &Stop::new(), &Silent)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    pub(super) fn check(&self, names: &[&str], settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let location = self.location(names);
        life::check(&Native, &location, settings)
    }

    pub(super) fn refusal(&self, names: &[&str], settings: &Settings) -> String {
        let location = self.location(names);
        let error = Native.inspect(&location, settings).unwrap_err();
        error.to_string()
    }

    pub(super) fn destroy(&self, names: &[&str]) -> Result<Vec<Line>, EngineError> {
        life::destroy(&Native, &self.location(names), &settings(&[]))
    }

    pub(super) fn left(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn data_is_striped_and_redo_and_undo_have_their_own_place() {
    let homes = Homes::new();
    let made = homes.settings(Some("r"), Some("u"));
    let lines = homes.prepare(&["a", "b", "c"], &made, 2);
    assert_eq!(number(&lines, "loaded_rows"), 4000);
    let control = read_control(&homes.path("a"));
    assert_eq!(control.geometry.stripes, 3);
    let has = |home: &str, name: &str| homes.path(home).join(name).exists();
    for (file, home) in ["a", "b", "c"].into_iter().enumerate() {
        assert!(has(home, &data_name(file as u16)), "{home}");
        // 4,162 blocks of 8 KiB in units of 128: eleven each, and the header's.
        let bytes = fs::metadata(homes.path(home).join(data_name(file as u16))).unwrap().len();
        assert!((11 * UNIT_BYTES..=12 * UNIT_BYTES).contains(&bytes), "{home}: {bytes}");
        assert_eq!(has(home, CONTROL_NAME), home == "a");
        assert_eq!(has(home, MARKER_NAME), home != "a");
        assert!(!has(home, "redo-01.assay") && !has(home, "undo.assay"));
    }
    assert!(has("r", "redo-02.assay") && has("r", MARKER_NAME));
    assert!(has("u", "undo.assay") && has("u", MARKER_NAME));

    // Schemas are added on all paths, and every block is where it belongs.
    homes.prepare(&["a", "b", "c"], &made, 3);
    let lines = homes.check(&["a", "b", "c"], &settings(&[("CHECK", "full")]));
    assert_eq!(number(&lines.unwrap(), "data_blocks_checked"), 6000);

    fs::write(homes.path("b/notes.txt"), "mine").unwrap();
    homes.destroy(&["a", "b", "c"]).unwrap();
    assert_eq!(homes.left(), ["b"]);
    assert_eq!(fs::read_dir(homes.path("b")).unwrap().count(), 1);
}

#[test]
fn paths_are_known_by_their_marks_in_any_order_and_anywhere() {
    let homes = Homes::new();
    let made = homes.settings(Some("r"), None);
    homes.prepare(&["a", "b", "c"], &made, 1);
    let plain = settings(&[]);
    for named in [&["c", "a", "b"][..], &["a"], &["b", "a"]] {
        homes.check(named, &plain).unwrap();
    }
    homes.check(&["a", "c", "b"], &made).unwrap();

    let error = homes.refusal(&["b"], &plain);
    assert!(error.contains("whose control file was in"), "{error}");
    assert!(error.contains(homes.path("a").to_str().unwrap()), "{error}");

    fs::rename(homes.path("c"), homes.path("moved")).unwrap();
    let error = homes.refusal(&["a", "b"], &plain);
    let missing = homes.path("c").to_str().unwrap().to_owned();
    assert!(error.contains("is missing") && error.contains(&missing), "{error}");
    homes.check(&["a", "moved"], &plain).unwrap();

    let error = homes.refusal(&["a", "moved", "r"], &plain);
    assert!(error.contains("contains redo or undo"), "{error}");
    let error = homes.refusal(&["a", "moved"], &homes.settings(Some("b"), None));
    assert!(error.contains("REDO_DIR"), "{error}");
    let error = homes.refusal(&["a", "moved", "new"], &plain);
    assert!(error.contains("is not part of the data set"), "{error}");

    // A copy is not taken for the original, and destroy follows the marks.
    fs::create_dir(homes.path("copy")).unwrap();
    fs::copy(homes.path("b").join(MARKER_NAME), homes.path("copy").join(MARKER_NAME)).unwrap();
    let error = homes.refusal(&["a", "b", "moved", "copy"], &plain);
    assert!(error.contains("one is a copy"), "{error}");
    homes.destroy(&["moved", "a"]).unwrap();
    assert_eq!(homes.left(), ["copy"]);
}

#[test]
fn what_belongs_to_others_is_never_made_part_of_a_data_set() {
    let homes = Homes::new();
    let plain = settings(&[]);
    homes.prepare(&["a", "b"], &plain, 1);
    homes.prepare(&["other"], &plain, 1);
    fs::create_dir(homes.path("full")).unwrap();
    fs::write(homes.path("full/letter"), "dear").unwrap();
    let try_prepare = |names: &[&str]| {
        let location = homes.location(names);
        let error = life::load(&Native, &location, &plain, 1, &Stop::new(), &Silent).unwrap_err();
        error.to_string()
    };
    let error = try_prepare(&["x", "full"]);
    assert!(error.contains("letter"), "{error}");
    let error = try_prepare(&["x", "b"]);
    assert!(error.contains("whose control file was in"), "{error}");
    let error = try_prepare(&["a", "other"]);
    assert!(error.contains("each have their own data set"), "{error}");
    let error = try_prepare(&["other", "b"]);
    assert!(error.contains("it belongs to data set"), "{error}");
    assert!(!homes.path("x").exists());
    homes.check(&["a", "b"], &plain).unwrap();
    homes.check(&["other"], &plain).unwrap();
}

#[test]
fn a_prepare_or_a_removal_cut_short_is_taken_up_again() {
    let homes = Homes::new();
    let made = homes.settings(None, Some("u"));
    homes.prepare(&["a", "b"], &made, 1);
    // As a removal leaves it that was killed after the first path.
    let mut lock = ControlFile::open_locked(&homes.path("a")).unwrap();
    let mut control = lock.control().clone();
    control.state = State::Loading;
    control.loaded_schemas = 0;
    lock.store(control).unwrap();
    drop(lock);
    fs::remove_dir_all(homes.path("b")).unwrap();
    let again = Native.inspect(&homes.location(&["a", "b"]), &made).unwrap();
    assert_eq!(again, Presence::Absent { harmless: true });
    // The next prepare may lay it out otherwise: what was there goes.
    homes.prepare(&["a", "c"], &settings(&[]), 1);
    homes.check(&["a", "c"], &settings(&[])).unwrap();
    assert_eq!(fs::read_dir(homes.path("u")).unwrap().count(), 0);
    homes.destroy(&["a", "c"]).unwrap();
    assert_eq!(homes.left(), ["u"]);
}

#[test]
fn paths_of_one_file_system_are_counted_together() {
    let homes = Homes::new();
    let location = homes.location(&["a", "b"]);
    let made = homes.settings(Some("r"), None);
    let plan = LoadPlan::new(&Asked::new(&location, &made).unwrap(), &made, 1).unwrap();
    assert_eq!(plan.spaces.len(), 1);
    let space = &plan.spaces[0];
    assert_eq!(space.paths.len(), 3);
    assert!(space.needed_bytes >= plan.write_bytes);
    assert!(space.needed_bytes <= plan.write_bytes + (64 << 10));
    let huge = settings(&[("SCALE", "1000000000")]);
    let error = LoadPlan::new(&Asked::new(&location, &huge).unwrap(), &huge, 1).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("/a, ") && error.contains("/b"), "{error}");
    assert!(error.contains("must stay free"), "{error}");
}
