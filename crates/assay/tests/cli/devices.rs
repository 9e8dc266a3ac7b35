//! Raw block devices as paths of a data set, on loop devices of these tests' own.

#![expect(clippy::print_stderr, reason = "a test that cannot run here has to say so")]

use crate::common::{Place, SMALL, with};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A loop device over a file of a place; detached when the test ends.
struct Loop {
    node: String,
    image: PathBuf,
}

impl Loop {
    /// `None`, with the reason on stderr, where this host lets nobody make loop devices.
    fn new(place: &Place, name: &str, mebibytes: u64) -> Option<Self> {
        let image = place.path(name);
        let file = File::create(&image).expect("an image");
        file.set_len(mebibytes << 20).expect("a size");
        if !Path::new("/dev/loop-control").exists() {
            eprintln!("skipped: /dev/loop-control is not there");
            return None;
        }
        let image_name = image.to_str().expect("a plain name");
        let Ok(made) = Command::new("losetup").args(["--find", "--show", image_name]).output() else {
            eprintln!("skipped: no losetup in the search path");
            return None;
        };
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr);
            eprintln!("skipped: losetup refuses ({})", why.trim());
            return None;
        }
        let node = String::from_utf8(made.stdout).expect("a name");
        Some(Self { node: node.trim().to_owned(), image })
    }

    fn target(&self) -> String {
        format!("native:{}", self.node)
    }

    fn bytes(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let node = File::open(&self.node).expect("readable");
        node.read_exact_at(&mut bytes, offset).expect("so long");
        bytes
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        let node = OpenOptions::new().write(true).open(&self.node);
        let node = node.expect("writable");
        node.write_all_at(bytes, offset).expect("written");
        node.sync_all().expect("durable");
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = tool("losetup", &["--detach", &self.node]);
        let _ = std::fs::remove_file(&self.image);
    }
}

fn tool(name: &str, args: &[&str]) -> Option<Output> {
    Command::new(name).args(args).output().ok()
}

fn succeeded(ran: Option<Output>) -> bool {
    ran.is_some_and(|ran| ran.status.success())
}

/// What real fio 3.33 does on the same loop device: as many trims and writes, each with a clat, trims without a slat.
#[test]
fn io_trims_a_device_that_destroy_names_where_it_is_told_and_nothing_else() {
    let place = Place::new();
    let Some(device) = Loop::new(&place, "disk", 16) else {
        return;
    };
    let fill = || device.write(0, &vec![0x5a; 16 << 20]);
    let is_all = |offset: u64, len: usize, byte: u8| device.bytes(offset, len).iter().all(|found| *found == byte);
    const MIB: usize = 1 << 20;
    let job = [
        "io",
        "--no-record",
        "--name=a",
        "--filename",
        &device.node,
        "--offset=4m",
        "--size=8m",
        "--bs=64k",
        "--iodepth=8",
    ];
    fill();
    let refused = place.assay(&with(&job, &["--rw=randtrim"])).code(3);
    assert!(refused.err.contains("--destroy"), "{}", refused.err);
    let destroy = with(&job, &["--destroy", &device.node]);
    let readonly = with(&destroy, &["--readonly", "--rw=trimwrite"]);
    assert!(place.assay(&readonly).code(2).err.contains("--readonly"));
    assert!(is_all(0, 16 * MIB, 0x5a));
    for engine in ["psync", "io_uring", "libaio"] {
        let engine = format!("--ioengine={engine}");
        for mode in ["trim", "randtrim"] {
            fill();
            let mode = format!("--rw={mode}");
            let ran = place.assay(&with(&destroy, &[&engine, &mode, "--direct=1"])).code(0);
            assert!(ran.out.contains("total=0,0,128,0 short=0,0,0,0"), "{}", ran.out);
            assert!(ran.out.contains("   TRIM: bw="), "{}", ran.out);
            assert!(!ran.out.contains("slat ("), "{}", ran.out);
            assert!(ran.out.contains("0 violated"), "{}", ran.out);
            // The bytes that were asked for and no others; a loop device reads what it discarded as zeroes.
            assert!(is_all(0, 4 * MIB, 0x5a) && is_all(12 << 20, 4 * MIB, 0x5a));
            assert!(is_all(4 << 20, 8 * MIB, 0), "{engine} {mode}");
        }
        for mode in ["trimwrite", "randtrimwrite"] {
            fill();
            let mode = format!("--rw={mode}");
            let words = [&engine, &mode, "--buffer_pattern=0x77", "--scramble_buffers=0", "--direct=1"];
            let ran = place.assay(&with(&destroy, &words)).code(0);
            assert!(ran.out.contains("total=0,128,128,0 short=0,0,0,0"), "{}", ran.out);
            assert!(ran.out.contains("0 violated"), "{}", ran.out);
            assert!(is_all(0, 4 * MIB, 0x5a) && is_all(12 << 20, 4 * MIB, 0x5a));
            assert!(is_all(4 << 20, 8 * MIB, 0x77), "{engine} {mode}");
        }
    }
    // Not whole blocks of the device: its error, and what to do.
    let odd = with(&destroy, &["--rw=trim", "--bs=1000"]);
    let ran = place.assay(&odd).code(3);
    assert!(ran.err.contains("whole blocks of the device"), "{}", ran.err);
}

