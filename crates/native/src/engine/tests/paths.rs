//! Runs over several directories: every request goes to the right one, and is counted there.

use super::*;
use assay_measure::snapshot::PathReading;
use std::path::PathBuf;

struct Homes {
    root: TempDir,
    redo: String,
    undo: String,
}

impl Homes {
    fn new() -> Self {
        let root = directory();
        let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        let (redo, undo) = (path("redo"), path("undo"));
        Self { root, redo, undo }
    }

    /// The words that name three data directories, where one is asked for.
    fn location(&self) -> PathBuf {
        let root = self.root.path().to_str().unwrap();
        format!("{root}/a,{root}/b,{root}/c").into()
    }

    fn settings(&self, given: &[(&str, &str)]) -> Settings {
        let places = [("REDO_DIR", self.redo.as_str()), ("UNDO_DIR", &self.undo)];
        settings(&[&places[..], given].concat())
    }
}

#[test]
fn an_engine_on_several_paths_passes_the_conformance_suite() {
    let homes = Homes::new();
    let given = [("SCALE", "1000"), ("CACHE_MB", "1")];
    let settings = homes.settings(&given);
    prepare(&homes.location(), &settings, 2);
    let violations = conformance::suite(&mut |plan| conformance::Subject {
        engine: open(&homes.location(), plan, &settings).unwrap(),
        clock: Clock::real(),
    });
    assert!(violations.is_empty(), "{violations:#?}");
    check(&homes.location(), &settings);
}

#[test]
fn every_path_is_counted_and_the_sums_are_the_rings() {
    let homes = Homes::new();
    let settings = homes.settings(&[("SCALE", "1000"), ("CACHE_MB", "1"), ("SCAN_TABLE_SZ", "600")]);
    prepare(&homes.location(), &settings, 2);
    let plan = Plan {
        update_pct: 50,
        work_unit: 16,
        update_work_unit: 16,
        work_loop: 100,
        run_time_ns: 0,
        scan_pct: 10,
        scan_blocks: 600,
        ..Plan::plain(2, 4, 1000)
    };
    let data = run(&homes.location(), &settings, &plan);
    let stats = &data.drained.stats;
    let sum = |field: fn(&PathReading) -> u64| stats.paths.iter().map(field).sum::<u64>();
    for (stat, counted) in [
        (counter_catalog::RING_READ_REQUESTS, sum(|path| path.read_requests)),
        (counter_catalog::RING_READ_BYTES, sum(|path| path.read_bytes)),
        (counter_catalog::RING_WRITE_REQUESTS, sum(|path| path.write_requests)),
        (counter_catalog::RING_WRITE_BYTES, sum(|path| path.write_bytes)),
    ] {
        assert_eq!(stats.get(stat), Some(counted), "{}", stat.name);
    }
    let row = |end: &str, file_type: &str| {
        let mut rows = stats.paths.iter();
        rows.find(|row| row.path.ends_with(end) && row.file_type == file_type)
            .unwrap_or_else(|| panic!("no row {end} {file_type}"))
    };
    for home in ["/a", "/b", "/c"] {
        let data = row(home, "Data File");
        assert!(data.read_requests > 0 && data.write_requests > 0, "{data:?}");
    }
    let fact = |name: &str| {
        let mut facts = data.engine_facts.iter();
        let fact = facts.find(|fact| fact.name == name);
        fact.unwrap_or_else(|| panic!("no fact {name}")).value.clone()
    };
    assert_eq!(fact("redo_path"), homes.redo);
    assert_eq!(fact("data_paths").split(", ").count(), 3);
    assert_eq!(fact("allocation_unit_bytes"), "1048576");
    assert!(row("/redo", "Log File").write_bytes > 0);
    assert!(row("/undo", "Undo File").write_bytes > 0);
    assert!(row("/a", "Control File").write_requests > 0);
    assert!(!stats.paths.iter().any(|row| row.path.ends_with("/b") && row.file_type != "Data File"));
    check(&homes.location(), &settings);
}

#[test]
fn a_data_set_on_several_paths_that_was_not_closed_is_recovered() {
    let homes = Homes::new();
    let settings = homes.settings(&[("SCALE", "1000"), ("CACHE_MB", "2")]);
    prepare(&homes.location(), &settings, 2);
    let plan = Plan { work_loop: 0, run_time_ns: 300_000_000, ..super::strain::updates(2, 2, 0) };
    let crashed = Homes::new();
    let engine = open(&homes.location(), &plan, &settings).unwrap();
    let options = Options { calibrate: false, ..Options::default() };
    struct Copy<'a>(&'a Homes, &'a Homes, u32);
    impl assay_run::Observer for Copy<'_> {
        fn phase(&mut self, _name: &str) {}
        fn snapshot(&mut self, mark: assay_run::Mark, _now: &assay_measure::snapshot::Snapshot) {
            if mark != assay_run::Mark::End {
                return;
            }
            // The control file first and the redo last: what is copied while it changes is then
            // covered by redo that is copied later.
            for home in ["a", "b", "c", "undo", "redo"] {
                let place = |homes: &Homes| homes.root.path().join(home);
                let (from, to) = (place(self.0), place(self.1));
                std::fs::create_dir(&to).unwrap();
                let entries = std::fs::read_dir(&from).unwrap();
                let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
                names.sort();
                for name in names {
                    std::fs::copy(from.join(&name), to.join(&name)).unwrap();
                    self.2 += 1;
                }
            }
        }
    }
    let mut copy = Copy(&homes, &crashed, 0);
    execute(&plan, &*engine, &Clock::real(), &Stop::new(), &mut copy, options)
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(copy.2 >= 8, "{} files copied", copy.2);
    drop(engine);
    // Every path has moved, so every one is named.
    let lines = Native
        .check(crashed.location().to_str().unwrap(), &crashed.settings(&[]), &Stop::new(), &Silent)
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(lines.iter().any(|line| line.key == "recovery_s"), "{lines:?}");
    check(&homes.location(), &settings);
}
