//! The language as its users write it.

use super::*;
use crate::spec::{Amount, IoEngine, Mode};
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
        stdin: &|| held.files.get("-").map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into()),
    };
    parse(&words, &world)
}

fn parsed(words: &[&str]) -> Invocation {
    let held = Held { files: HashMap::new(), variables: HashMap::new() };
    parse_in(&held, words).expect("the words are good")
}

fn file(text: &'static str) -> Result<Invocation, Vec<SpecError>> {
    let held = Held { files: HashMap::from([("job.fio", text)]), variables: HashMap::from([("DEPTH", "7")]) };
    parse_in(&held, &["job.fio"])
}

fn refusals(words: &[&str]) -> Vec<String> {
    let held = Held { files: HashMap::new(), variables: HashMap::new() };
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
    assert_eq!(jobs[1].given, [("stonewall".to_owned(), None), ("iodepth".to_owned(), Some("8".to_owned())),]);
}

#[test]
fn a_job_waits_only_for_another_that_is_defined_before_it() {
    let text = "[global]\nsize=1m\nrw=read\n[a]\n[b]\nwait_for=a\n";
    let jobs = file(text).expect("a is defined before b").jobs;
    assert_eq!(jobs[1].options.pace.wait_for.as_deref(), Some("a"));
    assert_eq!(jobs[0].wave, jobs[1].wave);
    let errors = file("[global]\nsize=1m\nrw=read\n[a]\nwait_for=b\n[b]\nwait_for=b\n")
        .expect_err("b is defined after a, and no job waits for itself");
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "job file job.fio, line 4: job a: wait_for=b: no other job of this name is defined before it",
            "job file job.fio, line 6: job b: wait_for=b: no other job of this name is defined before it",
        ]
    );
}

