//! The job language beside the real fio: what one takes the other takes, and as the same.
//!
//! Needs fio 3.33 or another of its age on the path; says so loudly and does nothing without.

#![expect(clippy::print_stderr, reason = "says so when it has nothing to compare with")]

use assay_storage::language::{self, World};
use assay_storage::spec::{GivenOption, Invocation, SpecError, StorageJob};
use std::path::Path;
use std::process::{Command, Output};

/// Who takes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Both,
    Neither,
    /// fio takes it and assay does not, for this reason.
    OnlyFio(&'static str),
    /// assay takes it and fio 3.33 does not, for this reason.
    OnlyAssay(&'static str),
}
use Verdict::{Both, Neither, OnlyAssay, OnlyFio};

/// fio reads the beginning of such values and ignores the rest, which is never what was meant.
const MISREAD: Verdict = OnlyFio("fio reads only the beginning of it");
const UNSUPPORTED: Verdict = OnlyFio("refused by design: not supported");
const EXPRESSION: Verdict = OnlyAssay("this fio was built without expressions");
const SENSELESS: Verdict = OnlyFio("fio takes it and then does something else");

/// Words behind a job that is good by itself.
const WORDS: &[(&str, Verdict)] = &[
    ("--bs=4k", Both),
    ("--bs 4k", Both),
    ("-bs=4k", Both),
    ("--blocksize=8k,16k", Both),
    ("--bs=,8k", Both),
    ("--bs=8k,,64k", Both),
    ("--bs=4KiB", Both),
    ("--bs=0x1000", Both),
    ("--bs=0", Neither),
    ("--bs=nope", Neither),
    ("--bs=4x", MISREAD),
    ("--bs=4.5k", MISREAD),
    ("--bs=4*1024", MISREAD),
    ("--bs=4k-8k", MISREAD),
    ("--bs=8k,16k,32k,64k", MISREAD),
    ("--bs=(4*1024)", EXPRESSION),
    ("--iodepth=(2^4)", EXPRESSION),
    ("--bsrange=4k-8k", Both),
    ("--bsrange=4k:8k", Both),
    ("--bsrange=8k-4k,16k-32k", Both),
    ("--bsrange=4k", Neither),
    ("--bssplit=4k/60:8k/40", Both),
    ("--bssplit=4k/60:8k", Both),
    ("--bssplit=4k/:8k/", Both),
    ("--bssplit=4k/60:8k/40,16k/100", Both),
    ("--bssplit=foo", Neither),
    ("--bssplit=4k/60:8k/50", SENSELESS),
    ("--ba=4k", Both),
    ("--rw=randrw --rwmixread=70", Both),
    ("--readwrite=readwrite", Both),
    ("--rw=randread:8", Both),
    ("--rw=read:4k", Both),
    ("--rw=foo", Neither),
    ("--rw=randread:x", MISREAD),
    ("--rw=trim", Both),
    ("--rw=randtrim:8", Both),
    ("--rw=trimwrite --bs=64k", Both),
    ("--rw=randtrimwrite", Both),
    ("--rw=trimwrite --bs=4k,4k,8k", UNSUPPORTED),
    ("--rwmixread=101", Neither),
    ("--direct=1", Both),
    ("--direct=2", Neither),
    ("--direct=true", Neither),
    ("--direct", Neither),
    ("--buffered=0", Both),
    ("--thread", Both),
    ("--thread=1", Both),
    ("--norandommap=0", Both),
    ("--norandommap=yes", Neither),
    ("--invalidate=yes", Neither),
    ("--time_based --runtime=1", Both),
    ("--time_based", Both),
    ("--runtime=5ms", Both),
    ("--timeout=1h", Both),
    ("--runtime=1m30s", MISREAD),
    ("--runtime=5sec", MISREAD),
    ("--size=50%", Both),
    ("--size=101%", Both),
    ("--io_size=100%", Both),
    ("--io_size=101%", Neither),
    ("--io_limit=1m", Both),
    ("--offset=10% --offset_increment=5%", Both),
    ("--filesize=1m-2m", Both),
    ("--nrfiles=4 --openfiles=2", Both),
    ("--file_service_type=random:8", Both),
    ("--file_service_type=foo", Neither),
    ("--file_service_type=zipf:1.2", UNSUPPORTED),
    ("--number_ios=1k", Both),
    ("--loops=2", Both),
    ("--numjobs=3", Both),
    ("--stonewall", Both),
    ("--wait_for_previous", Both),
    ("--new_group --group_reporting", Both),
    ("--ioengine=psync", Both),
    ("--ioengine=vsync", Both),
    ("--ioengine=nosuch", Neither),
    ("--ioengine=mmap", UNSUPPORTED),
    ("--ioengine=io_uring --fixedbufs --registerfiles --hipri=0", Both),
    ("--ioengine=io_uring --sqthread_poll=1 --sqthread_poll_cpu=0", Both),
    ("--ioengine=io_uring --nonvectored=1 --force_async=4 --nowait=1", Both),
    ("--ioengine=libaio --userspace_reap", Both),
    ("--ioengine=libaio --registerfiles", Neither),
    ("--registerfiles", Neither),
    ("--ioengine=pvsync2 --hipri", Both),
    ("--fixedbufs --ioengine=io_uring", OnlyAssay("the order of words does not matter here")),
    ("--iodepth=32 --iodepth_batch=8 --iodepth_batch_complete=4", Both),
    ("--iodepth_batch_submit=64 --iodepth_low=9 --iodepth_batch_complete_max=99", Both),
    ("--iodepth=0", Neither),
    ("--iodept=4", Neither),
    ("--group_rep", Both),
    ("--nosuch=1", Neither),
    ("--rate=1m", Both),
    ("--rate=1m,2m --rate_min=500k", Both),
    ("--rate_iops=100,200 --rate_process=poisson", Both),
    ("--rate_process=foo", Neither),
    ("--rate=1m --rate_iops=100", Neither),
    ("--rate_iops=100 --rate_iops_min=200", Neither),
    ("--numjobs=0", Neither),
    ("--thinktime=5ms --thinktime_spin=1ms --thinktime_blocks=4", Both),
    ("--startdelay=1-5", Both),
    ("--ramp_time=2 --max_latency=10ms", Both),
    ("--latency_target=5ms --latency_window=1s", Both),
    ("--latency_target=500 --latency_window=300ms --latency_percentile=99.5 --latency_run=1", Both),
    ("--latency_percentile=100.5", Neither),
    ("--latency_target=5ms", OnlyFio("every turn is a window")),
    ("--latency_target=5ms --latency_window=1s --gtod_reduce=1", OnlyFio("nothing is ever searched")),
    ("--fsync=8 --fdatasync=1 --end_fsync=1 --fsync_on_close=1", Both),
    ("--sync=dsync", Both),
    ("--sync=2", Neither),
    ("--continue_on_error=all", Both),
    ("--continue_on_error=2", Neither),
    ("--exitall --exitall_on_error", Both),
    ("--random_distribution=zipf:1.2", Both),
    ("--random_distribution=zipf", Both),
    ("--random_distribution=zipf:1.0", Neither),
    ("--random_distribution=zipf:1.2:0.5", Both),
    ("--random_distribution=pareto:0.2", Both),
    ("--random_distribution=pareto:1.2", Neither),
    ("--random_distribution=normal:50", Both),
    ("--random_distribution=normal:150", Neither),
    ("--random_distribution=zoned:60/10:30/20:8/30:2/40", Both),
    ("--random_distribution=zoned:60/10:30/20", Neither),
    ("--random_distribution=foo", Neither),
    ("--random_distribution=zoned_abs:60/10G:40/20G", UNSUPPORTED),
    ("--random_generator=lfsr --randseed=7 --randrepeat=0", Both),
    ("--percentage_random=50", Both),
    ("--percentile_list=50:99:99.9", Both),
    ("--percentile_list=101", Neither),
    ("--percentile_list=99,50", MISREAD),
    ("--lat_percentiles=1 --slat_percentiles=1 --clat_percentiles=0", Both),
    ("--gtod_reduce=1 --disable_lat=1 --disable_bw=1", Both),
    ("--bwavgtime=1000 --iopsavgtime=1000 --significant_figures=6", Both),
    ("--significant_figures=11", Neither),
    ("--write_lat_log=l --log_avg_msec=100 --log_offset=1 --per_job_logs=0", Both),
    ("--write_bw_log", Neither),
    ("--log_max_value=1", Both),
    ("--log_window_value=both", OnlyAssay("newer fios take it")),
    ("--verify=crc32c --do_verify=0 --verify_fatal=1 --verify_backlog=64", Both),
    ("--verify=pattern --verify_pattern=0xdeadbeef", Both),
    ("--verify=foo", Neither),
    ("--verify=md5", UNSUPPORTED),
    ("--verify_interval=10", Neither),
    ("--buffer_pattern=0xdeadbeef\"abcd\"-12", Both),
    ("--buffer_pattern=abc", Neither),
    ("--buffer_pattern=0x", Neither),
    ("--buffer_pattern=5000000000", Neither),
    ("--buffer_compress_percentage=50 --buffer_compress_chunk=4k", Both),
    ("--dedupe_percentage=30 --refill_buffers --zero_buffers", Both),
    ("--steadystate=iops:2% --ss_dur=10 --ss_ramp=5", Both),
    ("--steadystate=bw_slope:0.3%", Both),
    ("--steadystate=iops", Neither),
    ("--steadystate=foo:1", Neither),
    ("--steadystate=lat:5%", OnlyAssay("newer fios take it")),
    ("--cpus_allowed=0-1 --cpus_allowed_policy=split --nice=5", Both),
    ("--cpumask=3", Both),
    ("--cpus_allowed=a", MISREAD),
    ("--fallocate=none --unlink=1 --create_fsync=0 --pre_read=1", Both),
    ("--fallocate=maybe", Neither),
    ("--allow_mounted_write=1", Both),
    ("--kb_base=1000", Both),
    ("--kb_base=1001", Neither),
    ("--iomem=mmap --mem_align=4k --clocksource=cpu --gtod_cpu=0", Both),
    ("--read_iolog=trace", OnlyFio("refused by design: not supported")),
    ("--zonemode=none", Both),
    ("--cgroup=x", UNSUPPORTED),
    ("--readonly", Both),
    ("--readonly --rw=write", Neither),
    ("--rw=write --readonly", Neither),
    ("--output-format=json,normal", Both),
    ("--output-format=foo", Neither),
    ("--minimal", Both),
    ("--append-terse", Both),
    ("--eta=never --eta-newline=1 --status-interval=500ms", Both),
    ("--eta=foo", SENSELESS),
    ("--eta-newline=0", Neither),
    ("--status-interval=0", Neither),
    ("--max-jobs=10 --alloc-size=100 --warnings-fatal", Both),
    ("--label", OnlyAssay("an option of ours")),
    ("--no-record", OnlyAssay("an option of ours")),
    ("--destroy=/dev/null", OnlyAssay("an option of ours")),
    ("nosuch.fio", Neither),
];

/// Job files behind a good `[global]`.
const FILES: &[(&str, Verdict)] = &[
    ("[a]\n", Both),
    ("[a]\nbs=8k ; comment\n# another\n", Both),
    ("[a b]\n  bs=8k   \n", Both),
    ("[a]\nbs = 8k\n", Both),
    ("[a]\nrw = randread\n", OnlyAssay("blanks around the equals sign mean nothing")),
    ("[a]\niodepth=4*$ncpus\n", Both),
    ("[a]\nbs=$pagesize\n", Both),
    ("[a]\niodepth=${ASSAY_PARITY_DEPTH}\n", Both),
    ("[a]\niodepth=${ASSAY_PARITY_NONE}\n", Neither),
    ("[a]\niodepth=$NOPE\n", Neither),
    ("[a]\nnosuch=3\n", Neither),
    ("[a]\nbs\n", Neither),
    ("[a]\ndirect\n", Neither),
    ("[a]\nthread\nstonewall=0\n", Both),
    ("[a]\nwrite_bw_log\n", Both),
    ("[a]\niodept=4\n", Neither),
    ("[a]\nfilename=\n", Neither),
    ("[a]\ninclude inc.fio\n", Both),
    ("[a]\ninclude nosuch.fio\n", Neither),
    ("[a]\ninclude section.fio\n", SENSELESS),
    ("[a]\nregisterfiles\nioengine=io_uring\n", Both),
    ("[a]\nregisterfiles\n", Neither),
    ("[a\nbs=4k\n", MISREAD),
    ("[a]\nbs=nope\n[b]\n", Neither),
    ("[a]\nbs=(4*1024)\n", EXPRESSION),
    ("[a]\nname=other\n", Both),
    ("[a]\r\nbs=4k\r\n", Both),
    ("", Neither),
    ("; only this\n", Neither),
];

/// Runs fio in `dir`; nothing when there is none.
fn fio(dir: &Path, words: &[&str]) -> Option<Output> {
    let mut command = Command::new("fio");
    command.args(words).current_dir(dir).env("ASSAY_PARITY_DEPTH", "7");
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: there is no fio here to compare with");
            None
        }
        Err(error) => panic!("cannot run fio: {error}"),
    }
}

