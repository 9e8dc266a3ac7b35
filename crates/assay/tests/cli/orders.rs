//! Order entry by the program itself: one run on a throw-away server, its faces, and what is refused.

use crate::common::{Place, json, skipped, with};

/// Said aloud where no server is installed.
fn none_installed(errors: &str) {
    let required = std::env::var_os("ASSAY_REQUIRE_POSTGRES");
    assert!(errors.contains("no programs of PostgreSQL"), "{errors}");
    assert!(required.is_none_or(|word| word.is_empty()), "{errors}");
    skipped(errors);
}

const RUN: &[&str] = &["orders", "run", "--target", "temp:postgres", "--scale", ".002", "--seed", "7"];

#[test]
fn a_run_answers_is_checked_and_its_results_file_comes_back_as_it_was() {
    let place = Place::new();
    let more = ["--sessions", "4", "--time", "2", "--warmup", "0", "--mix", "classic", "-o", "run"];
    let ran = place.assay(&with(RUN, &more));
    if ran.code == 3 {
        return none_installed(&ran.err);
    }
    let ran = ran.code(0);
    let answer = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("did order entry (classic mix, server side, closed loop, scale 0.002)"), "{}", ran.out);
    assert!(answer.contains("All 17 checks hold."), "{}", ran.out);
    let record = place.record("run");
    assert_eq!(record["kind"], "orders");
    assert_eq!(record["parts"]["orders"]["asked"]["mix"]["preset"], "classic");
    assert!(record["instance"]["server"].is_object(), "the server's own statistics stand beside it");
    let report = place.read("run/report.txt");
    for part in
        ["Order Entry", "Transactions", "Consistency of the Data Set", "Load Profile", "Update Customer Details"]
    {
        assert!(report.contains(part), "{part}");
    }
    assert!(!report.contains("UPDATE_PCT"), "what SLOB alone heeds is not among its parameters");

    let xml = place.assay(&["report", "run", "--format", "swingbench"]).code(0).out;
    place.write("results.xml", &xml);
    place.assay(&["import", "results.xml", "-o", "back"]).code(0);
    let back = place.record("back");
    assert_eq!(back["kind"], "orders");
    for op in record["driver"]["ops"].as_array().expect("transactions") {
        let ops = back["driver"]["ops"].as_array().expect("transactions");
        let same = ops.iter().find(|other| other["kind"] == op["kind"]).expect("every transaction");
        assert_eq!(same["count"], op["count"]);
        let [a, b] = [op, same].map(|op| op["response"]["us_avg"].as_f64().or(op["service"]["us_avg"].as_f64()));
        let (a, b) = (a.expect("known"), b.expect("known"));
        assert!((a - b).abs() <= 10.0, "{a} {b} {op}");
    }
    let compared = place.assay(&["compare", "run", "back", "--format", "json"]).code(0);
    assert!(json(&compared.out).to_string().contains("order_products_us_avg"), "figure by figure");
    let table = place.assay(&["report", "run", "--format", "tool"]).code(0).out;
    assert!(table.contains("| Average Tx/Sec") && table.contains("90th Percentile Transaction Response Time"));
}

#[test]
fn what_cannot_be_is_refused_before_a_server_is_started() {
    let place = Place::new();
    for (more, told) in [
        (&["--set", "UPDATE_PCT=30"][..], "UPDATE_PCT has no effect on orders"),
        (&["--disable", "XX"][..], "XX is not a transaction"),
        (&["--set", "ORDERS_SCALE=1.2345"][..], "at most three decimals"),
        (&["--rate", "10", "--set", "THINK_INTER_MAX=1"][..], "leave THINK_INTER_MAX or RATE out"),
    ] {
        let ran = place.assay(&with(RUN, more)).code(2);
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    for target in [&["--target", "native:./data"][..], &[]] {
        let ran = place.assay(&with(&["orders", "prepare"], target)).code(2);
        assert!(ran.err.contains("postgres://USER@HOST:PORT/DB"), "{}", ran.err);
    }
    let bare = place.assay(&["orders", "prepare", "--target", "temp:postgres"]).code(2);
    assert!(bare.err.contains("nothing to keep"), "{}", bare.err);
}
