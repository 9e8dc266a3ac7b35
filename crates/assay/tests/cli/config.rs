//! Configuration at the command line: what a mistake looks like, and that nothing happens on one.

use crate::common::{Place, Started};
use std::process::Stdio;

/// Runs `assay run` with a file of this text; returns the errors and the files left.
fn mistakes(text: &str) -> (Vec<String>, Vec<String>) {
    let place = Place::new();
    place.write("slob.conf", text);
    let ran = place.assay(&["run", "-c", "slob.conf"]).code(2);
    assert_eq!(ran.out, "", "stdout is for the product");
    let errors = ran.errors().iter().map(|line| (*line).to_owned()).collect();
    (errors, place.files())
}

#[test]
fn slob_41_three_mistakes_are_reported_together_and_nothing_is_created() {
    let (errors, files) = mistakes("UPDATE_PCT=101\nPDATE_PCT=30\nSCALE=1.5G\n");
    assert_eq!(
        errors,
        [
            "error: slob.conf:1: UPDATE_PCT=101 is out of range; give a whole number from 0 to 100",
            "error: slob.conf:2: unknown parameter PDATE_PCT; did you mean UPDATE_PCT?",
            "error: slob.conf:3: SCALE=1.5G has a decimal point; give a number of blocks (10000) or a size with one of K M G T (80M): only whole numbers are allowed (1536M for 1.5G)",
        ]
    );
    assert_eq!(files, ["slob.conf"]);
}

#[test]
fn slob_41_relations_are_reported_beside_other_mistakes() {
    let (errors, files) = mistakes("THINK_TM_FREQUENCY=5\nTHINK_TM_MIN=2\nTHINK_TM_MAX=1\nUPDATE_PCT=abc\n");
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().any(|error| error.contains("THINK_TM_M")), "{errors:?}");
    assert!(errors.iter().any(|error| error.contains("UPDATE_PCT=abc")), "{errors:?}");
    assert_eq!(files, ["slob.conf"]);
}

#[test]
fn slob_41_impossible_relations_are_errors() {
    for text in [
        "THINK_TM_FREQUENCY=5\nTHINK_TM_MIN=2\nTHINK_TM_MAX=1\n",
        "DO_HOTSPOT=TRUE\nHOTSPOT_FREQUENCY=0\n",
        "DO_HOTSPOT=TRUE\nHOTSPOT_MB=1\nWORK_UNIT=129\n",
        "DO_HOTSPOT=TRUE\nHOTSPOT_MB=250\nHOTSPOT_OFFSET_MB=16\n",
        "SCAN_PCT=10\nSCAN_TABLE_SZ=0\n",
        "COMPAT=slob253\nUPDATE_PCT=60\n",
    ] {
        let (errors, files) = mistakes(text);
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].starts_with("error: slob.conf:"), "{text}: {errors:?}");
        assert_eq!(files, ["slob.conf"], "{text}");
    }
}

#[test]
fn slob_41_no_value_is_ever_executed() {
    for value in ["$(touch f)", "`touch f`", "1; touch f", "1 && touch f", "\"$(touch f)\""] {
        let (errors, files) = mistakes(&format!("UPDATE_PCT={value}\n"));
        assert_eq!(errors.len(), 1, "{value}: {errors:?}");
        assert_eq!(files, ["slob.conf"], "{value}");
    }
    let place = Place::new();
    place.write("slob.conf", "LABEL='$(touch f)'\n");
    place.assay(&["run", "-c", "slob.conf", "--dry-run", "--at", "1s", "touch f"]).code(0);
    assert!(!place.path("f").exists());
    // The script of the file is a path, never a line for a shell.
    place.write("slob.conf", "EXTERNAL_SCRIPT='$(touch f)'\n");
    let ran = place.assay(&["run", "-c", "slob.conf"]).code(2);
    assert!(ran.err.contains("EXTERNAL_SCRIPT=$(touch f)"), "{}", ran.err);
    assert_eq!(place.files(), ["slob.conf"]);
}

