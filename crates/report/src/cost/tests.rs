use super::*;
use crate::answer::Screen;
use crate::kinds;
use assay_measure::record::{Instance, LoadRow, RunInfo};
use assay_measure::snapshot::Fact;
use assay_storage::record::info::{StorageChange, StorageInfo, StorageLevel};
use proptest::prelude::*;

const TWO_CLOUDS: &str = include_str!("../../../../docs/examples/two-clouds/prices.toml");

fn row(name: &str, unit: &str, per_s: f64) -> LoadRow {
    LoadRow { name: name.to_owned(), unit: unit.to_owned(), per_s: per_s.into(), ..LoadRow::default() }
}

/// A published load profile, as far as it matters here.
fn published(label: &str, reads_per_s: f64, mib_per_s: f64, executes_per_s: Option<f64>) -> Record {
    let mut record = Record {
        run: RunInfo {
            id: format!("{label}-1"),
            label: Some(label.to_owned()),
            started: "2021-06-01T10:00:00Z".to_owned(),
            verdict: "imported".to_owned(),
            ..RunInfo::default()
        },
        instance: Instance {
            load_profile: vec![row("Read IO requests", "count", reads_per_s), row("Read IO (MB)", "mib", mib_per_s)],
            ..Instance::default()
        },
        ..Record::default()
    };
    record.instance.load_profile.extend(executes_per_s.map(|rate| row("Executes (SQL)", "count", rate)));
    kinds::attach_metrics(&mut record);
    record
}

fn two_clouds() -> [Cost; 2] {
    let prices = parse("prices.toml", TWO_CLOUDS).unwrap();
    [published("cloud-a", 320_399.5, 2503.8, Some(5344.0)), published("cloud-b", 30_363.0, 237.2, None)]
        .map(|record| of(&prices, None, &record).unwrap())
}

fn price(text: &str) -> Prices {
    parse("p.toml", text).unwrap()
}

fn mistake(text: &str) -> String {
    parse("p.toml", text).unwrap_err().to_string()
}

const HEAD: &str = "date = 2026-01-31\ncurrency = \"EUR\"\nsource = \"list\"\n";

fn of_item(item: &str) -> String {
    format!("{HEAD}[[platform]]\nname = \"p\"\n{item}")
}

#[test]
fn identity_i43_the_published_two_clouds_recompute_from_their_inputs() {
    let [a, b] = two_clouds();
    let cents = |value: f64| (value * 100.0).round() / 100.0;
    let months = |cost: &Cost| -> Vec<f64> { cost.items.iter().map(|item| cents(item.monthly)).collect() };
    assert_eq!(months(&a)[..2], [587.52, 3466.51]);
    assert_eq!(months(&b)[..3], [4000.0, 512.0, 1008.72]);
    assert_eq!((cents(a.monthly), cents(b.monthly)), (4054.03, 5520.72));
    assert_eq!((a.licences_one_off, b.licences_one_off), (190_000.0, 380_000.0));
    for cost in [&a, &b] {
        let identity = identity(cost);
        assert_eq!(identity.ok, assay_measure::record::Truth::Holds, "{identity:?}");
    }
    let per_1000 = |cost: &Cost| {
        let unit = cost.unit("cost_per_1000_read_iops_month").unwrap();
        fixed(unit.platform.value().unwrap(), 1)
    };
    assert_eq!((per_1000(&a), per_1000(&b)), ("12.7".to_owned(), "181.8".to_owned()));
    assert_eq!(fixed(b.iops_used_pct.value().unwrap(), 0), "76");
    assert_eq!(a.iops_used_pct, Figure::na("none named in the price file"));
    // 5,344 executes a second, 720 hours: 13,851.6 million a month.
    let executes = a.unit("cost_per_million_executes").unwrap();
    assert_eq!(fixed(executes.platform.value().unwrap(), 4), "0.2927");
    assert!(b.unit("cost_per_million_executes").is_none());
}

#[test]
fn identity_i43_a_stated_total_that_does_not_follow_is_told_first() {
    let wrong = TWO_CLOUDS.replace("price = 0.136", "price = 0.102");
    let prices = price(&wrong);
    let cost = of(&prices, None, &published("cloud-a", 320_399.5, 2503.8, None)).unwrap();
    assert_eq!(identity(&cost).ok, assay_measure::record::Truth::Violated);
    let text = render(&[&cost]);
    let at = text.find("I43 violated").unwrap();
    assert!(at < text.find("Cost per unit").unwrap(), "{text}");
    insta::assert_snapshot!(identity(&cost).sentence, @"3,907.152 is not 4,055, off by 147.848 (3.646 %), 2 allowed");
}

