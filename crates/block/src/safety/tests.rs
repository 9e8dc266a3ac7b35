use super::*;
use crate::testing::directory;
use std::fs;
use std::time::{Duration, Instant};

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
    assert!(why(&link).contains("existing file"), "a link does not hide what it points to");
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
            assert!(why.contains("mounted") || why.contains("is part of"), "{why}");
        }
    }
}

/// A disk 8:0 with partitions 8:1 and 8:2; 8:2 is held by dm-0 (253:0).
fn fake(mountinfo: &str) -> (tempfile::TempDir, Roots) {
    let place = directory();
    let root = fs::canonicalize(place.path()).unwrap();
    for dir in
        ["devices/sda/holders", "devices/sda/sda1/holders", "devices/sda/sda2/holders/dm-0", "devices/dm-0/holders"]
    {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for dir in ["proc/self", "dev/block"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for (dir, number, start, sectors) in [
        ("sda", "8:0", None, 4096),
        ("sda/sda1", "8:1", Some(64), 1024),
        ("sda/sda2", "8:2", Some(1088), 1024),
        ("dm-0", "253:0", None, 512),
    ] {
        let dir = root.join("devices").join(dir);
        fs::write(dir.join("dev"), format!("{number}\n")).unwrap();
        fs::write(dir.join("size"), format!("{sectors}\n")).unwrap();
        if let Some(start) = start {
            fs::write(dir.join("partition"), "1\n").unwrap();
            fs::write(dir.join("start"), format!("{start}\n")).unwrap();
        }
        std::os::unix::fs::symlink(&dir, root.join("dev/block").join(number)).unwrap();
    }
    fs::write(root.join("proc/self/mountinfo"), mountinfo).unwrap();
    (place, Roots { proc: root.join("proc"), sys: root })
}

#[test]
fn a_device_is_known_by_its_number_its_partitions_and_its_holders() {
    let (_place, roots) = fake("30 27 8:1 / /boot rw - ext4 /dev/sda1 rw\n");
    let said = |device| use_of_device(&roots, device).unwrap();
    assert_eq!(said((8, 1)), Some(("it is mounted at /boot".to_owned(), FREE)));
    assert_eq!(said((8, 0)), Some(("its partition sda1 is mounted at /boot".to_owned(), FREE)));
    assert_eq!(said((8, 2)), Some(("it is part of dm-0".to_owned(), FREE)));
    assert_eq!(said((253, 0)), None);
    assert!(
        said((9, 9)).is_some_and(|(why, remedy)| why.contains("cannot find out what it lies on") && remedy == OTHER)
    );
}

#[test]
fn what_is_mounted_is_said_before_what_is_laid_on_however_the_devices_are_numbered() {
    let (place, roots) = fake("30 27 8:2 / /boot rw - ext4 /dev/sda2 rw\n");
    fs::create_dir(place.path().join("devices/sda/sda1/holders/dm-1")).unwrap();
    let said = use_of_device(&roots, (8, 0)).unwrap();
    assert_eq!(said, Some(("its partition sda2 is mounted at /boot".to_owned(), FREE)));
}

#[test]
fn a_partition_of_a_disk_in_use_as_a_whole_is_refused() {
    let (_place, roots) = fake("30 27 8:0 / /data rw - ext4 /dev/sda rw\n");
    let said = use_of_device(&roots, (8, 1)).unwrap();
    assert_eq!(said, Some(("its disk sda is mounted at /data".to_owned(), FREE)));
    let (_place, roots) = fake("");
    assert_eq!(use_of_device(&roots, (8, 1)).unwrap(), None);
}

/// Runs a program that must succeed and returns what it said.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = std::process::Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A real block device over a file or another device, where the test may make one; detached in the end.
struct Loop {
    device: String,
}

impl Loop {
    fn over(backing: &Path) -> Option<Self> {
        let attached =
            std::process::Command::new("losetup").args(["--find", "--show", "--partscan"]).arg(backing).output();
        let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
            eprintln!("skipped: no loop device to be had (not root, or no losetup)");
            return None;
        };
        let device = String::from_utf8(attached.stdout).unwrap();
        let device = device.trim().to_owned();
        Some(Self { device })
    }

    fn over_empty_image(place: &tempfile::TempDir, name: &str) -> Option<Self> {
        let image = place.path().join(name);
        fs::write(&image, vec![0; 16 << 20]).unwrap();
        Self::over(&image)
    }

    fn path(&self) -> &Path {
        Path::new(&self.device)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.device]);
        // While anybody else has the device open (a scan of all of them), the kernel only notes the wish.
        let name = self.device.trim_start_matches("/dev/");
        let attached = Path::new("/sys/block").join(name).join("loop/backing_file");
        let asked = Instant::now();
        while attached.exists() && asked.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Undoes something however the test ends.
struct Undo<F: FnMut()>(F);

impl<F: FnMut()> Drop for Undo<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn mounted<'a>(device: &'a str, at: &'a Path) -> Undo<impl FnMut() + 'a> {
    fs::create_dir_all(at).unwrap();
    run("mount", &[device, at.to_str().unwrap()]);
    Undo(move || drop(run("umount", &[at.to_str().unwrap()])))
}

fn check_file_unused(path: &Path) -> Result<(), BlockError> {
    UsedFiles::find()?.check(path)
}

/// What [`check_device_unused`] says of a device in use.
fn use_said(path: &Path) -> String {
    check_device_unused(path).unwrap_err().to_string()
}

#[test]
fn a_loop_device_is_accepted_empty_and_refused_signed_or_mounted() {
    let place = directory();
    let Some(disk) = Loop::over_empty_image(&place, "image") else {
        return;
    };
    check_writable_target(disk.path()).unwrap();
    run("mkfs.ext4", &["-q", &disk.device]);
    assert!(why(disk.path()).contains("ext4"));
    check_device_unused(disk.path()).unwrap();
    let mount_point = place.path().join("mounted");
    let _mounted = mounted(&disk.device, &mount_point);
    assert!(why(disk.path()).contains("mounted at"));
    // By whatever name: the number counts.
    let alias = place.path().join("alias");
    std::os::unix::fs::symlink(disk.path(), &alias).unwrap();
    assert!(use_said(&alias).contains("mounted at"));
    let number = block_device_at(disk.path()).unwrap();
    let node = place.path().join("node");
    run("mknod", &[node.to_str().unwrap(), "b", &number.0.to_string(), &number.1.to_string()]);
    assert!(use_said(&node).contains("mounted at"));
}

/// A partition table with one entry: 8 MiB from the first MiB on.
fn partition_table() -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[446 + 4] = 0x83;
    sector[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    sector[446 + 12..446 + 16].copy_from_slice(&16_384_u32.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

#[test]
fn a_whole_disk_with_a_mounted_partition_and_a_partition_of_a_disk_in_use_are_refused() {
    let place = directory();
    let image = place.path().join("image");
    let mut data = partition_table();
    data.resize(16 << 20, 0);
    fs::write(&image, data).unwrap();
    let Some(disk) = Loop::over(&image) else {
        return;
    };
    let partition = format!("{}p1", disk.device);
    if !Path::new(&partition).exists() {
        // A kernel without a reader of this kind of table is told.
        let told = std::process::Command::new("addpart").args([&disk.device, "1", "2048", "16384"]).output();
        if !told.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: no partitions of loop devices here");
            return;
        }
    }
    let _partition = Undo(|| {
        let _ = std::process::Command::new("delpart").args([&disk.device, "1"]).output();
    });
    check_device_unused(disk.path()).unwrap();
    check_device_unused(Path::new(&partition)).unwrap();
    assert!(why(disk.path()).contains("partition table"));
    run("mkfs.ext4", &["-q", &partition]);
    let mount_point = place.path().join("mounted");
    let mount = mounted(&partition, &mount_point);
    assert!(use_said(Path::new(&partition)).contains("mounted at"));
    let said = use_said(disk.path());
    assert!(said.contains("its partition loop") && said.contains("mounted at"), "{said}");
    drop(mount);
    // The whole disk becomes the content of another loop device: its partition is in use as well.
    let Some(above) = Loop::over(disk.path()) else {
        return;
    };
    assert!(use_said(disk.path()).contains("content of the loop device"));
    assert!(use_said(Path::new(&partition)).contains("its disk loop"));
    drop(above);
    check_device_unused(Path::new(&partition)).unwrap();
}

#[test]
fn swap_space_is_refused_as_a_device_and_as_a_file() {
    let place = directory();
    let Some(disk) = Loop::over_empty_image(&place, "image") else {
        return;
    };
    run("mkswap", &[&disk.device]);
    assert!(why(disk.path()).contains("swap space"));
    let swaps_on = |what: &str| {
        let output = std::process::Command::new("swapon").arg(what).output();
        let done = output.is_ok_and(|output| output.status.success());
        if !done {
            eprintln!("skipped: swapon is not allowed here");
        }
        done
    };
    if swaps_on(&disk.device) {
        let _off = Undo(|| drop(run("swapoff", &[&disk.device])));
        assert!(use_said(disk.path()).contains("is swap space"));
    }
    let file = place.path().join("swap");
    fs::write(&file, vec![0; 16 << 20]).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let name = file.to_str().unwrap();
    run("mkswap", &[name]);
    check_file_unused(&file).unwrap();
    if swaps_on(name) {
        let _off = Undo(|| drop(run("swapoff", &[name])));
        let said = check_file_unused(&file).unwrap_err().to_string();
        assert!(said.contains("is swap space"), "{said}");
    }
}

#[test]
fn the_content_of_a_loop_device_is_refused_by_any_name() {
    let place = directory();
    let Some(disk) = Loop::over_empty_image(&place, "image") else {
        return;
    };
    let here = |name: &str| place.path().join(name);
    let refused = |name: &Path| {
        let said = check_file_unused(name).unwrap_err().to_string();
        assert!(said.contains("content of the loop device loop"), "{said}");
    };
    fs::hard_link(here("image"), here("hard")).unwrap();
    std::os::unix::fs::symlink(here("image"), here("soft")).unwrap();
    let open = fs::File::open(here("image")).unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&open);
    let below_root = here("image").strip_prefix("/").unwrap().to_path_buf();
    for name in [
        here("image"),
        here("hard"),
        here("soft"),
        PathBuf::from(format!("/proc/self/fd/{descriptor}")),
        Path::new("/proc/self/root").join(below_root),
    ] {
        refused(&name);
    }
    // By a mount of the directory and of the file itself.
    fs::create_dir(here("directory")).unwrap();
    fs::write(here("file"), "").unwrap();
    for (from, to) in [(place.path().to_path_buf(), "directory"), (here("image"), "file")] {
        let (from, to) = (from.to_str().unwrap().to_owned(), here(to));
        run("mount", &["--bind", &from, to.to_str().unwrap()]);
    }
    let unmounted = |name: &str| drop(run("umount", &[here(name).to_str().unwrap()]));
    let _mounts = Undo(|| ["file", "directory"].into_iter().for_each(unmounted));
    refused(&here("directory/image"));
    refused(&here("file"));
    // Its first name may go to another file meanwhile.
    fs::rename(here("image"), here("renamed")).unwrap();
    refused(&here("renamed"));
    fs::remove_file(here("renamed")).unwrap();
    fs::write(here("image"), "another").unwrap();
    refused(&here("hard"));
    check_file_unused(&here("image")).unwrap();
    drop(disk);
    check_file_unused(&here("hard")).unwrap();
}

#[test]
fn the_content_of_a_loop_device_is_refused_through_an_overlay_and_below_it() {
    let place = directory();
    let here = |name: &str| place.path().join(name);
    for name in ["lower", "upper", "work", "seen"] {
        fs::create_dir(here(name)).unwrap();
    }
    fs::write(here("lower/old"), vec![0; 4 << 20]).unwrap();
    fs::write(here("upper/image"), vec![0; 4 << 20]).unwrap();
    let layers = |name: &str| format!("{name}dir={}", here(name).display());
    let options = ["lower", "upper", "work"].map(layers).join(",");
    let seen = here("seen");
    let mount =
        std::process::Command::new("mount").args(["-t", "overlay", "overlay", "-o", &options]).arg(&seen).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no overlay can be mounted here");
        return;
    }
    let _mount = Undo(|| drop(run("umount", &[seen.to_str().unwrap()])));
    for (backing, other) in [("upper/image", "seen/image"), ("seen/image", "upper/image"), ("lower/old", "seen/old")] {
        let Some(disk) = Loop::over(&here(backing)) else {
            return;
        };
        for name in [backing, other] {
            let said = check_file_unused(&here(name)).unwrap_err().to_string();
            assert!(said.contains("content of the loop device"), "{said}");
        }
        drop(disk);
        check_file_unused(&here(other)).unwrap();
    }
}

