//! Trees of files as five machines would show them, for tests: made by hand after what Linux exposes on such machines.

use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, format!("{text}\n")).expect("written");
}

/// A CPU with its caches: `(level, type, size, shared)`.
struct Of<'a> {
    package: u32,
    core: u32,
    /// CPUs of the socket.
    socket: &'a str,
    siblings: &'a str,
    khz: Option<(u64, u64)>,
    caches: Vec<(u32, &'a str, &'a str, String)>,
}

fn cpu(root: &Path, number: u32, of: &Of<'_>) {
    let dir = format!("sys/devices/system/cpu/cpu{number}");
    let topology = |name: &str, text: &str| put(root, &format!("{dir}/topology/{name}"), text);
    topology("physical_package_id", &of.package.to_string());
    topology("core_id", &of.core.to_string());
    topology("thread_siblings_list", of.siblings);
    topology("thread_siblings", &mask(of.siblings));
    topology("core_siblings", &mask(of.socket));
    for (index, (level, kind, size, shared)) in of.caches.iter().enumerate() {
        let file = |name: &str, text: &str| {
            put(root, &format!("{dir}/cache/index{index}/{name}"), text);
        };
        file("level", &level.to_string());
        file("type", kind);
        file("size", size);
        file("shared_cpu_list", shared);
        file("shared_cpu_map", &mask(shared));
        let first = assay_run::host::text::cpu_list(shared).first().copied();
        file("id", &first.unwrap_or(number).to_string());
    }
    if let Some((least, most)) = of.khz {
        put(root, &format!("{dir}/cpufreq/cpuinfo_min_freq"), &least.to_string());
        put(root, &format!("{dir}/cpufreq/cpuinfo_max_freq"), &most.to_string());
    }
}

/// The bit mask of a list of CPUs below 32.
fn mask(list: &str) -> String {
    let cpus = assay_run::host::text::cpu_list(list);
    let bits: u32 = cpus.iter().map(|cpu| 1_u32 << cpu).sum();
    format!("{bits:08x}")
}

fn system(root: &Path, present: &str, online: &str, cpuinfo: &[String]) {
    let file = |name: &str, text: &str| {
        put(root, &format!("sys/devices/system/cpu/{name}"), text);
    };
    file("possible", present);
    file("present", present);
    file("online", online);
    file("kernel_max", "8191");
    put(root, "proc/cpuinfo", &cpuinfo.join("\n\n"));
}

fn node(root: &Path, number: u32, cpus: &str, mib: u64, distance: &str) {
    let file = |name: &str, text: &str| {
        let path = format!("sys/devices/system/node/node{number}/{name}");
        put(root, &path, text);
    };
    file("cpulist", cpus);
    file("cpumap", &if cpus.is_empty() { "00000000".to_owned() } else { mask(cpus) });
    file("distance", distance);
    let kib = mib << 10;
    file("meminfo", &format!("Node {number} MemTotal: {kib} kB\nNode {number} MemFree: {kib} kB"));
}

fn intel(processor: u32, package: u32, core: u32, model: (u32, &str), flags: &str) -> String {
    format!(
        "processor\t: {processor}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {}\nmodel name\t: {}\n\
         stepping\t: 7\ncpu MHz\t\t: 1260.743\nphysical id\t: {package}\ncore id\t\t: {core}\nflags\t\t: {flags}\n\
         bogomips\t: 6600.00\naddress sizes\t: 46 bits physical, 48 bits virtual",
        model.0, model.1
    )
}

/// Two sockets of eight cores, hyperthreads off.
pub(crate) fn two_sockets() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path();
    let mut cpuinfo = Vec::new();
    for number in 0..16 {
        let (package, core) = (number / 8, number % 8);
        let own = number.to_string();
        let socket = ["0-7", "8-15"][package as usize];
        let model = (85, "Intel(R) Xeon(R) Gold 6234 CPU @ 3.30GHz");
        cpuinfo.push(intel(number, package, core, model, "fpu vme lm vmx avx512f"));
        let of = Of {
            package,
            core,
            socket,
            siblings: &own,
            khz: Some((1_200_000, 4_000_000)),
            caches: vec![
                (1, "Data", "32K", own.clone()),
                (1, "Instruction", "32K", own.clone()),
                (2, "Unified", "1024K", own.clone()),
                (3, "Unified", "25344K", socket.to_owned()),
            ],
        };
        cpu(root, number, &of);
    }
    system(root, "0-15", "0-15", &cpuinfo);
    node(root, 0, "0-7", 96 << 10, "10 21");
    node(root, 1, "8-15", 96 << 10, "21 10");
    dir
}

