//! Every cross-check, by the file a user would have written.

use super::*;
use crate::SETTINGS;
use assay_measure::config::{Resolved, Tables, command_line, parse, resolve};
use proptest::prelude::*;

fn data() -> DataSet {
    DataSet {
        schemas: 8,
        scale_blocks: 20_000,
        scan_blocks: 128,
        block_bytes: 8192,
        state: "clean".to_owned(),
        unfinished: None,
    }
}

fn resolved(text: &str, schemas: u32, threads: u32) -> Resolved {
    let tables = Tables { target: "native", params: &[], workload: &SETTINGS, concerns: &[], others: &[] };
    let usual = format!("SCHEMAS={schemas}\nTHREADS_PER_SCHEMA={threads}\n");
    let seed = command_line([("--seed".to_owned(), "SEED".to_owned(), "7".to_owned())]);
    resolve(&tables, &[parse("usual.conf", usual.as_bytes()), parse("slob.conf", text.as_bytes()), seed])
}

fn build(text: &str, data: &DataSet, schemas: u32, threads: u32) -> Result<Plan, Vec<Problem>> {
    let resolved = resolved(text, schemas, threads);
    assert!(!resolved.has_errors(), "{:?}", resolved.problems);
    from_settings(&resolved.settings, data, 9)
}

fn plan(text: &str) -> Plan {
    build(text, &data(), 4, 1).expect("a good file")
}

/// The only problem of a file: (place, text).
fn refusal(text: &str) -> (String, String) {
    let problems = build(text, &data(), 4, 1).expect_err("a contradiction");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].error);
    (problems[0].place.clone(), problems[0].text.clone())
}

#[test]
fn defaults_are_the_documented_ones() {
    let plan = plan("");
    assert_eq!(plan.scale, 20_000, "all that was loaded");
    assert_eq!((plan.update_pct, plan.scan_pct), (10, 0));
    assert_eq!((plan.work_unit, plan.update_work_unit), (64, 64));
    assert_eq!(plan.run_time_ns, 30 * NS_PER_S);
    assert_eq!(plan.warmup_ns, 3 * NS_PER_S);
    assert_eq!((plan.hot_spot, plan.think, plan.rate_per_s), (None, None, 0));
    assert_eq!((plan.seed, plan.run_stamp), (7, 9));
    assert_eq!(plan.update_keys, plan.scale);
}

#[test]
fn warmup_is_a_tenth_but_at_most_30_s_unless_given() {
    assert_eq!(plan("RUN_TIME=3600").warmup_ns, 30 * NS_PER_S);
    assert_eq!(plan("RUN_TIME=100\nWARMUP=0").warmup_ns, 0);
    assert_eq!(plan("RUN_TIME=1").run_time_ns, NS_PER_S);
}

#[test]
fn slob_24_work_loop_governs_alone() {
    let plan = plan("WORK_LOOP=500\nRUN_TIME=1");
    assert_eq!((plan.work_loop, plan.run_time_ns, plan.warmup_ns), (500, 0, 0));
    assert_eq!(plan.max_run_time_ns, None);
    let capped = self::plan("WORK_LOOP=500\nMAX_RUN_TIME=20");
    assert_eq!(capped.max_run_time_ns, Some(20 * NS_PER_S));
}

#[test]
fn slob_12_the_hot_window_is_in_blocks_of_the_real_size() {
    let data = DataSet { block_bytes: 16_384, ..data() };
    let plan = build("DO_HOTSPOT=TRUE\nHOTSPOT_MB=8\nHOTSPOT_OFFSET_MB=16", &data, 1, 1);
    let hot = plan.expect("it fits").hot_spot.expect("it is on");
    assert_eq!((hot.size_blocks, hot.offset_blocks, hot.frequency), (512, 1024, 3));
}

#[test]
fn slob_13_hot_spot_values_do_nothing_while_it_is_off() {
    let off = plan("DO_HOTSPOT=FALSE\nHOTSPOT_MB=9000\nHOTSPOT_FREQUENCY=0");
    assert_eq!(off, plan(""));
}

#[test]
fn slob_31_scale_above_the_load_names_both_numbers() {
    let (place, text) = refusal("\nSCALE=20001");
    assert_eq!(place, "slob.conf:2");
    assert!(text.contains("20001") && text.contains("20000") && text.contains("schema 1"), "{text}");
    assert_eq!(plan("SCALE=10000").scale, 10_000);
}

#[test]
fn slob_22_scans_need_a_scan_table() {
    let empty = DataSet { scan_blocks: 0, ..data() };
    let problems = build("SCAN_PCT=10", &empty, 1, 1).expect_err("no scan table");
    assert!(problems[0].text.contains("SCAN_TABLE_SZ"), "{problems:?}");
    refusal("SCAN_PCT=10\nSCAN_TABLE_SZ=0");
    assert_eq!(plan("SCAN_PCT=10").scan_blocks, 128);
}