/// Neither for a name that means it nor where fio's own word would allow it.
#[test]
fn io_writes_to_no_mounted_device_by_whichever_name() {
    let place = Place::new();
    let Some(device) = Loop::new(&place, "disk", 64) else {
        return;
    };
    let job = ["io", "--no-record", "--name=w", "--bs=4k", "--size=1m", "--filename"];
    let write = |name: &str, destroyed: &str| {
        let more = [name, "--rw=randwrite", "--allow_mounted_write=1", "--destroy", destroyed];
        place.assay(&with(&job, &more))
    };
    write(&device.node, "disk").code(3);
    assert_eq!(device.bytes(0, 64 << 20), vec![0; 64 << 20], "another name was said");
    let (point, alias) = (place.path("mounted"), place.path("alias"));
    std::fs::create_dir(&point).expect("a mount point");
    std::os::unix::fs::symlink(&device.node, &alias).expect("another name");
    let point = point.to_str().expect("a plain name");
    if !succeeded(tool("mkfs.ext4", &["-q", &device.node])) || !succeeded(tool("mount", &[&device.node, point])) {
        eprintln!("skipped in part: mounting is not allowed here");
        return;
    }
    let names = [&device.node, "alias", alias.to_str().expect("a plain name")];
    let refused = names.map(|name| write(name, name));
    let read = place.assay(&with(&job, &[&device.node, "--readonly", "--rw=randread", "--direct=1"]));
    assert!(succeeded(tool("umount", &[point])), "{point} stays mounted");
    for ran in refused {
        assert!(ran.code(3).err.contains("mounted"));
    }
    read.code(0);
}

#[test]
fn io_counts_and_names_the_errors_of_a_device_that_ends_early() {
    let place = Place::new();
    let Some(device) = Loop::new(&place, "disk", 64) else {
        return;
    };
    let image = OpenOptions::new().write(true).open(&device.image).expect("the image");
    image.set_len(8 << 20).expect("shorter");
    let job = ["io", "--no-record", "--name=e", "--rw=read", "--bs=4k", "--size=32m", "--ioengine=psync", "--direct=1"];
    let ran = place.assay(&with(&job, &["--filename", &device.node])).code(4);
    assert!(ran.err.contains("error: e, clone 0"), "{}", ran.err);
    assert!(ran.out.contains("err= 5"), "{}", ran.out);
}

const PREPARE: &[&str] = &["prepare", "-s", "2", "--target"];
const MARK: &[u8] = b"ASSAYMBR";

#[test]
fn a_device_is_a_data_set_only_after_its_name_was_said_twice() {
    let place = Place::new();
    let Some(device) = Loop::new(&place, "disk", 256) else {
        return;
    };
    let target = device.target();
    let prepare = with(&with(PREPARE, &[&target]), SMALL);
    let refused = place.assay(&prepare).code(3);
    let option = format!("--destroy {}", device.node);
    assert!(refused.err.contains(&option), "{}", refused.err);
    let run = place.assay(&["run", "--time", "1", "--target", &target]);
    assert!(run.code(3).err.contains("assay prepare"));
    assert!(device.bytes(0, 1 << 20).iter().all(|byte| *byte == 0));

    // Another device's name, or a directory's, is a mistake and no permission.
    let wrong = with(&prepare, &["--destroy", "/dev/null"]);
    assert!(place.assay(&wrong).code(2).err.contains("names nothing"));
    assert!(device.bytes(0, 1 << 20).iter().all(|byte| *byte == 0));

    let allowed = with(&prepare, &["--destroy", &device.node]);
    let summary = place.assay(&allowed).code(0);
    assert!(summary.out.contains("Rows loaded"), "{}", summary.out);
    assert_eq!(device.bytes(0, 8), MARK);
    place.assay(&["check", "--target", &target]).code(0);

    // Our own device needs no permission: a run that changes it, more schemas, a check.
    let args = ["run", "--time", "5", "--warmup", "0", "--format", "json"];
    let more = ["--set", "UPDATE_PCT=50", "--set", "CACHE_MB=4"];
    let ran = place.assay(&with(&with(&args, &more), &["--target", &target]));
    let record: serde_json::Value = serde_json::from_str(&ran.code(0).out).expect("a record");
    let paths = record["instance"]["paths"].as_array().expect("rows");
    let kinds: Vec<&str> = paths.iter().filter_map(|row| row["file_type"].as_str()).collect();
    assert!(kinds.contains(&"Data File") && kinds.contains(&"Log File"), "{kinds:?}");
    for row in paths {
        assert_eq!(row["path"], *device.node);
        assert_eq!(row["device"], device.node.trim_start_matches("/dev/"));
        assert!(row["device_reads_count"].is_u64(), "{row}");
    }
    let add = ["prepare", "-s", "3", "--target", &target, "--set", "SCALE=2000"];
    place.assay(&add).code(0);
    place.assay(&["check", "--target", &target]).code(0);

    place.assay(&["destroy", "--target", &target]).code(0);
    assert!(device.bytes(0, 1 << 20).iter().all(|byte| *byte == 0));
    place.assay(&["check", "--target", &target]).code(3);
}