#[test]
fn slob_42_config_show_prints_every_parameter_with_origin_and_stars_secrets() {
    let place = Place::new();
    place.write("a.conf", "SYSDBA_PASSWD=\"Welcome1\"\nUPDATE_PCT=30\n");
    let mut command = place.command(&["config", "show", "--all", "-c", "a.conf", "--set", "SCAN_PCT=5", "-t", "3"]);
    command.env("ASSAY_WORK_UNIT", "16");
    let ran = Started::new(command.stdout(Stdio::piped())).ended().code(0);
    let row = |name: &str| {
        let line = ran.out.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("{name} is not in\n{}", ran.out)).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("UPDATE_PCT"), "UPDATE_PCT 30 file a.conf:2");
    assert_eq!(row("SCAN_PCT"), "SCAN_PCT 5 cli");
    assert_eq!(row("THREADS_PER_SCHEMA"), "THREADS_PER_SCHEMA 3 cli");
    assert_eq!(row("WORK_UNIT"), "WORK_UNIT 16 env");
    assert_eq!(row("UPDATE_WORK_UNIT"), "UPDATE_WORK_UNIT 16 from WORK_UNIT");
    assert_eq!(row("REDO_STRESS"), "REDO_STRESS LITE default");
    assert_eq!(row("SYSDBA_PASSWD"), "SYSDBA_PASSWD *** file a.conf:1");
    assert_eq!(row("CACHE_MB"), "CACHE_MB 64 default");
    assert!(ran.out.contains("\n      buffer cache, MiB"), "{}", ran.out);
    assert!(!ran.out.contains("Welcome1") && !ran.err.contains("Welcome1"));
}

#[test]
fn config_show_alone_prints_what_somebody_set_and_what_follows_from_it() {
    let place = Place::new();
    let nothing = place.assay(&["config", "show"]).code(0);
    assert_eq!(nothing.out, "");
    assert!(nothing.err.contains("--all"), "{}", nothing.err);
    let some = place.assay(&["config", "show", "--set", "WORK_UNIT=16"]).code(0);
    let names: Vec<&str> = some.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["IO_DEPTH", "UPDATE_WORK_UNIT", "WORK_UNIT"]);
}

#[test]
fn config_show_as_a_file_reads_back_the_same() {
    let place = Place::new();
    let first = place
        .assay(&["config", "show", "--format", "slob-conf", "--set", "UPDATE_PCT=37", "--set", "LABEL=it's here"])
        .code(0);
    place.write("again.conf", &first.out);
    let second = place.assay(&["config", "show", "--format", "json", "-c", "again.conf"]).code(0);
    let json: serde_json::Value = serde_json::from_str(&second.out).expect("JSON");
    assert_eq!(json["UPDATE_PCT"]["value"], "37");
    assert_eq!(json["LABEL"]["value"], "it's here");
}

#[test]
fn a_secret_on_the_command_line_is_refused_without_repeating_it() {
    let place = Place::new();
    let ran = place.assay(&["config", "show", "--set", "SYSDBA_PASSWD=Welcome1"]).code(2);
    assert!(ran.err.contains("ASSAY_SYSDBA_PASSWD"), "{}", ran.err);
    assert!(!ran.err.contains("Welcome1"), "{}", ran.err);
}

#[test]
fn time_and_work_loop_together_are_a_usage_error() {
    let place = Place::new();
    let args = ["run", "--dry-run", "--time", "10s", "--set", "WORK_LOOP=5"];
    let ran = place.assay(&args).code(2);
    assert!(ran.err.contains("not both"), "{}", ran.err);
}

#[test]
fn unreadable_files_are_usage_errors() {
    let place = Place::new();
    for file in ["absent.conf", "."] {
        let ran = place.assay(&["run", "-c", file]).code(2);
        assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    }
}

