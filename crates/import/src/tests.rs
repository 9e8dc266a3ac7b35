//! The framework: recognition, provenance, contradictions, errors.

mod field;
mod splitting;

use super::*;
use assay_testkit::places::misplaced;

const LOAD_PROFILE: &str = include_str!("../../../testdata/awr/load-profile-bm.txt");

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn a_pasted_load_profile_is_a_record_whose_values_say_where_they_stand() {
    let record = import(&[source("lp.txt", LOAD_PROFILE)]).expect("imported");
    assert_eq!(misplaced(&record), Vec::<String>::new());
    let info = record.import.as_ref().expect("an import");
    assert_eq!(info.tool, "awr");
    let redo = info.values.iter().find(|v| v.key == "redo_size_bytes_per_s");
    let redo = redo.expect("read");
    assert_eq!((redo.printed.as_str(), redo.line, redo.rounding), ("1,652,624.9", 6, 0.05));
    let metrics = &record.metrics;
    let rate = assay_measure::record::metric::find(metrics, "transactions_per_s").expect("a metric");
    assert_eq!(rate.value.value(), Some(32.0));
    assert_eq!(record.run.verdict, "imported");
}

#[test]
fn one_figure_with_two_values_names_both_lines() {
    let other = LOAD_PROFILE.replace("1,652,624.9", "1,652,999.9");
    let error = import(&[source("a.txt", LOAD_PROFILE), source("b.txt", &other)]);
    let text = error.expect_err("a contradiction").to_string();
    assert!(text.contains("a.txt:6 says"), "{text}");
    assert!(text.contains("b.txt:6 says 1,652,999.9"), "{text}");
    // The same twice is no contradiction.
    assert!(import(&[source("a.txt", LOAD_PROFILE), source("b.txt", LOAD_PROFILE)]).is_ok());
}

#[test]
fn what_nobody_knows_is_refused_with_the_nearest_guess() {
    let error = import(&[source("x.txt", "hello\nworld\n")]).expect_err("unknown");
    assert!(error.to_string().contains("AWR text"), "{error}");
    assert!(matches!(import(&[source("x.txt", " \n\n")]), Err(ImportError::Empty { .. })));
    assert_eq!(import(&[]), Err(ImportError::NoSource));
    let html = "<html><head><title>x</title></head><h1>\nanother page</h1>\n";
    let error = import(&[source("x.html", html)]).expect_err("HTML");
    assert!(error.to_string().contains("not recognised"), "{error}");
    assert_eq!(recognise("hello"), None);
    assert_eq!(recognise(LOAD_PROFILE), Some(Tool::Awr));
}

proptest::proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,400}") {
        let _ = import(&[source("-", &text)]);
    }

    #[test]
    fn a_damaged_sample_never_panics(cut in 0_usize..1200, len in 0_usize..40, with in ".{0,6}") {
        let mut text = LOAD_PROFILE.to_owned();
        let (from, to) = (cut.min(text.len()), (cut + len).min(text.len()));
        text.replace_range(from..to, &with);
        if let Ok(record) = import(&[source("-", &text)]) {
            proptest::prop_assert_eq!(misplaced(&record), Vec::<String>::new());
        }
    }
}

#[test]
fn names_that_differ_in_signs_alone_do_not_take_each_others_place() {
    let text = crate::testing::sample("iperf3-3.12-bidir.txt");
    let second = "[TX-C]   1.00-2.00   sec";
    let odd = text.replacen("[TX-C]   0.00-1.00", "[TX-:C]   1.00-2.00", 1);
    assert!(odd.contains(second) && odd != text);
    let record = import(&[source("-", &odd)]).expect("a test");
    assert_eq!(misplaced(&record), Vec::<String>::new());
    let info = record.import.expect("an import");
    let printed = |printed: &str| info.values.iter().filter(|v| v.printed.contains(printed)).count();
    assert_eq!((printed("9.23 Gbits"), printed("11.1 Gbits")), (1, 1));
}

#[test]
fn the_first_screen_of_an_import_tells_what_the_source_tells() {
    let screen = |name: &str| {
        let record = crate::testing::imported(name);
        let answer = assay_report::answer::of(&[&record], &Default::default());
        let words: Vec<String> = (answer.text().split_whitespace()).map(str::to_owned).collect();
        words.join(" ")
    };
    for (name, told) in [
        ("fio-3.33-mixed.txt", "2,540 us p99 (clat)"),
        ("fio-3.33-terse.txt", "oltp (access, block size and depth are unknown)"),
        ("hammerdb.log", "6,200 us of neword (client); 3,900 us of payment (client)"),
        ("hammerdb-timing.json", "p99 6,200 us of neword (client)"),
        ("hammerdb.log", "Tested 16 sessions on postgresql for 300 s."),
        ("hammerdb-timing.json", "Tested The work of hammerdb."),
        ("card-lscpu.txt", "Tested No run: the source contains no operations, rates or times."),
        ("slob-banner-2.5.4.txt", "% updates"),
        ("hammerdb.log", "Steadiness n/a (no seconds were printed)"),
        ("hammerdb.log", "consistent: all 4 checks of printed figures against each other hold"),
        ("hammerdb-result.json", "consistent: the only check of printed figures against each other holds"),
    ] {
        let screen = screen(name);
        assert!(screen.contains(told), "{name}: {told}: {screen}");
    }
}
