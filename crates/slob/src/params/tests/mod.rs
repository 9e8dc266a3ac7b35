//! Promises of the grammars and of resolving; the numbered ones are SLOB conformance.

mod language;
mod properties;
mod secrets;

use super::PARAMS;
use crate::SETTINGS;
use assay_measure::config::*;

const NATIVE: &[ParamDef] = assay_measure::params! {
    "CACHE_MB", ParamKind::Mebibytes, "64", "";
    "IO_MODE" = "DIRECT_IO" = "FILESYSTEMIO_OPTIONS", ParamKind::Choice(&["none", "directio", "asynch", "setall"]), "setall", "";
    "IO_DEPTH", ParamKind::Int(1, 1024), "", "";
};

const TABLES: Tables<'static> =
    Tables { target: "native", params: NATIVE, workload: &SETTINGS, concerns: &[], others: &[("postgres", &[])] };

fn resolve_text(text: &str) -> Resolved {
    resolve(&TABLES, &[parse("slob.conf", text.as_bytes())])
}

fn errors(resolved: &Resolved) -> Vec<String> {
    said(resolved, true)
}

fn notices(resolved: &Resolved) -> Vec<String> {
    said(resolved, false)
}

fn said(resolved: &Resolved, error: bool) -> Vec<String> {
    resolved
        .problems
        .iter()
        .filter(|problem| problem.error == error)
        .map(|problem| format!("{}: {}", problem.place, problem.text))
        .collect()
}

/// The only error, which must hold all of `parts`.
fn assert_error(text: &str, parts: &[&str]) {
    let resolved = resolve_text(text);
    let errors = errors(&resolved);
    assert_eq!(errors.len(), 1, "{text:?} gave {errors:?}");
    for part in parts {
        assert!(errors[0].contains(part), "{text:?}: {part:?} is not in {errors:?}");
    }
}

/// No error, the value, and a notice holding `notice` (or none of the SLOB kind if empty).
fn assert_value(text: &str, name: &str, value: &str, notice: &str) {
    let resolved = resolve_text(text);
    assert_eq!(errors(&resolved), Vec::<String>::new(), "{text:?}");
    assert_eq!(resolved.settings.get(name).text, value, "{text:?}");
    let notices = notices(&resolved);
    if notice.is_empty() {
        assert_eq!(notices, Vec::<String>::new(), "{text:?}");
    } else {
        assert!(notices.iter().any(|said| said.contains(notice)), "{text:?}: {notice:?} is not in {notices:?}");
    }
}

#[test]
fn every_default_is_a_legal_value_and_every_name_is_there_once() {
    let mut names = std::collections::BTreeSet::new();
    // Resolving reads each default.
    assert!(resolve(&TABLES, &[]).problems.is_empty());
    for def in RUN_PARAMS.iter().chain(PARAMS) {
        assert!(!def.help.is_empty(), "{}", def.name);
        for name in std::iter::once(&def.name).chain(def.aliases) {
            assert!(names.insert(*name), "{name} twice");
        }
    }
}

#[test]
fn defaults_are_slobs_and_ours() {
    let resolved = resolve_text("");
    assert!(resolved.problems.is_empty(), "{:?}", resolved.problems);
    let settings = resolved.settings;
    let texts = |name: &str| settings.get(name).text.clone();
    for (name, value) in [
        ("UPDATE_PCT", "10"),
        ("SCAN_PCT", "0"),
        ("WORK_UNIT", "64"),
        ("UPDATE_WORK_UNIT", "64"),
        ("SCAN_TABLE_SZ", "1M"),
        ("REDO_STRESS", "LITE"),
        ("THREADS_PER_SCHEMA", "1"),
        ("LOAD_PARALLEL_DEGREE", "2"),
        ("HOTSPOT_MB", "8"),
        ("HOTSPOT_OFFSET_MB", "16"),
        ("HOTSPOT_FREQUENCY", "3"),
        ("HOT_SCHEMA_FREQUENCY", "0"),
        ("THINK_TM_MIN", ".1"),
        ("THINK_TM_MAX", ".5"),
        ("RUN_TIME", "30"),
        ("WARMUP", "3"),
        ("SCALE", "256M"),
        ("IO_DEPTH", "32"),
    ] {
        assert_eq!(texts(name), value, "{name}");
    }
    assert_eq!(settings.ns("THINK_TM_MIN"), 100_000_000);
    assert_eq!(settings.blocks("SCALE", 8192), Some(32_768));
    assert_eq!(settings.get("WARMUP").origin, Origin::Implied("RUN_TIME".to_owned()));
}

// The rows of slob-method's table of malformed values, in its order. Those about
// relations to the data set (think bounds, hot window) are the plan's.

