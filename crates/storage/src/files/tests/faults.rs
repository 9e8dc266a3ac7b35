//! Layouts that do not come to their end, and several runs at once.

use super::*;
use std::process::Command;

#[test]
fn a_stopped_layout_removes_what_it_began_and_keeps_what_was_there() {
    let place = directory();
    let ours = place.path().join("ours");
    run(&one(Mode::Read, &ours, MIB));
    let before = fs::read(&ours).unwrap();
    let fresh = place.path().join("fresh");
    let invocation = of(vec![job(Mode::Read, &ours, 64 * MIB), job(Mode::Read, &fresh, 64 * MIB)]);
    let stop = Stop::new();
    let told = Told { stop: Some(stop.clone()), ..Told::default() };
    let planned = plan(&invocation).unwrap();
    let ended = open(planned, &invocation, &stop, &told);
    assert!(matches!(ended, Err(EngineError::Interrupted)));
    assert!(!fresh.exists());
    assert_eq!(fs::read(&ours).unwrap(), before);
    // It is still ours and can be used at once.
    run(&one(Mode::Write, &ours, MIB));
}

#[test]
fn a_killed_layout_is_known_again_and_completed() {
    let place = directory();
    let path = place.path().join("f");
    let invocation = one(Mode::Read, &path, 4 * MIB);
    // What a kill leaves: marked as being laid out, as long as it shall be, written in parts.
    let file = File::create_new(&path).unwrap();
    marker::put(&path, &file, 5, 4 * MIB, marker::State::Laying).unwrap();
    file.set_len(4 * MIB).unwrap();
    for at in [0, 2 * MIB] {
        let mut piece = vec![5; 1 << 20];
        super::super::super::payload::proof::stamp(5, &mut piece, at, 0);
        std::os::unix::fs::FileExt::write_all_at(&file, &piece, at).unwrap();
    }
    drop(file);
    let planned = plan(&invocation).unwrap();
    assert_eq!(planned.files[0].target, PathState::File(Whose::Ours));
    assert_eq!(planned.files[0].fill, Fill::Write { from: MIB });
    run(&invocation);
    assert_eq!(content::hole_bytes(&path, 0, 4 * MIB), 0);
}

#[test]
fn a_file_in_use_by_another_run_is_refused_by_name_and_readers_share() {
    let place = directory();
    let path = place.path().join("f");
    let (reading, writing) = (one(Mode::Read, &path, MIB), one(Mode::Write, &path, MIB));
    run(&reading);
    let planned = |invocation: &Invocation| plan(invocation).map_err(join_errors).unwrap();
    let start = |invocation: &Invocation| open(planned(invocation), invocation, &Stop::new(), &Told::default());
    let writer = start(&writing).unwrap();
    for second in [&reading, &writing] {
        let why = start(second).unwrap_err().to_string();
        assert!(why.contains("in use") && why.contains("f"), "{why}");
    }
    writer.finish().unwrap();
    let reader = start(&reading).unwrap();
    let another = start(&reading).unwrap();
    assert!(start(&writing).unwrap_err().to_string().contains("in use"));
    drop((reader, another));
    start(&writing).unwrap().finish().unwrap();
}

#[test]
fn a_file_replaced_between_plan_and_run_is_not_touched() {
    let place = directory();
    let path = place.path().join("f");
    let writing = one(Mode::Write, &path, MIB);
    run(&writing);
    let planned = plan(&writing).unwrap();
    fs::rename(&path, place.path().join("away")).unwrap();
    fs::write(&path, vec![3; MIB as usize]).unwrap();
    let ended = open(planned, &writing, &Stop::new(), &Told::default());
    assert!(ended.unwrap_err().to_string().contains("replaced"));
    // And so between opening and the start of a later job.
    let away = one(Mode::Write, &place.path().join("away"), MIB);
    let opened = opened(&away);
    fs::rename(&path, place.path().join("away")).unwrap();
    let why = opened.files_of(0, 0, &Stop::new()).unwrap_err().to_string();
    assert!(why.contains("replaced"), "{why}");
    opened.finish().unwrap();
    let theirs = fs::read(place.path().join("away")).unwrap();
    assert_eq!(theirs, vec![3; MIB as usize]);
}

