//! Any messages of a PostgreSQL server, at login and after it: never a panic, and errors of one line that do nothing to
//! a terminal.
//!
//! The input is a script, not bytes of the wire: kinds, lengths and counts are right as a rule, so that what lies behind
//! them is reached, and wrong where the script says so.
#![no_main]

use assay_sql::postgres::conninfo::{ConnectOptions, FileText, Surroundings, options};
use assay_sql::postgres::wire::{Bind, Call, Connection, PgError};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// What fits a socket's buffer, so that nobody waits for room.
const SCRIPT_BYTES_MAX: usize = 64 << 10;

struct Nowhere;

impl Surroundings for Nowhere {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn read(&self, _path: &Path) -> std::result::Result<Option<FileText>, String> {
        Ok(None)
    }

    fn exists(&self, _path: &Path) -> bool {
        false
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }

    fn user(&self) -> Option<String> {
        None
    }
}

/// Who we are, by what we ask of the server.
static WISHES: LazyLock<Vec<ConnectOptions>> = LazyLock::new(|| {
    let wishes = [
        "",
        "&channel_binding=require",
        "&require_auth=none",
        "&require_auth=scram-sha-256,md5",
        "&max_protocol_version=3.2",
    ];
    let read = |wish: &&str| options(&format!("//u:p@/d?host=/h{wish}"), &Nowhere);
    wishes.iter().map(|wish| read(wish).expect("a URL")).collect()
});

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend((4 + body.len() as u32).to_be_bytes());
    message.extend(body);
    message
}

fn some(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let length = u.int_in_range(0..=40)?;
    Ok(u.bytes(length.min(u.len()))?.to_vec())
}

/// A text without zero, and its end.
fn text(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut text = some(u)?;
    text.retain(|byte| *byte != 0);
    text.push(0);
    Ok(text)
}

fn authentication(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let code = *u.choose(&[0_u32, 0, 3, 5, 7, 8, 10, 11, 12, 99])?;
    let mut body = code.to_be_bytes().to_vec();
    match code {
        5 => body.extend(u.arbitrary::<[u8; 4]>()?),
        10 => body.extend(b"SCRAM-SHA-256\0SCRAM-SHA-256-PLUS\0\0"),
        _ => body.extend(some(u)?),
    }
    Ok(body)
}

fn fields(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    for kind in [b"S", b"V", b"C", b"M", b"D", b"H", b"R"] {
        if u.ratio(3, 4)? {
            body.extend(kind);
            match (kind, u.ratio(1, 2)?) {
                (b"V", true) => body.extend(*u.choose(&[b"FATAL\0", b"ERROR\0"])?),
                (b"C", true) => body.extend(*u.choose(&[b"57014\0", b"28000\0", b"40P01\0"])?),
                _ => body.extend(text(u)?),
            }
        }
    }
    body.push(0);
    Ok(body)
}

fn description(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let columns = u.int_in_range(0..=4_u16)?;
    let mut body = columns.to_be_bytes().to_vec();
    for _ in 0..columns {
        body.extend(text(u)?);
        body.extend([0; 18]);
    }
    Ok(body)
}

fn row(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let columns = u.int_in_range(0..=4_u16)?;
    let mut body = columns.to_be_bytes().to_vec();
    for _ in 0..columns {
        match u.int_in_range(0..=3_u8)? {
            0 => body.extend((-1_i32).to_be_bytes()),
            1 => {
                body.extend(8_i32.to_be_bytes());
                body.extend(u.arbitrary::<[u8; 8]>()?);
            }
            2 => body.extend(u.arbitrary::<[u8; 4]>()?),
            _ => {
                let value = some(u)?;
                body.extend((value.len() as i32).to_be_bytes());
                body.extend(value);
            }
        }
    }
    Ok(body)
}

/// One message of the script.
fn said(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let kind = *u.choose(b"RSKZZZENATTDDDDCC12nsIGHWv?")?;
    let mut body = match kind {
        b'R' => authentication(u)?,
        b'S' => if u.ratio(1, 2)? { [b"server_version\0".to_vec(), text(u)?].concat() } else { [text(u)?, text(u)?].concat() },
        b'K' => [u.arbitrary::<[u8; 4]>()?.to_vec(), some(u)?].concat(),
        b'Z' => vec![*u.choose(b"IIITEQ")?],
        b'E' | b'N' => fields(u)?,
        b'T' => description(u)?,
        b'D' => row(u)?,
        b'C' => if u.ratio(1, 2)? { format!("UPDATE {}\0", u.arbitrary::<u64>()?).into_bytes() } else { text(u)? },
        b'v' => [u.arbitrary::<[u8; 4]>()?.to_vec(), vec![0; 4]].concat(),
        b'1' | b'2' | b'n' | b's' | b'I' => Vec::new(),
        _ => some(u)?,
    };
    // Now and then one that is cut, or has too much.
    match u.int_in_range(0..=30_u8)? {
        0 => body.truncate(body.len() / 2),
        1 => body.extend(some(u)?),
        _ => {}
    }
    if u.ratio(1, 60)? {
        let mut raw = vec![kind];
        raw.extend(u.arbitrary::<[u8; 4]>()?);
        raw.extend(body);
        return Ok(raw);
    }
    Ok(message(kind, &body))
}

