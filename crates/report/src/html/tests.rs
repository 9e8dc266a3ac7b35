//! Pages of frozen records: their structure, their charts' figures, and what a page must never do.

use super::*;
use crate::compare::{self, Options, RunGroup};
use crate::trend::{Trend, TrendPoint};
use assay_awr::record;
use assay_measure::facts;
use assay_measure::record::{Figure, HeatRow, Series};
use assay_measure::section::{Align, Part, Row, Sections};
use assay_testkit::fixtures;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

fn shared() -> Assets {
    Assets::Shared(SHARED.to_owned())
}

fn frozen() -> Record {
    record::build(&fixtures::run())
}

fn probed() -> Record {
    let run = assay_measure::snapshot::RunData {
        run_id: "0badcafe".to_owned(),
        workload: "io".to_owned(),
        engine: "probe".to_owned(),
        ..Default::default()
    };
    assay_storage::record::build(&run, &crate::storage_readings::readings())
}

/// The page without what is no markup: the script and the style.
fn markup(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find("<script>").into_iter().chain(rest.find("<style>")).min() {
        let (open, close) =
            if rest[at..].starts_with("<script>") { ("<script>", "</script>") } else { ("<style>", "</style>") };
        let end = rest[at..].find(close).expect("every script ends") + at;
        text.push_str(&rest[..at + open.len()]);
        rest = &rest[end..];
    }
    text.push_str(rest);
    text.replacen("<!DOCTYPE html>", "", 1)
}