#[test]
fn the_field_file_and_its_banner_mean_the_same() {
    let conf = include_str!("../../../../../testdata/slob-r1.conf");
    let banner = include_str!("../../../../../testdata/slob-banner-2.5.4.txt");
    let conf = resolve(&TABLES, &[parse("slob-r1.conf", conf.as_bytes())]);
    let banner = resolve(&TABLES, &[parse("slob-banner.txt", banner.as_bytes())]);
    for resolved in [&conf, &banner] {
        assert_eq!(errors(resolved), Vec::<String>::new());
        assert_eq!(resolved.settings.int("UPDATE_PCT"), 30);
        assert_eq!(resolved.settings.int("WORK_UNIT"), 256);
        assert_eq!(resolved.settings.int("HOT_SCHEMA_FREQUENCY"), 2);
        assert_eq!(resolved.settings.blocks("SCALE", 8192), Some(10_000));
        assert_eq!(resolved.settings.get("SYSDBA_PASSWD").text, "***");
    }
    assert_eq!(values(&conf.settings), values(&banner.settings));
    assert_eq!(conf.settings.get("WORK_UNIT").origin, Origin::File("slob-r1.conf".to_owned(), 6));
}

fn values(settings: &Settings) -> Vec<(&'static str, Value)> {
    settings.iter().map(|setting| (setting.def.name, setting.value.clone())).collect()
}

#[test]
fn slob_48_pgio_conf_is_recognised_and_mapped() {
    let text = "UPDATE_PCT=20\nRUN_TIME=120\nNUM_SCHEMAS=6\nNUM_THREADS=3\nWORK_UNIT=255\n\
                UPDATE_WORK_UNIT=8\nSCALE=1G\nDBNAME=pg10\nCONNECT_STRING=\"pg10\"\nCREATE_BASE_TABLE=TRUE\n";
    assert_eq!(format_of("any.conf", text.as_bytes()), Format::PgioConf);
    let resolved = resolve(&TABLES, &[parse("pgio.conf", text.as_bytes())]);
    assert_eq!(errors(&resolved), Vec::<String>::new());
    let settings = &resolved.settings;
    for (name, value) in [
        ("SCHEMAS", 6),
        ("THREADS_PER_SCHEMA", 3),
        ("LOAD_PARALLEL_DEGREE", 3),
        ("WORK_UNIT", 255),
        ("UPDATE_WORK_UNIT", 8),
        ("UPDATE_PCT", 20),
    ] {
        assert_eq!(settings.int(name), value, "{name}");
    }
    assert_eq!(settings.get("SCHEMAS").origin, Origin::File("pgio.conf".to_owned(), 3));
    assert_eq!(notices(&resolved).len(), 1, "{:?}", notices(&resolved));
}