#[test]
fn io_11_readonly_refuses_jobs_that_write() {
    let errors = refusals(&["--readonly", "--name=a", "--rw=randwrite", "--size=1m"]);
    assert_eq!(
        errors,
        ["command line: job a: trim and write operations are not allowed with the --readonly \
         parameter"]
    );
    let errors = refusals(&["--readonly", "--name=a", "--rw=randtrim", "--size=1m"]);
    assert!(errors[0].contains("trim and write operations are not allowed"));
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
         randrw, trim, randtrim, trimwrite, randtrimwrite",
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
        ("\"abcd\"-120xdeadface", b"abcd\xf4\xff\xff\xff\xde\xad\xfa\xce"),
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

#[test]
fn io_01_the_samples_of_latency_and_logging_runs_are_taken() {
    for line in [
        "--name=readlatency-test-job --rw=randread --bs=4k --iodepth=1 --direct=1 \
         --ioengine=libaio --group_reporting --time_based --runtime=120 --size=128M --numjobs=1 \
         --eta-newline=1 --readonly --filename=device",
        "--filename=device --direct=1 --rw=randread --bs=8k --ioengine=libaio --iodepth=256 \
         --runtime=120 --numjobs=4 --time_based --group_reporting --name=iops-test-job \
         --eta-newline=1 --readonly",
        "--randrepeat=1 --ioengine=libaio --direct=1 --gtod_reduce=1 --name=test \
         --filename=random_read_write.fio --bs=4k --iodepth=64 --size=4G --readwrite=randrw \
         --rwmixread=75",
        "--name=log --filename=redo --ioengine=psync --rw=write --bs=4k --fdatasync=1 --size=1g \
         --write_lat_log=redo --log_avg_msec=1000 --output-format=json+ --output=redo.json",
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(parsed(&words).jobs.len(), 1, "{line}");
    }
}

#[test]
fn the_later_of_both_shares_of_a_mix_wins() {
    let share = |words: &[&str]| parsed(words).jobs[0].options.pattern.read_percent;
    assert_eq!(share(&["--name=a", "--rwmixread=70"]), 70);
    assert_eq!(share(&["--name=a", "--rwmixwrite=70"]), 30);
    assert_eq!(share(&["--name=a", "--rwmixread=70", "--rwmixwrite=60"]), 40);
}

#[test]
fn one_word_turns_off_four_measurements() {
    let measure = &parsed(&["--name=a", "--gtod_reduce=1"]).jobs[0].options.measure;
    assert!(measure.no_lat && measure.no_clat && measure.no_slat && measure.no_bw);
}

#[test]
fn batches_stay_within_the_depth() {
    let pace = &parsed(&[
        "--name=a",
        "--iodepth=8",
        "--iodepth_batch=99",
        "--iodepth_batch_complete_min=99",
        "--iodepth_batch_complete_max=2",
        "--iodepth_low=99",
    ])
    .jobs[0]
        .options
        .pace;
    assert_eq!(pace.batch_submit, Some(8));
    assert_eq!(pace.batch_complete_min, Some(8));
    assert_eq!(pace.batch_complete_max, Some(8));
    assert_eq!(pace.depth_low, None);
    let pace = &parsed(&["--name=a", "--iodepth=8", "--iodepth_batch=0"]).jobs[0].options.pace;
    assert_eq!(pace.batch_submit, Some(8));
}

#[test]
fn splits_share_out_what_is_left() {
    let split = |text: &str| {
        let word = format!("--bssplit={text}");
        parsed(&["--name=a", &word]).jobs[0].options.pattern.blocks[0].clone()
    };
    assert_eq!(split("4k/60:8k/40").split, [(4096, 60), (8192, 40)]);
    assert_eq!(split("4k/50:8k:16k").split, [(4096, 50), (8192, 25), (16_384, 25)]);
    assert_eq!(split("1k:2k:4k").split, [(1024, 34), (2048, 33), (4096, 33)]);
    let one = split("64k/100");
    assert_eq!((one.min, one.max, one.split.len()), (65_536, 65_536, 0));
    let errors = refusals(&["--name=a", "--bssplit=4k/60:8k/50"]);
    assert_eq!(errors, ["command line: job a: bssplit adds up to 110 percent, not 100"]);
}

#[test]
fn a_name_may_hold_an_escaped_colon() {
    let names = &parsed(&["--name=a", "--filename=/dev/a\\:b:c"]).jobs[0].options.files.names;
    assert_eq!(names, &[Path::new("/dev/a:b"), Path::new("c")]);
}

#[test]
fn what_is_not_supported_says_what_would_do() {
    for (word, said) in [
        ("--write_hint=short", "not supported: write_hint=short; assay gives no hints"),
        ("--ioengine=mmap", "not supported: ioengine=mmap; the engines are io_uring"),
        ("--trim_percentage=10", "not supported: trim_percentage=10; use rw=trim"),
        ("--verify=md5", "not supported: verify=md5; use crc32c or pattern"),
        ("--io_submit_mode=offload", "not supported: io_submit_mode=offload; inline"),
        ("--client=host", "not supported; assay has no client"),
    ] {
        let errors = refusals(&["--name=a", word]);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains(said), "{errors:?}");
    }
}

#[test]
fn what_has_no_effect_is_noted_once_and_not_at_its_default() {
    let notes = |words: &[&str]| parsed(words).output.notes;
    assert_eq!(notes(&["--name=a", "--mem=malloc", "--stats=1"]), [""; 0]);
    let said = notes(&["--mem=mmap", "--name=a", "--name=b"]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("mem has no effect: "));
    let said = notes(&["--name=a", "--time_based"]);
    assert_eq!(said, ["time_based has no effect without runtime"]);
}

#[test]
fn options_of_an_engine_must_be_of_the_jobs_engine() {
    let errors = refusals(&["--name=a", "--ioengine=libaio", "--registerfiles"]);
    assert_eq!(errors, ["command line: job a: registerfiles is not an option of ioengine=libaio"]);
    refusals(&["--registerfiles", "--name=a"]);
    let invocation = parsed(&["--ioengine=io_uring", "--registerfiles", "--name=a", "--name=b", "--ioengine=psync"]);
    assert_eq!(invocation.jobs[0].options.ring.registered_files, Some(true));
    assert_eq!(invocation.output.notes, ["registerfiles has no effect with ioengine=psync"]);
}