#[test]
fn advice_r28_cost_per_delivered_iops_is_told_with_what_was_paid_for() {
    let [a, b] = two_clouds();
    let found = super::findings(&[&a, &b]);
    let r28 = found.iter().find(|advice| advice.id == "R28").unwrap();
    assert_eq!(r28.severity, "high");
    for part in ["14.4 times", "USD 181.8 against 12.7", "30,363 of 40,000 provisioned IOPS (76 %)"] {
        assert!(r28.text.contains(part), "{}", r28.text);
    }
    assert!(super::findings(&[&a, &a.clone()]).is_empty());
}

#[test]
fn advice_r12_a_link_that_stops_a_cloud_short_of_its_iops_is_named() {
    let [_, b] = two_clouds();
    let found = super::findings(&[&b]);
    let r12 = found.iter().find(|advice| advice.id == "R12").unwrap();
    assert!(r12.text.contains("248.7 MB/s = 1.99 Gbit/s, the rate of a 2 Gbit/s link"), "{}", r12.text);
    assert!(r12.text.contains("76 %"));
}

#[test]
fn advice_r12_a_provisioned_throughput_that_is_used_up_is_told() {
    let text = of_item("provisioned_iops = 10000\n[[platform.per_mbps]]\nname = \"mb\"\nprice = 1\nmbps = 105\n");
    let record = published("p", 5000.0, 100.0, None);
    let cost = of(&price(&text), None, &record).unwrap();
    let found = super::findings(&[&cost]);
    assert!(found[0].text.contains("the throughput of p is 99.9 % of the 105 MB/s"), "{found:?}");
    assert!(found[0].text.contains("while 50 % of the provisioned IOPS"));
}

#[test]
fn the_cost_of_two_clouds_reads_well() {
    let [a, b] = two_clouds();
    insta::assert_snapshot!(render(&[&a, &b]));
    let json: serde_json::Value = serde_json::from_str(&json(&[&a, &b]).unwrap()).unwrap();
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!(json["costs"][1]["items"][0]["inputs"][1]["value"], 40_000.0);
    assert_eq!(json["costs"][1]["items"][0]["date"], "2021-05-01");
    assert_eq!(json["integrity"][0]["ok"], true);
    let back: Cost = serde_json::from_value(json["costs"][0].clone()).unwrap();
    assert_eq!(back.items, a.items);
}

#[test]
fn the_example_is_a_price_file_of_every_kind() {
    let prices = price(EXAMPLE);
    let kinds: std::collections::BTreeSet<&str> =
        (prices.platforms.iter()).flat_map(|platform| platform.items.iter().map(|item| item.kind)).collect();
    assert_eq!(kinds.len(), KINDS.len(), "{kinds:?}");
    let [a, metal] = prices.platforms.as_slice() else { panic!("two platforms") };
    let (a, metal) = (priced(&prices, a), priced(&prices, metal));
    // 1.401 x 720 + 0.125 x 4096 + 0.10 x 40000 + 0.04 x 500 + 0.02 x 4096
    assert_eq!(fixed(a.monthly, 2), "5,622.64");
    // 47500 x 16 x 0.5 = 380,000 over 36 months, and 22 % of it a year.
    assert_eq!(fixed(a.licences_monthly, 2), fixed(380_000.0 / 36.0 + 83_600.0 / 12.0, 2));
    assert_eq!(fixed(metal.monthly, 2), fixed(38_000.0 / 60.0 + 240.0 + 220.0, 2));
    assert_eq!((metal.purchases_one_off, metal.one_off()), (38_000.0, 418_000.0));
}

#[test]
fn what_is_due_once_and_what_is_due_monthly_meet_at_the_break_even() {
    let text = format!(
        "{HEAD}[[platform]]\nname = \"metal\"\n[[platform.one_off]]\nname = \"box\"\nprice = 12000\n[[platform.power]]\nname = \"power\"\nprice = 100\n\
         [[platform]]\nname = \"cloud\"\n[[platform.monthly]]\nname = \"rent\"\nprice = 600\n"
    );
    let prices = price(&text);
    let costs: Vec<Cost> = prices.platforms.iter().map(|platform| priced(&prices, platform)).collect();
    let both = between(&costs[0], &costs[1]);
    assert_eq!(both.break_even_months, Figure::Decimal(24.0));
    assert_eq!(costs[0].paid_after(24.0), costs[1].paid_after(24.0));
    assert!(
        both.sentences.iter().any(|sentence| sentence.contains("after 24.0 months: cloud is cheaper until then")),
        "{both:?}"
    );
    assert_eq!(between(&costs[1], &costs[0]).break_even_months, Figure::Decimal(24.0));
    let [a, b] = two_clouds();
    assert!(between(&a, &b).break_even_months.value().is_none());
    // Cloud B would have to deliver 5,520.72 / (4,054.0336 / 320.3995) thousand.
    assert_eq!(fixed(between(&a, &b).parity_reads_per_s.value().unwrap(), 0), "436,315");
}

