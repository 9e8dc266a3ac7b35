//! Files that were ours: a storage job is killed with SIGKILL, somebody else's content comes into its file, and the next run
//! leaves it alone. Images of loop devices by every name they have.

use crate::common::{Place, Ran, with};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const MIB: usize = 1 << 20;
const JOB: &[&str] = &["io", "--no-record", "--name=w", "--filename=f", "--bs=8k", "--size=8m"];

fn tool(place: &Place, line: &str) {
    let done = Command::new("sh").args(["-ec", line]).current_dir(place.path(".")).status();
    assert!(done.expect("a shell").success(), "{line}");
}

/// What a job writes before it is killed.
fn killed(place: &Place, more: &[&str]) {
    let words = with(JOB, &["--time_based", "--runtime=600"]);
    let file = place.path("f");
    let written = || {
        let content = std::fs::read(&file).unwrap_or_default();
        let blocks = content.chunks(8192).skip(1);
        blocks.filter(|block| block.iter().any(|byte| *byte != 0)).count() > 100
    };
    place.start(&with(&words, more)).until("written blocks", written).kill();
}

/// The next run: a few writes.
fn next(place: &Place, more: &[&str]) -> Ran {
    let words = with(JOB, &["--rw=randwrite", "--number_ios=50"]);
    place.assay(&with(&words, more))
}

/// The next run is refused, with the way out, and changes nothing.
fn refused(place: &Place, what: &str) {
    let before = std::fs::read(place.path("f")).expect("readable");
    // Within the shortest of what comes into it.
    let ran = next(place, &["--size=1m"]);
    assert_eq!(ran.code, 3, "{what}: {}{}", ran.out, ran.err);
    assert!(ran.err.contains("--destroy f"), "{what}: {}", ran.err);
    let after = std::fs::read(place.path("f")).expect("readable");
    assert!(before == after, "{what}: the content was changed");
    next(place, &["--size=1m", "--destroy=f"]).code(0);
}

/// Somebody's data: text, so that no block is empty.
fn foreign(place: &Place, bytes: usize) {
    let line = b"precious rows of somebody else's database\n";
    let content: Vec<u8> = line.iter().copied().cycle().take(bytes).collect();
    std::fs::write(place.path("theirs"), content).expect("written");
}

const INTRUSIONS: [(&str, &str); 9] = [
    ("shorter", "head -c 3000000 theirs > short; cat short > f"),
    ("of the same length", "cp theirs f"),
    ("of the same length and time", "touch -r f time; cp theirs f; touch -r time f"),
    ("truncated and extended", "cp theirs f; truncate -s 4m f; truncate -s 8m f"),
    ("only a part of it", "dd if=theirs of=f bs=64k count=1 seek=70 conv=notrunc status=none"),
    (
        "one sector of it, with the time set back",
        "touch -r f time; dd if=theirs of=f bs=512 count=1 seek=9999 conv=notrunc status=none; touch -r time f",
    ),
    ("appended", "cat theirs >> f"),
    ("a few bytes appended", "echo theirs >> f"),
    ("emptied and extended", "truncate -s 0 f; truncate -s 8m f"),
];

#[test]
fn after_a_kill_foreign_content_in_the_file_is_refused_and_kept() {
    for (what, how) in INTRUSIONS {
        let place = Place::new();
        foreign(&place, 8 * MIB);
        killed(&place, &["--rw=randwrite"]);
        tool(&place, how);
        refused(&place, what);
    }
}

#[test]
fn after_a_clean_end_foreign_content_in_the_file_is_refused_and_kept() {
    for (what, how) in INTRUSIONS {
        let place = Place::new();
        foreign(&place, 8 * MIB);
        place.assay(&with(JOB, &["--rw=write"])).code(0);
        tool(&place, how);
        refused(&place, what);
    }
}