#[test]
fn includes_are_found_beside_and_end_when_they_turn_in_circles() {
    let held = |inner| Held {
        files: HashMap::from([("dir/job.fio", "[a]\ninclude depth.inc\n[b]\n"), ("dir/depth.inc", inner)]),
        variables: HashMap::new(),
    };
    let invocation = parse_in(&held("iodepth=5\n"), &["dir/job.fio"]).expect("a good include");
    assert_eq!(invocation.jobs[0].options.pace.depth, 5);
    assert_eq!(invocation.jobs[1].options.pace.depth, 1);
    let errors = parse_in(&held("bs=nope\n"), &["dir/job.fio"]).expect_err("a bad include");
    assert_eq!(errors[0].origin, "job file dir/depth.inc, line 1");
    let errors = parse_in(&held("include depth.inc\n"), &["dir/job.fio"]).expect_err("a circle");
    assert!(errors[0].what.contains("nested too deeply"), "{errors:?}");
    // Eight in each would be eight to the sixteenth.
    let many = "include depth.inc\n\
                include depth.inc\ninclude depth.inc\ninclude depth.inc\ninclude depth.inc\n\
                include depth.inc\ninclude depth.inc\ninclude depth.inc\n";
    let errors = parse_in(&held(many), &["dir/job.fio"]).expect_err("a bomb");
    assert!(errors.len() <= 64, "{}", errors.len());
}

#[test]
fn standard_input_is_a_job_file() {
    let held = Held { files: HashMap::from([("-", "[a]\nbs=16k\n")]), variables: HashMap::new() };
    let invocation = parse_in(&held, &["-"]).expect("a good file");
    assert_eq!(invocation.jobs[0].options.pattern.blocks[0].min, 16_384);
    assert_eq!(invocation.jobs[0].origin, "job file standard input, line 1");
}

#[test]
fn each_further_file_begins_behind_a_wall_and_without_the_options_for_all() {
    let held = Held {
        files: HashMap::from([("one", "[global]\nbs=8k\n[a]\n[b]\n"), ("two", "[c]\n[d]\n")]),
        variables: HashMap::new(),
    };
    let invocation = parse_in(&held, &["--iodepth=4", "one", "two"]).expect("good files");
    let places: Vec<_> = invocation.jobs.iter().map(|job| (job.wave, job.group, job.options.pace.depth)).collect();
    assert_eq!(places, [(0, 0, 4), (0, 0, 4), (1, 1, 1), (1, 1, 1)]);
    assert_eq!(command_line(&invocation), "assay io --iodepth=4 --bs=8k --name=a --name=b\nassay io --name=c --name=d");
}

#[test]
fn a_word_may_be_shortened_while_it_is_clear() {
    assert!(parsed(&["--name=a", "--group_rep"]).jobs[0].options.measure.group_reporting);
    let errors = refusals(&["--name=a", "--iodept=4"]);
    assert!(errors[0].starts_with("command line: --iodept=4 could be --iodepth, "), "{errors:?}");
    let errors = refusals(&["--name=a", "--iodpeth=4"]);
    assert_eq!(errors, ["command line: unknown option --iodpeth=4; did you mean --iodepth?"]);
}

