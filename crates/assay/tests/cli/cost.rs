//! `cost` at the command line: prices, runs tied to platforms, mistakes.

use crate::common::{BRIEF, Place, with};
use std::fs;

const PRICES: &str = "date = 2026-01-31\ncurrency = \"EUR\"\nsource = \"our list\"\n\
    [[platform]]\nname = \"box\"\n[[platform.monthly]]\nname = \"rent\"\nprice = 100\n\
    [[platform]]\nname = \"cloud\"\n[[platform.hourly]]\nname = \"instance\"\nprice = 0.5\n";

#[test]
fn the_example_is_a_price_file_that_works() {
    let place = Place::new();
    let example = place.assay(&["cost", "--example"]).code(0);
    fs::write(place.path("prices.toml"), &example.out).expect("written");
    let done = place.assay(&["cost", "--prices", "prices.toml"]).code(0);
    assert_eq!(done.err, "");
    for part in ["cloud A, no run", "our own server, no run", "Break-even after", "5,622.64"] {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    let one = place.assay(&["cost", "--prices", "prices.toml", "--platform", "cloud A"]).code(0);
    assert!(!one.out.contains("our own server"), "{}", one.out);
}

#[test]
fn runs_are_priced_by_their_platform_and_compared() {
    let place = Place::new();
    place.assay(&with(BRIEF, &["-o", "one"])).code(0);
    fs::write(place.path("prices.toml"), PRICES).expect("written");
    let cost = |more: &[&str]| {
        let args = [&["cost", "one", "one", "--prices", "prices.toml"], more].concat();
        place.assay(&args)
    };
    let answer = cost(&["--platform", "box", "--platform", "cloud", "-o", "cost.html"]).code(0);
    assert!(answer.out.starts_with("box costs less for what it delivers: EUR "), "{}", answer.out);
    assert!(place.read("cost.html").starts_with("<!DOCTYPE html>"));
    let done = cost(&["--platform", "box", "--platform", "cloud", "--format", "full"]).code(0);
    for part in ["box: run ", "cloud: run ", "per million operations", "box and cloud", "a projection, untested"] {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    let json = cost(&["--platform", "box", "--format", "json"]).code(0);
    let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON alone");
    assert_eq!(json["schema"], "assay-cost/1");
    assert_eq!(json["costs"][0]["total_monthly"], 100.0);
    let ops = json["costs"][0]["delivered"]["ops_per_s"].as_f64().expect("a rate");
    let units = json["costs"][0]["units"].as_array().expect("units");
    let per_million = units.iter().find(|unit| unit["key"] == "cost_per_million_ops").expect("there");
    let expected = 100.0 / (ops * 720.0 * 3600.0 / 1e6);
    let found = per_million["total"].as_f64().expect("a cost");
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    let error = cost(&[]).code(2).err;
    assert!(
        error.contains("matches no platform in prices.toml") && error.contains("--platform (box, cloud)"),
        "{error}"
    );
    let error = cost(&["--platform", "bx"]).code(2).err;
    assert!(error.contains("has no platform \"bx\"; it has box, cloud"), "{error}");
}

#[test]
fn a_mistake_in_the_prices_is_told_with_its_line() {
    let place = Place::new();
    let text = PRICES.replace("price = 0.5", "prise = 0.5");
    fs::write(place.path("prices.toml"), text).expect("written");
    let done = place.assay(&["cost", "--prices", "prices.toml"]).code(2);
    assert_eq!(done.err, "error: prices.toml:13: prise = 0.5: unknown field `prise`; did you mean price?\n");
    assert_eq!(done.out, "");
    let done = place.assay(&["cost", "--prices", "none.toml"]).code(2);
    assert!(done.err.contains("none.toml") && done.err.contains("assay cost --example"), "{}", done.err);
}

#[test]
fn a_priced_answer_is_one_page_and_brief_is_another_word_for_it() {
    let place = Place::new();
    place.assay(&with(BRIEF, &["-o", "one"])).code(0);
    fs::write(place.path("prices.toml"), PRICES).expect("written");
    let brief = |more: &[&str]| {
        let args = [&["report", "one", "--format", "brief"], more].concat();
        place.assay(&args)
    };
    let plain = brief(&[]).code(0);
    for part in ["slob on null", "Tested", "Rate  ", "p99 at that rate", "Steadiness", "Limited by", "Trust"] {
        assert!(plain.out.contains(part), "{part}: {}", plain.out);
    }
    assert_eq!(plain.out, place.assay(&["report", "one", "--format", "answer"]).code(0).out);
    let priced = brief(&["--cost", "prices.toml", "--platform", "box"]).code(0);
    assert!(priced.out.contains("EUR 3,600.00 over 36 months for box"), "{}", priced.out);
    assert!(priced.out.contains("per million operations"), "{}", priced.out);
    for page in [&plain.out, &priced.out] {
        assert!(page.lines().count() <= 60 && page.lines().all(|line| line.chars().count() <= 100), "{page}");
    }
    let done = place.assay(&["report", "one", "--cost", "prices.toml"]).code(2);
    assert!(done.err.contains("--format answer"), "{}", done.err);
}