#[test]
fn a_device_below_a_loop_device_is_refused_by_a_node_of_ones_own() {
    let place = directory();
    let Some(disk) = Loop::over_empty_image(&place, "image") else {
        return;
    };
    let number = block_device_at(disk.path()).unwrap();
    let node = place.path().join("node");
    let (major, minor) = (number.0.to_string(), number.1.to_string());
    run("mknod", &[node.to_str().unwrap(), "b", &major, &minor]);
    let Some(_above) = Loop::over(&node) else {
        return;
    };
    // The name that the kernel shows is gone.
    fs::remove_file(&node).unwrap();
    assert!(use_said(disk.path()).contains("content of the loop device"));
    run("mknod", &[node.to_str().unwrap(), "b", &major, &minor]);
    assert!(use_said(&node).contains("content of the loop device"));
}

#[test]
fn a_claimed_device_cannot_be_claimed_or_opened_exclusively_again() {
    let place = directory();
    let Some(disk) = Loop::over_empty_image(&place, "image") else {
        return;
    };
    let claim = claim_device(disk.path()).unwrap();
    let again = claim_device(disk.path()).unwrap_err();
    assert!(matches!(again, BlockError::InUse { .. }), "{again}");
    let options = crate::FileOptions { read: true, write: true, exclusive: true, ..crate::FileOptions::default() };
    let opened = crate::DirectFile::open_with(disk.path(), options).unwrap_err();
    assert!(matches!(opened, BlockError::InUse { .. }), "{opened}");
    // A child that is being started has it for a moment longer.
    let of_a_child = claim._descriptor.try_clone().unwrap();
    drop(claim);
    let child = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        drop(of_a_child);
    });
    drop(claim_device(disk.path()).unwrap());
    child.join().unwrap();
    let file = crate::DirectFile::open_with(disk.path(), options).unwrap();
    assert!(file.is_device().unwrap());
    assert_eq!(file.len().unwrap(), 16 << 20);
    assert!(file.set_len(1).is_err());
    assert!(!file.preallocate(crate::Preallocate::Native, 1 << 20).unwrap());
    // Pages of the device are cached by a read and gone after the invalidation: the image changes below them.
    let mut data = [0; 4096];
    file.read_at(0, &mut data).unwrap();
    file.invalidate(0, 0).unwrap();
    assert!(claim_device(disk.path()).is_err());
}