#[test]
fn after_a_kill_a_file_that_nobody_else_touched_is_used_again() {
    let cases: [&[&str]; 6] = [
        &["--rw=write"],
        &["--rw=randwrite", "--direct=1", "--iodepth=8", "--ioengine=io_uring"],
        &["--rw=randrw", "--bs=512", "--refill_buffers=1"],
        &["--rw=randwrite", "--overwrite=1", "--numjobs=3"],
        &["--rw=randwrite", "--fallocate=none", "--bssplit=4k/50:8k/50"],
        &["--rw=write", "--size=5000001"],
    ];
    for more in cases {
        let place = Place::new();
        killed(&place, more);
        let ran = next(&place, &[]).code(0);
        assert!(ran.err.contains("assay's file of"), "{more:?}: {}", ran.err);
        // Moving it, which a mark does not survive, is no intrusion either.
        tool(&place, "mv f g; ln g f; chmod 600 f");
        next(&place, &[]).code(0);
    }
}

#[test]
fn content_that_proves_nothing_is_ours_after_a_clean_end_and_refused_after_a_kill() {
    let rules: [&[&str]; 4] = [
        &["--buffer_pattern=0x5a"],
        &["--scramble_buffers=0"],
        &["--verify=crc32c"],
        &["--buffer_compress_percentage=50"],
    ];
    for rule in rules {
        let place = Place::new();
        let writing = with(JOB, &["--rw=write"]);
        let writing = with(&writing, rule);
        place.assay(&writing).code(0);
        place.assay(&writing).code(0);
        tool(&place, "rm f");
        killed(&place, &with(&["--rw=write"], rule));
        let ran = next(&place, rule);
        assert_eq!(ran.code, 3, "{rule:?}: {}", ran.err);
        assert!(ran.err.contains("remove it"), "{}", ran.err);
        tool(&place, "rm f");
        next(&place, rule).code(0);
    }
}

#[test]
fn a_copy_of_a_file_of_ours_is_not_ours() {
    let place = Place::new();
    killed(&place, &["--rw=write"]);
    tool(&place, "cp -a --preserve=all f g; rm f; mv g f");
    refused(&place, "a copy");
}

#[test]
fn the_image_of_a_mounted_loop_device_is_kept_by_whichever_name_it_is_destroyed() {
    let place = Place::new();
    let image = place.path("image");
    File::create(&image).expect("made").set_len(16 << 20).expect("sized");
    let made = "mkfs.ext4 -q image; mkdir at dir; mount -o loop image at; echo precious > at/row; sync -f at";
    let made = Command::new("sh").args(["-ec", made]).current_dir(place.path(".")).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: no image can be mounted here");
        return;
    }
    tool(&place, "ln image hard; ln -s image soft; mount --bind . dir; touch file; mount --bind image file");
    let marked = |name: &str| destroyed(&place, name);
    let mut answers: Vec<Ran> = ["image", "hard", "soft", "dir/hard", "file"].map(marked).into();
    tool(&place, "rm image; echo other > image");
    answers.push(destroyed(&place, "hard"));
    let row = std::fs::read_to_string(place.path("at/row"));
    let content = sector(&place.path("hard"), 2);
    tool(&place, "umount file dir at");
    assert_eq!(row.expect("readable"), "precious\n");
    assert_ne!(content, [0; 512], "the file system's own block");
    for ran in answers {
        assert_eq!(ran.code, 3, "{}", ran.err);
        assert!(ran.err.contains("content of the loop device"), "{}", ran.err);
    }
    destroyed(&place, "hard").code(0);
}

fn destroyed(place: &Place, name: &str) -> Ran {
    place.assay(&[
        "io",
        "--no-record",
        "--name=w",
        &format!("--filename={name}"),
        &format!("--destroy={name}"),
        "--rw=write",
        "--bs=64k",
    ])
}

fn sector(path: &Path, number: u64) -> [u8; 512] {
    let mut bytes = [0; 512];
    let file = File::open(path).expect("readable");
    file.read_exact_at(&mut bytes, number * 512).expect("so long");
    bytes
}