#[test]
fn relations_between_values_are_checked() {
    for (text, word) in [
        ("THINK_TM_MIN=2\nTHINK_TM_MAX=1", "THINK_TM_MAX"),
        ("DO_HOTSPOT=TRUE\nHOTSPOT_FREQUENCY=0", "HOTSPOT_FREQUENCY"),
        ("DO_HOTSPOT=TRUE\nHOTSPOT_MB=8\nHOTSPOT_OFFSET_MB=150", "beyond SCALE"),
        ("DO_HOTSPOT=TRUE\nHOTSPOT_MB=1\nWORK_UNIT=129", "smaller than an operation"),
        ("WORK_UNIT=64\nUPDATE_WORK_UNIT=30000", "UPDATE_WORK_UNIT=30000"),
        ("RATE=100\nTHINK_TM_FREQUENCY=3", "THINK_TM_FREQUENCY=3"),
        ("COMPAT=slob253\nUPDATE_PCT=60", "51 to 99"),
        ("MIX=slob253\nSCAN_PCT=60", "51 to 99"),
        ("COMPAT=slob253\nWORK_UNIT=2\nUPDATE_WORK_UNIT=64", "3 to 1024"),
        ("COMPAT=slob253\nEDGE=wrap", "EDGE=wrap"),
        ("UPDATE_HOTSPOT=TRUE\nHOTSPOT_PCT=1\nUPDATE_WORK_UNIT=300", "HOTSPOT_PCT=1"),
        ("UPDATE_HOTSPOT=TRUE\nCOMPAT=slob253", "UPDATE_HOTSPOT"),
        ("BLOCK_SZ=16384", "8192"),
    ] {
        let (place, found) = refusal(text);
        assert!(found.contains(word), "{text}: {found}");
        assert!(place.starts_with("slob.conf:"), "{text}: {place}");
    }
}

#[test]
fn all_problems_are_found_in_one_pass() {
    let text = "SCALE=30000\nTHINK_TM_MIN=2\nTHINK_TM_MAX=1\nCOMPAT=slob253\nUPDATE_PCT=60";
    let problems = build(text, &data(), 9, 1).expect_err("four mistakes");
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems[0].text.contains("-s 8"), "{problems:?}");
}

#[test]
fn too_many_sessions_are_refused() {
    assert!(build("", &data(), 8, 65_536).is_ok());
    let data = DataSet { schemas: 4096, ..data() };
    assert!(build("", &data, 4096, 65_536).is_err());
    assert!(resolved("", 4097, 1).has_errors());
}

#[test]
fn compat_takes_its_own_mix_unless_one_was_given() {
    assert_eq!(plan("COMPAT=slob253").mix, Mix::Slob253);
    assert_eq!(plan("COMPAT=slob253\nMIX=bernoulli").mix, Mix::Bernoulli);
    assert_eq!(plan("COMPAT=slob253").select_width(), 63);
    assert_eq!(plan("").select_width(), 64);
}

#[test]
fn slob_27_three_sessions_for_each_of_four_schemas() {
    let plan = Plan::plain(4, 3, 20_000);
    for threads in [1, 2, 5, 12, 40] {
        let mut homes: Vec<(u32, u32)> =
            plan.assignments(threads).iter().flat_map(|assignment| assignment.sessions.clone()).collect();
        homes.sort_unstable();
        assert_eq!(homes.len(), 12);
        for (index, &(session, _)) in homes.iter().enumerate() {
            assert_eq!(session as usize, index + 1, "each session once");
        }
        for schema in 1..=4 {
            assert_eq!(homes.iter().filter(|(_, home)| *home == schema).count(), 3);
        }
    }
}

#[test]
fn a_plan_survives_json() {
    let plan = plan("DO_HOTSPOT=TRUE\nTHINK_TM_FREQUENCY=5\nCOMPAT=slob253");
    let text = serde_json::to_string(&plan).expect("plain data");
    assert_eq!(serde_json::from_str::<Plan>(&text).expect("our own text"), plan);
}

proptest! {
    #[test]
    fn no_thread_gets_more_than_one_session_more(
        schemas in 1_u32..40, per_schema in 1_u32..40, threads in 1_usize..20,
    ) {
        let plan = Plan::plain(schemas, per_schema, 1000);
        let sizes: Vec<usize> = plan
            .assignments(threads)
            .iter()
            .map(|assignment| assignment.sessions.len())
            .collect();
        prop_assert_eq!(sizes.iter().sum::<usize>(), plan.sessions());
        let (least, most) = (sizes.iter().min(), sizes.iter().max());
        prop_assert!(most.copied().unwrap_or(0) - least.copied().unwrap_or(0) <= 1);
        prop_assert!(sizes.iter().all(|&size| size > 0));
    }
}

#[test]
fn sessions_in_all_are_dealt_to_the_schemas_in_turn() {
    let six = plan("SESSIONS=6");
    assert_eq!((six.sessions(), six.schemas, six.threads_per_schema), (6, 4, 2));
    let homes: Vec<u32> = (1..=6).map(|session| six.home_schema(session)).collect();
    assert_eq!(homes, [1, 2, 3, 4, 1, 2]);
    let dealt = six.assignments(4);
    let all: usize = dealt.iter().map(|part| part.sessions.len()).sum();
    assert_eq!(all, 6);

    let two = plan("SESSIONS=2");
    assert_eq!(
        (two.sessions(), two.schemas, two.threads_per_schema),
        (2, 2, 1),
        "schemas without a session are not used"
    );
}

#[test]
fn sessions_in_all_and_per_schema_exclude_each_other_on_one_command_line() {
    let tables = Tables { target: "native", params: &[], workload: &SETTINGS, concerns: &[], others: &[] };
    let said = command_line(
        [("-t", "THREADS_PER_SCHEMA", "2"), ("--sessions", "SESSIONS", "3")]
            .map(|(place, name, value)| (place.to_owned(), name.to_owned(), value.to_owned())),
    );
    let resolved = resolve(&tables, &[said]);
    assert!(!resolved.has_errors(), "{:?}", resolved.problems);
    let problems = from_settings(&resolved.settings, &data(), 9).expect_err("both");
    assert!(problems[0].text.contains("not both"), "{problems:?}");
    // A file's threads give way.
    assert_eq!(plan("THREADS_PER_SCHEMA=2\nSESSIONS=3").sessions(), 3);
}
