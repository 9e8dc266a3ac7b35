//! `assay io`: how much each pattern comes to, and what is in the files afterwards.

use crate::common::{Place, with};
use serde_json::Value;

/// Reads, their bytes, writes, their bytes.
type Amount = [u64; 4];

/// What fio 3.33 does with the same words.
const AMOUNTS: &[(&str, Amount)] = &[
    ("--rw=read --size=10k", [2, 8192, 0, 0]),
    ("--rw=randread --size=18k", [4, 16384, 0, 0]),
    ("--rw=read --size=32k --io_size=50k", [13, 53248, 0, 0]),
    ("--rw=read:4k --size=32k", [8, 32768, 0, 0]),
    ("--rw=read:-8k --size=64k", [16, 65536, 0, 0]),
    ("--rw=randread:3 --size=64k", [16, 65536, 0, 0]),
    ("--rw=read --size=32k --number_ios=3", [3, 12288, 0, 0]),
    ("--rw=read --size=32k --number_ios=12", [8, 32768, 0, 0]),
    ("--rw=randread --size=32k --loops=2", [16, 65536, 0, 0]),
    ("--rw=read --size=32k --offset=16k", [8, 32768, 0, 0]),
    ("--rw=randread --size=32k --blockalign=512", [8, 32768, 0, 0]),
    ("--rw=randread --size=32k --norandommap", [8, 32768, 0, 0]),
    ("--rw=randread --size=32k --random_generator=lfsr", [8, 32768, 0, 0]),
    ("--rw=randread --size=64k --percentage_random=50", [16, 65536, 0, 0]),
    ("--rw=read --size=64k --nrfiles=4", [16, 65536, 0, 0]),
    ("--rw=randread --size=70k --nrfiles=4 --io_size=140k", [35, 143_360, 0, 0]),
    ("--rw=read --bssplit=4k/50:6k/50 --size=24k", [6, 24576, 0, 0]),
    ("--rw=randread --size=64k --random_distribution=zipf:1.2", [16, 65536, 0, 0]),
    ("--rw=randread --size=64k --random_distribution=pareto:0.3", [16, 65536, 0, 0]),
    ("--rw=randread --size=64k --random_distribution=normal:10", [16, 65536, 0, 0]),
    ("--rw=randread --size=64k --random_distribution=zoned:60/10:40/90", [16, 65536, 0, 0]),
    ("--rw=write --size=64k --loops=3", [0, 0, 48, 196_608]),
    ("--rw=write --bs=4k,8k --size=60k", [0, 0, 7, 57344]),
    ("--rw=randrw --size=64k --rwmixread=100", [16, 65536, 0, 0]),
    ("--rw=rw --size=64k --rwmixread=0", [0, 0, 16, 65536]),
];

#[test]
fn a_job_comes_to_as_much_as_fio_s() {
    for (words, amount) in AMOUNTS {
        let place = Place::new();
        let words: Vec<&str> = words.split(' ').collect();
        let fixed = ["io", "--no-record", "--output-format=json", "--name=j"];
        let done = place.assay(&with(&fixed, &words)).code(0);
        let tree: Value = serde_json::from_str(&done.out).unwrap();
        let sum = |way: &str, key: &str| tree["jobs"][0][way][key].as_u64().unwrap();
        let found =
            [sum("read", "total_ios"), sum("read", "io_bytes"), sum("write", "total_ios"), sum("write", "io_bytes")];
        assert_eq!(found, *amount, "{words:?}");
    }
}

/// The file that a job of 64 KiB of sequential writes leaves.
fn content(words: &[&str]) -> Vec<u8> {
    let place = Place::new();
    let fixed = ["io", "--no-record", "--name=j", "--filename=f", "--rw=write", "--size=64k"];
    place.assay(&with(&fixed, words)).code(0);
    std::fs::read(place.path("f")).expect("the job wrote it")
}