#[test]
fn a_mistake_is_one_error_with_its_line_and_the_way_out() {
    let item = |item: &str| mistake(&of_item(&format!("[[platform.hourly]]\n{item}")));
    let errors = [
        mistake("currency = \"USD\"\n"),
        mistake("date = 2026-02-30\n"),
        mistake("date = 2026-13-01\n"),
        mistake("date = \"last spring\"\ncurrency = \"USD\"\n"),
        mistake("date = 2026-01-31\ncurrency = \"dollars\"\n"),
        mistake("date = 2026-01-31\ncurrency = \"USD\"\n"),
        mistake(HEAD),
        mistake(&format!("{HEAD}[[platfrom]]\nname = \"p\"\n")),
        mistake(&format!("{HEAD}platform = 3\n")),
        mistake(&format!("{HEAD}[[platform]]\nmatch = \"p\"\n")),
        mistake(&of_item("")),
        mistake(&of_item("[[platform.hurly]]\nname = \"i\"\n")),
        item("price = 1.0\n"),
        item("name = \"i\"\n"),
        item("name = \"i\"\nprice = -1.5\n"),
        item("name = \"i\"\nprice = \"1.5\"\n"),
        item("name = \"i\"\nprice = nan\n"),
        item("name = \"i\"\nprice = inf\n"),
        item("name = \"i\"\nprice = 1\nhours_per_month = 800\n"),
        item("name = \"i\"\nprice = 1\nqty = 3\n"),
        item("name = \"i\"\nprice = 1\n[[platform.monthly]]\nname = \"i\"\nprice = 1\n"),
        mistake(&format!(
            "{}[[platform]]\nname = \"p\"\n[[platform.hourly]]\nname = \"i\"\nprice = 1\n",
            of_item("[[platform.hourly]]\nname = \"i\"\nprice = 1\n")
        )),
        mistake(&of_item("[[platform.one_off]]\nname = \"i\"\nprice = 1\nmonths = 0\n")),
        mistake(&format!("{HEAD}x = \n")),
        mistake(&of_item("match = 3\n")),
        mistake(&of_item("match = [\"a\", 3]\n")),
        mistake(&of_item("hourly = 3\n")),
        mistake(&of_item("[[platform.hourly]]\nname = \"a\\u001b[31m\"\n")),
        mistake(&format!("platform = []\n{HEAD}")),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn a_table_alone_a_name_alone_and_a_date_in_quotes_are_understood() {
    let head = HEAD.replace("2026-01-31", "\"2026-01-31\"");
    let text = format!("{head}[platform]\nname = \"p\"\nmatch = \"m\"\n[platform.monthly]\nname = \"i\"\nprice = 1\n");
    let prices = price(&text);
    let [platform] = prices.platforms.as_slice() else { panic!("one platform") };
    assert_eq!((platform.matches.as_slice(), platform.items.len()), (&["m".to_owned()][..], 1));
    assert_eq!(prices.date, Day { year: 2026, month: 1, day: 31 });
    let lists = text.replace("[platform]", "[[platform]]").replace("[platform.monthly]", "[[platform.monthly]]");
    let costs = [text, lists].map(|text| priced(&price(&text), &price(&text).platforms[0]).total_monthly);
    assert_eq!(costs, [1.0, 1.0]);
}

#[test]
fn prices_of_several_kinds_stay_in_the_order_of_the_file() {
    let item = |kind: &str, name: &str| format!("[[platform.{kind}]]\nname = \"{name}\"\nprice = 1\n");
    let text = [item("power", "c"), item("monthly", "a"), item("power", "b"), item("hourly", "d")].concat();
    let names = price(&of_item(&text)).platforms[0].items.iter().map(|item| item.name.clone()).collect::<String>();
    assert_eq!(names, "cabd");
}

#[test]
fn a_run_is_tied_to_its_platform_by_name_label_or_host() {
    let prices = price(TWO_CLOUDS);
    let mut record = published("cloud-b", 1.0, 1.0, None);
    let platform = |record: &Record, named| of(&prices, named, record).map(|cost| (cost.platform, cost.matched_by));
    let found = |platform: &str, by: &str| Ok((platform.to_owned(), by.to_owned()));
    assert_eq!(platform(&record, None), found("cloud B", "label cloud-b"));
    assert_eq!(platform(&record, Some("cloud A")), found("cloud A", "named"));
    record.run.label = Some("night run".to_owned());
    record.host.facts.push(Fact { name: "hostname".to_owned(), value: "CLOUD-A".to_owned() });
    assert_eq!(platform(&record, None), found("cloud A", "host CLOUD-A"));
    record.host.facts.clear();
    let none = platform(&record, None).unwrap_err().to_string();
    assert!(none.contains("label \"night run\"") && none.contains("--platform (cloud A, cloud B)"), "{none}");
    let unknown = platform(&record, Some("cloud C")).unwrap_err().to_string();
    assert_eq!(unknown, "p.toml has no platform \"cloud C\"; it has cloud A, cloud B");
    let twice = TWO_CLOUDS.replace("[\"cloud-b\"]", "[\"cloud-a\"]");
    let error = of(&price(&twice), None, &published("cloud-a", 1.0, 1.0, None)).unwrap_err();
    assert!(matches!(error, CostError::Ambiguous { .. }));
    let one = of(&price(&of_item("[[platform.power]]\nname = \"w\"\nprice = 1\n")), None, &record).unwrap();
    assert_eq!(one.matched_by, "the only platform in the file");
}

#[test]
fn old_prices_and_runs_without_a_date_are_warned_of() {
    let prices = price(TWO_CLOUDS);
    let mut record = published("cloud-a", 1.0, 1.0, None);
    let mut warnings = |started: &str| {
        record.run.started = started.to_owned();
        of(&prices, None, &record).unwrap().warnings
    };
    assert!(warnings("2022-05-01T00:00:00Z").is_empty());
    assert!(warnings("2022-05-02T00:00:00Z")[0].contains("more than 12 months old"));
    assert!(warnings("2020-04-30T00:00:00Z")[0].contains("newer than the run"));
    assert!(warnings("")[0].contains("not known"));
}

#[test]
fn a_spent_burst_is_not_delivered() {
    let mut record =
        assay_storage::record::build(&assay_testkit::fixtures::run(), &crate::storage_readings::readings());
    let mut info = record.parts.get::<StorageInfo>().unwrap();
    info.groups.truncate(1);
    record.parts.put(&info);
    let group = &info.groups[0];
    let mean: f64 = group.ways.iter().filter_map(|way| way.ios_per_s.value()).sum();
    let level = |median: f64| StorageLevel { median: median.into(), ..StorageLevel::default() };
    let reads = |record: &Record| kinds::delivered(record).ios_per_s.value().unwrap();
    let before = reads(&record);
    assert!((before - mean).abs() < 1e-6 * mean, "{before} {mean}");
    let group = &mut info.groups[0];
    group.analysed = "IOPS".to_owned();
    group.levels = vec![level(2.0 * mean), level(mean / 4.0)];
    group.changes = vec![StorageChange::default()];
    record.parts.put(&info);
    assert!((reads(&record) - mean / 4.0).abs() < 1e-6 * mean);
    assert!(kinds::delivered(&record).notes[0].contains("burst"));
}

#[test]
fn a_run_has_what_its_operations_cost() {
    let record = assay_awr::record::build(&assay_testkit::fixtures::run());
    let cost = of(&price(&of_item("[[platform.monthly]]\nname = \"all\"\nprice = 720\n")), Some("p"), &record).unwrap();
    // 100 operations a second are 259.2 million a month; 6,000 reads and 500 writes a second.
    let unit = |key: &str| fixed(cost.unit(key).unwrap().total.value().unwrap(), 4);
    assert_eq!(unit("cost_per_million_ops"), fixed(720.0 / 259.2, 4));
    assert_eq!(unit("cost_per_1000_read_iops_month"), "120.0000");
    assert_eq!(unit("cost_per_1000_iops_month"), fixed(720.0 / 6.5, 4));
    assert_eq!(unit("cost_per_mb_per_s_month"), fixed(720.0 / (6700.0 * 8192.0 / 1e6), 4));
    let keys = metrics(&cost);
    let primary: Vec<&str> = keys.iter().filter(|metric| metric.is_primary).map(|metric| metric.key.as_str()).collect();
    assert_eq!(primary, ["cost_per_million_ops"]);
    assert!(keys.iter().all(|metric| metric.better == Better::Lower && metric.unit == "EUR"));
}

fn any_items() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0.0..1e6_f64, 0.0..1e4_f64), 1..12)
}

