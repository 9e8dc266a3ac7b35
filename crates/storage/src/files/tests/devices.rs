//! Block devices, on loop devices of these tests' own: by every name they go by.

use super::*;
use std::os::unix::fs::{FileExt, symlink};
use std::process::Command;

pub(super) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

pub(super) fn succeeded(command: &mut Command) -> bool {
    command.output().is_ok_and(|ran| ran.status.success())
}

/// A loop device over a file; detached when the test ends.
struct Loop {
    node: PathBuf,
    place: tempfile::TempDir,
}

impl Loop {
    fn new(mebibytes: u64, content: impl FnOnce(&File)) -> Option<Self> {
        let place = directory();
        let image = place.path().join("image");
        let file = File::create_new(&image).unwrap();
        file.set_len(mebibytes << 20).unwrap();
        content(&file);
        let made = Command::new("losetup").args(["--find", "--show", "--partscan"]).arg(&image).output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            skipped("no loop device can be had here");
            return None;
        };
        let node = String::from_utf8(made.stdout).unwrap();
        Some(Self { node: PathBuf::from(node.trim()), place })
    }

    fn empty() -> Option<Self> {
        Self::new(16, |_| {})
    }

    fn run(&self, tool: &str, args: &[&str]) -> bool {
        succeeded(Command::new(tool).args(args).arg(&self.node))
    }

    /// A sum over all its bytes as the image holds them.
    fn checksum(&self) -> u32 {
        let image = self.place.path().join("image");
        assert!(succeeded(Command::new("sync").arg(&self.node).arg(&image)));
        crc32c::crc32c(&fs::read(image).unwrap())
    }

    /// Other names of the device: a link like those of `/dev/disk/by-id`, a node of its own.
    fn aliases(&self) -> Vec<PathBuf> {
        let link = self.place.path().join("by-id");
        let _ = fs::remove_file(&link);
        symlink(&self.node, &link).unwrap();
        let number = std::os::unix::fs::MetadataExt::rdev(&fs::metadata(&self.node).unwrap());
        let node = self.place.path().join("node");
        let made = succeeded(Command::new("mknod").arg(&node).args([
            "b",
            &rustix::fs::major(number).to_string(),
            &rustix::fs::minor(number).to_string(),
        ])) || node.exists();
        let mut names = vec![self.node.clone(), link];
        if made {
            names.push(node);
        }
        names
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.node).status();
    }
}

fn destroying(path: &Path) -> Invocation {
    let mut invocation = one(Mode::RandWrite, path, MIB);
    invocation.output.destroy = vec![path.to_path_buf()];
    invocation.jobs[0].options.files.allow_mounted_write = true;
    invocation
}

#[test]
fn a_free_device_is_written_to_only_when_named_and_read_at_will() {
    let Some(device) = Loop::empty() else { return };
    for name in device.aliases() {
        for mode in [Mode::Write, Mode::Trim, Mode::RandTrimWrite] {
            let why = refused(&one(mode, &name, 0));
            assert!(why.contains("--destroy") && why.contains("16 MiB"), "{why}");
        }
        let planned = plan(&destroying(&name)).map_err(join_errors).unwrap();
        assert_eq!(planned.files[0].target, PathState::Device);
        let verdict = planned.files[0].verdict();
        assert!(verdict.contains("DESTRUCTIVE: WRITTEN OVER"), "{verdict}");
    }
    let before = device.checksum();
    let reading = one(Mode::Read, &device.node, 0);
    let opened_reading = opened(&reading);
    let files = opened_reading.files_of(0, 0, &Stop::new()).unwrap();
    files[0].write_at(0, &[1; 4096]).unwrap_err();
    drop(files);
    opened_reading.finish().unwrap();
    // Larger than it is: it does not grow, the region ends where it ends.
    let more = plan(&one(Mode::Read, &device.node, 64 * MIB)).unwrap();
    assert_eq!(more.clones[0].regions[0].bytes, 16 * MIB);
    assert_eq!(device.checksum(), before);
    let writing = destroying(&device.node);
    let opened_writing = opened(&writing);
    // Held by us, so neither another run nor a mount may have it.
    let again = plan(&writing).map_err(join_errors).unwrap_err().to_string();
    assert!(again.contains("in use"), "{again}");
    let files = opened_writing.files_of(0, 0, &Stop::new()).unwrap();
    files[0].write_at(8192, &[0xa5; 4096]).unwrap();
    files[0].sync_data().unwrap();
    drop(files);
    opened_writing.finish().unwrap();
    assert_ne!(device.checksum(), before);
}