#[test]
fn what_others_left_on_a_device_is_named_and_what_is_mounted_is_never_touched() {
    let place = Place::new();
    let Some(device) = Loop::new(&place, "disk", 256) else {
        return;
    };
    let target = device.target();
    let prepare = with(&with(PREPARE, &[&target]), SMALL);
    let allowed = with(&prepare, &["--destroy", &device.node]);
    if !succeeded(tool("mkfs.ext4", &["-q", &device.node])) {
        eprintln!("skipped: no mkfs.ext4 that works here");
        return;
    }
    let refused = place.assay(&prepare).code(3);
    assert!(refused.err.contains("an ext4 file system") || refused.err.contains("ext2/ext3/ext4"), "{}", refused.err);
    let before = device.bytes(0, 1 << 20);

    let point = place.path("mounted");
    std::fs::create_dir(&point).expect("a mount point");
    let point = point.to_str().expect("a plain name").to_owned();
    if succeeded(tool("mount", &[&device.node, &point])) {
        let refused = place.assay(&allowed);
        let unmounted = succeeded(tool("umount", &[&point]));
        assert!(unmounted, "{point} stays mounted");
        assert!(refused.code(3).err.contains("is mounted at"));
        let label = device.bytes(1080, 2);
        assert_eq!(label, [0x53, 0xef], "the file system is still there");
    } else {
        eprintln!("skipped in part: mounting is not allowed here");
        assert_eq!(device.bytes(0, 1 << 20), before);
    }
    // The backup of a partition table at the end goes with the rest, or it would bring it back.
    let end = (256 << 20) - 512;
    device.write(end, b"EFI PART");
    place.assay(&allowed).code(0);
    assert_eq!(device.bytes(end, 8), [0; 8]);
    let text = tool("mount", &[&device.node, &point]).map(|ran| ran.status.success());
    assert_ne!(text, Some(true), "no file system is left to mount");
    place.assay(&["destroy", "--target", &target]).code(0);
}

#[test]
fn devices_and_directories_make_one_data_set() {
    let place = Place::new();
    let (Some(one), Some(two)) = (Loop::new(&place, "one", 160), Loop::new(&place, "two", 160)) else {
        return;
    };
    let target = format!("native:data,{}", one.node);
    let redo = format!("REDO_DIR={}", two.node);
    let prepare = with(&with(PREPARE, &[&target, "--set", &redo]), SMALL);
    let half = with(&prepare, &["--destroy", &one.node]);
    let refused = place.assay(&half).code(3);
    assert!(refused.err.contains(&two.node), "{}", refused.err);
    assert!(!place.path("data").exists());
    place.assay(&with(&half, &["--destroy", &two.node])).code(0);
    assert_eq!(one.bytes(0, 8), MARK);
    assert_eq!(two.bytes(0, 8), MARK);
    let args = ["run", "--format", "full", "--time", "1", "--warmup", "0", "--target", &target];
    let ran = place.assay(&with(&args, &["--set", "UPDATE_PCT=100", "--set", "CACHE_MB=4"]));
    let report = ran.code(0).out;
    let rows: Vec<&str> = report.split("I/O by Path").nth(1).expect("the section").lines().take(12).collect();
    let row = |path: &str, kind: &str| rows.iter().any(|row| row.contains(path) && row.contains(kind));
    assert!(row("data ", "Data File") && row(&one.node, "Data File"), "{rows:#?}");
    assert!(row(&two.node, "Log File"), "{rows:#?}");
    place.assay(&["check", "--target", &target]).code(0);

    // A path that is gone is named; a device of another data set is not taken for ours.
    two.write(0, &[0; 4096]);
    let refused = place.assay(&["check", "--target", &target]).code(3);
    assert!(refused.err.contains(&two.node), "{}", refused.err);
    assert!(refused.err.contains("is missing"), "{}", refused.err);
}

#[test]
fn a_device_too_small_is_refused_before_anything_is_written() {
    let place = Place::new();
    let Some(device) = Loop::new(&place, "disk", 32) else {
        return;
    };
    let target = device.target();
    let prepare = with(&with(PREPARE, &[&target]), SMALL);
    let refused = place.assay(&with(&prepare, &["--destroy", &device.node])).code(3);
    assert!(refused.err.contains("a larger device"), "{}", refused.err);
    assert!(device.bytes(0, 1 << 20).iter().all(|byte| *byte == 0));
}
