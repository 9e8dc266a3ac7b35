use super::*;
use crate::testing::directory;
use std::fs;

fn why(path: &Path) -> String {
    match check_writable_target(path) {
        Err(BlockError::Refused { why, remedy, .. }) => {
            assert!(!remedy.is_empty());
            why
        }
        other => panic!("{}: {other:?}", path.display()),
    }
}

#[test]
fn only_what_does_not_exist_yet_may_be_made() {
    let place = directory();
    check_writable_target(&place.path().join("new")).unwrap();
    let file = place.path().join("file");
    fs::write(&file, "precious").unwrap();
    assert!(why(&file).contains("existing file"));
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(
        why(&link).contains("existing file"),
        "a link does not hide what it points to"
    );
    fs::remove_file(&file).unwrap();
    assert!(why(&link).contains("symbolic link"));
    assert!(why(place.path()).contains("directory"));
    assert!(why(Path::new("/dev/null")).contains("neither"));
}

#[test]
fn the_disk_under_the_root_is_refused_by_whatever_name() {
    let facts = crate::device_facts(Path::new("/"));
    let Ok(name) = facts.disk else {
        // A root without a block device (overlay, network) has no disk that could be named.
        assert!(facts.device.is_err());
        return;
    };
    let node = PathBuf::from("/dev").join(&name);
    if node.exists() {
        let place = directory();
        let alias = place.path().join("alias");
        std::os::unix::fs::symlink(&node, &alias).unwrap();
        for path in [&node, &alias] {
            let why = why(path);
            assert!(
                why.contains("mounted") || why.contains("is part of"),
                "{why}"
            );
        }
    }
}

#[test]
fn free_space_is_that_of_the_nearest_existing_ancestor() {
    let place = directory();
    let space = rustix::fs::statvfs(place.path()).unwrap();
    let free = free_bytes(&place.path().join("a/b/c")).unwrap();
    let expected = space.f_bavail * space.f_frsize;
    // Others write meanwhile: close is all that can be asked for.
    assert!(
        free.abs_diff(expected) < expected / 2 + (1 << 30),
        "{free} against {expected}"
    );
    assert_eq!(nearest_existing(Path::new("/not/there")), Path::new("/"));
    assert_eq!(nearest_existing(Path::new("not/there")), Path::new("."));
}

#[test]
fn a_directory_is_empty_or_not() {
    let place = directory();
    assert!(is_dir_empty(place.path()).unwrap());
    fs::write(place.path().join(".hidden"), "").unwrap();
    assert!(!is_dir_empty(place.path()).unwrap());
    assert!(is_dir_empty(&place.path().join("missing")).is_err());
}

/// A disk 8:0 with partitions 8:1 and 8:2; 8:2 is held by dm-0 (253:0).
fn fake(mountinfo: &str) -> (tempfile::TempDir, Roots) {
    let place = directory();
    let root = fs::canonicalize(place.path()).unwrap();
    for dir in [
        "devices/sda/holders",
        "devices/sda/sda1/holders",
        "devices/sda/sda2/holders/dm-0",
        "devices/dm-0/holders",
    ] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for dir in ["proc/self", "dev/block"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for (dir, number, partition) in [
        ("sda", "8:0", false),
        ("sda/sda1", "8:1", true),
        ("sda/sda2", "8:2", true),
        ("dm-0", "253:0", false),
    ] {
        let dir = root.join("devices").join(dir);
        fs::write(dir.join("dev"), format!("{number}\n")).unwrap();
        if partition {
            fs::write(dir.join("partition"), "1\n").unwrap();
        }
        std::os::unix::fs::symlink(&dir, root.join("dev/block").join(number)).unwrap();
    }
    fs::write(root.join("proc/self/mountinfo"), mountinfo).unwrap();
    (
        place,
        Roots {
            proc: root.join("proc"),
            sys: root,
        },
    )
}

#[test]
fn a_device_is_known_by_its_number_its_partitions_and_its_holders() {
    let (_place, roots) = fake("30 27 8:1 / /boot rw - ext4 /dev/sda1 rw\n");
    let said = |device| use_of_device(&roots, device).unwrap();
    assert_eq!(said((8, 1)).as_deref(), Some("it is mounted at /boot"));
    assert_eq!(
        said((8, 0)).as_deref(),
        Some("its partition sda1 is mounted at /boot")
    );
    assert_eq!(said((8, 2)).as_deref(), Some("it is part of dm-0"));
    assert_eq!(said((253, 0)), None);
    assert_eq!(said((9, 9)), None);
}

#[test]
fn a_partition_of_a_disk_in_use_as_a_whole_is_refused() {
    let (_place, roots) = fake("30 27 8:0 / /data rw - ext4 /dev/sda rw\n");
    let said = use_of_device(&roots, (8, 1)).unwrap();
    assert_eq!(said.as_deref(), Some("its disk sda is mounted at /data"));
    let (_place, roots) = fake("");
    assert_eq!(use_of_device(&roots, (8, 1)).unwrap(), None);
}

/// The whole check against a real block device, where the test may make one.
#[test]
fn a_loop_device_is_accepted_empty_and_refused_signed_or_mounted() {
    use std::process::Command;
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {output:?}"
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let place = directory();
    let image = place.path().join("image");
    fs::write(&image, vec![0; 16 << 20]).unwrap();
    let attached = Command::new("losetup")
        .args(["--find", "--show"])
        .arg(&image)
        .output();
    let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
        eprintln!("skipped: no loop device to be had (not root, or no losetup)");
        return;
    };
    let device = String::from_utf8(attached.stdout)
        .unwrap()
        .trim()
        .to_owned();
    let outcome = std::panic::catch_unwind(|| {
        check_writable_target(Path::new(&device)).unwrap();
        run("mkfs.ext4", &["-q", &device]);
        assert!(why(Path::new(&device)).contains("ext4"));
        let mount_point = place.path().join("mounted");
        fs::create_dir(&mount_point).unwrap();
        run("mount", &[&device, mount_point.to_str().unwrap()]);
        let said = std::panic::catch_unwind(|| why(Path::new(&device)));
        run("umount", &[mount_point.to_str().unwrap()]);
        assert!(said.unwrap().contains("mounted at"));
    });
    run("losetup", &["--detach", &device]);
    outcome.unwrap();
}
