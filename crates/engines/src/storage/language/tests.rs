//! The language as its users write it.

use super::*;
use crate::storage::spec::{Amount, IoEngine, Mode};
use std::collections::HashMap;

/// A world of files and variables held in memory.
struct Held {
    files: HashMap<&'static str, &'static str>,
    variables: HashMap<&'static str, &'static str>,
}

fn parse_in(held: &Held, words: &[&str]) -> Result<Invocation, Vec<SpecError>> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let world = World {
        env: &|name| held.variables.get(name).map(|value| (*value).to_owned()),
        cpus: 2,
        page_bytes: 4096,
        memory_mib: 24_105,
        read_file: &|path| {
            path.to_str()
                .and_then(|path| held.files.get(path))
                .map(|text| (*text).to_owned())
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        },
        stdin: &|| {
            held.files
                .get("-")
                .map(|text| (*text).to_owned())
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        },
    };
    parse(&words, &world)
}

fn parsed(words: &[&str]) -> Invocation {
    let held = Held {
        files: HashMap::new(),
        variables: HashMap::new(),
    };
    parse_in(&held, words).expect("the words are good")
}

fn file(text: &'static str) -> Result<Invocation, Vec<SpecError>> {
    let held = Held {
        files: HashMap::from([("job.fio", text)]),
        variables: HashMap::from([("DEPTH", "7")]),
    };
    parse_in(&held, &["job.fio"])
}

fn refusals(words: &[&str]) -> Vec<String> {
    let held = Held {
        files: HashMap::new(),
        variables: HashMap::new(),
    };
    match parse_in(&held, words) {
        Ok(invocation) => panic!("{words:?} was taken: {invocation:?}"),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn io_01_published_command_lines_are_taken_as_they_are() {
    let line = "--filename=device --direct=1 --rw=randread --bs=4k --ioengine=libaio \
        --iodepth=256 --runtime=120 --numjobs=4 --time_based --group_reporting \
        --name=iops-test-job --eta-newline=1 --readonly";
    let words: Vec<&str> = line.split_whitespace().collect();
    let invocation = parsed(&words);
    assert_eq!(invocation.jobs.len(), 1);
    let job = &invocation.jobs[0];
    assert_eq!(job.name, "iops-test-job");
    let options = &job.options;
    assert_eq!(options.engine, IoEngine::Libaio);
    assert_eq!(options.pace.depth, 256);
    assert_eq!(options.clones, 4);
    assert_eq!(options.pace.runtime_ns, Some(120_000_000_000));
    assert!(options.pace.time_based && options.files.direct && options.measure.group_reporting);
    assert_eq!(options.pattern.mode, Mode::RandRead);
    assert!(invocation.output.readonly);
    assert_eq!(invocation.output.eta_newline_ns, Some(1_000_000_000));
}

#[test]
fn a_job_file_has_globals_variables_and_walls() {
    let invocation = file(
        "; comment\n[global]\nbs=8k ; behind\nsize=1g\n\n[a]\niodepth=${DEPTH}\n[b]\nstonewall\n\
         iodepth=4*$ncpus\n[global]\nbs=16k\n[c]\nnew_group\nsize=50%\n",
    )
    .expect("the file is good");
    let jobs = &invocation.jobs;
    let depths: Vec<_> = jobs.iter().map(|job| job.options.pace.depth).collect();
    assert_eq!(depths, [7, 8, 1]);
    let places: Vec<_> = jobs.iter().map(|job| (job.wave, job.group)).collect();
    assert_eq!(places, [(0, 0), (1, 1), (1, 2)]);
    assert_eq!(jobs[1].options.pattern.blocks[0].max, 8192);
    assert_eq!(jobs[2].options.pattern.blocks[1].min, 16_384);
    assert_eq!(jobs[2].options.files.size, Some(Amount::Percent(50)));
    assert_eq!(
        jobs[1].given,
        [
            ("stonewall".to_owned(), None),
            ("iodepth".to_owned(), Some("8".to_owned())),
        ]
    );
}

#[test]
fn io_11_readonly_refuses_jobs_that_write() {
    let errors = refusals(&["--readonly", "--name=a", "--rw=randwrite", "--size=1m"]);
    assert_eq!(
        errors,
        [
            "command line: job a: trim and write operations are not allowed with the --readonly \
         parameter"
        ]
    );
}

#[test]
fn errors_name_line_value_and_the_nearest_option() {
    let errors = file("[a]\niodept=4\nrw=randraed\n").expect_err("two slips");
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "job file job.fio, line 2: unknown option iodept; did you mean iodepth?",
            "job file job.fio, line 3: rw=randraed is none of read, write, randread, randwrite, rw, \
         randrw",
        ]
    );
}

/// What fio 3.33 writes for the same text, and what it refuses.
#[test]
fn content_patterns_have_fio_s_bytes() {
    use super::setters::{pattern, pattern_with_offsets};
    for (text, bytes) in [
        ("0xdeadface", &[0xde, 0xad, 0xfa, 0xce][..]),
        ("0xdeadfac", &[0x0d, 0xea, 0xdf, 0xac]),
        ("\"abcd\"", b"abcd"),
        ("12", &[12]),
        ("+5", &[5]),
        ("010", &[10]),
        ("300", &[0x2c, 1]),
        ("70000", &[0x70, 0x11, 1]),
        ("-10", &[0xf6, 0xff, 0xff, 0xff]),
        (
            "\"abcd\"-120xdeadface",
            b"abcd\xf4\xff\xff\xff\xde\xad\xfa\xce",
        ),
        ("\"a\" 34\"b\"", b"a\x22b"),
        ("\"100%o\"", b"100%o"),
    ] {
        assert_eq!(pattern(text).as_deref(), Ok(bytes), "{text}");
    }
    let long = format!("0x{}", "a".repeat(1026));
    for bad in [
        "abc",
        "0x",
        "4294967295",
        "99999999999999",
        "1,2",
        "0xAbG",
        "\"abc",
        "\"\"",
        "'/nowhere/at all'",
        "0xff%o",
        "%p",
        &long,
    ] {
        assert!(pattern(bad).is_err(), "{bad}");
    }
    let offsets = pattern_with_offsets("0xff%o\"ab\"%o").unwrap();
    assert_eq!((offsets.0.len(), offsets.1), (19, vec![1, 11]));
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("content");
    std::fs::write(&file, [7; 600]).unwrap();
    let named = format!("\"x\"'{}'", file.display());
    assert_eq!(pattern(&named).map(|bytes| bytes.len()), Ok(512));
}