/// An image of 16 MiB with a file system, and what is attached to it.
fn image(place: &tempfile::TempDir) -> PathBuf {
    let image = place.path().join("image");
    fs::write(&image, vec![0; 16 << 20]).unwrap();
    run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]);
    image
}

#[test]
fn a_mounted_file_system_is_refused_through_every_other_device_on_its_bytes() {
    let place = directory();
    let image = image(&place);
    let (hard, bound) = (place.path().join("hard"), place.path().join("bound"));
    fs::hard_link(&image, &hard).unwrap();
    fs::write(&bound, "").unwrap();
    run("mount", &["--bind", image.to_str().unwrap(), bound.to_str().unwrap()]);
    let _bound = Undo(|| drop(run("umount", &[bound.to_str().unwrap()])));
    let Some(disk) = Loop::over(&image) else {
        return;
    };
    let mut others: Vec<Loop> = [&image, &hard, &bound, &PathBuf::from(&disk.device)]
        .into_iter()
        .filter_map(|below| Loop::over(below))
        .collect();
    assert_eq!(others.len(), 4);
    // On the device on the device, and on a second one of the image.
    let twice = Loop::over(others[3].path()).unwrap();
    let mount_point = place.path().join("mounted");
    let mount = mounted(&disk.device, &mount_point);
    for other in others[..3].iter().chain([&twice]) {
        let said = use_said(other.path());
        assert!(said.contains("mounted at"), "{}: {said}", other.device);
    }
    assert!(use_said(others[0].path()).contains("which has the same bytes, is mounted"));
    assert!(use_said(others[3].path()).contains("is the content of the loop device"));
    assert!(use_said(twice.path()).contains("on which it lies, is"));
    drop(mount);
    check_device_unused(twice.path()).unwrap();
    drop(twice);
    drop(others.split_off(3));
    check_device_unused(others[0].path()).unwrap();
}

