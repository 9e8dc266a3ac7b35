//! How many records a text gives, as the command line reads it.

use super::super::testing::{info, sample};
use super::source;
use crate::import_all;
use assay_measure::record::Record;

/// The records of one text.
fn records(text: &str) -> Vec<Record> {
    let all = import_all(vec![source("page.txt", text)]);
    all.map(|one| one.result.unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn tools(text: &str) -> Vec<String> {
    records(text).iter().map(|record| info(record).tool.clone()).collect()
}

#[test]
fn a_sample_of_one_run_is_one_record() {
    const SEVERAL: [(&str, usize); 1] = [("iperf3-3.12-server.txt", 4)];
    let mut wrongs = Vec::new();
    for place in ["awr", "import"] {
        let place = format!("{}/../../testdata/{place}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(place).expect("samples") {
            let path = entry.expect("a sample").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a text");
            let count = import_all(vec![source(&name, &text)]).count();
            let expected = SEVERAL.iter().find(|(known, _)| *known == name).map_or(1, |(_, count)| *count);
            if count != expected {
                wrongs.push(format!("{name}: {count}"));
            }
        }
    }
    assert!(wrongs.is_empty(), "{wrongs:?}");
}

#[test]
fn reports_of_databases_below_each_other_are_told_apart_by_their_titles() {
    let awr = |name: &str| {
        let path = format!("{}/../../testdata/awr/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("a report")
    };
    let both = format!("{}\n{}", awr("statspack-11.2.txt"), awr("awr-19c.txt"));
    assert_eq!(tools(&both), ["statspack", "awr"]);
}

#[test]
fn our_own_report_is_one_record() {
    let snapshot = include_str!("../../../../testdata/frozen/native-updates/text.snap");
    let (_, report) = snapshot.split_once("ASSAY WORKLOAD").expect("a report");
    assert_eq!(tools(&format!("ASSAY WORKLOAD{report}")), ["assay"]);
    assert_eq!(tools(&format!("{}\nASSAY WORKLOAD{report}", sample("ping-bsd.txt"))), ["ping", "assay"]);
}
