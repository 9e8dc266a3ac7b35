//! A bit of a native data set that was killed in the middle of its updates is another one: the next command finds it or brings back
//! what it would have without, never anything else in silence.

use super::Siege;
use crate::common::{Place, with};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;

const DATA: &[&str] = &["--target", "native:d"];
const SIZES: &[&str] = &["-s", "2", "--set", "SCALE=1000", "--set", "REDO_LOG_MB=4", "--set", "UNDO_MB=8"];

type Content = BTreeMap<String, Vec<u8>>;

/// The files of the data set.
fn content(place: &Place) -> Content {
    let names = place.files().into_iter().filter(|name| name.starts_with("d/"));
    names.map(|name| (name.clone(), fs::read(place.path(&name)).expect("readable"))).collect()
}

fn put_back(place: &Place, content: &Content) {
    for (name, bytes) in content {
        // In place: who it was made by is known by its inode.
        let file = fs::OpenOptions::new().write(true).open(place.path(name)).expect("it is there");
        file.set_len(bytes.len() as u64).expect("its size");
        file.write_all_at(bytes, 0).expect("written");
    }
}

const BLOCK_BYTES: usize = 8192;
/// Log position and checksum: a change that is done again has that of its record, a run that of its group of records.
const POSITION: std::ops::Range<usize> = 40..52;

/// Every block of the files of data, without what says where its last change is in the log.
fn rows(content: &Content) -> Vec<Vec<u8>> {
    let data = content.iter().filter(|(name, _)| name.contains("data-"));
    data.map(|(_, bytes)| {
        let mut bytes = bytes.clone();
        bytes.chunks_mut(BLOCK_BYTES).for_each(|block| block[POSITION].fill(0));
        bytes
    })
    .collect()
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn of_a_bit_of_a_data_set_are_found_or_do_no_harm() {
    let mut siege = Siege::new("single bits of a data set");
    let place = Place::new();
    place.assay(&with(&with(&["prepare"], SIZES), DATA)).code(0);
    let updates =
        ["run", "--time", "60", "--warmup", "0", "--set", "UPDATE_PCT=100", "--set", "CACHE_MB=4", "-o", "killed"];
    let run = place.start(&with(&updates, DATA)).until("a window", || place.measures("killed"));
    std::thread::sleep(std::time::Duration::from_millis(700));
    run.kill();
    let killed = content(&place);
    let recover = || place.assay(&with(&["check"], DATA));
    recover().code(0);
    let truth = content(&place);
    let truth_rows = rows(&truth);
    while let Some((_, mut random)) = siege.next() {
        let names: Vec<&String> = killed.keys().collect();
        let name = random.pick(&names);
        let at = random.below(killed[name].len() as u64) as usize;
        let mut spoilt = killed.clone();
        let bit = 1 << random.below(8);
        spoilt.get_mut(name).expect("one of them")[at] ^= bit;
        put_back(&place, &spoilt);
        siege.begins(format!("bit {bit} of byte {at} of {name}"));
        let checked = recover();
        siege.judge(&checked);
        if checked.code == 0 {
            assert!(rows(&content(&place)) == truth_rows, "rows changed in silence");
        }
        let place = name.rsplit('/').next().unwrap_or(name).trim_end_matches(|letter: char| !letter.is_alphabetic());
        siege.count(format!("{place} {}", if checked.code == 0 { "harmless" } else { "found" }));
    }
    put_back(&place, &truth);
    place.assay(&with(&["destroy"], DATA)).code(0);
    siege.over();
}