fn ours(dir: &Path, words: &[&str]) -> Result<Invocation, Vec<SpecError>> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let here = World::here();
    let world = World {
        env: &|name| match name {
            "ASSAY_PARITY_DEPTH" => Some("7".to_owned()),
            _ => (here.env)(name),
        },
        read_file: &|path| std::fs::read_to_string(dir.join(path)),
        ..here
    };
    language::parse(&words, &world)
}

fn verdict_holds(verdict: Verdict, theirs: bool, ours: bool) -> bool {
    match verdict {
        Both => theirs && ours,
        Neither => !theirs && !ours,
        OnlyFio(_) => theirs && !ours,
        OnlyAssay(_) => !theirs && ours,
    }
}

#[test]
fn both_take_or_both_refuse_a_command_line() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let mut wrong = Vec::new();
    for (line, verdict) in WORDS {
        let mut words = vec!["--name=a", "--ioengine=null", "--size=1m"];
        words.extend(line.split(' '));
        // Some refusals come only when jobs are to run.
        if *verdict != Neither {
            words.push("--parse-only");
        }
        let Some(output) = fio(dir.path(), &words) else {
            return;
        };
        let taken = ours(dir.path(), &words);
        if !verdict_holds(*verdict, output.status.success(), taken.is_ok()) {
            wrong.push(format!("{line}: {verdict:?}, but fio says {} and assay {:?}", output.status, taken.err()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn both_take_or_both_refuse_a_job_file() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("a scratch file");
    };
    write("inc.fio", "iodepth=5\n");
    write("section.fio", "[b]\niodepth=5\n");
    let mut wrong = Vec::new();
    for (text, verdict) in FILES {
        write("job.fio", &format!("[global]\nioengine=null\nsize=1m\n{text}"));
        // Without a job fio complains only when it is to run something.
        let words: &[&str] = if *verdict == Neither { &["job.fio"] } else { &["--parse-only", "job.fio"] };
        let Some(output) = fio(dir.path(), words) else {
            return;
        };
        let taken = ours(dir.path(), &["job.fio"]);
        if !verdict_holds(*verdict, output.status.success(), taken.is_ok()) {
            wrong.push(format!("{text:?}: {verdict:?}, but fio says {} and assay {:?}", output.status, taken.err()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Jobs whose options both tools understand alike, to be looked at closely.
const ALIKE: &str = "[global]
ioengine=null
size=1m
number_ios=1
thread
[plain]
[sizes]
bs=8k,16k,32k
rw=randrw
iodepth=4
[inherits]
blocksize=8k,16k
[skips]
bs=,8k
[two names]
bs=4kib
readwrite=readwrite
[twice]
bs=1k
bs=2k
[range]
bsrange=4k-8k,16k-32k
bs=1k
[split]
bssplit=4k/60:8k/40
rw=randwrite
[global]
iodepth=3
[walled]
stonewall
numjobs=2
[grouped]
new_group
rw=randread:8
[deep]
iodepth=4*$ncpus
description=some words
[named]
name=else
kb_base=1000
bs=4k
[unit]
bs=4k
kb_base=1000
[called]
filename_format=some.$jobnum
filename=called.data
hipri=0
ioengine=pvsync2
unit_base=8
size=4k
";

/// A job as fio's report has it.
#[derive(Debug, PartialEq)]
struct Reported {
    name: String,
    group: u32,
    options: Vec<(String, String)>,
}

fn pairs(given: &[GivenOption]) -> Vec<(String, String)> {
    given.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect()
}

/// The objects of fio's JSON keep their order and repeats, which maps lose.
fn reported(json: &str) -> (Vec<(String, String)>, Vec<Reported>) {
    let mut globals = Vec::new();
    let mut jobs: Vec<Reported> = Vec::new();
    let mut section = "";
    for line in json.lines() {
        let line = line.trim().trim_end_matches(',');
        match line {
            "\"global options\" : {" => section = "global",
            "\"job options\" : {" => section = "job",
            "}" => section = "",
            _ => {}
        }
        let Some((key, value)) = line.split_once(" : ") else {
            continue;
        };
        let (key, value) = (key.trim_matches('"'), value.trim_matches('"'));
        if value == "{" {
            continue;
        }
        match (section, key) {
            ("global", key) => globals.push((key.to_owned(), value.to_owned())),
            ("job", key) => {
                jobs.last_mut().expect("options stand within a job").options.push((key.to_owned(), value.to_owned()))
            }
            ("", "jobname") => jobs.push(Reported { name: value.to_owned(), group: 0, options: Vec::new() }),
            ("", "groupid") => {
                jobs.last_mut().expect("a group is of a job").group = value.parse().expect("a number");
            }
            _ => {}
        }
    }
    (globals, jobs)
}

fn expected(jobs: &[StorageJob]) -> Vec<Reported> {
    jobs.iter()
        .flat_map(|job| {
            (0..job.options.clones).map(|_| Reported {
                name: job.name.clone(),
                group: job.group,
                options: pairs(&job.given),
            })
        })
        .collect()
}

#[test]
fn options_and_groups_are_those_of_fios_json() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let small = "[late]\nioengine=null\nsize=1m\nnumber_ios=1\n[later]\nioengine=null\nsize=1m\nnumber_ios=1\n";
    std::fs::write(dir.path().join("alike.fio"), ALIKE).expect("a scratch file");
    std::fs::write(dir.path().join("small.fio"), small).expect("a scratch file");
    let command_line = [
        "--bs=4k",
        "--name=x",
        "--ioengine=null",
        "--size=1m",
        "--number_ios=1",
        "--name=global",
        "--iodepth=2",
        "--name=y",
        "--ioengine=null",
        "--size=1m",
        "--number_ios=1",
        "--stonewall",
        "--direct=0",
        "--norandommap=1",
    ];
    for words in [
        &["alike.fio"][..],
        &["--loops=1", "alike.fio", "small.fio"],
        &["--section=deep", "--section=sizes", "alike.fio"],
        &command_line,
        &[&command_line[..], &["small.fio"]].concat(),
    ] {
        let mut all = vec!["--output-format=json"];
        all.extend(words);
        let Some(output) = fio(dir.path(), &all) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let (globals, jobs) = reported(&text);
        let invocation = ours(dir.path(), words).expect("both take it");
        assert_eq!(pairs(&invocation.global_options), globals, "{words:?}");
        assert_eq!(expected(&invocation.jobs), jobs, "{words:?}");
    }
}

/// A byte count as fio's header lines have it.
fn bytes_of(text: &str) -> u64 {
    let (number, factor) = match text {
        text if text.ends_with("KiB") => (&text[..text.len() - 3], 1024.0),
        text if text.ends_with("MiB") => (&text[..text.len() - 3], 1024.0 * 1024.0),
        text => (text.trim_end_matches('B'), 1.0),
    };
    (number.parse::<f64>().expect("a number") * factor) as u64
}

#[test]
fn sizes_depths_and_directions_are_those_of_fios_header_lines() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    std::fs::write(dir.path().join("alike.fio"), ALIKE).expect("a scratch file");
    let Some(output) = fio(dir.path(), &["alike.fio"]) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let headers: Vec<&str> = text.lines().filter(|line| line.contains(": (g=")).collect();
    let invocation = ours(dir.path(), &["alike.fio"]).expect("both take it");
    assert_eq!(headers.len(), invocation.jobs.len());
    for (header, job) in headers.iter().zip(&invocation.jobs) {
        let options = &job.options;
        let (start, rest) = header.split_once(", bs=").expect("a header line");
        let rw = options.pattern.mode.name();
        assert_eq!(start, format!("{}: (g={}): rw={rw}", job.name, job.group));
        let (sizes, end) = rest.split_once(", ioengine=").expect("a header line");
        let engine = format!("{}, iodepth={}", options.engine_name, options.pace.depth);
        assert_eq!(end, engine);
        for (part, blocks) in sizes.split(", ").zip(&options.pattern.blocks) {
            let (low, high) = part[4..].split_once('-').expect("two sizes");
            let theirs = (bytes_of(low), bytes_of(high));
            assert_eq!(theirs, (u64::from(blocks.min), u64::from(blocks.max)), "{header}");
        }
    }
}

#[test]
fn job_files_shown_as_command_lines_mean_the_same() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    // fio shows no second [global] section, and drops quotation marks where blanks are.
    let text = ALIKE
        .split("[global]\niodepth=3\n")
        .collect::<String>()
        .replace("two names", "two_names")
        .replace("some words", "words")
        .replace("name=else\n", "");
    std::fs::write(dir.path().join("alike.fio"), text).expect("a scratch file");
    let Some(output) = fio(dir.path(), &["--showcmd", "alike.fio"]) else {
        return;
    };
    let line = String::from_utf8_lossy(&output.stdout).replace('"', "");
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let file = ours(dir.path(), &["alike.fio"]).expect("the file is good");
    // As the shell would take it: no value here has quotation marks of its own.
    let own = language::command_line(&file).replace('\'', "");
    let own: Vec<&str> = own.split_whitespace().skip(2).collect();
    for words in [words, own] {
        let shown = ours(dir.path(), &words).expect("the command line is good");
        assert_eq!(shown.jobs.len(), file.jobs.len());
        for (shown, job) in shown.jobs.iter().zip(&file.jobs) {
            assert_eq!(shown.name, job.name);
            assert_eq!((shown.wave, shown.group), (job.wave, job.group));
            assert_eq!(shown.options, job.options, "{}", job.name);
        }
    }
}

/// Values, and what fio's parser makes of them, whatever the option.
const NUMBERS: &[(&str, &[&str])] = &[
    (
        "size",
        &[
            "4", "4k", "4ki", "4kb", "4kib", "4K", "4Ki", "4KB", "4KiB", "1m", "1mi", "1mb", "1mib", "1g", "1gi",
            "1gib", "1t", "1tib", "1p", "1pib", "0x10", "0xff", "+5", "010", "512b",
        ],
    ),
    ("runtime", &["5", "5s", "5ms", "5msec", "5us", "5usec", "5m", "5h", "5d", "5M", "5S"]),
    ("thinktime", &["5", "5s", "5ms", "5us", "5m"]),
    ("max_latency", &["5", "5ms"]),
    ("latency_target", &["5", "5ms"]),
    ("latency_window", &["5", "5s"]),
    ("ramp_time", &["5", "5ms"]),
    ("steadystate_duration", &["5", "5m"]),
    ("rate_iops", &["1k", "7"]),
    ("number_ios", &["1k", "1m"]),
];

#[test]
fn numbers_are_what_fios_parser_makes_of_them() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    for (option, values) in NUMBERS {
        let mut words = vec!["--debug=parse".to_owned(), "--parse-only".to_owned(), "--name=a".to_owned()];
        words.extend(values.iter().map(|value| format!("--{option}={value}")));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some(output) = fio(dir.path(), &words) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let theirs: Vec<u64> = text.lines().filter_map(|line| line.split_once("ret=0, out=")?.1.parse().ok()).collect();
        let own: Vec<u64> = values.iter().map(|value| number_of(option, value)).collect();
        assert_eq!(own, theirs, "{option}: {values:?}");
    }
}

/// A value in fio's units: bytes, microseconds.
fn number_of(option: &str, text: &str) -> u64 {
    use assay_storage::language::value::{Kind, Value};
    let kind = language::table::find(option).expect("it is in the table").kind;
    let value = Value { text: Some(text), kind, decimal: false };
    match kind {
        Kind::Seconds | Kind::Micros => value.ns().expect("a time") / 1000,
        Kind::Ints(..) => value.ints().expect("numbers")[0].expect("the first"),
        _ => language::value::number(text, false).expect("a number"),
    }
}

/// Names that `--cmdhelp` or `--enghelp` lists.
fn listed(dir: &Path, word: &str) -> Option<Vec<String>> {
    let output = fio(dir, &[word])?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    Some(names)
}

#[test]
fn every_option_of_fio_is_in_the_table_by_its_names_and_default() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    for (word, least) in
        [("--cmdhelp", 210), ("--enghelp=io_uring", 13), ("--enghelp=libaio", 6), ("--enghelp=pvsync2", 4)]
    {
        let Some(names) = listed(dir.path(), word) else {
            return;
        };
        assert!(names.len() >= least, "{word} lists {}", names.len());
        for name in names {
            let option = language::table::find(&name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(option.name, name);
        }
    }
    for option in language::table::all() {
        let works = matches!(option.usage, language::table::Use::Works(_));
        if works && language::table::engines_of(option).is_empty() {
            same_names_and_default(dir.path(), option);
        }
    }
}

/// Options of ours, or of newer fios, and those whose default fio does not show as it is.
const UNLIKE: &[&str] = &[
    "bs_is_seq_rand",
    "cpus_allowed_policy",
    "log_window_value",
    "percentage_random",
    "precondition",
    "precondition_round",
    "randseed",
    "softrandommap",
    "steadystate",
];

fn same_names_and_default(dir: &Path, option: &language::table::OptionDef) {
    if UNLIKE.contains(&option.name) {
        return;
    }
    let Some(output) = fio(dir, &[&format!("--cmdhelp={}", option.name)]) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.trim().strip_prefix(name))
            .map(|rest| rest.trim_start_matches(':').trim().to_owned())
    };
    if let Some(alias) = field("alias") {
        assert!(option.aliases.contains(&alias.as_str()), "{}", option.name);
    }
    let theirs = field("default").unwrap_or_default();
    let none = ["no default", "0"].contains(&theirs.as_str());
    let own = ["", "0"].contains(&option.default);
    assert!(
        option.default == theirs || (none && own),
        "{}: {:?}, but fio says {theirs:?}",
        option.name,
        option.default
    );
}