#[test]
fn files_hold_what_the_options_say() {
    assert!(content(&["--zero_buffers"]).iter().all(|b| *b == 0));
    let pattern = content(&["--buffer_pattern=\"abcd\"-120xdeadface"]);
    let unit = b"abcd\xf4\xff\xff\xff\xde\xad\xfa\xce";
    for block in pattern.chunks(4096) {
        assert!(block.iter().zip(unit.iter().cycle()).all(|(a, b)| a == b));
    }
    let half = content(&["--buffer_compress_percentage=50"]);
    for chunk in half.chunks(512) {
        assert!(chunk[256..].iter().all(|b| *b == 0));
        assert!(chunk[..256].iter().filter(|b| **b == 0).count() < 10);
    }
    let random = content(&[]);
    let sectors: std::collections::BTreeSet<&[u8]> = random.chunks(512).collect();
    assert_eq!(sectors.len(), 128);
    // The same job writes the same again but for what proves each new file, unless told otherwise.
    let again = content(&[]);
    for (one, other) in random.chunks(512).zip(again.chunks(512)) {
        let differing = one.iter().zip(other).filter(|(a, b)| a != b).count();
        // Eight bytes of the last proof and of each before it that the buffer still holds: 16 writes.
        assert!((1..=128).contains(&differing), "{differing}");
    }
    assert_ne!(random, content(&["--randrepeat=0"]));
    let repeated = content(&["--dedupe_percentage=100"]);
    assert!(repeated.chunks(4096).all(|b| b == &repeated[..4096]));
}

/// Runs `assay io` on file `f` of the place.
fn io(place: &Place, words: &[&str]) -> crate::common::Ran {
    let fixed = ["io", "--no-record", "--name=j", "--filename=f", "--size=64k"];
    place.assay(&with(&fixed, words))
}

fn totals(text: &str) -> (u64, u64) {
    let tree: Value = serde_json::from_str(text).expect("it is JSON");
    let total = |way: &str| tree["jobs"][0][way]["total_ios"].as_u64().expect("a count");
    (total("read"), total("write"))
}

#[test]
fn what_is_written_is_verified_and_what_changed_is_named() {
    for verify in [
        &["--verify=crc32c"][..],
        &["--verify=crc32c", "--verify_interval=512"],
        &["--verify=crc32c", "--verify_backlog=3"],
        &["--verify=pattern", "--verify_pattern=%o\"abcdefgh\""],
    ] {
        let place = Place::new();
        let json = with(&["--rw=randwrite", "--output-format=json"], verify);
        let done = io(&place, &json).code(0);
        assert_eq!(totals(&done.out), (16, 16), "{verify:?}");
        // An earlier run's blocks, by a reader and by the job that wrote them.
        let reader = with(&["--rw=randread"], verify);
        io(&place, &reader).code(0);
        let again = with(&["--rw=randwrite", "--verify_only"], verify);
        io(&place, &again).code(0);
        let mut bytes = std::fs::read(place.path("f")).unwrap();
        bytes[20_000] ^= 1;
        std::fs::write(place.path("f"), &bytes).unwrap();
        for checker in [&reader, &again] {
            let failed = io(&place, checker);
            assert!(failed.out.contains("err=84"), "{}", failed.out);
            let told = format!("{}{}", failed.out, failed.err);
            assert!(told.contains("verify: byte ") && told.contains("/f: "), "{told}");
            failed.code(4);
        }
    }
    let place = Place::new();
    let refused = io(&place, &["--rw=write", "--verify=pattern"]).code(2);
    assert!(refused.err.contains("verify_pattern"), "{}", refused.err);
}

#[test]
fn jobs_that_share_a_file_verify_what_any_of_them_wrote() {
    let place = Place::new();
    let words = [
        "io",
        "--no-record",
        "--filename=f",
        "--size=1m",
        "--rw=randwrite",
        "--verify=crc32c",
        "--name=a",
        "--name=b",
        "--numjobs=2",
    ];
    for _ in 0..20 {
        place.assay(&words).code(0);
    }
}