#[test]
fn io_11_a_mounted_device_is_refused_by_every_name_whatever_is_said() {
    let Some(device) = Loop::empty() else { return };
    if !device.run("mkfs.ext4", &["-q"]) {
        return skipped("no mkfs.ext4");
    }
    for name in device.aliases() {
        let why = refused(&one(Mode::Write, &name, 0));
        assert!(why.contains("an ext2/ext3/ext4 file system"), "{why}");
        assert!(why.contains("would be lost"), "{why}");
        let planned = plan(&destroying(&name)).map_err(join_errors).unwrap();
        let verdict = planned.files[0].verdict();
        assert!(verdict.contains("which destroys an ext2/ext3/ext4"), "{verdict}");
    }
    let point = device.place.path().join("point");
    fs::create_dir(&point).unwrap();
    if !succeeded(Command::new("mount").arg(&device.node).arg(&point)) {
        return skipped("nothing can be mounted here");
    }
    fs::write(point.join("f"), "precious").unwrap();
    // A file system that may be written to writes by itself now and then.
    let quiet = ["-o", "remount,ro"];
    assert!(succeeded(Command::new("mount").args(quiet).arg(&point)));
    let before = device.checksum();
    let names = device.aliases();
    let modes = [Mode::RandWrite, Mode::RandTrim, Mode::TrimWrite];
    let both = names.iter().flat_map(|name| modes.map(|mode| (name, mode)));
    let whys: Vec<String> = both
        .map(|(name, mode)| {
            let mut invocation = destroying(name);
            invocation.jobs[0].options.pattern.mode = mode;
            refused(&invocation)
        })
        .collect();
    let after = device.checksum();
    assert!(succeeded(Command::new("umount").arg(&point)));
    for why in whys {
        assert!(why.contains("mounted at"), "{why}");
        assert!(why.contains("no option lifts this refusal"), "{why}");
    }
    assert_eq!(before, after);
}

/// fio 3.33 makes the file and then fails on it (ENOTTY).
#[test]
fn a_file_is_not_trimmed_and_none_is_made_for_it() {
    let place = directory();
    let path = place.path().join("data");
    for mode in [Mode::Trim, Mode::RandTrim, Mode::TrimWrite] {
        let why = refused(&one(mode, &path, MIB));
        assert!(why.contains("works only on block devices"), "{why}");
        assert!(!path.exists());
    }
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let mut invocation = destroying(&path);
    invocation.jobs[0].options.pattern.mode = Mode::RandTrim;
    assert!(refused(&invocation).contains("works only on block devices"));
}

#[test]
fn swap_and_volumes_are_refused_or_said_to_be_lost() {
    let Some(device) = Loop::empty() else { return };
    if device.run("mkswap", &["-q"]) {
        let why = refused(&one(Mode::Write, &device.node, 0));
        assert!(why.contains("it contains swap space"), "{why}");
        if device.run("swapon", &[]) {
            let whys: Vec<String> = device.aliases().iter().map(|name| refused(&destroying(name))).collect();
            assert!(device.run("swapoff", &[]));
            assert!(whys.iter().all(|why| why.contains("swap")), "{whys:?}");
        } else {
            skipped("no swap can be added here");
        }
    } else {
        skipped("no mkswap");
    }
    drop(device);
    let volume = |file: &File| file.write_all_at(b"LABELONE", 512).unwrap();
    let Some(device) = Loop::new(16, volume) else {
        return;
    };
    let before = device.checksum();
    let why = refused(&one(Mode::Write, &device.node, 0));
    assert!(why.contains("an LVM physical volume, which would be lost"), "{why}");
    let planned = plan(&destroying(&device.node)).map_err(join_errors).unwrap();
    assert_eq!(planned.files[0].carries, Some("an LVM physical volume"));
    assert_eq!(device.checksum(), before);
}

#[test]
fn a_disk_with_a_mounted_partition_and_the_partitions_of_a_used_disk_are_refused() {
    let table = |file: &File| {
        // One Linux partition from sector 2048 on, 14 MiB (the classic table of 1983).
        let mut sector = [0_u8; 512];
        sector[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x70, 0, 0]);
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        file.write_all_at(&sector, 0).unwrap();
    };
    let Some(device) = Loop::new(16, table) else {
        return;
    };
    let why = refused(&one(Mode::Write, &device.node, 0));
    assert!(why.contains("partition table"), "{why}");
    let partition = PathBuf::from(format!("{}p1", device.node.display()));
    if !partition.exists() || !succeeded(Command::new("mkfs.ext4").arg("-q").arg(&partition)) {
        return skipped("loop devices have no partitions here");
    }
    let point = device.place.path().join("point");
    fs::create_dir(&point).unwrap();
    if !succeeded(Command::new("mount").arg(&partition).arg(&point)) {
        return skipped("nothing can be mounted here");
    }
    let whole: Vec<String> = device.aliases().iter().map(|name| refused(&destroying(name))).collect();
    let part = refused(&destroying(&partition));
    assert!(succeeded(Command::new("umount").arg(&point)));
    for why in whole.iter().chain([&part]) {
        assert!(why.contains("mounted"), "{why}");
    }
}

#[test]
fn the_file_below_a_loop_device_is_refused_even_when_named() {
    let Some(device) = Loop::empty() else { return };
    let image = device.place.path().join("image");
    let why = refused(&destroying(&image));
    assert!(why.contains("it is the content of the loop device loop"), "{why}");
}

#[test]
fn the_disk_below_the_root_is_refused_even_when_named() {
    let facts = assay_block::device_facts(Path::new("/"));
    let Ok(disk) = facts.disk else {
        return skipped("the root has no disk");
    };
    let node = Path::new("/dev").join(disk);
    if !node.exists() {
        return skipped("the disk of the root has no node here");
    }
    let why = refused(&destroying(&node));
    assert!(why.contains("mounted") || why.contains("is part of"), "{why}");
    assert!(why.contains("no option lifts this refusal"), "{why}");
}