/// Parses a page, which is well-formed XML but for its script.
fn with_page<T>(page: &str, look: impl FnOnce(&roxmltree::Document<'_>) -> T) -> T {
    let markup = markup(page);
    let document = roxmltree::Document::parse(markup.trim_start());
    look(&document.unwrap_or_else(|error| panic!("not well-formed: {error}")))
}

/// The JSON of every chart by its id.
fn drawings(page: &str) -> Vec<(String, Value)> {
    with_page(page, |document| {
        let figures = document.descendants().filter(|node| node.has_tag_name("figure"));
        let drawing = |figure: roxmltree::Node<'_, '_>| {
            let script = figure.descendants().find(|node| node.has_tag_name("script"));
            let text = script.and_then(|node| node.text()).expect("every chart has its figures");
            let id = figure.attribute("id").expect("every chart has an id").to_owned();
            (id, serde_json::from_str(text).expect("JSON"))
        };
        figures.map(drawing).collect()
    })
}

fn drawing(page: &str, id: &str) -> Value {
    let found = drawings(page).into_iter().find(|(name, _)| name == id);
    found.unwrap_or_else(|| panic!("no chart {id}")).1
}

/// What a reader finds on a page, line by line.
fn outline(page: &str) -> String {
    let mut text = with_page(page, |document| {
        let mut text = String::new();
        for node in document.descendants() {
            let words = || {
                let parts = node.descendants().filter(|part| part.is_text());
                let parts: Vec<&str> = parts.filter_map(|part| part.text()).collect();
                parts.join("").split_whitespace().collect::<Vec<_>>().join(" ")
            };
            match node.tag_name().name() {
                name @ ("h1" | "h2" | "h3" | "caption") => writeln!(text, "{name}: {}", words()),
                "p" if node.attribute("class") == Some("missing") && node.attribute("hidden").is_none() => {
                    writeln!(text, "missing: {}", words())
                }
                "tbody" => writeln!(text, "  rows: {}", node.children().filter(|n| n.is_element()).count()),
                _ => Ok(()),
            }
            .expect("a string");
        }
        text
    });
    for (id, drawing) in drawings(page) {
        writeln!(text, "chart {id}").expect("a string");
        let y = &drawing["layout"]["yaxis"];
        writeln!(text, "  y: {} {}", y["title"]["text"], y["type"]).expect("a string");
        for trace in drawing["data"].as_array().expect("traces") {
            let values: Vec<&Value> = trace["y"].as_array().into_iter().flatten().collect();
            let last = values.last().map_or(String::new(), ToString::to_string);
            writeln!(text, "  {} {}: {} points, last {last}", trace["type"], trace["name"], values.len())
                .expect("a string");
        }
    }
    text
}

#[test]
fn the_first_screen_has_courses_and_the_active_sessions_beside_events_and_load() {
    let page = page(&frozen(), &Default::default(), &shared());
    with_page(&page, |document| {
        let of_class = |name: &'static str| {
            let nodes = document.descendants();
            nodes.filter(move |node| node.attribute("class") == Some(name))
        };
        assert!(of_class("spark").count() >= 3);
        let first = of_class("first").next().expect("a first screen");
        let ids: Vec<_> = first.descendants().filter_map(|node| node.attribute("id")).collect();
        assert!(ids.contains(&"c-active-sessions"), "{ids:?}");
        assert_eq!(of_class("brief").count(), 2);
    });
    assert_eq!(page.matches(r#"id="c-active-sessions""#).count(), 1);
}

#[test]
fn charts_of_nothing_are_told_of_in_one_line_and_steady_ones_are_drawn() {
    let mut record = frozen();
    let column = record.series.metrics.iter_mut();
    for (_, column) in column.filter(|(key, _)| key.starts_with("psi_")) {
        column.fill(Figure::Count(0));
    }
    let page = page(&record, &Default::default(), &shared());
    assert_eq!(page.matches("Not drawn: ").count(), 1);
    assert!(page.contains("every value is 0: Pressure (PSI)"));
    assert!(!page.contains(r#"id="c-pressure""#));
    // The frozen run's rate is the same in every second.
    assert!(page.contains(r#"id="c-operations""#));
}

#[test]
fn the_page_repeats_the_run_by_its_settings_and_tells_of_the_run_before() {
    let mut record = frozen();
    let context = crate::answer::Context {
        previous: Some(("as fast as before".to_owned(), crate::answer::Class::Good)),
        ..Default::default()
    };
    let page = page(&record, &context, &shared());
    assert!(page.contains("--set RUN_TIME=20") && page.contains(&format!("--seed {}", record.run.seed)));
    assert!(page.contains("<dt>Before</dt><dd>as fast as before</dd>"));
    let line = record.plan.settings.iter_mut().find(|line| line.origin == "cli");
    line.expect("a setting").value = "postgres://u:***@h/db".to_owned();
    assert!(
        !super::page(&record, &Default::default(), &shared()).contains("The same again"),
        "a starred value repeats nothing"
    );
}

#[test]
fn the_page_of_the_frozen_run_is_as_reviewed() {
    insta::assert_snapshot!(outline(&page(&frozen(), &Default::default(), &shared())));
}

#[test]
fn the_page_of_a_frozen_server_run_is_as_reviewed() {
    let record = record::build(&fixtures::postgres(18));
    insta::assert_snapshot!(outline(&page(&record, &Default::default(), &shared())));
}

#[test]
fn the_page_of_a_frozen_storage_probe_is_as_reviewed() {
    let record = probed();
    insta::assert_snapshot!(outline(&page(&record, &Default::default(), &shared())));
}

/// Headings and cells that text and page both have; those that text leaves out are on the page.
fn same_on(page: &str, text: &str, sections: &Sections) -> (usize, usize) {
    let (mut headings, mut seen) = (0, 0);
    with_page(page, |document| {
        let words = |name: &str| -> BTreeSet<String> {
            let nodes = document.descendants().filter(|n| n.has_tag_name(name));
            nodes.filter_map(|n| n.text().map(str::to_owned)).collect()
        };
        let titles = &words("h2") | &words("h3");
        let cells = &words("td") | &words("th");
        for section in sections.all.iter().filter(|s| !s.title.is_empty()) {
            assert!(titles.contains(&section.title), "{:?}", section.title);
            headings += 1;
            assert!(!section.is_headed || text.contains(&format!("\n{}\n~", section.title)));
            let tables = section.parts.iter().filter_map(|part| match part {
                Part::Table(table) => Some(table),
                _ => None,
            });
            for table in tables {
                let heads = table.heads.iter().map(|head| head.title.as_str());
                let rows = table.rows.iter().filter_map(|row| match row {
                    Row::Cells(cells) => Some(cells.iter().zip(&table.columns)),
                    Row::Between(_) => None,
                });
                let shown = rows.flatten().filter(|(_, c)| c.align != Align::Drawn);
                let shown = shown.map(|(cell, _)| cell.text.trim().trim_end_matches(':'));
                for words in heads.chain(shown) {
                    assert!(words.is_empty() || cells.contains(words), "{words:?}");
                    seen += 1;
                }
            }
        }
    });
    (headings, seen)
}

#[test]
fn text_and_page_have_the_same_sections_and_cells() {
    for record in [frozen(), record::build(&fixtures::postgres(18)), probed()] {
        let page = page(&record, &Default::default(), &shared());
        let text = crate::text::render(&record);
        let (headings, seen) = same_on(&page, &text, &crate::kinds::sections(&record));
        assert!(headings > 10 && seen > 100, "{headings} {seen}");
    }
}

#[test]
fn text_and_page_of_a_comparison_and_a_trend_have_the_same_sections_and_cells() {
    let (left, right) = (frozen(), record::build(&fixtures::postgres(18)));
    let groups = [("old", &left), ("new", &right)]
        .map(|(name, record)| RunGroup { name: name.to_owned(), records: vec![record] });
    let compared = compare::of(&groups, &Options::default());
    let sections = compare::sections(&compared, false);
    let text = compare::render(&compared, false);
    let (headings, seen) = same_on(&comparison(&compared, &shared()), &text, &sections);
    assert!(headings > 10 && seen > 1000, "{headings} {seen}");
    let value = |nth: u32| TrendPoint {
        run: format!("run-{nth}"),
        value: f64::from(100 + nth % 3).into(),
        ..TrendPoint::default()
    };
    let mut points: Vec<TrendPoint> = (0..6).map(value).collect();
    points.push(TrendPoint { value: 90.0.into(), ..value(6) });
    let trend = Trend { better: "higher".to_owned(), points, ..Trend::default() };
    let trend = trend.with_usual();
    let text = trend.render();
    let (_, seen) = same_on(&super::trend(&trend, &shared()), &text, &trend.sections());
    assert!(seen > 40, "{seen}");
    assert!(text.contains("run-6, is worse than usual: 90; the usual range is 96"), "{text}");
    assert!(text.contains("1 of 2 runs lie outside"), "{text}");
}

#[test]
fn the_head_of_a_page_names_the_host() {
    let mut record = frozen();
    let facts = [(facts::CPUS, "2"), (facts::MEMORY_BYTES, "1073741824"), (facts::VIRTUALISATION, "kvm")];
    record.host.facts = facts.map(|(key, value)| key.fact(value)).to_vec();
    let page = page(&record, &Default::default(), &shared());
    for pair in ["CPUs</dt><dd>2<", "Memory</dt><dd>1 GiB<", "Virtualisation</dt><dd>kvm<"] {
        assert!(page.contains(pair), "{pair}");
    }
}

#[test]
fn every_page_is_well_formed_with_unique_ids_and_a_table_behind_every_chart() {
    for record in [frozen(), record::build(&fixtures::postgres(15)), probed(), Record::default()] {
        let page = page(&record, &Default::default(), &shared());
        with_page(&page, |document| {
            let mut ids = BTreeSet::new();
            for node in document.descendants().filter(|node| node.is_element()) {
                if let Some(id) = node.attribute("id") {
                    assert!(ids.insert(id.to_owned()), "{id} stands twice");
                }
                if node.has_tag_name("figure") {
                    let tables = node.descendants().filter(|part| part.has_tag_name("table"));
                    assert!(tables.count() >= 1, "{:?} has no table", node.attribute("id"));
                    let cells = node.descendants().filter(|part| part.has_tag_name("td"));
                    assert!(cells.count() >= 1, "{:?} has an empty table", node.attribute("id"));
                }
            }
            let links = document.descendants().filter_map(|node| node.attribute("href"));
            for link in links {
                assert!(ids.contains(link.trim_start_matches('#')), "{link} leads nowhere");
            }
        });
    }
}

#[test]
fn charts_carry_the_record_s_numbers() {
    let record = frozen();
    let page = page(&record, &Default::default(), &shared());
    let chart = drawing(&page, "c-iops");
    let reads = &chart["data"][0];
    assert_eq!(reads["name"], "reads, engine");
    let numbers =
        |value: &Value| -> Vec<Option<f64>> { value.as_array().expect("an array").iter().map(Value::as_f64).collect() };
    let column = &record.series.metrics["read_io_requests_count_per_s"];
    let wanted: Vec<Option<f64>> = column.iter().map(Figure::value).collect();
    assert_eq!(numbers(&reads["y"]), wanted);
    let t_s: Vec<Option<f64>> = record.series.t_s.iter().copied().map(Some).collect();
    assert_eq!(numbers(&reads["x"]), t_s);
    // 5,400 reads of 400 us and 600 of 1,400 us a second: 9 in 10 below 512 us.
    let histogram = drawing(&page, "c-hist-foreground-db-file-sequential-read");
    assert_eq!(numbers(&histogram["data"][0]["y"])[0], Some(90.0));
    let time = 100.0 * 5400.0 * 384.0 / (5400.0 * 384.0 + 600.0 * 1536.0);
    let drawn = numbers(&histogram["data"][1]["y"])[0].expect("a share");
    assert!((drawn - time).abs() < 1e-9, "{drawn} {time}");
}

#[test]
fn heat_maps_carry_the_counts_of_every_step() {
    let mut record = frozen();
    record.series.heat = vec![HeatRow {
        name: "operations".to_owned(),
        layer: "client".to_owned(),
        t_s: vec![1.0, 2.0],
        buckets: vec![vec![(7, 100), (9, 1)], vec![(8, 10)]],
    }];
    let chart = drawing(&page(&record, &Default::default(), &shared()), "c-heat-client-operations");
    let heat = &chart["data"][0];
    assert_eq!(heat["y"], serde_json::json!(["128 us", "256 us", "512 us"]));
    assert_eq!(heat["z"], serde_json::json!([[2.0, null], [null, 1.0], [0.0, null]]));
    assert_eq!(heat["text"][0], serde_json::json!(["100", "0"]));
}

#[test]
fn what_a_user_named_is_text_and_never_markup() {
    const EVIL: &str = "</script><script>alert(1)</script><!-- & \"'<b>";
    let mut record = frozen();
    record.run.label = Some(EVIL.to_owned());
    record.run.workload = EVIL.to_owned();
    record.warnings.push(EVIL.to_owned());
    record.instance.events[0].name = EVIL.to_owned();
    record.timeline[0].text = EVIL.to_owned();
    record.os.disk.iter_mut().for_each(|disk| disk.name = EVIL.to_owned());
    let evil = page(&record, &Default::default(), &shared());
    assert!(!evil.contains("<script>alert"), "a script of the label's");
    assert!(!evil.contains("<!-- &"), "a comment of the label's");
    assert!(evil.contains("&#60;script&#62;alert"));
    let groups = [&record, &record].map(|record| RunGroup { name: EVIL.to_owned(), records: vec![record] });
    let compared = comparison(&compare::of(&groups, &Options::default()), &shared());
    assert!(!compared.contains("<script>alert"));
    // The charts' own words are escaped once more: the plotting script knows a few tags.
    for (id, drawing) in drawings(&compared) {
        for trace in drawing["data"].as_array().expect("traces") {
            let name = trace["name"].as_str().unwrap_or_default();
            assert!(!name.contains('<'), "{id}: {name}");
        }
    }
}

#[test]
fn the_script_is_there_once_or_named() {
    let record = frozen();
    let whole = page(&record, &Default::default(), &Assets::Embedded);
    assert_eq!(whole.matches("id=\"packed\"").count(), 1);
    assert!(whole.len() < 2_000_000, "{} bytes", whole.len());
    let named = page(&record, &Default::default(), &Assets::Shared("../assay-plotly.js".to_owned()));
    assert!(!named.contains("id=\"packed\""));
    assert!(named.contains("<script src=\"../assay-plotly.js\"></script>"));
    for address in ["http://", "https://", "//cdn"] {
        assert!(!named.contains(address), "the page names {address}");
    }
}

/// A day of seconds with fifty metrics, every one with a spike of its own.
fn day() -> Record {
    let mut record = frozen();
    let mut series = Series {
        step_s: Figure::Decimal(1.0),
        t_s: (1..=86_400).map(f64::from).collect(),
        in_window: vec![true; 86_400],
        ..Series::default()
    };
    let keys: Vec<String> = record.series.metrics.keys().cloned().collect();
    for (nth, key) in keys.iter().enumerate() {
        let mut column: Vec<Figure> = (0..86_400_u32).map(|s| Figure::Decimal(100.0 + f64::from(s % 7))).collect();
        column[1000 + 997 * nth] = Figure::Decimal(9999.0);
        series.metrics.insert(key.clone(), column);
    }
    record.series = series;
    record
}

#[test]
fn a_spike_second_of_a_day_is_on_the_chart_and_in_its_table() {
    let record = day();
    let keys: Vec<&String> = record.series.metrics.keys().collect();
    let at = keys.iter().position(|key| *key == "ops_count_per_s").expect("it is there");
    let page = page(&record, &Default::default(), &shared());
    let chart = drawing(&page, "c-operations");
    let operations = &chart["data"][0];
    let y = operations["y"].as_array().expect("points");
    assert!(y.len() <= 1500, "{} points", y.len());
    let row = y.iter().position(|value| value.as_f64() == Some(9999.0)).expect("the spike");
    // Long series are in hours.
    let hour = operations["x"][row].as_f64().expect("an instant");
    assert!((hour * 3600.0 - (1001.0 + 997.0 * at as f64)).abs() < 1e-6);
    for (id, drawing) in drawings(&page) {
        for trace in drawing["data"].as_array().expect("traces") {
            let points = trace["y"].as_array().map_or(0, Vec::len);
            assert!(points <= 1500, "{id} has {points} points");
        }
    }
    with_page(&page, |document| {
        let figure = document.descendants().find(|node| node.attribute("id") == Some("c-operations"));
        let cells = figure.expect("the chart").descendants().filter(|node| node.has_tag_name("td"));
        assert!(cells.filter_map(|cell| cell.text()).any(|text| text == "9,999"));
    });
    assert!(page.len() < 30_000_000, "{} bytes", page.len());
}

#[test]
fn a_comparison_shows_its_conclusion_its_ratios_and_both_histograms() {
    let (left, mut right) = (frozen(), frozen());
    right.run.started = "2026-01-02T03:04:05Z".to_owned();
    let groups = [("old", &left), ("new", &right)]
        .map(|(name, record)| RunGroup { name: name.to_owned(), records: vec![record] });
    let compared = compare::of(&groups, &Options::default());
    let page = comparison(&compared, &shared());
    for sentence in &compared.conclusion {
        let escaped = sentence.replace('"', "&#34;");
        assert!(page.contains(escaped.as_str()), "{sentence}");
    }
    let ids: Vec<String> = drawings(&page).into_iter().map(|(id, _)| id).collect();
    assert!(ids.contains(&"c-ratios-1".to_owned()), "{ids:?}");
    let histogram = drawing(&page, "c-hist-time-db-file-sequential-read");
    let names: Vec<&Value> = histogram["data"].as_array().expect("two").iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["A old", "B new"]);
    let ratios = drawing(&page, "c-ratios-1");
    let traces = ratios["data"].as_array().expect("traces");
    let values = traces.iter().flat_map(|trace| trace["y"].as_array().into_iter().flatten());
    assert!(values.filter_map(Value::as_f64).all(|ratio| ratio == 1.0));
}

#[test]
fn a_trend_has_a_point_a_run_and_says_why_one_has_none() {
    let point = |run: &str, value: Figure| TrendPoint {
        run: run.to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        value,
        verdict: "complete".to_owned(),
        ..TrendPoint::default()
    };
    let points = [point("a", 1.0.into()), point("b", Figure::na("unsupported")), point("c", 3.0.into())];
    let page = trend_page("Operations", &points);
    let chart = drawing(&page, "c-trend");
    assert_eq!(chart["data"][0]["y"], serde_json::json!([1.0, null, 3.0]));
    assert!(page.contains("2 values, median 2/s, from 1/s to 3/s."));
    assert!(page.contains("title=\"n/a (unsupported)\""));
    let none = trend_page("Operations", &[]);
    assert!(none.contains("n/a (no run has this figure)"));
}

fn trend_page(name: &str, points: &[TrendPoint]) -> String {
    let trend = Trend { name: name.to_owned(), unit: "1/s".to_owned(), points: points.to_vec(), ..Trend::default() };
    super::trend(&trend.with_usual(), &shared())
}

proptest! {
    #[test]
    fn any_name_gives_a_well_formed_page(name in "\\PC{0,40}") {
        let points = [TrendPoint { run: name.clone(), label: name.clone(), value: 1.0.into(), ..TrendPoint::default() }];
        let page = trend_page(&name, &points);
        prop_assert_eq!(drawings(&page).len(), 1);
    }
}

#[test]
fn repeats_show_each_run_and_the_noise_of_the_declared_figures() {
    let (left, right) = (frozen(), frozen());
    let repeats = compare::Repeats {
        verdict: "complete".to_owned(),
        wanted_count: 2,
        runs: ["repeat-1", "repeat-2"]
            .map(|directory| compare::RepeatRun {
                directory: directory.to_owned(),
                ops_per_s: 100.0.into(),
                ..compare::RepeatRun::default()
            })
            .to_vec(),
        ..compare::Repeats::default()
    };
    let page = repeats_page(&repeats.with_noise(&[&left, &right]));
    let chart = drawing(&page, "c-repeats");
    assert_eq!(chart["data"][0]["y"], serde_json::json!([100.0, 100.0]));
    assert!(page.contains(">A/A Noise Floor: differences between identical runs<"));
    for there in [">repeat-2<", ">ops_per_s<", ">reads_per_s<", "N for 2 %"] {
        assert!(page.contains(there), "{there}");
    }
}

fn repeats_page(repeats: &compare::Repeats) -> String {
    super::repeats(repeats, &shared())
}
