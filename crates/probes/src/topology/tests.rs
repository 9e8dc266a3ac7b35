use super::*;
use crate::machine::trees;
use assay_measure::kind::Kind as _;
use assay_measure::section::Tile;
use assay_testkit::conformance::probe_suite;
use std::path::Path;
use std::process::Command;

fn record(root: &Path) -> Record {
    let info = TopologyInfo { sysroot: root.display().to_string(), machine: Machine::read(root) };
    info.record(&RunData::default()).unwrap()
}

fn fields(root: &Path) -> Vec<(String, String)> {
    lscpu::fields(&Machine::read(root))
}

fn field(root: &Path, name: &str) -> Option<String> {
    let mut all = fields(root).into_iter();
    Some(all.find(|(field, _)| field == name)?.1)
}

/// What the installed lscpu says of a tree, by field; `None` where there is no lscpu.
fn lscpu_of(root: &Path) -> Option<Vec<(String, String)>> {
    let mut command = Command::new("lscpu");
    if root != Path::new("/") {
        command.arg("--sysroot").arg(root);
    }
    let out = command.env("LC_ALL", "C").output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let pair = |line: &str| {
        let (field, data) = line.split_once(':')?;
        Some((field.trim().to_owned(), data.trim().to_owned()))
    };
    out.status.success().then(|| text.lines().filter_map(pair).collect())
}

/// Fields whose meaning has not changed between lscpu's versions.
const SAME: [&str; 17] = [
    "Architecture",
    "CPU op-mode(s)",
    "Byte Order",
    "CPU(s)",
    "On-line CPU(s) list",
    "Off-line CPU(s) list",
    "Thread(s) per core",
    "Core(s) per socket",
    "Socket(s)",
    "NUMA node(s)",
    "NUMA node0 CPU(s)",
    "NUMA node1 CPU(s)",
    "Vendor ID",
    "Model",
    "Model name",
    "BogoMIPS",
    "Flags",
];

/// Compares with lscpu; how many fields were compared.
fn agrees(root: &Path, but: &[&str]) -> usize {
    let Some(theirs) = lscpu_of(root) else {
        return 0;
    };
    let mut compared = 0;
    for (field, data) in &theirs {
        let ours = self::field(root, field);
        if SAME.contains(&field.as_str()) && !but.contains(&field.as_str()) {
            assert_eq!(ours.as_ref(), Some(data), "{field} of {}", root.display());
            compared += 1;
        }
        // Newer versions print the sum over all caches: `96 KiB (2 instances)`.
        if let (true, Some((sum, count))) = (field.ends_with("cache"), data.split_once(" (")) {
            let count: u64 = count.split(' ').next().unwrap().parse().unwrap();
            let (number, unit) = sum.split_once(' ').unwrap();
            let factor = if unit == "MiB" { 1024.0 } else { 1.0 };
            let kib = number.parse::<f64>().unwrap() * factor;
            let levels = Machine::read(root).levels();
            let name = field.trim_end_matches(" cache");
            let level = levels.iter().find(|level| level.name == name).unwrap();
            assert_eq!(level.count, count, "{field}");
            let ratio = level.total_bytes as f64 / 1024.0 / kib;
            assert!((ratio - 1.0).abs() < 0.05, "{field}: {level:?} {data}");
            compared += 1;
        }
    }
    compared
}

#[test]
fn it_passes_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    let violations = probe_suite(&SPEC, dir.path());
    // It is through before its second step could be stopped.
    let stops = |text: &&String| !text.contains("stop at step 2");
    let others: Vec<&String> = violations.iter().filter(stops).collect();
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn topology_16_this_machine_is_what_lscpu_says() {
    let compared = agrees(Path::new("/"), &[]);
    assert!(lscpu_of(Path::new("/")).is_none() || compared >= 12, "{compared}");
    if let Some(theirs) = lscpu_of(Path::new("/")) {
        let of = |name: &str| theirs.iter().find(|(field, _)| field == name).map(|(_, d)| d.clone());
        for name in ["Hypervisor vendor", "Virtualization", "Virtualization type", "Stepping", "CPU family"] {
            assert_eq!(field(Path::new("/"), name).filter(|data| data != "not exposed"), of(name), "{name}");
        }
    }
}

