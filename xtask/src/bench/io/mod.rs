//! The storage probe against fio and against the bare tester that fio ships, on the same files in alternating order.

mod peer;

use super::Options;
use super::table::{Pairs, alternate, figure, median, print_pairs, push};
use anyhow::{Context, Result, bail};
use peer::{Bench, Load, Peer, Shot};
use std::path::{Path, PathBuf};
use std::time::Instant;

type Part = fn(&Bench<'_>) -> Result<()>;

const PARTS: [(&str, Part); 10] = [
    ("null", null),
    ("nop", nop),
    ("read", read),
    ("depth1", depth1),
    ("tmpfs", tmpfs),
    ("write", write),
    ("mixed", mixed),
    ("libaio", libaio),
    ("scan", scan),
    ("layout", layout),
];

const IOPS: &str = "I/Os per second";
const CPU: &str = "CPU per I/O, us";
const P50: &str = "clat p50, us";
const P99: &str = "clat p99, us";

/// The same groups for both, those that assay arrives at by itself at this depth: submitted by 16,
/// 16 to 32 reaped, with everything registered.
const BATCHES: &[&str] = &[
    "--iodepth_batch_submit=16",
    "--iodepth_batch_complete_min=16",
    "--iodepth_batch_complete_max=32",
    "--registerfiles",
    "--fixedbufs",
];

/// All parts, or the one that is wanted.
///
/// # Errors
/// A missing fio, an unknown part, or a measurement that failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let wanted = options.only.as_deref();
    if let Some(name) = wanted
        && !PARTS.iter().any(|(known, _)| *known == name)
    {
        bail!("--only {name}: no such part of io");
    }
    let ring = peer::find_ring_tester();
    match &ring {
        Some(path) => println!("t/io_uring: {}", path.display()),
        None => println!(
            "!! no t/io_uring: its rows are left out. fio's source has it (make t/io_uring); name it in ASSAY_T_IO_URING"
        ),
    }
    let bench = Bench { options, ring };
    for (name, part) in PARTS {
        if wanted.is_none_or(|wanted| wanted == name) {
            part(&bench).with_context(|| name.to_owned())?;
        }
    }
    Ok(())
}

/// Shots of one contender, a round each.
type Shots = Vec<Shot>;

/// Every contender once per round; who begins moves on from round to round, so that nobody always
/// finds the device as the same other one left it.
fn rounds(bench: &Bench<'_>, loads: &[(Peer, Load)]) -> Result<Vec<Shots>> {
    let mut shots: Vec<Shots> = loads.iter().map(|_| Vec::new()).collect();
    for round in 0..bench.options.pairs {
        for step in 0..loads.len() {
            let turn = (round + step) % loads.len();
            let (peer, load) = &loads[turn];
            shots[turn].push(bench.shoot(*peer, load)?);
        }
    }
    Ok(shots)
}

fn pairs(name: &'static str, goal: &'static str, ours: &[Shot], theirs: &[Shot], value: fn(&Shot) -> f64) -> Pairs {
    let mut row = Pairs::new(name, goal);
    row.ours.extend(ours.iter().map(value));
    row.theirs.extend(theirs.iter().map(value));
    row
}

fn print_titled(bench: &Bench<'_>, title: &str, theirs: &str, rows: &[Pairs]) {
    println!("\n-- {title}");
    print_pairs(bench.options, title, ["assay", theirs], rows);
}

/// What never enters the kernel: the price of the tool itself.
fn null(bench: &Bench<'_>) -> Result<()> {
    for (title, more) in [
        ("null engine, 4 KiB random reads, depth 32", &[][..]),
        ("the same with gtod_reduce", &["--gtod_reduce=1"][..]),
    ] {
        let load = Load::nowhere("null", &["--rw=randread", "--bs=4k", "--iodepth=32"]).with(more);
        let shots = rounds(bench, &[(Peer::Assay, load.clone()), (Peer::Fio, load)])?;
        let (ours, theirs) = (&shots[0], &shots[1]);
        let per_core = |shot: &Shot| shot.per_core();
        print_titled(
            bench,
            title,
            "fio",
            &[
                pairs(IOPS, "", ours, theirs, |shot| shot.iops),
                pairs("I/Os per second and core", "", ours, theirs, per_core),
            ],
        );
        let million = median(&ours.iter().map(per_core).collect::<Vec<_>>()) / 1e6;
        println!("assay: {million:.2} M per second and core; goal >= 15 M");
    }
    Ok(())
}

