use crate::answer::{LINES, WIDTH};
use crate::cost::{self, Cost};
use crate::formats::{Input, find};
use assay_measure::record::{ImportInfo, ImportedValue, Record};
use assay_measure::units::fixed;

const PRICES: &str = include_str!("../../../../../docs/examples/two-clouds/prices.toml");

fn run() -> Record {
    assay_awr::record::build(&assay_testkit::fixtures::run())
}

fn priced(record: &Record) -> Cost {
    let prices = cost::parse("prices.toml", PRICES).unwrap();
    cost::of(&prices, Some("cloud B"), record).unwrap()
}

fn render(records: &[&Record], cost: Option<&Cost>) -> String {
    find("brief").unwrap().text(&Input { cost: cost.cloned(), ..Input::of(records) }).unwrap()
}

fn fits(text: &str) {
    assert!(text.lines().count() <= LINES + 20, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH && line == line.trim_end(), "{line}");
    }
    let lower = text.to_lowercase();
    for name in ["tpmc", "qphh", "qphds", "spc-1", "tpc-", "tpse"] {
        assert!(!lower.contains(name), "{name}: {text}");
    }
}

#[test]
fn a_run_is_one_page() {
    let record = run();
    let text = render(&[&record], Some(&priced(&record)));
    fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_storage_probe_is_one_page() {
    let record = assay_storage::record::build(&assay_testkit::fixtures::run(), &crate::storage_readings::readings());
    let text = render(&[&record], None);
    fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn repeats_are_told_by_median_and_range() {
    let records: Vec<Record> = [90.0, 110.0, 100.0]
        .map(|rate: f64| {
            let mut record = run();
            let row = record.instance.load_profile.iter_mut().find(|row| row.name == "Operations").unwrap();
            row.per_s = rate.into();
            crate::kinds::attach_metrics(&mut record);
            record
        })
        .into();
    let records: Vec<&Record> = records.iter().collect();
    let text = render(&records, None);
    fits(&text);
    assert!(text.contains("100 operations/s (90.0 to 110)"), "{text}");
    assert!(text.contains("run 3 times"), "{text}");
    assert!(!text.contains("the variation between runs is not known"), "{text}");
}

#[test]
fn the_price_recomputes_from_the_printed_line_items() {
    let record = run();
    let text = render(&[&record], Some(&priced(&record)));
    let money = |line: &str| {
        line.split_whitespace().find_map(|word| {
            let is_money = word.contains('.') && word.as_bytes().get(word.len() - 3) == Some(&b'.');
            is_money.then(|| word.replace(',', "").parse::<f64>().unwrap())
        })
    };
    let items = text.lines().skip_while(|line| !line.starts_with("Price")).skip(1);
    let items: Vec<f64> = items
        .skip_while(|line| !line.contains("2021-05-01"))
        .take_while(|line| !line.trim_start().starts_with("total"))
        .filter_map(|line| line.rsplit("  ").find_map(money))
        .collect();
    assert_eq!(items.len(), 4, "{text}");
    let total: f64 = items.iter().sum();
    assert!(text.contains(&fixed(total, 2)), "{total} {text}");
    // 6,500 I/Os and 100 operations a second.
    let per_1000 = cost::unit_money(total / 6.5);
    assert!(text.contains(&format!("{per_1000} per 1,000 IOPS")), "{per_1000} {text}");
    let million = 100.0 * 36.0 * 720.0 * 3600.0 / 1e6;
    let per_million = cost::unit_money(total / million);
    assert!(text.contains(&format!("{per_million} per million operations")), "{per_million} {text}");
}

#[test]
fn an_import_of_something_else_shows_what_it_has_without_a_council_s_name() {
    let value = |name: &str, key: &str, printed: &str| ImportedValue {
        name: name.to_owned(),
        key: key.to_owned(),
        printed: printed.to_owned(),
        value: 12_345.0.into(),
        ..ImportedValue::default()
    };
    let record = Record {
        import: Some(ImportInfo {
            tool: "other".to_owned(),
            format: "TPC-C like output".to_owned(),
            values: vec![value("tpmC", "new_orders_per_min", "12,345 tpmC")],
            ..ImportInfo::default()
        }),
        ..Record::default()
    };
    let text = render(&[&record], None);
    fits(&text);
    assert!(text.contains("new orders/min = 12,345"), "{text}");
}

#[test]
fn many_items_and_long_words_still_fit() {
    let mut prices =
        "date = 2026-01-31\ncurrency = \"EUR\"\nsource = \"list\"\n[[platform]]\nname = \"p\"\n".to_owned();
    for i in 0..40 {
        prices.push_str(&format!("[[platform.monthly]]\nname = \"{} {i}\"\nprice = 1\n", "long ".repeat(20)));
    }
    let mut record = run();
    record.run.label = Some("x".repeat(300));
    record.warnings = vec!["y".repeat(500); 3];
    for advice in &mut record.advice {
        advice.text = "words ".repeat(300);
    }
    let prices = cost::parse("p.toml", &prices).unwrap();
    let cost = cost::of(&prices, Some("p"), &record).unwrap();
    let text = render(&[&record], Some(&cost));
    fits(&text);
    assert!(text.contains("and 30 more"), "{text}");
    assert!(text.contains("1,440.00"), "{text}");
}