/// The whole script, and whether it begins with SCRAM that echoes our nonce.
fn script(u: &mut Unstructured<'_>) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
    let mut script = Vec::new();
    let mut scram = None;
    match u.int_in_range(0..=7_u8)? {
        0 => {}
        1 => scram = Some(some(u)?),
        _ => {
            script.extend(message(b'R', &[0; 4]));
            script.extend(message(b'S', b"server_version\x0016.1\0"));
            script.extend(message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]));
            script.extend(message(b'Z', b"I"));
        }
    }
    while !u.is_empty() && script.len() < SCRIPT_BYTES_MAX {
        script.extend(said(u)?);
    }
    script.truncate(SCRIPT_BYTES_MAX);
    Ok((script, scram))
}

/// Plays the part of SCRAM that needs our nonce.
fn challenge(mut server: UnixStream, more: &[u8], rest: &[u8]) -> std::io::Result<()> {
    let mut told = [0; 4096];
    let _ = server.read(&mut told)?;
    server.write_all(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"))?;
    let length = server.read(&mut told)?;
    let told = String::from_utf8_lossy(&told[..length]).into_owned();
    let nonce = told.rsplit("r=").next().unwrap_or_default();
    // Whatever of it the script replaces.
    let first = match more.first() {
        Some(0..=99) => format!("r={nonce}x,s=c2FsdA==,i={}", more.len()),
        Some(100..=120) => format!("r={nonce}x,s=c2FsdA==,i=4294967295"),
        _ => format!("r={nonce}{}", String::from_utf8_lossy(more)),
    };
    server.write_all(&message(b'R', &[&[0, 0, 0, 11], first.as_bytes()].concat()))?;
    let _ = server.read(&mut [0; 4096])?;
    server.write_all(rest)?;
    server.shutdown(Shutdown::Write)
}

/// What we ask, until the connection is gone.
fn asks(session: &mut Connection) -> std::result::Result<(), PgError> {
    let mut state = b'I';
    let mut call = None;
    for turn in 0..40 {
        let asked = match turn % 6 {
            0 => session.query("select 1").map(|answer| {
                let columns = answer.columns.len();
                assert!(answer.rows.iter().all(|row| row.len() == columns));
            }),
            1 => session.prepare("select $1", &[20]).map(|statement| {
                call = Some((Call::new(&statement, &[Bind::Int8(1)]), statement));
            }),
            2 => match &call {
                Some((_, statement)) => session
                    .execute(statement, &[Bind::Int8(1)], &mut |values| {
                        let _ = values.iter().flatten().map(|value| value.len()).sum::<usize>();
                    })
                    .map(drop),
                None => Ok(()),
            },
            3 => match &call {
                Some((call, _)) => {
                    session.add(call);
                    session.round_trip(&mut state).map(drop)
                }
                None => Ok(()),
            },
            4 => session.copy_in("copy t from stdin").and_then(|mut copy| {
                copy.send(b"1\n")?;
                copy.finish().map(drop)
            }),
            _ => session.is_read_only().map(drop),
        };
        match asked {
            Err(error) if error.is_fatal() => return Err(error),
            Err(error) => plain(&error.to_string()),
            Ok(()) => {}
        }
        assert!(matches!(state, b'I' | b'T' | b'E'));
    }
    Ok(())
}

fn plain(text: &str) {
    assert!(!text.contains(char::is_control), "{text:?}");
}

fuzz_target!(|bytes: &[u8]| {
    let mut u = Unstructured::new(bytes);
    let wish = u.choose_index(WISHES.len()).unwrap_or(0);
    let Ok((script, scram)) = script(&mut u) else {
        return;
    };
    let (mut server, client) = UnixStream::pair().expect("two sockets");
    let talk = |stream| {
        let ended = Connection::over(stream, &WISHES[wish])
            .and_then(|mut session| asks(&mut session).map(|()| session.close()));
        if let Err(error) = ended {
            plain(&error.to_string());
        }
    };
    match scram {
        None => {
            server.write_all(&script).expect("it fits");
            server.shutdown(Shutdown::Write).expect("ours");
            talk(client);
        }
        Some(more) => std::thread::scope(|scope| {
            let script = &script;
            scope.spawn(move || challenge(server, &more, script));
            talk(client);
        }),
    }
});