#[test]
fn parts_of_an_image_that_do_not_meet_are_not_the_same_bytes() {
    let place = directory();
    let whole = image(&place);
    let part = |offset: &str, size: &str| {
        let attached = std::process::Command::new("losetup")
            .args(["--find", "--show", "--offset", offset, "--sizelimit", size])
            .arg(&whole)
            .output()
            .unwrap();
        attached
            .status
            .success()
            .then(|| Loop { device: String::from_utf8(attached.stdout).unwrap().trim().to_owned() })
    };
    let Some(first) = part("0", "8388608") else {
        eprintln!("skipped: no loop device to be had");
        return;
    };
    let (second, across) = (part("8388608", "8388608").unwrap(), part("4194304", "8388608").unwrap());
    let claim = claim_device(first.path()).unwrap();
    check_device_unused(second.path()).unwrap();
    assert!(use_said(across.path()).contains("which has the same bytes, is in use"));
    drop(claim);
    check_device_unused(across.path()).unwrap();
}

#[test]
fn swap_space_is_refused_through_a_second_device_and_through_one_on_its_file() {
    let place = directory();
    let file = place.path().join("swap");
    fs::write(&file, vec![0; 16 << 20]).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    run("mkswap", &[file.to_str().unwrap()]);
    let (Some(first), Some(second)) = (Loop::over(&file), Loop::over(&file)) else {
        return;
    };
    for (area, what) in
        [(first.device.as_str(), "same bytes, is swap space"), (file.to_str().unwrap(), "is swap space in use")]
    {
        let on = std::process::Command::new("swapon").arg(area).output();
        if !on.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: swapon is not allowed here");
            continue;
        }
        let _off = Undo(|| drop(run("swapoff", &[area])));
        let said = use_said(second.path());
        assert!(said.contains(what), "{said}");
    }
    check_device_unused(second.path()).unwrap();
}

