//! Preparing that is cut off: on request, by a kill, by a full file system; what it leaves and how it goes on.

use super::*;

/// Asks for a stop as soon as a phase reports progress.
struct StopAt<'a> {
    stop: &'a Stop,
    phase: &'static str,
}

impl Progress for StopAt<'_> {
    fn update(&self, phase: &str, _done_bytes: u64, _total_bytes: u64) {
        if phase == self.phase && !self.stop.requested() {
            self.stop.request();
        }
    }
}

/// Looks at the control file whenever there is progress.
struct Witness<'a> {
    dir: &'a Path,
    seen: Mutex<BTreeSet<(&'static str, u32, u32, u64)>>,
}

impl Progress for Witness<'_> {
    fn update(&self, phase: &str, _done_bytes: u64, _total_bytes: u64) {
        let control = read_control(self.dir);
        for name in control.file_names() {
            assert!(self.dir.join(&name).exists(), "{phase}: {name} is not there yet");
        }
        let g = control.geometry;
        let seen = (control.state.word(), control.loaded_schemas, g.schemas, g.scale);
        self.seen.lock().unwrap().insert(seen);
    }
}

/// Its file system went read-only after an error of its device.
#[test]
fn what_a_removal_cannot_remove_is_said_and_a_full_file_system_is_no_obstacle() {
    let mount = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(arguments[0]);
        command.args(&arguments[1..]).arg(mount.path());
        command.status().is_ok_and(|status| status.success())
    };
    if !run(&["mount", "-t", "tmpfs", "-o", "size=128m", "none"]) {
        println!("SKIPPED: mounting needs root");
        return;
    }
    let dir = mount.path().join("d");
    life::load(&Native, &location(&dir), &settings(&[]), 1, &Stop::new(), &Silent).unwrap();
    let was_set = run(&["mount", "-o", "remount,ro"]);
    let refused = life::destroy(&Native, &location(&dir), &settings(&[]));
    let is_again = run(&["mount", "-o", "remount,rw"]);
    while fs::write(mount.path().join(format!("{}", fs::read_dir(mount.path()).unwrap().count())), [1; 1 << 20]).is_ok()
    {
    }
    let removed = life::destroy(&Native, &location(&dir), &settings(&[]));
    let is_gone = !dir.exists();
    let unmounted = run(&["umount"]);
    assert!(was_set && is_again && unmounted);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("Read-only file system") && error.contains(" files with "), "{error}");
    removed.unwrap();
    assert!(is_gone);
}

#[test]
fn the_control_file_says_loading_and_names_every_file_from_first_to_last_byte() {
    let home = directory();
    let dir = &home.path().join("data");
    let loading = |schemas: u32, scale: &str| {
        let witness = Witness { dir, seen: Mutex::default() };
        let settings = settings(&[("SCALE", scale)]);
        let stop = Stop::new();
        life::load(&Native, &location(dir), &settings, schemas, &stop, &witness).unwrap();
        witness.seen.into_inner().unwrap()
    };
    assert_eq!(loading(1, "2000"), [("loading", 0, 1, 2000)].into());
    assert_eq!(loading(3, "2000"), [("loading", 1, 3, 2000)].into());
    life::destroy(&Native, &location(dir), &settings(&[])).unwrap();
    interrupted_load(dir, 2, "load");
    assert_eq!(loading(1, "3000"), [("loading", 0, 1, 3000)].into());
}

fn interrupted_load(dir: &Path, schemas: u32, phase: &'static str) {
    let stop = Stop::new();
    let progress = StopAt { stop: &stop, phase };
    let at = location(dir);
    let settings = settings(&[]);
    let error = life::load(&Native, &at, &settings, schemas, &stop, &progress).unwrap_err();
    assert!(matches!(error, EngineError::Interrupted), "{error}");
}

