//! Anything a MariaDB or MySQL server says, at a login, to the statements of a run and to others: never a panic, and errors of one line
//! that do nothing to a terminal.
//!
//! The input is a script: lengths and numbers of packets are right as a rule, so that what lies behind them is reached.
#![no_main]

use assay_sql::mariadb::{read_answer, read_login, read_rows};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

const GREETING: &[u8] = b"\x0a9.7.4\0\x07\0\0\0ABCDEFGH\0\xff\xf7\x21\x02\0\xff\xff\x15\0\0\0\0\0\0\0\0\0\0IJKLMNOPQRST\0caching_sha2_password\0";
const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x21\0\xff\0\0\0";

/// An OK, an error, a row, the end, a file asked for, columns, a login's turns; anything.
fn packet(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut packet = match u.int_in_range(0..=12_u8)? {
        0 => vec![0, *u.choose(&[5, 0xfb, 0xfc, 0xfd, 0xfe, 0xff])?],
        1 => b"\xff\xbd\x04#40001".to_vec(),
        2 => vec![0, 0, 7, 1, 0, 0, 0, 0, 0, 0],
        3 | 4 => vec![0xfe, 0, 0, 2, 0],
        5 => vec![0xfb],
        6 => vec![*u.choose(&[1, 2])?],
        7 => vec![1, 0],
        8 => [COLUMN, &[*u.choose(&[1, 2, 3, 4, 5, 6, 8, 10, 13, 0xfd])?, 0x20, 0, 0, 0, 0]].concat(),
        9 => GREETING.to_vec(),
        10 => b"\xfecaching_sha2_password\0ABCDEFGHIJKLMNOPQRST\0".to_vec(),
        11 => vec![1, *u.choose(&[3, 4])?],
        _ => Vec::new(),
    };
    if u.ratio(1, 2)? {
        let more = u.int_in_range(0..=40)?;
        packet.extend(u.bytes(more.min(u.len()))?);
    }
    Ok(packet)
}

/// What is read, the bytes, and the longest piece of them.
fn script(u: &mut Unstructured<'_>) -> Result<(u8, Vec<u8>, usize)> {
    let kind = u.int_in_range(0..=2)?;
    let piece = u.int_in_range(1..=5000)?;
    // A login's packets alternate with ours, which nobody reads here.
    let (mut script, mut number, step) = (Vec::new(), u8::from(kind != 0), 1 + u8::from(kind == 0));
    while !u.is_empty() && script.len() < 64 << 10 {
        let packet = packet(u)?;
        let mut header = (packet.len() as u32 | u32::from(number) << 24).to_le_bytes();
        if u.ratio(1, 60)? {
            header = u.arbitrary()?;
        }
        script.extend(header);
        script.extend(packet);
        number = number.wrapping_add(step);
    }
    Ok((kind, script, piece))
}

fuzz_target!(|bytes: &[u8]| {
    let Ok((kind, script, piece)) = script(&mut Unstructured::new(bytes)) else {
        return;
    };
    let read = match kind {
        0 => read_login(&script, piece),
        1 => read_answer(&script, piece).map(drop),
        _ => read_rows(&script, piece).map(drop),
    };
    if let Err(why) = read {
        assert!(!why.contains(char::is_control), "{why:?}");
    }
});