#[test]
fn help_reads_the_table() {
    let ask = |word: &str| help_asked(&[word.to_owned()]).expect("help is asked for");
    let text = ask("--cmdhelp=iodepth_batch_submit").expect("a known option");
    assert!(text.contains("iodepth_batch: ") && text.contains("default: 1"), "{text}");
    assert_eq!(
        ask("--cmdhelp=iodpeth").expect_err("an unknown option"),
        "unknown option iodpeth; did you mean iodepth?"
    );
    assert!(ask("--cmdhelp").expect("a list").contains("  wait_for "));
    assert!(ask("--enghelp").expect("a list").contains("  io_uring "));
    assert!(ask("--enghelp=io_uring").expect("a list").contains("  sqthread_poll_cpu "));
    assert!(ask("--enghelp=libaio,nowait").expect("help").contains("engines: io_uring, libaio"));
    assert!(ask("--help").expect("help").contains("--destroy=..."));
    assert!(ask("--version").expect("a version").starts_with("assay-"));
    for words in [&["--name=a"][..], &["--name=--help"]] {
        assert!(help_asked(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).is_none());
    }
    let words = ["--name=a", "--help"].map(str::to_owned);
    assert!(help_asked(&words).is_some_and(|text| text.is_ok_and(|text| text.contains("--destroy"))));
}

#[test]
fn names_in_the_table_are_unique_and_defaults_are_values() {
    let mut names: Vec<&str> = table::all()
        .flat_map(|option| std::iter::once(option.name).chain(option.aliases.iter().copied()))
        .chain(PROGRAM.iter().map(|option| option.name))
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for option in table::all().filter(|option| !option.default.is_empty()) {
        let value = Value { text: Some(option.default), kind: option.kind, decimal: false };
        value.check().expect(option.name);
    }
}

/// Options whose default, when typed, says more than leaving it out: that it was chosen.
const CHOSEN: &[&str] = &["ioengine", "filename_format", "iodepth_batch", "iodepth_batch_complete_min", "nice", "size"];

