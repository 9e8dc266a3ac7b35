//! AWR and Statspack text: the layouts of versions, fragments, damage.

use crate::import::{Source, Tool, import, misplaced, recognise};
use assay_measure::record::Record;

fn sample(name: &str) -> Source {
    let path = format!("{}/../../testdata/awr/{name}", env!("CARGO_MANIFEST_DIR"));
    Source {
        text: std::fs::read_to_string(&path).expect("a sample"),
        path: name.to_owned(),
    }
}

fn read(sources: &[Source]) -> Record {
    let record = import(sources).expect("imported");
    assert_eq!(misplaced(&record), Vec::<String>::new());
    record
}

#[test]
fn every_fragment_is_recognised() {
    for name in [
        "load-profile-bm.txt",
        "io-profile-bm.txt",
        "iostat-function-bm.txt",
        "physical-stats.txt",
        "event-histogram-micro-bm.txt",
    ] {
        assert_eq!(recognise(&sample(name).text), Some(Tool::Awr), "{name}");
        read(&[sample(name)]);
    }
}