#[test]
fn slob_48_pgio_conf_names_its_server_as_psql_takes_it() {
    let schemes = ["native", "postgres"].map(|name| Scheme { name, form: name });
    let of = |lines: &str| {
        let text = format!("NUM_SCHEMAS=1\nNUM_THREADS=1\nUPDATE_PCT=0\n{lines}\n");
        let layer = parse("pgio.conf", text.as_bytes());
        let wrong: Vec<_> = layer.problems.iter().filter(|problem| problem.error).collect();
        match wrong.as_slice() {
            [] => target(&[layer], &schemes).map(|(url, _)| url).map_err(|problem| problem.text),
            [first, ..] => Err(first.text.clone()),
        }
    };
    for (lines, url) in [
        ("", "native:./assay-data"),
        ("CONNECT_STRING=pg10\nDBNAME=pg10", "postgres:///pg10"),
        ("DBNAME=sales", "postgres:///sales"),
        (
            "CONNECT_STRING=\"-h db1 -p5433 --username=bob sales\"",
            "postgres:host='db1' port='5433' user='bob' dbname='sales'",
        ),
        ("CONNECT_STRING=\"pgio bob\"", "postgres:dbname='pgio' user='bob'"),
        ("CONNECT_STRING=\"host=a dbname=b\"", "postgres:host=a dbname=b"),
        ("CONNECT_STRING=\"postgresql://bob@a:1/b\"", "postgres://bob@a:1/b"),
        ("CONNECT_STRING=pg10\nTARGET=native:x", "native:x"),
        ("CONNECT_STRING=pg10\nTARGET=postgresql://a/b", "postgres://a/b"),
    ] {
        assert_eq!(of(lines).as_deref(), Ok(url), "{lines}");
    }
    for (lines, said) in [
        ("CONNECT_STRING=\"-f script\"", "-f"),
        ("CONNECT_STRING=\"a b c\"", "more words"),
        ("CONNECT_STRING=\"db -h\"", "needs a value"),
        ("CONNECT_STRING=\"mysql://a/b\"", "postgres://"),
    ] {
        let why = of(lines).expect_err(lines);
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn toml_takes_names_in_any_case_in_tables_of_targets() {
    let text = "target = \"native:d\"\n[slob]\nupdate_pct = 35\nTHINK_TM_MIN = 0.25\ndo_hotspot = true\n\
                [native]\ncache_mb = 8\n[postgres]\nanything = 1\n";
    let resolved = resolve(&TABLES, &[parse("assay.toml", text.as_bytes())]);
    assert_eq!(errors(&resolved), Vec::<String>::new());
    assert_eq!(resolved.settings.int("UPDATE_PCT"), 35);
    assert_eq!(resolved.settings.ns("THINK_TM_MIN"), 250_000_000);
    assert_eq!(resolved.settings.bytes("CACHE_MB"), 8 << 20);
    assert!(resolved.settings.bool("DO_HOTSPOT"));
    assert_eq!(resolved.settings.get("CACHE_MB").origin, Origin::File("assay.toml".to_owned(), 7));
    for (text, parts) in [
        ("[slob]\nupdate_pc = 1\n", &["assay.toml:2", "did you mean UPDATE_PCT"][..]),
        ("[natve]\ncache_mb = 1\n", &["assay.toml:2", "did you mean [native]"]),
        ("scale = [1]\n", &["assay.toml:1", "scale"]),
        ("a = 1\nscale = = 2\n", &["assay.toml:2", "not TOML"]),
        ("update_pct = -3\n", &["assay.toml:1", "0 to 100"]),
    ] {
        let errors = errors(&resolve(&TABLES, &[parse("assay.toml", text.as_bytes())]));
        assert!(errors.iter().any(|error| parts.iter().all(|part| error.contains(part))), "{text:?}: {errors:?}");
    }
}

fn layers(file: &str, environment_of: &[(&str, &str)], options: &[(&str, &str)]) -> Vec<Layer> {
    vec![
        parse("slob.conf", file.as_bytes()),
        environment(environment_of.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))),
        command_line(options.iter().map(|(n, v)| {
            let option = if *n == "RUN_TIME" { "--time" } else { "--set" };
            (option.to_owned(), (*n).to_owned(), (*v).to_owned())
        })),
    ]
}

#[test]
fn command_line_beats_environment_beats_file_beats_default() {
    let file = "UPDATE_PCT=1\nSCAN_PCT=1\nWORK_UNIT=11\n";
    let layers = layers(
        file,
        &[("ASSAY_UPDATE_PCT", "2"), ("ASSAY_SCAN_PCT", "2"), ("UPDATE_PCT", "9"), ("ASSAY_WORK_UNIT", "")],
        &[("update_pct", "3")],
    );
    let resolved = resolve(&TABLES, &layers);
    assert!(resolved.problems.is_empty(), "{:?}", resolved.problems);
    let of = |name: &str| {
        let setting = resolved.settings.get(name);
        (setting.text.clone(), setting.origin.clone())
    };
    assert_eq!(of("UPDATE_PCT"), ("3".to_owned(), Origin::CommandLine));
    assert_eq!(of("SCAN_PCT"), ("2".to_owned(), Origin::Environment));
    assert_eq!(of("WORK_UNIT").0, "11", "an empty variable is unset");
    assert_eq!(of("REDO_STRESS").1, Origin::Default);
}

#[test]
fn an_empty_option_goes_back_to_the_default() {
    let layers = layers("UPDATE_PCT=1\n", &[], &[("UPDATE_PCT", "")]);
    let resolved = resolve(&TABLES, &layers);
    assert_eq!(resolved.settings.get("UPDATE_PCT").text, "10");
}

#[test]
fn a_misspelt_variable_is_an_error_a_strange_one_a_notice() {
    let resolved = resolve(&TABLES, &layers("", &[("ASSAY_UPDATE_PC", "2"), ("ASSAY_HOME", "x")], &[]));
    assert_eq!(errors(&resolved).len(), 1);
    assert!(errors(&resolved)[0].contains("did you mean UPDATE_PCT"));
    assert_eq!(notices(&resolved).len(), 1);
}

