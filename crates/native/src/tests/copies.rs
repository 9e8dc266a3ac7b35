//! Copies, aliases and damage: what is not provably a data set's own is neither used nor removed.

use super::paths::Homes;
use super::*;
use crate::control::SLOT_BYTES;
use crate::device;
use crate::paths::MARKER_NAME;

fn copy(homes: &Homes, from: &str, to: &str) {
    let copied = Command::new("cp").arg("-r").args([homes.path(from), homes.path(to)]).status();
    assert!(copied.unwrap().success());
}

#[test]
fn a_copy_of_the_first_path_never_takes_the_paths_of_the_original() {
    let homes = Homes::new();
    let plain = settings(&[]);
    homes.prepare(&["a", "b"], &plain, 1);
    copy(&homes, "a", "acopy");
    for named in [&["acopy"][..], &["acopy", "b"]] {
        let error = homes.refusal(named, &plain);
        assert!(error.contains("has a copy of the control file"), "{error}");
        assert!(homes.check(named, &plain).is_err());
    }
    let lines = homes.destroy(&["acopy"]).unwrap();
    let told = format!("{lines:?}");
    assert!(told.contains("skipped_paths"), "{told}");
    assert_eq!(homes.left(), ["a", "b"]);
    homes.check(&["a", "b"], &plain).unwrap();

    // Copied as a whole it is a data set of its own.
    copy(&homes, "a", "a2");
    copy(&homes, "b", "b2");
    homes.check(&["a2", "b2"], &plain).unwrap();
    homes.prepare(&["a2", "b2"], &plain, 2);
    homes.destroy(&["b2", "a2"]).unwrap();
    assert_eq!(homes.left(), ["a", "b"]);
    homes.check(&["a"], &plain).unwrap();

    // Moved, it has its other paths once they are named.
    fs::rename(homes.path("a"), homes.path("moved")).unwrap();
    let told = format!("{:?}", homes.check(&["moved", "b"], &plain).unwrap());
    assert!(told.contains("adopted"), "{told}");
    let told = format!("{:?}", homes.check(&["moved"], &plain).unwrap());
    assert!(!told.contains("adopted"), "{told}");
    homes.destroy(&["moved"]).unwrap();
    assert_eq!(homes.left(), Vec::<String>::new());
}

#[test]
fn a_copy_of_a_moved_data_sets_first_path_takes_nothing_of_it() {
    let homes = Homes::new();
    let plain = settings(&[]);
    homes.prepare(&["a", "b"], &plain, 1);
    fs::rename(homes.path("a"), homes.path("moved")).unwrap();
    copy(&homes, "moved", "acopy");
    // Which of the two is the copy nobody can tell.
    for alone in ["acopy", "moved"] {
        let error = homes.refusal(&[alone], &plain);
        assert!(error.contains("if the data set was moved, `assay check --target native:"), "{error}");
        assert!(homes.check(&[alone], &plain).is_err());
    }
    let told = format!("{:?}", homes.destroy(&["acopy"]).unwrap());
    assert!(told.contains("skipped_paths"), "{told}");
    assert_eq!(homes.left(), ["b", "moved"]);
    // Taken over, it is safe from a copy whose paths were named with it, too.
    copy(&homes, "moved", "acopy");
    homes.check(&["moved", "b"], &plain).unwrap();
    let error = homes.refusal(&["acopy", "b"], &plain);
    assert!(error.contains("has a copy of the control file"), "{error}");
    homes.destroy(&["acopy"]).unwrap();
    homes.check(&["moved"], &plain).unwrap();
    homes.destroy(&["moved"]).unwrap();
    assert_eq!(homes.left(), Vec::<String>::new());
}

#[test]
fn every_path_is_locked_while_it_is_used() {
    let homes = Homes::new();
    let plain = settings(&[]);
    homes.prepare(&["a", "b"], &plain, 1);
    let places = Places::new(["a", "b"].map(|name| crate::paths::DataPath::directory(homes.path(name))).to_vec());
    let claims = device::claim(&places).unwrap();
    for refused in [homes.check(&["a", "b"], &plain).unwrap_err(), homes.destroy(&["a", "b"]).unwrap_err()] {
        assert!(refused.to_string().contains("is locked"), "{refused}");
    }
    drop(claims);
    homes.check(&["a", "b"], &plain).unwrap();
}