#[test]
fn topology_16_two_sockets_without_hyperthreads_in_the_published_layout() {
    let dir = trees::two_sockets();
    let text = lscpu::text(&Machine::read(dir.path()));
    let wanted = "Architecture:          x86_64\nCPU op-mode(s):        32-bit, 64-bit\nByte Order:            Little Endian\n\
        CPU(s):                16\nOn-line CPU(s) list:   0-15\nThread(s) per core:    1\nCore(s) per socket:    8\n\
        Socket(s):             2\nNUMA node(s):          2\nVendor ID:             GenuineIntel\nCPU family:            6\n\
        Model:                 85\nModel name:            Intel(R) Xeon(R) Gold 6234 CPU @ 3.30GHz\n\
        Stepping:              7\nCPU MHz:               1260.743\nCPU max MHz:           4000.0000\n\
        CPU min MHz:           1200.0000\nBogoMIPS:              6600.00\nVirtualization:        VT-x\n\
        L1d cache:             32K\nL1i cache:             32K\nL2 cache:              1024K\n\
        L3 cache:              25344K\nNUMA node0 CPU(s):     0-7\nNUMA node1 CPU(s):     8-15\n\
        Flags:                 fpu vme lm vmx avx512f\n";
    assert_eq!(text, wanted);
    let json: serde_json::Value = serde_json::from_str(&lscpu::json(&Machine::read(dir.path()))).unwrap();
    let first = &json["lscpu"][0];
    assert_eq!((&first["field"], &first["data"]), (&"Architecture:".into(), &"x86_64".into()));
    let _ = agrees(dir.path(), &[]);
}

#[test]
fn topology_16_a_guest_of_amd_a_hybrid_an_offline_and_a_memoryless_machine_agree_with_lscpu() {
    let dir = trees::amd_vm();
    let of = |name| field(dir.path(), name).unwrap();
    assert_eq!((of("Thread(s) per core"), of("Core(s) per socket")), ("2".to_owned(), "1".to_owned()));
    assert_eq!((of("Hypervisor vendor"), of("Virtualization type")), ("KVM".to_owned(), "full".to_owned()));
    assert_eq!(of("Virtualization"), "AMD-V");
    let _ = agrees(dir.path(), &[]);
    let dir = trees::hybrid();
    assert_eq!(field(dir.path(), "CPU max MHz").unwrap(), "5200.0000");
    assert_eq!(field(dir.path(), "Core(s) per socket").unwrap(), "6");
    assert!(record(dir.path()).advice[0].text.contains("of 2 kinds"));
    // lscpu divides the CPUs of a socket by the threads of a core, which a hybrid has no single number of.
    let _ = agrees(dir.path(), &["Core(s) per socket"]);
    let dir = trees::offline();
    assert_eq!(field(dir.path(), "On-line CPU(s) list").unwrap(), "0,1,3,4");
    assert_eq!(field(dir.path(), "Off-line CPU(s) list").unwrap(), "2,5-7");
    let _ = agrees(dir.path(), &["Core(s) per socket", "Off-line CPU(s) list"]);
    let dir = trees::memoryless_node();
    assert_eq!(field(dir.path(), "NUMA node2 CPU(s)").unwrap(), "");
    let found = record(dir.path()).advice;
    assert!(found[0].text.contains("node 1 has no memory"), "{found:?}");
    let _ = agrees(dir.path(), &[]);
}