proptest! {
    #[test]
    fn totals_are_the_sum_of_their_items(items in any_items()) {
        let kinds = ["hourly", "monthly", "power", "one_off"];
        let mut text = of_item("");
        for (i, (price, quantity)) in items.iter().enumerate() {
            let kind = kinds[i % kinds.len()];
            text.push_str(&format!("[[platform.{kind}]]\nname = \"item {i}\"\nprice = {price:.9}\nquantity = {quantity:.9}\n"));
        }
        text.push_str("[[platform.core_licence]]\nname = \"l\"\nlist_price = 1000\ncores = 3\nsupport_pct_per_year = 20\n");
        let prices = price(&text);
        let cost = priced(&prices, &prices.platforms[0]);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
        let sum: f64 = cost.items.iter().map(|item| item.monthly).sum();
        prop_assert!(near(sum, cost.total_monthly));
        prop_assert!(near(cost.monthly + cost.licences_monthly, cost.total_monthly));
        let once: f64 = cost.items.iter().map(|item| item.one_off).sum();
        prop_assert!(near(once, cost.one_off()));
        prop_assert_eq!(identity(&cost).ok, if cost.monthly == 0.0 { identity(&cost).ok } else { assay_measure::record::Truth::Holds });
        let shares: f64 = cost.sensitivity.iter().map(|row| row.share_pct).sum();
        prop_assert!(near(shares, 100.0));
        for row in &cost.sensitivity {
            let moved = row.high - row.low;
            prop_assert!((moved - 0.4 * row.share_pct / 100.0 * cost.total_monthly).abs() <= 1e-9 * cost.total_monthly);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,300}") {
        let _ = parse("p.toml", &text);
    }

    #[test]
    fn a_damaged_price_file_never_panics_and_says_where(at in 0..EXAMPLE.len(), with in "[ -~\n]{0,12}", cut in 0..40_usize) {
        let from = (0..=at).rev().find(|i| EXAMPLE.is_char_boundary(*i)).unwrap_or(0);
        let to = (at + cut..=EXAMPLE.len()).find(|i| EXAMPLE.is_char_boundary(*i)).unwrap_or(EXAMPLE.len());
        let text = format!("{}{with}{}", &EXAMPLE[..from], &EXAMPLE[to..]);
        match parse("p.toml", &text) {
            Err(error) => prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1) + 1 && !error.text.is_empty()),
            Ok(prices) => {
                for platform in &prices.platforms {
                    let cost = priced(&prices, platform);
                    prop_assert!(cost.total_monthly >= 0.0);
                    let _ = render(&[&cost]);
                }
            }
        }
    }
}