/// Through the real ring, with everything recorded.
fn nop(bench: &Bench<'_>) -> Result<()> {
    let words = [
        "--rw=randread",
        "--bs=4k",
        "--iodepth=128",
        "--iodepth_batch_submit=32",
        "--iodepth_batch_complete_min=32",
        "--iodepth_batch_complete_max=32",
    ];
    let load = Load::nowhere("nop", &words);
    let mut loads = vec![(Peer::Assay, load)];
    if bench.ring.is_some() {
        // It wants a file even where it reads none.
        let file = bench.options.dir.join("nop.dat");
        std::fs::File::create(&file)?.set_len(1 << 30)?;
        let words = ["-N1", "-d128", "-s32", "-c32", "-b4096"];
        loads.push((Peer::Ring, Load::on(&file, "read", &words)));
    }
    let shots = rounds(bench, &loads)?;
    let ours = &shots[0];
    if let Some(theirs) = shots.get(1) {
        let iops = pairs(IOPS, "", ours, theirs, |shot| shot.iops);
        print_titled(bench, "no-operations through the ring, batches of 32", "t/io_uring -N1", &[iops]);
    }
    let rates: Vec<f64> = ours.iter().map(Shot::per_core).collect();
    println!("assay nop: {} I/Os per second and core; goal >= 9,000,000", figure(median(&rates)));
    Ok(())
}

/// The main comparison: 8 KiB at depth 32 on the file system below `--dir`.
fn read(bench: &Bench<'_>) -> Result<()> {
    let file = laid_out(bench)?;
    let plain = Load::on(&file, "read", &["--rw=randread", "--bs=8k", "--iodepth=32"]);
    let batched = plain.clone().with(BATCHES);
    let mut loads =
        vec![(Peer::Assay, plain.clone()), (Peer::Fio, plain), (Peer::Assay, batched.clone()), (Peer::Fio, batched)];
    if bench.ring.is_some() {
        let words = ["-d32", "-s16", "-c8", "-b8192", "-p0"];
        loads.push((Peer::Ring, Load::on(&file, "read", &words)));
    }
    let shots = rounds(bench, &loads)?;
    print_titled(
        bench,
        "8 KiB random reads, depth 32, nothing else said",
        "fio",
        &both(&shots[0], &shots[1], [">= 0.99", "<= 0.55", "", "<= 1.05"]),
    );
    print_titled(
        bench,
        "the same, both with the same batches, registered files and fixed buffers",
        "fio, batches",
        &both(&shots[2], &shots[3], ["", "<= 0.85", "", "about 1"]),
    );
    if let Some(theirs) = shots.get(4) {
        let iops = pairs(IOPS, ">= 0.97", &shots[0], theirs, |shot| shot.iops);
        let cpu = pairs(CPU, "", &shots[0], theirs, |shot| shot.cpu_us);
        print_titled(bench, "assay, nothing else said, against the bare tester", "t/io_uring", &[iops, cpu]);
    }
    bench.remove(&file)
}

/// I/Os, CPU, p50 and p99 of ours beside theirs, with a goal each.
fn both(ours: &[Shot], theirs: &[Shot], goals: [&'static str; 4]) -> [Pairs; 4] {
    [
        pairs(IOPS, goals[0], ours, theirs, |shot| shot.iops),
        pairs(CPU, goals[1], ours, theirs, |shot| shot.cpu_us),
        pairs(P50, goals[2], ours, theirs, |shot| shot.p50_us),
        pairs(P99, goals[3], ours, theirs, |shot| shot.p99_us),
    ]
}

/// The same load for both on `file`.
fn duel(bench: &Bench<'_>, title: &str, load: &Load, goals: [&'static str; 4]) -> Result<()> {
    let loads = [(Peer::Assay, load.clone()), (Peer::Fio, load.clone())];
    let shots = rounds(bench, &loads)?;
    print_titled(bench, title, "fio", &both(&shots[0], &shots[1], goals));
    Ok(())
}

fn depth1(bench: &Bench<'_>) -> Result<()> {
    let file = laid_out(bench)?;
    let load = Load::on(&file, "read", &["--rw=randread", "--bs=8k", "--iodepth=1"]);
    let goals = ["0.97 - 1.03", "", "0.97 - 1.03", ""];
    duel(bench, "8 KiB random reads, depth 1, io_uring", &load, goals)?;
    let load = load.with(&["--ioengine=psync"]);
    duel(bench, "8 KiB random reads, psync", &load, goals)?;
    bench.remove(&file)
}