#[test]
fn memory_that_the_nodes_do_not_have_is_told() {
    let mut info = TopologyInfo::default();
    let node = |memory_bytes| crate::machine::Node { memory_bytes, ..Default::default() };
    info.machine.memory.insert("MemTotal".to_owned(), 24 << 30);
    info.machine.nodes = vec![node(Some(10 << 30)), node(Some(6 << 30))];
    let told =
        |info: &TopologyInfo| advice::advise(info).into_iter().map(|found| found.text).collect::<Vec<_>>().join(" ");
    assert!(told(&info).contains("16 GiB of memory in its NUMA nodes and 24 GiB in all"));
    info.machine.nodes[1].memory_bytes = Some((14 << 30) - 4096);
    assert!(!told(&info).contains("NUMA nodes and"), "rounding is not told");
    info.machine.nodes[1].memory_bytes = None;
    assert!(!told(&info).contains("NUMA nodes and"), "an unknown node is no difference");
}

#[test]
fn topology_17_an_empty_tree_is_not_exposed_and_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let all = fields(dir.path());
    assert!(all.iter().all(|(_, data)| data == "not exposed"), "{all:?}");
    let record = record(dir.path());
    assert_eq!(record.run.verdict, "complete");
    let text = assay_report::text::write(&KIND.sections(&record));
    assert!(text.contains("Caches\n~~~~~~\nn/a (not exposed)"), "{text}");
}

/// Titles from the outside inwards.
fn outline(tiles: &[Tile], depth: usize, out: &mut Vec<String>) {
    for tile in tiles {
        out.push(format!("{}{}", " ".repeat(depth), tile.title));
        outline(&tile.inside, depth + 1, out);
    }
}

#[test]
fn the_picture_has_every_cpu_exactly_once_below_its_caches() {
    for dir in [trees::two_sockets(), trees::hybrid(), trees::offline(), trees::memoryless_node(), trees::amd_vm()] {
        let machine = Machine::read(dir.path());
        let mut lines = Vec::new();
        outline(&picture::of(&machine), 0, &mut lines);
        for cpu in &machine.online {
            let name = format!("CPU {cpu}");
            let count = lines.iter().filter(|line| line.trim() == name).count();
            assert_eq!(count, 1, "{name}: {lines:#?}");
        }
    }
    let dir = trees::hybrid();
    let mut lines = Vec::new();
    outline(&picture::of(&Machine::read(dir.path())), 0, &mut lines);
    let wanted = ["Socket 0", " NUMA node 0", "  L3 30 MiB", "   L2 2 MiB", "    Core 8", "     CPU 4"];
    for line in wanted {
        assert!(lines.iter().any(|found| found == line), "{line}: {lines:#?}");
    }
    let dir = trees::memoryless_node();
    let alone = picture::of(&Machine::read(dir.path()));
    assert!(alone.iter().any(|tile| tile.title == "NUMA node 2" && tile.lines[1] == "no CPUs"));
}

fn advised(change: impl FnOnce(&mut Machine)) -> Record {
    let mut info = TopologyInfo::default();
    info.machine.online = vec![0, 1];
    change(&mut info.machine);
    Record { advice: advice::advise(&info), ..Record::default() }
}

fn node(memory_bytes: u64) -> crate::machine::Node {
    crate::machine::Node { memory_bytes: Some(memory_bytes), ..Default::default() }
}

const CASES: &[assay_testkit::rules::Case] = &[
    ("T1", |fires| advised(|machine| machine.online.retain(|_| !fires))),
    ("T2", |fires| advised(|machine| machine.present = if fires { vec![0, 1, 2] } else { vec![0, 1] })),
    ("T3", |fires| advised(|machine| machine.usable = if fires { vec![0] } else { vec![0, 1] })),
    ("T4", |fires| advised(|machine| machine.nodes = vec![node(1 << 30), node(u64::from(!fires))])),
    ("T5", |fires| {
        advised(|machine| {
            machine.memory.insert("MemTotal".to_owned(), 1000);
            machine.nodes = vec![node(if fires { 949 } else { 950 })];
        })
    }),
    ("T6", |fires| {
        advised(|machine| {
            let cpu =
                |number, mhz: u64| crate::machine::Cpu { number, max_khz: Some(mhz * 1000), ..Default::default() };
            machine.cpus = vec![cpu(0, 3000), cpu(1, if fires { 3001 } else { 3000 })];
        })
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_testkit::rules::just_fire(&advice::rules(), CASES);
}
