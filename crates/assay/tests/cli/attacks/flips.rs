//! A bit of a native data set that was killed in the middle of its updates is another one: the next command finds it or brings back
//! what it would have without, never anything else in silence.

use super::Siege;
use crate::common::{Place, with};
use assay_measure::prng::SplitMix64;
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
const SECTOR_BYTES: usize = 512;
/// Of the last flushes of a log.
const TAIL_BYTES: u64 = 32 << 10;
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
    // A bit of the last flush of the log cannot be told from a flush that was torn, after which nothing follows: then its sector may
    // as well not have been written, which in any other place of the log is found.
    let is_as_if_torn = |name: &str, at: usize, recovered: &[Vec<u8>]| {
        let mut torn = killed.clone();
        let sector = at / SECTOR_BYTES * SECTOR_BYTES;
        torn.get_mut(name).expect("one of them")[sector..sector + SECTOR_BYTES].fill(0);
        put_back(&place, &torn);
        name.contains("redo") && recover().code == 0 && rows(&content(&place)) == recovered
    };
    let written = |(name, bytes): (_, &Vec<u8>)| Some((name, bytes.iter().rposition(|byte| *byte != 0)?));
    let mut logs = killed.iter().filter(|(name, _)| name.contains("redo")).filter_map(written);
    let ends = logs.rfind(|(_, end)| *end as u64 > TAIL_BYTES);
    while let Some((_, mut random)) = siege.next() {
        let names: Vec<&String> = killed.keys().collect();
        let anywhere = |random: &mut SplitMix64| {
            let name = random.pick(&names);
            (name, random.below(killed[name].len() as u64) as usize)
        };
        // Now and then where the log ends, unless it has begun anew.
        let (name, at) = match ends {
            Some((name, end)) if random.below(4) == 0 => (name, end - random.below(TAIL_BYTES) as usize),
            _ => anywhere(&mut random),
        };
        let mut spoilt = killed.clone();
        let bit = 1 << random.below(8);
        spoilt.get_mut(name).expect("one of them")[at] ^= bit;
        put_back(&place, &spoilt);
        siege.begins(format!("bit {bit} of byte {at} of {name}"));
        let checked = recover();
        siege.judge(&checked);
        let recovered = (checked.code == 0).then(|| rows(&content(&place)));
        let came_of_it = match recovered {
            None => "found",
            Some(rows) if rows == truth_rows => "harmless",
            Some(rows) if is_as_if_torn(name, at, &rows) => "of the last flush",
            Some(_) => panic!("rows changed in silence"),
        };
        let place = name.rsplit('/').next().unwrap_or(name).trim_end_matches(|letter: char| !letter.is_alphabetic());
        siege.count(format!("{place} {came_of_it}"));
    }
    put_back(&place, &truth);
    place.assay(&with(&["destroy"], DATA)).code(0);
    siege.over();
}