/// A file in memory: the CPU alone is the limit.
fn tmpfs(bench: &Bench<'_>) -> Result<()> {
    let memory = Path::new("/dev/shm");
    let kind = peer::file_system(memory)?;
    if kind.as_deref() != Some("tmpfs") {
        println!("!! /dev/shm is no tmpfs: this part is left out");
        return Ok(());
    }
    let file = memory.join(format!("assay-bench-{}.dat", std::process::id()));
    let result = lay_out(bench, &file, bench.options.size("1G", "64M"), "--direct=0").and_then(|()| {
        let words = ["--rw=randread", "--bs=4k", "--iodepth=32", "--direct=0"];
        let load = Load::on(&file, "read", &words).reported();
        duel(bench, "4 KiB random reads of a file in memory, depth 32", &load, [">= 1.2", "", "", ""])
    });
    bench.remove(&file)?;
    result
}

fn write(bench: &Bench<'_>) -> Result<()> {
    let file = laid_out(bench)?;
    let load = Load::on(&file, "write", &["--rw=randwrite", "--bs=8k", "--iodepth=32"]);
    duel(bench, "8 KiB random writes, depth 32", &load, ["about 1", "", "", "about 1"])?;
    let words = ["--rw=write", "--bs=4k", "--fdatasync=1", "--ioengine=psync"];
    let load = Load::on(&file, "write", &words);
    duel(bench, "4 KiB writes, each with fdatasync, psync: redo", &load, ["about 1", "", "", ""])?;
    bench.remove(&file)
}

fn mixed(bench: &Bench<'_>) -> Result<()> {
    let file = laid_out(bench)?;
    let words = ["--rw=randrw", "--rwmixread=70", "--bs=8k", "--iodepth=32"];
    let load = Load::on(&file, "read", &words);
    duel(bench, "8 KiB, 70 % reads, depth 32: the reads", &load, ["about 1", "", "", "about 1"])?;
    bench.remove(&file)
}

fn libaio(bench: &Bench<'_>) -> Result<()> {
    let file = laid_out(bench)?;
    let words = ["--rw=randread", "--bs=8k", "--iodepth=32", "--ioengine=libaio"];
    let load = Load::on(&file, "read", &words);
    duel(bench, "8 KiB random reads, depth 32, libaio", &load, [">= 0.97", "", "", "about 1"])?;
    bench.remove(&file)
}

fn scan(bench: &Bench<'_>) -> Result<()> {
    let file = laid_out(bench)?;
    let load = Load::on(&file, "read", &["--rw=read", "--bs=1M", "--iodepth=8"]);
    duel(bench, "1 MiB sequential reads, depth 8", &load, [">= 0.97", "", "", ""])?;
    bench.remove(&file)
}

/// The time until a file of this size is there for reading: ours, fio's own way, and fio's fastest writing.
fn layout(bench: &Bench<'_>) -> Result<()> {
    let size = bench.options.size("2G", "64M");
    let bytes = bench.options.size(2048.0, 64.0) * f64::from(1 << 20);
    let mut rows = [
        Pairs::new("layout, MB/s, against fio's own", ">= 0.9"),
        Pairs::new("layout, MB/s, against its writes", ">= 0.9"),
    ];
    let made = |peer: Peer, words: &[&str]| -> Result<f64> {
        let file = bench.options.dir.join("layout.dat");
        let size = format!("--size={size}");
        let load = Load::on(&file, "read", words).with(&[&size]);
        let begun = Instant::now();
        bench.once(peer, &load)?;
        let elapsed_s = begun.elapsed().as_secs_f64();
        bench.remove(&file)?;
        Ok(bytes / elapsed_s / 1e6)
    };
    let own = ["--rw=randread", "--bs=8k", "--create_only=1"];
    let writes = ["--rw=write", "--bs=1M", "--iodepth=8", "--end_fsync=1"];
    for pair in 0..bench.options.pairs {
        let ours = || made(Peer::Assay, &own);
        let theirs = || Ok((made(Peer::Fio, &own)?, made(Peer::Fio, &writes)?));
        let (ours, (own, writes)) = alternate(pair, ours, theirs)?;
        push(&mut rows, &[(ours, own), (ours, writes)]);
    }
    print_titled(bench, "laying out a file", "fio", &rows);
    Ok(())
}

/// The file of most parts, written in full by fio so that no read meets a hole.
fn laid_out(bench: &Bench<'_>) -> Result<PathBuf> {
    let file = bench.options.dir.join("io.dat");
    lay_out(bench, &file, bench.options.size("2G", "64M"), "--direct=1")?;
    Ok(file)
}

fn lay_out(bench: &Bench<'_>, file: &Path, size: &str, direct: &str) -> Result<()> {
    let size = format!("--size={size}");
    let words = ["--rw=write", "--bs=1M", "--iodepth=8", "--end_fsync=1", direct, &size];
    bench.once(Peer::Fio, &Load::on(file, "write", &words))
}