#[test]
fn one_directory_under_two_names_is_refused() {
    let homes = Homes::new();
    let plain = settings(&[]);
    std::os::unix::fs::symlink(homes.path("a"), homes.path("link")).unwrap();
    let refused = |names: &[&str]| {
        let at = homes.location(names);
        let done = life::load(&Native, &at, &plain, 1, &Stop::new(), &Silent);
        done.unwrap_err()
    };
    // The link leads nowhere yet: it is seen when the directories are made.
    let error = refused(&["a", "link"]);
    assert!(matches!(error, EngineError::Usage(_)), "{error}");
    assert!(error.to_string().contains("two names"), "{error}");
    assert_eq!(homes.left(), ["link"]);
    fs::create_dir(homes.path("a")).unwrap();
    assert!(refused(&["a", "link"]).to_string().contains("named twice"));
    fs::create_dir(homes.path("bound")).unwrap();
    let bound = Command::new("mount").arg("--bind").args([homes.path("a"), homes.path("bound")]).status();
    if !bound.is_ok_and(|status| status.success()) {
        println!("SKIPPED: mounting needs root");
        return;
    }
    let error = refused(&["a", "bound"]);
    let gone = Command::new("umount").arg(homes.path("bound")).status();
    assert!(gone.unwrap().success());
    assert!(error.to_string().contains("named twice"), "{error}");
}

#[test]
fn the_rest_of_a_damaged_data_set_can_be_destroyed() {
    let homes = Homes::new();
    let plain = settings(&[]);
    homes.prepare(&["a", "b", "c", "e"], &plain, 1);
    let marker = |name: &str| homes.path(name).join(MARKER_NAME);
    let raw = OpenOptions::new().write(true).open(marker("b")).unwrap();
    raw.write_all_at(&[0xff; 8], 16).unwrap();
    fs::remove_dir_all(homes.path("c")).unwrap();
    assert!(homes.check(&["a"], &plain).is_err());
    for named in [&["a"][..], &["a", "b"]] {
        let planned = Native.plan_destroy(&homes.location(named), &plain).unwrap();
        let text = format!("{planned:?}");
        assert!(text.contains("skipped_paths"), "{text}");
        assert!(text.contains("checksum of its marker"), "{text}");
        assert!(text.contains("/c; mount it there"), "{text}");
    }
    homes.destroy(&["a", "b"]).unwrap();
    assert_eq!(homes.left(), ["b"]);
    assert!(homes.path("b/data-0002.assay").exists());
}

#[test]
fn a_damaged_control_slot_is_never_loaded_over() {
    for (damage, slot) in [(0xff_u8, 1), (0, 1), (0xff, 0), (0, 0)] {
        let home = directory();
        let dir = home.path();
        load(dir, &settings(&[]), 1).unwrap();
        let before = fs::read(dir.join("data-0001.assay")).unwrap();
        let control = OpenOptions::new().write(true).open(dir.join(CONTROL_NAME)).unwrap();
        control.write_all_at(&[damage; SLOT_BYTES], slot * SLOT_BYTES as u64).unwrap();
        // The newest record is the third, in the second slot; the one before it says loading.
        if slot == 0 {
            check(dir).unwrap();
            assert_eq!(read_control(dir).state, State::Clean);
            continue;
        }
        for error in [
            Native.inspect(&location(dir), &settings(&[])).unwrap_err(),
            load(dir, &settings(&[]), 2).unwrap_err(),
            check(dir).unwrap_err(),
        ] {
            assert!(matches!(error, EngineError::Damaged(_)), "{error}");
            assert!(error.to_string().contains("`assay destroy`"), "{error}");
        }
        assert!(fs::read(dir.join("data-0001.assay")).unwrap() == before);
        life::destroy(&Native, &location(dir), &settings(&[])).unwrap();
        assert!(!dir.exists());
    }
}

#[test]
fn what_is_named_as_a_control_file_and_is_none_is_not_waited_for() {
    let home = directory();
    let pipe = home.path().join(CONTROL_NAME);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = Native.inspect(&location(home.path()), &settings(&[])).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}