#[test]
fn it_lives_as_every_data_set_does() {
    let home = directory();
    for (name, given) in [("plain", None), ("redo apart", Some("REDO_DIR"))] {
        let redo = home.path().join("redo");
        let given: Vec<(&str, &str)> = given.map(|word| (word, redo.to_str().unwrap())).into_iter().collect();
        let settings = settings(&given);
        let at = location(&home.path().join(name));
        let violations = life::life_suite(&Native, &at, &settings);
        assert_eq!(violations, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn an_interrupted_load_is_started_over() {
    let home = directory();
    let dir = home.path();
    for phase in ["load", "redo logs"] {
        interrupted_load(dir, 2, phase);
        assert_eq!(read_control(dir).state, State::Loading);
        let text = check(dir).unwrap_err().to_string();
        assert!(text.contains("`assay prepare --target"), "{text}");
        let presence = Native.inspect(&location(dir), &settings(&[])).unwrap();
        assert_eq!(presence, Presence::Absent { harmless: true });
        let plan = life::plan(&Native, &location(dir), &settings(&[]), 3).unwrap();
        assert!(format!("{plan:?}").contains("start over"), "{plan:?}");
    }
    load(dir, &settings(&[]), 3).unwrap();
    check(dir).unwrap();
}

#[test]
fn an_interrupted_addition_leaves_what_was_there() {
    let home = directory();
    let dir = home.path();
    load(dir, &settings(&[]), 2).unwrap();
    let control = read_control(dir);
    let bytes = fs::metadata(dir.join("data-0001.assay")).unwrap().len();
    interrupted_load(dir, 4, "load");
    assert_eq!(read_control(dir), control);
    assert_eq!(fs::metadata(dir.join("data-0001.assay")).unwrap().len(), bytes);
    check(dir).unwrap();
}

#[test]
fn an_addition_that_was_killed_is_resumed_or_given_up() {
    for again in [Some(4), Some(3), None] {
        let home = directory();
        let dir = home.path();
        load(dir, &settings(&[]), 2).unwrap();
        // The state a killed addition leaves: loading, files grown, content unknown.
        let mut lock = ControlFile::open_locked(dir).unwrap();
        let mut control = lock.control().clone();
        control.state = State::Loading;
        control.geometry.schemas = 4;
        let grown = control.geometry.data_file_bytes(0);
        lock.store(control).unwrap();
        drop(lock);
        let data = dir.join("data-0001.assay");
        OpenOptions::new().write(true).open(data).unwrap().set_len(grown).unwrap();
        let found = Native.inspect(&location(dir), &settings(&[])).unwrap();
        let Presence::Present(data) = found else {
            panic!("{found:?}");
        };
        assert_eq!((data.schemas, data.unfinished), (2, Some(4)));

        if let Some(schemas) = again {
            load(dir, &settings(&[]), schemas).unwrap();
        }
        let lines = check(dir).unwrap();
        let told = lines.iter().any(|line| line.key == "unfinished");
        assert_eq!(told, again.is_none());
        let control = read_control(dir);
        let schemas = again.unwrap_or(2);
        assert_eq!((control.loaded_schemas, control.state), (schemas, State::Clean));
        let bytes = fs::metadata(dir.join("data-0001.assay")).unwrap().len();
        assert_eq!(bytes, control.geometry.data_file_bytes(0));
        check(dir).unwrap();
    }
}

/// Not a test of its own: what the killed process of the next test runs.
#[test]
fn child_that_prepares() {
    if let Some(dir) = std::env::var_os("ASSAY_TEST_PREPARE_IN") {
        load(Path::new(&dir), &settings(&[("SCALE", "512M")]), 4).unwrap();
    }
}

#[test]
fn a_killed_prepare_is_started_over_and_touches_no_foreign_file() {
    let home = directory();
    let dir = home.path().join("data");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::interrupted::child_that_prepares"])
        .env("ASSAY_TEST_PREPARE_IN", &dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !dir.join("undo.assay").exists() {
        assert!(Instant::now() < deadline, "the child makes no files");
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = load(&dir, &settings(&[]), 1).unwrap_err().to_string();
    assert!(text.contains("another assay process"), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(read_control(&dir).state, State::Loading);
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    load(&dir, &settings(&[]), 1).unwrap();
    check(&dir).unwrap();
    assert_eq!(fs::read_to_string(dir.join("notes.txt")).unwrap(), "mine");
    assert_eq!(read_control(&dir).geometry.scale, 2000);
}

/// A small file system of its own; `None`, said loudly, where mounting is not allowed.
struct SmallFileSystem(PathBuf);

impl SmallFileSystem {
    fn mount(at: &Path, mib: u32) -> Option<Self> {
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(at.to_path_buf()));
        }
        println!("SKIPPED: mounting a tmpfs needs root");
        None
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_file_system_that_fills_up_ends_in_one_clear_error() {
    let home = directory();
    let Some(mounted) = SmallFileSystem::mount(home.path(), 48) else {
        return;
    };
    let stop = Stop::new();
    let watch = Watch { stop: &stop, progress: &Silent };
    let settings = settings(&[]);
    let dir = mounted.0.join("data");

    // Too small from the start.
    let error = load(&dir, &settings, 3).unwrap_err().to_string();
    assert!(error.contains("must stay free"), "{error}");
    assert!(!dir.exists());

    // Somebody else takes the space after the plan was made.
    let plan = LoadPlan::new(&asked(&dir), &settings, 1).unwrap();
    fs::write(mounted.0.join("big"), vec![1; 30 << 20]).unwrap();
    let error = prepare(&plan, &settings, watch).unwrap_err();
    assert!(matches!(error, EngineError::Unusable(_)), "{error}");
    assert!(error.to_string().contains("no space"), "{error}");
    assert!(!dir.exists(), "its own files are gone");

    // The same while schemas are added: what was there stays good.
    fs::remove_file(mounted.0.join("big")).unwrap();
    load(&dir, &settings, 1).unwrap();
    let control = read_control(&dir);
    fs::write(mounted.0.join("big"), vec![1; 12 << 20]).unwrap();
    let mut plan = LoadPlan::new(&asked(&dir), &settings, 1).unwrap();
    plan.start = match plan.start {
        Start::Nothing(there) => Start::Add(there),
        other => panic!("{other:?}"),
    };
    plan.control.geometry.schemas = 2;
    plan.control.state = State::Loading;
    let error = prepare(&plan, &settings, watch).unwrap_err();
    assert!(error.to_string().contains("no space"), "{error}");
    assert_eq!(read_control(&dir), control);
    check(&dir).unwrap();
}
