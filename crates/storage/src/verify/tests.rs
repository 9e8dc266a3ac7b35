//! Headers, and that nothing wrong passes them.

use super::*;
use crate::payload::Payload;
use proptest::prelude::*;

fn options(verify: Verify, set: impl FnOnce(&mut PayloadOptions)) -> PayloadOptions {
    let mut options = PayloadOptions { verify, ..PayloadOptions::default() };
    set(&mut options);
    options
}

fn stamped(options: &PayloadOptions, len: usize, offset: u64, sequence: u64) -> Vec<u8> {
    let verifier = Verifier::new(options, 77).unwrap().unwrap();
    let mut buffer = vec![0; len];
    Payload::new(options, 0, 1).prepare(&mut buffer, 0, offset, true);
    verifier.stamp(&mut buffer, offset, sequence);
    buffer
}

#[test]
fn the_header_has_its_bytes() {
    let options = options(Verify::Crc32c, |_| {});
    let block = stamped(&options, 512, 0x1122_3344, 5);
    assert_eq!(&block[..8], b"ASYVRFY1");
    assert_eq!(block[8..16], 0x1122_3344_u64.to_le_bytes());
    assert_eq!(block[16..24], 5_u64.to_le_bytes());
    assert_eq!(block[24..32], 77_u64.to_le_bytes());
    assert_eq!(block[32..36], 512_u32.to_le_bytes());
    assert_eq!(block[36..40], 0_u32.to_le_bytes());
    assert_eq!(block[40..44], crc32c::crc32c(&block[48..]).to_le_bytes());
    assert_eq!(block[44..48], crc32c::crc32c(&block[..44]).to_le_bytes());
}

#[test]
fn any_changed_bit_is_found_and_named_with_its_place() {
    for interval in [0, 512, 1000] {
        let options = options(Verify::Crc32c, |o| o.verify_interval = interval);
        let verifier = Verifier::new(&options, 77).unwrap().unwrap();
        let block = stamped(&options, 4096, 8192, 3);
        let check = |block: &[u8]| verifier.check(block, "F", 8192, ExpectedWrite::default());
        assert_eq!(check(&block), Ok(()));
        for at in (0..4096).step_by(7).chain([4095]) {
            let mut bad = block.clone();
            bad[at] ^= 1 << (at % 8);
            let mismatch = check(&bad).unwrap_err();
            let begin = mismatch.offset - 8192;
            assert!(begin <= at as u64, "{mismatch}");
            let text = mismatch.to_string();
            assert!(text.starts_with("verify: byte ") && text.contains(" of F: "), "{text}");
        }
    }
}

#[test]
fn a_block_of_another_place_time_or_run_is_found() {
    let options = options(Verify::Crc32c, |_| {});
    let verifier = Verifier::new(&options, 77).unwrap().unwrap();
    let block = stamped(&options, 4096, 8192, 3);
    let check = |offset, run, sequence| {
        verifier.check(&block, "F", offset, ExpectedWrite { run, sequence }).map_err(|m| m.what)
    };
    assert_eq!(check(8192, Some(77), Some(3)), Ok(()));
    assert_eq!(check(4096, None, None), Err("offset of the write"));
    // A write that was lost left what an earlier run, or an earlier write, had put there.
    assert_eq!(check(8192, Some(78), Some(3)), Err("number of the run"));
    assert_eq!(check(8192, Some(77), Some(4)), Err("number of the write"));
    let short = verifier.check(&block[..2048], "F", 8192, ExpectedWrite::default());
    assert_eq!(short.unwrap_err().what, "length");
    let blank = verifier.check(&[0; 4096], "F", 0, ExpectedWrite::default()).unwrap_err();
    assert_eq!((blank.what, blank.found.as_str()), ("magic", "0000000000000000"));
    assert_eq!(verifier.check(&[0; 40], "F", 0, ExpectedWrite::default()).unwrap_err().what, "header");
}

#[test]
fn a_pattern_is_compared_byte_by_byte() {
    let options = options(Verify::Pattern, |o| {
        o.verify_pattern = Some([&b"ab"[..], &[0; 8]].concat());
        o.verify_pattern_offsets = vec![2];
    });
    let verifier = Verifier::new(&options, 1).unwrap().unwrap();
    let mut block = stamped(&options, 4096, 512, 0);
    assert_eq!(&block[..4], &[b'a', b'b', 0, 2]);
    assert_eq!(verifier.check(&block, "F", 512, ExpectedWrite::default()), Ok(()));
    block[1001] = b'x';
    let mismatch = verifier.check(&block, "F", 512, ExpectedWrite::default()).unwrap_err();
    assert_eq!(mismatch.to_string(), "verify: byte 1513 of F: pattern: expected 0x62, found 0x78");
}

#[test]
fn verification_that_cannot_be_is_refused() {
    assert!(Verifier::new(&PayloadOptions::default(), 1).unwrap().is_none());
    let error = Verifier::new(&options(Verify::Pattern, |_| {}), 1).unwrap_err();
    assert!(error.what.contains("needs verify_pattern"), "{error}");
    let short = options(Verify::Crc32c, |o| o.verify_interval = 48);
    assert!(Verifier::new(&short, 1).unwrap_err().what.contains("no room"));
    let verifier = |verify| {
        let options = options(verify, |o| o.verify_pattern = Some(vec![1]));
        Verifier::new(&options, 1).unwrap().unwrap()
    };
    assert_eq!(verifier(Verify::Crc32c).least_bytes(), 49);
    assert_eq!(verifier(Verify::Pattern).least_bytes(), 1);
}

proptest! {
    #[test]
    fn what_is_stamped_passes(
        len in 49_usize..9000,
        interval in prop_oneof![Just(0_u32), 49_u32..5000],
        offset in any::<u64>(),
        sequence in any::<u64>(),
        pattern in prop::option::of(prop::collection::vec(any::<u8>(), 1..20)),
    ) {
        let options = options(Verify::Crc32c, |o| {
            o.verify_interval = interval;
            o.verify_pattern = pattern;
        });
        let block = stamped(&options, len, offset, sequence);
        let verifier = Verifier::new(&options, 77).unwrap().unwrap();
        let expected = ExpectedWrite { run: Some(77), sequence: Some(sequence) };
        prop_assert_eq!(verifier.check(&block, "F", offset, expected), Ok(()));
    }
}
