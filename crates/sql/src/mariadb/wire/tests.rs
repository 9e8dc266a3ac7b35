//! Answers of a server, right ones and others.

use super::*;

fn script(packets: &[&[u8]]) -> Vec<u8> {
    packets.iter().zip(1..).flat_map(|(packet, number)| super::packets(packet, number).0).collect()
}

/// What comes of an answer that arrives in pieces of so many bytes.
fn of(packets: &[&[u8]], piece: usize) -> Result<u64, String> {
    read_answer(&script(packets), piece)
}

const END: &[u8] = &[EOF, 0, 0, 2, 0];
const ROW: &[u8] = &[0, 0, 7, 1, 0, 0, 0, 0, 0, 0];

#[test]
fn an_answer_is_read_however_it_arrives() {
    let column = [b'x'; 40];
    for piece in [1, 3, 5, 4096] {
        assert_eq!(of(&[&[1, 1], &column, END, ROW, END], piece), Ok(263));
        assert_eq!(of(&[&[1], &column, END, ROW, END], piece), Ok(263));
        assert_eq!(of(&[&[1, 0], END, ROW, END], piece), Ok(263));
        assert_eq!(of(&[&[1, 0], END, END], piece), Ok(0));
        assert_eq!(of(&[&[OK, 5, 0, 2, 0, 0, 0]], piece), Ok(5));
        assert_eq!(of(&[&[OK, 0xfc, 0, 2, 0, 2, 0, 0, 0]], piece), Ok(512));
    }
}

#[test]
fn what_the_server_says_is_wrong_is_told() {
    let text = b"\xff\xbd\x04#40001Deadlock found";
    assert_eq!(of(&[text], 7), Err("Deadlock found (error 1213)".to_owned()));
    assert_eq!(of(&[&[1, 0], END, text], 7), Err("Deadlock found (error 1213)".to_owned()));
}

#[test]
fn what_the_server_says_does_nothing_to_a_terminal() {
    assert_eq!(of(&[b"\xff\xbd\x04#40001a\x1b[2J\nb"], 7), Err("a [2J b (error 1213)".to_owned()));
}

#[test]
fn an_answer_that_is_none_is_refused() {
    for packets in [
        &[&[LOCAL_FILE, 1][..]][..],
        &[END],
        &[&[]],
        &[&[1, 0], ROW],
        &[&[1, 0], END, &[0, 0, 1]],
        &[&[1, 0], END, b"text"],
    ] {
        let said = of(packets, 4096).expect_err("no answer");
        assert!(said.contains("does not follow the protocol"), "{said}");
    }
    let cut = of(&[&[1, 0], END], 4096);
    assert_eq!(cut, Err("the server closed the connection without a message; see its log".to_owned()));
}

const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x21\0\xff\0\0\0";

/// A column that holds this.
fn column(code: u8, flags: u8) -> Vec<u8> {
    [COLUMN, &[code, flags, 0, 0, 0, 0]].concat()
}

/// The rows of an answer by what takes them, and what it says at its end.
fn rows<T>(packets: &[&[u8]], take: impl Fn(&[u8], &[Kind]) -> Option<T>) -> Result<(Vec<T>, Done), String> {
    let (mut all, bytes) = (Vec::new(), script(packets));
    let (mut packets, mut from) = (Packets::new(Duration::MAX), Script { bytes: &bytes, piece: 3 });
    packets.number = 1;
    let mut taken = |packet: &[u8], kinds: &[Kind]| {
        all.push(take(packet, kinds)?);
        Some(())
    };
    let first = packets.next(&mut from);
    let done = first.and_then(|first| packets.rows(first, &mut from, &mut Vec::new(), &mut taken));
    done.map(|done| (all, done)).map_err(|error| error.to_string())
}

const MORE_END: &[u8] = &[EOF, 0, 0, 10, 0];
const DONE: &[u8] = &[OK, 7, 0xfc, 0, 1, 2, 0, 0, 0];

#[test]
fn rows_are_those_of_the_first_set_and_the_end_is_that_of_the_last() {
    let text = column(0xfd, 0);
    let read = rows(
        &[&[2], &text, &text, END, b"\x01a\xfb", b"\0\x02bc", MORE_END, &[1, 1], &text, END, b"\x01x", MORE_END, DONE],
        |packet, kinds| text_row(packet, kinds.len()),
    );
    let some = |text: &str| Some(text.to_owned());
    let (rows, done) = read.unwrap();
    assert_eq!(rows, [vec![some("a"), None], vec![some(""), some("bc")]]);
    assert_eq!((done.changed, done.inserted), (7, 256));
}