/// A platform with what is paid for, and what a run on it delivered.
fn used(ios_per_s: f64, mb_per_s: f64) -> Cost {
    let text = of_item("provisioned_iops = 10000\n[[platform.per_mbps]]\nname = \"mb\"\nprice = 1\nmbps = 105\n");
    of(&price(&text), None, &published("p", ios_per_s, mb_per_s, None)).unwrap()
}

const CASES: &[assay_testkit::rules::Case] = &[
    ("R12", |fires| {
        let advice = super::findings(&[&used(if fires { 9701.0 } else { 9699.0 }, 50.0)]);
        Record { advice, ..Record::default() }
    }),
    ("R42", |fires| {
        let advice = super::findings(&[&used(if fires { 10_301.0 } else { 10_299.0 }, 50.0)]);
        Record { advice, ..Record::default() }
    }),
    ("R28", |fires| {
        let (cheap, dear) = (used(8000.0, 50.0), used(if fires { 3999.0 } else { 4001.0 }, 50.0));
        Record { advice: super::findings(&[&cheap, &dear]), ..Record::default() }
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_testkit::rules::just_fire(&super::RULES, CASES);
}

#[test]
fn the_answer_of_one_run_says_what_a_unit_costs_how_much_is_used_and_what_is_beyond_it() {
    let cost = used(13_400.0, 50.0);
    let text = answer(&[&cost], Screen::default()).text();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("p costs EUR 105.00 a month: EUR 7.836 per 1,000 read IOPS and month"), "{text}");
    for words in ["134 % of the IOPS", "R42: p delivered 13,400 IOPS, 134 % of the 10,000 provisioned", "projection"] {
        assert!(text.replace("\n                  ", " ").contains(words), "{words}: {text}");
    }
    assert!(text.lines().count() <= 40, "{text}");
}

#[test]
fn the_answer_of_several_runs_says_first_which_costs_less_for_what_it_delivers() {
    let [a, b] = two_clouds();
    let text = answer(&[&a, &b], Screen::default()).text();
    assert!(text.starts_with("cloud A costs less for what it delivers: USD 29.13 against 529.47"), "{text}");
    assert!(text.contains("Break-even") || text.contains("break-even"), "{text}");
}