#[test]
fn a_device_or_its_file_that_a_process_works_on_is_refused_by_the_name_of_the_process() {
    let place = directory();
    let image = image(&place);
    let (Some(first), Some(second)) = (Loop::over(&image), Loop::over(&image)) else {
        return;
    };
    let working = |open: String| {
        let script = format!("{open} && echo ready && exec sleep 600");
        let mut command = std::process::Command::new("bash");
        let mut child = command.args(["-c", &script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut word = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
        Undo(move || {
            child.kill().unwrap();
            child.wait().unwrap();
        })
    };
    let image = image.display();
    for (open, why) in [
        (format!("exec 9<>{}", first.device), "(sleep) has it open for writing"),
        (format!("exec 9<>{image}"), "(sleep) has it open for writing"),
        (format!("exec 9<{image} && flock -n 9"), "has locked the file it lies on"),
    ] {
        let work = working(open);
        for device in [&first, &second] {
            let said = use_said(device.path());
            assert!(said.contains("process ") && said.contains(why), "{said}");
        }
        drop(work);
    }
    let _reads = working(format!("exec 9<{}", first.device));
    check_device_unused(first.path()).unwrap();
}

/// Two volumes of a volume group on sda2, and a network block device.
#[test]
fn volumes_of_a_group_are_apart_and_what_cannot_be_walked_is_refused() {
    let (_place, roots) = fake("30 27 253:0 / /data rw - ext4 /dev/dm-0 rw\n");
    let add = |name: &str, number: &str, slave: Option<&str>| {
        let dir = roots.sys.join("devices").join(name);
        fs::create_dir_all(dir.join("slaves")).unwrap();
        fs::write(dir.join("dev"), format!("{number}\n")).unwrap();
        if let Some(slave) = slave {
            let devices = roots.sys.join("devices");
            std::os::unix::fs::symlink(devices.join(slave), dir.join("slaves/part")).unwrap();
            // As the kernel has it on both sides.
            let holder = devices.join(slave).join("holders").join(name);
            let _ = fs::remove_dir(&holder);
            std::os::unix::fs::symlink(&dir, holder).unwrap();
        }
        let link = roots.sys.join("dev/block").join(number);
        if !link.exists() {
            std::os::unix::fs::symlink(&dir, link).unwrap();
        }
        dir
    };
    add("dm-0", "253:0", Some("sda/sda2"));
    add("dm-1", "253:1", Some("sda/sda2"));
    let nbd = add("nbd0", "43:0", None);
    let said = |device| use_of_device(&roots, device).unwrap().unwrap_or_default().0;
    assert_eq!(said((253, 1)), "");
    assert_eq!(said((253, 0)), "it is mounted at /data");
    assert_eq!(said((8, 2)), "it is part of dm-0, dm-1");
    assert_eq!(said((43, 0)), "");
    fs::write(nbd.join("pid"), "77\n").unwrap();
    assert!(said((43, 0)).contains("cannot find out what it lies on: nbd0 is served through a socket"));
}

#[test]
fn who_has_a_device_open_for_an_instant_is_waited_for_and_who_keeps_it_is_named() {
    let mut seen = ["losetup", "mount", "qemu", "qemu"].into_iter();
    assert_eq!(lasting(Duration::ZERO, || seen.next().map(str::to_owned)).as_deref(), Some("qemu"));
    assert_eq!(seen.next(), None);
    let mut gone = Some("udevd".to_owned());
    assert_eq!(lasting(Duration::ZERO, || gone.take()), None);
    let mut count = 0;
    let others = lasting(Duration::ZERO, || {
        count += 1;
        Some(count.to_string())
    });
    assert_eq!(others, Some((LASTING_TRIES + 1).to_string()));
}