#[test]
fn values_in_binary_are_read_by_what_their_columns_hold() {
    let kinds = [
        column(TYPE_TINY, 0),
        column(TYPE_TINY, UNSIGNED_COLUMN),
        column(TYPE_LONG, 0),
        column(TYPE_LONGLONG, UNSIGNED_COLUMN),
        column(TYPE_DOUBLE, 0),
        column(TYPE_DATETIME, 0),
        column(0xf6, 0),
        column(TYPE_SHORT, 0),
    ];
    let mut answer: Vec<&[u8]> = vec![&[8]];
    answer.extend(kinds.iter().map(Vec::as_slice));
    let row =
        [&[0, 0, 2, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff][..], &[0xff; 8], &[0; 8], &[4, 1, 2, 3, 4], b"\x0212"].concat();
    answer.extend([END, &row, END]);
    let owned = |packet: &[u8], kinds: &[Kind]| binary_row(packet, kinds).map(|row| format!("{row:?}"));
    let (rows, _) = rows(&answer, owned).unwrap();
    let wanted = "[Int(-1), Int(255), Int(-2), Other, Other, Other, Bytes([49, 50]), Other]";
    assert_eq!(rows, [wanted]);
}

#[test]
fn what_a_server_only_announces_is_not_believed() {
    let row = |packet: &[u8], kinds: &[Kind]| text_row(packet, kinds.len());
    let refused = |packets: &[&[u8]], wanted: &str| {
        let said = rows(packets, row).expect_err(wanted);
        assert!(said.contains(wanted), "{said}");
    };
    refused(&[&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255]], "an answer of 18446744073709551615 columns");
    refused(&[&[0xfc, 1, 16]], "an answer of 4097 columns");
    refused(&[b"\xfb/etc/passwd"], "a file that assay did not offer");
    refused(&[&[3, 0], END], "columns without a description");
    let text = column(0xfd, 0);
    refused(&[&[1], &text, END, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7fabc"], "a row that is none");
    refused(&[&[1], &text, END, b"\x01a\x01b"], "a row that is none");
    refused(&[&[1], b"\x03de"], "a column that is none");
}

#[test]
fn what_is_longer_than_a_packet_goes_on_in_the_next() {
    for (bytes, headers) in [
        (5, vec![[5, 0, 0, 255]]),
        (PACKET_BYTES_MAX, vec![[255, 255, 255, 255], [0, 0, 0, 0]]),
        (PACKET_BYTES_MAX + 3, vec![[255, 255, 255, 255], [3, 0, 0, 0]]),
    ] {
        let (sent, next) = packets(&vec![b'x'; bytes], 255);
        assert_eq!(sent.len(), bytes + headers.len() * HEADER_BYTES);
        assert_eq!(next, headers.len() as u8 - 1);
        let mut at = 0;
        for header in headers {
            assert_eq!(sent[at..at + HEADER_BYTES], header, "{bytes}");
            at += HEADER_BYTES + u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        }
    }
}

proptest::proptest! {
    /// Whatever a server sends, in whatever pieces: an answer or an error, never a panic, and no count out of bounds.
    #[test]
    fn any_bytes_are_an_answer_or_an_error(
        packets in proptest::collection::vec(proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..40), 0..6),
        kinds in proptest::collection::vec(proptest::sample::select(vec![OK, ERR, EOF, LOCAL_FILE, 1, 3]), 6),
        raw in proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..80),
        piece in 1_usize..50,
    ) {
        let mut packets = packets;
        // Kinds that there are, so that what lies behind them is reached.
        for (packet, kind) in packets.iter_mut().zip(kinds) {
            packet.insert(0, kind);
        }
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        proptest::prop_assert!(of(&packets, piece).unwrap_or(0) <= COUNT_MAX * 6);
        let _ = read_answer(&raw, piece);
        let (mut described, column) = (packets.clone(), column(raw.first().copied().unwrap_or(0), 0));
        described.splice(0..0, [&[1][..], &column, END]);
        for bytes in [raw, script(&packets), script(&described)] {
            let _ = read_rows(&bytes, piece);
            let (mut packets, mut from) = (Packets::new(Duration::MAX), Script { bytes: &bytes, piece });
            packets.number = 1;
            let _ = packets.prepared(&mut from);
        }
    }
}

#[test]
fn what_nobody_asked_for_is_no_answer_to_the_next_question() {
    let goodbye: &[u8] = b"\xff\x1d\x04#08S01Server shutdown in progress";
    for (more, wanted) in [(&[][..], true), (goodbye, true), (&[OK, 0, 0, 2, 0, 0, 0], false)] {
        let mut bytes = script(&[DONE]);
        if !more.is_empty() {
            bytes.extend(super::packets(more, 0).0);
        }
        let (mut packets, mut from) = (Packets::new(Duration::MAX), Script { bytes: &bytes, piece: 100 });
        packets.number = 1;
        packets.counted(&mut from).unwrap();
        assert_eq!(packets.expect(1).is_ok(), wanted, "{more:?}");
    }
}