#[test]
fn create_on_open_and_directories_of_a_name_are_made_when_needed() {
    let place = directory();
    let path = place.path().join("a/b/f");
    let mut invocation = one(Mode::Write, &path, MIB);
    invocation.jobs[0].options.files.create_on_open = true;
    let opened = opened(&invocation);
    assert!(!place.path().join("a").exists());
    let files = opened.files_of(0, 0, &Stop::new()).unwrap();
    assert_eq!(files[0].len().unwrap(), 0);
    files[0].write_at(0, &[1; 4096]).unwrap();
    drop(files);
    opened.finish().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 4096);
    assert_eq!(plan(&one(Mode::Write, &path, 0)).unwrap().files[0].target, PathState::File(Whose::Ours));
}

#[test]
fn pre_read_brings_a_file_into_the_cache_and_notices_one_that_was_cut() {
    let place = directory();
    let path = place.path().join("f");
    fs::write(&path, vec![1; 4 * MIB as usize]).unwrap();
    let mut invocation = one(Mode::Read, &path, 0);
    invocation.jobs[0].options.files.pre_read = true;
    let opened = opened(&invocation);
    opened.files_of(0, 0, &Stop::new()).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(MIB).unwrap();
    let why = opened.files_of(0, 0, &Stop::new()).unwrap_err().to_string();
    assert!(why.contains("truncated it"), "{why}");
    opened.finish().unwrap();
}

/// A file system of its own that is soon full; `None` with the reason on stderr.
struct SmallDisk {
    place: tempfile::TempDir,
    mounted: PathBuf,
}

impl SmallDisk {
    fn new(mebibytes: u64) -> Option<Self> {
        let place = directory();
        let image = place.path().join("image");
        File::create(&image).unwrap().set_len(mebibytes << 20).unwrap();
        let mounted = place.path().join("mounted");
        fs::create_dir(&mounted).unwrap();
        let made = super::devices::succeeded(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))
            && super::devices::succeeded(Command::new("mount").args(["-o", "loop"]).args([&image, &mounted]));
        if !made {
            super::devices::skipped("no file system of its own can be mounted here");
            return None;
        }
        Some(Self { place, mounted })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A ring lets go of its files a moment after it is closed.
        for _ in 0..100 {
            if super::devices::succeeded(Command::new("umount").arg(&self.mounted)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert!(self.place.path().exists());
    }
}

#[test]
fn a_disk_that_fills_up_meanwhile_is_one_clear_error_and_is_as_free_as_before() {
    let Some(disk) = SmallDisk::new(64) else {
        return;
    };
    let (first, second) = (disk.mounted.join("first"), disk.mounted.join("second"));
    let invocation = of(vec![job(Mode::Read, &first, 8 * MIB), job(Mode::Read, &second, 24 * MIB)]);
    let planned = plan(&invocation).map_err(join_errors).unwrap();
    // Somebody takes the space between the plan and the layout.
    let others = disk.mounted.join("others");
    fs::write(&others, vec![1; 28 << 20]).unwrap();
    let failed = open(planned, &invocation, &Stop::new(), &Told::default()).unwrap_err();
    let text = failed.to_string();
    assert!(matches!(failed, EngineError::Unusable(_)), "{text}");
    assert!(text.contains("space") && text.contains("second"), "{text}");
    assert!(!first.exists() && !second.exists());
    assert!(others.exists());
    // Too little from the start is said before anything is made.
    let why = refused(&invocation);
    assert!(why.contains("must stay free for other uses"), "{why}");
    // Without preallocation the writes themselves meet the end of the space.
    let mut grown = one(Mode::Read, &second, 12 * MIB);
    grown.jobs[0].options.files.fallocate = super::super::super::spec::Fallocate::None;
    let planned = plan(&grown).map_err(join_errors).unwrap();
    // What was removed above becomes free when the file system's log says so.
    assert!(super::devices::succeeded(Command::new("sync").arg("-f").arg(&disk.mounted)));
    let free = assay_block::free_bytes(&disk.mounted).unwrap();
    fs::write(disk.mounted.join("more"), vec![1; (free - 4 * MIB) as usize]).unwrap();
    let failed = open(planned, &grown, &Stop::new(), &Told::default()).unwrap_err();
    assert!(failed.to_string().contains("space"), "{failed}");
    assert!(!second.exists());
}
