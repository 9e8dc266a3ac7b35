use super::*;
use crate::testing::directory;
use std::fs;

const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard
30 27 253:4 / /mnt/big\\040disk rw,noatime master:3 propagate_from:2 - xfs /dev/mapper/big rw,attr2,dax=always
31 27 0:40 /sub /mnt rw - btrfs /dev/nowhere rw
32 27 0:41 / /run/fast rw,nosuid - tmpfs tmpfs rw,size=10k
a line of no known shape
";

/// A sysfs with a disk, its partition and a device-mapper device over the partition.
fn fake() -> (tempfile::TempDir, Roots) {
    let place = directory();
    let sys = fs::canonicalize(place.path()).unwrap();
    let write = |name: &str, text: &str| {
        let file = sys.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    for (name, text) in [
        ("devices/vda/vda1/partition", "1\n"),
        ("devices/vda/queue/rotational", "1\n"),
        ("devices/vda/queue/scheduler", "none [mq-deadline] kyber\n"),
        ("devices/vda/queue/nr_requests", "256\n"),
        ("devices/vda/queue/logical_block_size", "512\n"),
        ("devices/vda/queue/physical_block_size", "4096\n"),
        ("devices/vda/queue/write_cache", "write back\n"),
        ("devices/vda/queue/fua", "0\n"),
        ("devices/vda/device/model", "Disk of Tests   \n"),
        ("devices/vda/mq/0/cpu_list", "0\n"),
        ("devices/vda/mq/1/cpu_list", "1\n"),
        ("devices/dm-4/queue/rotational", "what\n"),
        ("devices/dm-4/slaves/vda1/x", ""),
    ] {
        write(name, text);
    }
    fs::create_dir_all(sys.join("dev/block")).unwrap();
    for (number, dir) in [("254:1", "vda/vda1"), ("254:0", "vda"), ("253:4", "dm-4")] {
        std::os::unix::fs::symlink(sys.join("devices").join(dir), sys.join("dev/block").join(number)).unwrap();
    }
    let roots = Roots { proc: sys.join("proc"), sys };
    (place, roots)
}

#[test]
fn the_facts_of_a_partition_are_those_of_its_disk() {
    let (_place, roots) = fake();
    let facts = facts_in(&roots, MOUNTS, Path::new("/not/there/yet"));
    assert_eq!(facts.mount_point, Ok(PathBuf::from("/")));
    assert_eq!(facts.fs_type.as_deref(), Ok("ext4"));
    assert_eq!(facts.mount_options.as_deref(), Ok("rw,relatime,discard"));
    assert_eq!(facts.device, Ok((254, 1)));
    assert_eq!((facts.kernel_name.as_deref(), facts.disk.as_deref()), (Ok("vda1"), Ok("vda")));
    assert_eq!(facts.model.as_deref(), Ok("Disk of Tests"));
    assert_eq!((facts.rotational, facts.fua), (Ok(true), Ok(false)));
    assert_eq!(facts.scheduler.as_deref(), Ok("mq-deadline"));
    assert_eq!((facts.nr_requests, facts.hardware_queues), (Ok(256), Ok(2)));
    assert_eq!((facts.logical_block_bytes, facts.physical_block_bytes), (Ok(512), Ok(4096)));
    assert_eq!(facts.write_cache.as_deref(), Ok("write back"));
    assert_eq!((facts.is_tmpfs, facts.dax), (false, Ok(false)));
    assert!(facts.free_bytes.unwrap() > 0);
    assert!(facts.slaves.is_empty());
}

#[test]
fn what_cannot_be_known_says_why() {
    let (_place, roots) = fake();
    let on_dm = on_device(&roots, Path::new("x"), Ok((253, 4)));
    assert_eq!(on_dm.slaves, ["vda1"]);
    assert_eq!(on_dm.rotational, Err("rotational is \"what\"".to_owned()));
    assert_eq!(on_dm.model, Err("the device does not report device/model".to_owned()));
    assert!(on_dm.hardware_queues.is_err());
    let gone = on_device(&roots, Path::new("x"), Ok((9, 9)));
    assert_eq!(gone.disk, Err("/sys/dev/block has no 9:9".to_owned()));
    let lines = gone.lines();
    let line = lines.iter().find(|(name, _)| *name == "disk").unwrap();
    assert_eq!(line.1, "n/a (/sys/dev/block has no 9:9)");
    let nowhere = facts_in(&roots, "", Path::new("/"));
    assert!(nowhere.device.is_err() && nowhere.fs_type.is_err());
}

#[test]
fn mounts_are_read_with_their_escapes_and_optional_fields() {
    let all = mounts(MOUNTS);
    assert_eq!(all.len(), 5, "the line of no known shape is skipped");
    assert_eq!(all[2].mount_point, Path::new("/mnt/big disk"));
    assert_eq!(all[2].device, (253, 4));
    assert_eq!(all[2].root, Path::new("/"));
    assert_eq!(all[2].options, "rw,noatime,attr2,dax=always");
    assert_eq!(all[3].source, "/dev/nowhere");
    assert_eq!(device_of(Some(&all[3])), Err("file system btrfs has no single block device".to_owned()));
    assert_eq!(unescape("a\\134b\\04"), "a\\b\\04");
}

#[test]
fn the_deepest_mount_wins_and_of_equals_the_last() {
    let text = "1 0 0:1 / / rw - rootfs a rw\n2 1 0:2 / /proc rw - proc b rw\n\
                3 1 0:3 / /proc rw - proc c rw\n4 1 0:4 / /pro rw - tmpfs d rw\n";
    let of = |path| facts_in(&Roots::real(), text, Path::new(path));
    assert_eq!(of("/proc/self/stat").device, Err("file system proc has no single block device".to_owned()));
    assert_eq!(of("/proc/self/stat").mount_point, Ok(PathBuf::from("/proc")));
    assert_eq!(of("/no/such/place").mount_point, Ok(PathBuf::from("/")));
    assert_eq!(mounts(text)[2].source, "c");
}

#[test]
fn what_is_found_exists_as_a_whole_block_device_and_stands_for_itself() {
    for name in disks_under(&[std::env::temp_dir(), PathBuf::from("/no/such/place")]) {
        let entry = Path::new("/sys/class/block").join(&name);
        assert!(entry.exists() && !entry.join("partition").exists(), "{name}");
        let node = Path::new("/dev").join(&name);
        if node.exists() {
            assert_eq!(disks_under(&[node]), [name]);
        }
    }
    assert!(disks_under(&[PathBuf::from("/proc")]).is_empty());
}

#[test]
fn a_file_system_in_memory_is_recognised() {
    let shared_memory = Path::new("/dev/shm");
    let is_tmpfs = rustix::fs::statfs(shared_memory).is_ok_and(|stat| stat.f_type == 0x0102_1994);
    let facts = device_facts(shared_memory);
    assert_eq!(facts.is_tmpfs, is_tmpfs, "{facts:?}");
    assert!(!device_facts(Path::new("/proc")).is_tmpfs);
}

/// The facts of the file system this test runs on agree with what findmnt and df find out by themselves.
#[test]
fn real_facts_agree_with_the_system_tools() {
    let place = directory();
    let facts = device_facts(&place.path().join("not/yet"));
    let say = |columns: &str| {
        let output =
            std::process::Command::new("findmnt").args(["-n", "-b", "-o", columns, "-T"]).arg(place.path()).output();
        let output = output.expect("findmnt is part of util-linux, which every development machine has");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(facts.fs_type.clone().unwrap(), say("FSTYPE"));
    assert_eq!(facts.mount_point.clone().unwrap(), PathBuf::from(say("TARGET")));
    assert_eq!(facts.total_bytes.clone().unwrap().to_string(), say("SIZE"));
    if let Ok((major, minor)) = facts.device {
        assert_eq!(format!("{major}:{minor}"), say("MAJ:MIN"));
    }
    let said: Vec<String> = say("OPTIONS").split(',').map(str::to_owned).collect();
    let mut own: Vec<String> = facts.mount_options.clone().unwrap().split(',').map(str::to_owned).collect();
    own.retain(|option| !said.contains(option));
    assert!(own.is_empty(), "findmnt does not know {own:?}");
    assert_eq!(facts.lines().len(), 21);
}