#[test]
fn options_are_checked_like_settings() {
    let place = Place::new();
    for (args, said) in [
        (vec!["run", "-s", "0"], "-s: SCHEMAS=0 is out of range"),
        (vec!["run", "-s", "abc"], "-s: SCHEMAS=abc is not a number"),
        (vec!["run", "-t", "-1"], "-t: THREADS_PER_SCHEMA=-1 is not a number"),
        (vec!["run", "--time", "soon"], "--time: RUN_TIME=soon is not a duration"),
        (vec!["run", "--set", "UPDATE_PC=3"], "did you mean UPDATE_PCT"),
        (vec!["run", "--set", "UPDATE_PCT"], "write --set NAME=VALUE"),
        (
            vec!["run", "--target", "postgers://x"],
            "postgers is not a known kind of target; did you mean postgres://...?",
        ),
        (vec!["run", "--tiem", "3"], "--time"),
    ] {
        let ran = place.assay(&args).code(2);
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
        assert_eq!(ran.out, "");
    }
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn a_target_without_its_kind_makes_nothing_and_no_password_is_repeated() {
    let place = Place::new();
    for given in [
        "host=h user=u password=Kq9hunter2",
        " postgres://me:Kq9hunter2@h/d",
        "postgre://me:Kq9hunter2@h/d",
        "native://me:Kq9hunter2@h/d",
        "temp:me:Kq9hunter2@h/d",
        "./x",
    ] {
        place.write("slob.conf", &format!("TARGET='{given}'\n"));
        place.write("assay.toml", &format!("target = '{given}'\n"));
        for source in ["option", "set", "environment", "slob.conf", "assay.toml"] {
            let set = format!("TARGET={given}");
            let more = match source {
                "option" => ["--target", given],
                "set" => ["--set", &set],
                "environment" => ["-s", "1"],
                file => ["-c", file],
            };
            // A blank after the = of --set is no part of the value.
            if given.starts_with(' ') && source == "set" {
                continue;
            }
            for command in ["prepare", "run", "check", "destroy"] {
                let mut command = place.command(&crate::common::with(&[command], &more));
                if source == "environment" {
                    command.env("ASSAY_TARGET", given);
                }
                let done = Started::new(command.stdout(Stdio::piped())).ended().code(2);
                assert_eq!(done.errors().len(), 1, "{given}: {}", done.err);
                assert!(!done.err.contains("Kq9hunter2"), "{}", done.err);
                assert!(done.err.contains("TARGET"), "{}", done.err);
            }
        }
    }
    assert_eq!(place.files(), ["assay.toml", "slob.conf"]);
}

#[test]
fn the_field_files_plan_what_they_say() {
    let place = Place::new();
    for (name, text) in [
        ("r1.conf", include_str!("../../../../testdata/slob-r1.conf")),
        ("banner.txt", include_str!("../../../../testdata/slob-banner-2.5.4.txt")),
    ] {
        place.write(name, text);
        let args = ["run", "--dry-run", "-c", name, "-s", "8", "--time", "20s", "--format", "json"];
        let ran = place.assay(&args).code(0);
        let json: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
        let plan = &json["plan"];
        assert_eq!(plan["update_pct"], 30);
        assert_eq!(plan["work_unit"], 256);
        assert_eq!(plan["hot_schema_frequency"], 2);
        assert_eq!(plan["schemas"], 8);
        assert_eq!(plan["scale"], 10_000);
        assert_eq!(plan["run_time_ns"], 20_000_000_000_u64);
        assert_eq!(json["settings"]["UPDATE_PCT"]["origin"], format!("file {name}:1"));
        assert!(!ran.out.contains("Welcome1") && !ran.err.contains("Welcome1"));
    }
}

#[test]
fn slob_48_a_pgio_file_plans_what_it_says() {
    let place = Place::new();
    place.write(
        "pgio.conf",
        "UPDATE_PCT=20\nNUM_SCHEMAS=3\nNUM_THREADS=2\nWORK_UNIT=255\nUPDATE_WORK_UNIT=8\nSCALE=128M\n",
    );
    let ran = place.assay(&["run", "--dry-run", "-c", "pgio.conf", "--format", "json"]).code(0);
    let json: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(json["plan"]["schemas"], 3);
    assert_eq!(json["plan"]["threads_per_schema"], 2);
    assert_eq!(json["plan"]["update_work_unit"], 8);
    assert_eq!(json["plan"]["scale"], 16_384);
}

#[test]
fn oracles_names_and_units_are_understood() {
    let place = Place::new();
    place.write(
        "slob.conf",
        "LOG_BUFFER=7340032\nDB_CACHE_SIZE=96M\n_DB_WRITER_MAX_WRITES=128\nDB_WRITER_PROCESSES=3\n\
         FILESYSTEMIO_OPTIONS=directIO\nDB_FILE_MULTIBLOCK_READ_COUNT=16\nDB_BLOCK_CHECKSUM=FULL\n",
    );
    let shown = place.assay(&["config", "show", "-c", "slob.conf", "--format", "slob-conf"]).code(0);
    for line in [
        "LOG_BUFFER_MB=7168K ",
        "CACHE_MB=96M ",
        "DB_WRITER_BATCH=128 ",
        "DB_WRITERS=3 ",
        "IO_MODE=directio ",
        "MULTIBLOCK_READ_COUNT=16 ",
        "DB_BLOCK_CHECKSUM=full ",
    ] {
        let found = shown.out.lines().any(|shown| shown.starts_with(line));
        assert!(found, "{line} in {}", shown.out);
    }
    assert!(shown.err.contains("LOG_BUFFER is another name of LOG_BUFFER_MB=7168K"), "{}", shown.err);
    // Not a whole number of kibibytes: still exactly that many bytes.
    let odd = place.assay(&["config", "show", "--set", "LOG_BUFFER=1049601", "--format", "slob-conf"]).code(0);
    assert!(odd.out.contains("LOG_BUFFER_MB=1025.0009765625K "), "{}", odd.out);
}