/// A virtual machine with two threads of one core of an AMD host.
pub(crate) fn amd_vm() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path();
    let mut cpuinfo = Vec::new();
    for number in 0..2 {
        cpuinfo.push(format!(
            "processor\t: {number}\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC \
             7J13 64-Core Processor\nstepping\t: 1\ncpu MHz\t\t: 2445.406\nphysical id\t: 0\ncore id\t\t: 0\nflags\t\t: \
             fpu lm hypervisor svm avx2\nbogomips\t: 4890.81\naddress sizes\t: 40 bits physical, 48 bits virtual"
        ));
        let of = Of {
            package: 0,
            core: 0,
            socket: "0-1",
            siblings: "0-1",
            khz: None,
            caches: vec![
                (1, "Data", "32K", "0-1".to_owned()),
                (1, "Instruction", "32K", "0-1".to_owned()),
                (2, "Unified", "512K", "0-1".to_owned()),
                (3, "Unified", "16384K", "0-1".to_owned()),
            ],
        };
        cpu(root, number, &of);
    }
    system(root, "0-1", "0-1", &cpuinfo);
    put(root, "sys/class/dmi/id/sys_vendor", "QEMU");
    put(root, "proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 15000000 kB\nHugePages_Total: 0");
    node(root, 0, "0-1", 16 << 10, "10");
    dir
}

/// A desktop with two fast cores of two threads and four small ones.
pub(crate) fn hybrid() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path();
    let mut cpuinfo = Vec::new();
    for number in 0..8_u32 {
        let is_fast = number < 4;
        let core = if is_fast { 4 * (number / 2) } else { 8 + number - 4 };
        let own = number.to_string();
        let pair = ["0-1", "2-3"][usize::from(number / 2 == 1)];
        let siblings = if is_fast { pair } else { own.as_str() };
        let model = (151, "12th Gen Intel(R) Core(TM) i9-12900K");
        cpuinfo.push(intel(number, 0, core, model, "fpu lm vmx avx2"));
        let (data, l2, shares) =
            if is_fast { ("48K", "1280K", pair.to_owned()) } else { ("32K", "2048K", "4-7".to_owned()) };
        let of = Of {
            package: 0,
            core,
            socket: "0-7",
            siblings,
            khz: Some((800_000, if is_fast { 5_200_000 } else { 3_900_000 })),
            caches: vec![
                (1, "Data", data, siblings.to_owned()),
                (1, "Instruction", "32K", siblings.to_owned()),
                (2, "Unified", l2, shares),
                (3, "Unified", "30720K", "0-7".to_owned()),
            ],
        };
        cpu(root, number, &of);
    }
    system(root, "0-7", "0-7", &cpuinfo);
    node(root, 0, "0-7", 32 << 10, "10");
    dir
}

/// Four cores of two threads, of which threads 2, 5, 6 and 7 are off line.
pub(crate) fn offline() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path();
    let mut cpuinfo = Vec::new();
    for number in [0_u32, 1, 3, 4] {
        let siblings = ["0,4", "1", "", "3"][(number % 4) as usize];
        let shared = siblings.to_owned();
        let model = (106, "Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz");
        cpuinfo.push(intel(number, 0, number % 4, model, "fpu lm"));
        let of = Of {
            package: 0,
            core: number % 4,
            socket: "0-1,3-4",
            siblings,
            khz: None,
            caches: vec![
                (1, "Data", "48K", shared.clone()),
                (2, "Unified", "1280K", shared),
                (3, "Unified", "49152K", "0-1,3-4".to_owned()),
            ],
        };
        cpu(root, number, &of);
    }
    system(root, "0-7", "0-1,3-4", &cpuinfo);
    put(root, "sys/devices/system/cpu/offline", "2,5-7");
    node(root, 0, "0-1,3-4", 64 << 10, "10");
    dir
}

/// Two CPUs on a node without memory, two with, and a node of memory alone.
pub(crate) fn memoryless_node() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path();
    let mut cpuinfo = Vec::new();
    for number in 0..4_u32 {
        let own = number.to_string();
        let model = (207, "INTEL(R) XEON(R) PLATINUM 8592+");
        cpuinfo.push(intel(number, number / 2, number % 2, model, "fpu lm"));
        let of = Of {
            package: number / 2,
            core: number % 2,
            socket: ["0-1", "2-3"][(number / 2) as usize],
            siblings: &own,
            khz: None,
            caches: vec![(1, "Data", "48K", own.clone())],
        };
        cpu(root, number, &of);
    }
    system(root, "0-3", "0-3", &cpuinfo);
    node(root, 0, "0-1", 64 << 10, "10 21 14");
    node(root, 1, "2-3", 0, "21 10 24");
    node(root, 2, "", 128 << 10, "14 24 10");
    dir
}