#[test]
fn defaults_in_the_table_are_those_of_the_typed_options() {
    let untouched = parsed(&["--name=a"]).jobs[0].options.clone();
    for option in table::all() {
        if option.default.is_empty() || CHOSEN.contains(&option.name) {
            continue;
        }
        let word = format!("--{}={}", option.name, option.default);
        // Options of an engine need one that has them.
        let engine = match table::engines_of(option).first() {
            None => "psync",
            Some(IoEngine::Libaio) => "libaio",
            Some(IoEngine::Pvsync2) => "pvsync2",
            Some(_) => "io_uring",
        };
        let engine = format!("--ioengine={engine}");
        let mut options = parsed(&["--name=a", &engine, &word]).jobs[0].options.clone();
        options.engine = untouched.engine;
        options.engine_name.clear();
        assert_eq!(options, untouched, "{word}");
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_its_digits_times_its_unit(
            digits in 0_u64..1 << 20,
            unit in 0_usize..6,
            form in 0_usize..4,
            decimal: bool,
            upper: bool,
        ) {
            let letter = ["", "k", "m", "g", "t", "p"][unit];
            let ending = if unit == 0 { "" } else { ["", "b", "i", "ib"][form] };
            let text = format!("{digits}{letter}{ending}");
            let text = if upper { text.to_uppercase() } else { text };
            let power = u32::try_from(unit).unwrap();
            let thousand = decimal != (ending == "ib");
            let factor: u64 = if thousand { 1000 } else { 1024 };
            prop_assert_eq!(
                value::number(&text, decimal).ok(),
                digits.checked_mul(factor.pow(power))
            );
        }

        #[test]
        fn hexadecimal_is_read(number: u64) {
            prop_assert_eq!(value::number(&format!("0x{number:x}"), false), Ok(number));
            prop_assert_eq!(value::number(&format!("0X{number:X}"), true), Ok(number));
        }

        #[test]
        fn a_time_is_its_digits_times_its_unit(digits in 0_u64..100_000, unit in 0_usize..7) {
            let (name, ns) = [
                ("", 1_000_000_000), ("d", 86_400_000_000_000), ("h", 3_600_000_000_000),
                ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000),
            ][unit];
            prop_assert_eq!(
                value::time(&format!("{digits}{name}"), 1_000_000_000),
                Ok(digits * ns)
            );
        }

        #[test]
        fn arithmetic_follows_its_precedence(a in 0_i64..1000, b in 0_i64..1000, c in 1_i64..50, d in 0_u32..4) {
            let read = |text: &str| value::number(text, false).ok();
            let sure = |number: i64| u64::try_from(number).ok();
            prop_assert_eq!(read(&format!("({a}+{b}*{c})")), sure(a + b * c));
            prop_assert_eq!(read(&format!("(({a} + {b}) * {c})")), sure((a + b) * c));
            prop_assert_eq!(read(&format!("({a}-{b}/{c})")), sure(a - b / c));
            prop_assert_eq!(read(&format!("({a}%{c}+{b}k)")), sure(a % c + b * 1024));
            prop_assert_eq!(read(&format!("({c}^{d}*2)")), sure(c.pow(d) * 2));
            prop_assert_eq!(read(&format!("({a}-{b}-{c})")), sure(a - b - c));
            prop_assert_eq!(read(&format!("(-{b}+{a})")), sure(a - b));
        }

        #[test]
        fn any_value_of_any_option_is_read_or_refused(text in "\\PC{0,24}", place in 0_usize..400) {
            let options: Vec<_> = table::all().collect();
            let option = options[place % options.len()];
            let word = format!("--{}={text}", option.name);
            let held = Held { files: HashMap::new(), variables: HashMap::new() };
            if let Err(errors) = parse_in(&held, &["--name=a", &word]) {
                prop_assert!(!errors.is_empty());
            }
        }

        #[test]
        fn jobs_shown_as_command_lines_are_the_same_jobs(
            picks in prop::collection::vec((0_usize..1000, 0_usize..3), 0..12),
        ) {
            let options: Vec<_> = table::all()
                .filter(|option| matches!(option.usage, Use::Works(_)))
                .filter(|option| option.name != "name" && table::engines_of(option).is_empty())
                .collect();
            let mut words = vec!["--iodepth=2".to_owned(), "--name=a".to_owned()];
            for (place, sample) in picks {
                let option = options[place % options.len()];
                if let Some(text) = sample_of(option, sample) {
                    words.push(format!("--{}={text}", option.name));
                } else {
                    words.push("--name=b".to_owned());
                }
            }
            let held = Held { files: HashMap::new(), variables: HashMap::new() };
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if let Ok(invocation) = parse_in(&held, &words) {
                let line = command_line(&invocation);
                // No sample has blanks or quotation marks of its own.
                let again: Vec<&str> =
                    line.split(' ').skip(2).map(|word| word.trim_end_matches('\'')).collect();
                let again: Vec<String> = again.iter().map(|word| word.replace("='", "=")).collect();
                let again: Vec<&str> = again.iter().map(String::as_str).collect();
                let again = parse_in(&held, &again).expect("what was taken is taken again");
                prop_assert_eq!(again.jobs, invocation.jobs);
                prop_assert_eq!(again.global_options, invocation.global_options);
            }
        }
    }

    /// A good value of an option; nothing to begin another job.
    fn sample_of(option: &OptionDef, sample: usize) -> Option<String> {
        if sample == 2 && option.default.is_empty() {
            return None;
        }
        Some(match option.kind {
            _ if sample == 2 => option.default.to_owned(),
            Kind::Flag | Kind::Bool => sample.to_string(),
            Kind::Int(low, high) => (low + sample as u64 * 3).min(high).to_string(),
            Kind::Signed(low, _) => (low + 2).to_string(),
            Kind::Ints(low, _) => format!("{},{}", low + 8, low + 9),
            Kind::Ranges => "4k-8k".to_owned(),
            Kind::Size => "40%".to_owned(),
            Kind::Seconds | Kind::Micros => "7ms".to_owned(),
            Kind::Millis => "250".to_owned(),
            Kind::Choice(words) => words[sample % words.len()].to_owned(),
            Kind::Floats(..) => "50:99.5".to_owned(),
            Kind::Text | Kind::OptionalText => option.default.to_owned(),
        })
        .filter(|text| !text.is_empty())
    }
}