#[test]
fn work_loop_governs_unless_the_command_line_asks_for_time() {
    let resolved = resolve(&TABLES, &layers("WORK_LOOP=500\nRUN_TIME=300\nWARMUP=5\n", &[], &[]));
    assert!(errors(&resolved).is_empty());
    assert_eq!(resolved.settings.int("WORK_LOOP"), 500);
    assert_eq!(resolved.settings.ns("WARMUP"), 0);
    assert_eq!(notices(&resolved).len(), 2, "{:?}", notices(&resolved));

    let resolved = resolve(&TABLES, &layers("WORK_LOOP=500\n", &[], &[("RUN_TIME", "60")]));
    assert!(errors(&resolved).is_empty());
    assert_eq!(resolved.settings.int("WORK_LOOP"), 0);
    assert_eq!(resolved.settings.get("WORK_LOOP").origin, Origin::Implied("--time".to_owned()));
    assert_eq!(resolved.settings.ns("WARMUP"), 6_000_000_000);

    let both = layers("", &[], &[("RUN_TIME", "60"), ("WORK_LOOP", "5")]);
    assert_eq!(errors(&resolve(&TABLES, &both)).len(), 1);
    let off = layers("", &[], &[("RUN_TIME", "60"), ("WORK_LOOP", "0")]);
    assert_eq!(errors(&resolve(&TABLES, &off)).len(), 0);
}

#[test]
fn warmup_is_a_tenth_and_at_most_thirty_seconds() {
    for (run, warmup) in [("30", 3_000_000_000), ("1", 100_000_000), ("1h", 30_000_000_000)] {
        let resolved = resolve_text(&format!("RUN_TIME={run}"));
        assert_eq!(resolved.settings.ns("WARMUP"), warmup, "{run}");
    }
    assert_eq!(resolve_text("WARMUP=0").settings.ns("WARMUP"), 0);
}

#[test]
fn least_scale_is_a_thousand_blocks_or_the_work_unit() {
    assert_error("SCALE=999", &["at least 1000"]);
    assert_error("SCALE=2000\nWORK_UNIT=2048", &["at least 2048"]);
    assert_value("SCALE=2000", "SCALE", "2000", "fewer than SLOB's minimum");
    assert_error("BLOCK_SZ=5000", &["power of two"]);
}

#[test]
fn durations_and_mebibytes_are_exact() {
    for (text, ns) in [
        (".1", 100_000_000),
        ("250ms", 250_000_000),
        ("1.5", 1_500_000_000),
        ("5m", 300_000_000_000),
        ("2h", 7_200_000_000_000),
        ("30s", 30_000_000_000),
    ] {
        assert_eq!(resolve_text(&format!("THINK_TM_MAX={text}")).settings.ns("THINK_TM_MAX"), ns);
    }
    for bad in ["-1", "1x", "ms", ".", "1..2", "1e9", "400d"] {
        assert_error(&format!("THINK_TM_MAX={bad}"), &["THINK_TM_MAX"]);
    }
    assert_eq!(resolve_text("CACHE_MB=0.5").settings.bytes("CACHE_MB"), 512 << 10);
    assert_eq!(resolve_text("CACHE_MB=1G").settings.bytes("CACHE_MB"), 1 << 30);
}

#[test]
fn until_makes_a_run_of_at_most_so_long_and_takes_no_other_end() {
    let of = |settings: &[(&str, &str)]| resolve(&TABLES, &layers("", &[], settings));
    let good = of(&[("UNTIL", "p99=\u{b1}5%"), ("AT_MOST", "60s")]);
    assert_eq!(errors(&good), Vec::<String>::new());
    let seconds = |name| good.settings.ns(name) / 1_000_000_000;
    assert_eq!((seconds("WARMUP"), seconds("RUN_TIME"), seconds("AT_MOST")), (6, 54, 60));
    let printed = slob_conf(&good.settings);
    let again = resolve_text(&printed);
    assert_eq!((errors(&again), again.settings.ns("RUN_TIME")), (Vec::new(), 54_000_000_000), "{printed}");
    // A file's time gives way, as it does to nothing that the user did not say.
    let file = resolve(&TABLES, &layers("RUN_TIME=300\n", &[], &[("UNTIL", "rate=5%")]));
    assert_eq!((errors(&file), file.settings.ns("RUN_TIME")), (Vec::new(), 570_000_000_000));
    for (settings, why) in [
        (&[("UNTIL", "p99=\u{b1}5%"), ("RUN_TIME", "30")][..], "give RUN_TIME (--time) or UNTIL, not both"),
        (&[("UNTIL", "p99=\u{b1}5%"), ("WORK_LOOP", "5")], "give WORK_LOOP or UNTIL, not both"),
        (&[("UNTIL", "p99=\u{b1}5%"), ("AT_MOST", "20s")], "give 22 s or more"),
        (&[("UNTIL", "latency=\u{b1}5%")], "a run can follow rate, p50, p99"),
        (&[("UNTIL", "p99=0%")], "give \u{b1}0.1% to \u{b1}50%"),
        (&[("AT_MOST", "60s")], "AT_MOST limits a run with UNTIL"),
    ] {
        let found = errors(&of(settings));
        assert!(found.len() == 1 && found[0].contains(why), "{settings:?}: {found:?}");
    }
}
