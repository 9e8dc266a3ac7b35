//! Any answers of a MariaDB server to the statements of a run: never a panic, and errors of one line that do nothing to a
//! terminal.
//!
//! The input is a script: lengths and numbers of packets are right as a rule, so that what lies behind them is reached.
#![no_main]

use assay_sql::mariadb::read_answer;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// An OK, an error, a row, the end, a file asked for, columns; anything.
fn packet(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut packet = match u.int_in_range(0..=8_u8)? {
        0 => vec![0, *u.choose(&[5, 0xfb, 0xfc, 0xfd, 0xfe, 0xff])?],
        1 => b"\xff\xbd\x04#40001".to_vec(),
        2 => vec![0, 0, 7, 1, 0, 0, 0, 0, 0, 0],
        3 | 4 => vec![0xfe, 0, 0, 2, 0],
        5 => vec![0xfb],
        6 => vec![*u.choose(&[1, 2])?],
        7 => vec![1, 0],
        _ => Vec::new(),
    };
    if u.ratio(1, 2)? {
        let more = u.int_in_range(0..=40)?;
        packet.extend(u.bytes(more.min(u.len()))?);
    }
    Ok(packet)
}

fn script(u: &mut Unstructured<'_>) -> Result<(Vec<u8>, usize)> {
    let piece = u.int_in_range(1..=5000)?;
    let (mut script, mut number) = (Vec::new(), 1_u8);
    while !u.is_empty() && script.len() < 64 << 10 {
        let packet = packet(u)?;
        let mut header = (packet.len() as u32 | u32::from(number) << 24).to_le_bytes();
        if u.ratio(1, 60)? {
            header = u.arbitrary()?;
        }
        script.extend(header);
        script.extend(packet);
        number = number.wrapping_add(1);
    }
    Ok((script, piece))
}

fuzz_target!(|bytes: &[u8]| {
    let Ok((script, piece)) = script(&mut Unstructured::new(bytes)) else {
        return;
    };
    if let Err(why) = read_answer(&script, piece) {
        assert!(!why.contains(char::is_control), "{why:?}");
    }
});
