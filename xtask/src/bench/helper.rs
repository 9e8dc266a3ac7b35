//! What benches run of this program itself: the bare loop that `assay redo` is compared with, and a made-up record.

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use std::fs::{self, File};
use std::io::{IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The hidden command.
pub(crate) const WORD: &str = "bench-helper";
/// Bytes before each payload, as oratcptest counts them.
const HEADER: usize = 12;
/// Bytes that payloads are taken from, and how far apart they begin.
const POOL: usize = 16 << 20;
const STEP: usize = 4099;
/// Bytes of an acknowledgement.
const ACK: usize = 40;
/// Columns of the latency heat map, as a run joins them.
const HEAT_COLUMNS: usize = 540;

/// `server MODE LENGTH PORT [FILE]`, `client MODE LENGTH PORT SECONDS`, or `record FILE SECONDS FIGURES`.
///
/// # Errors
/// A word too few, or a socket or file that fails.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["server", mode, length, port, file @ ..] => {
            let listener = TcpListener::bind(("127.0.0.1", port.parse()?))?;
            loop {
                serve(&mut listener.accept()?.0, *mode == "sync", length.parse()?, file.first().copied())?;
            }
        }
        ["client", mode, length, port, seconds] => {
            let mut stream = TcpStream::connect(("127.0.0.1", port.parse::<u16>()?))?;
            send(&mut stream, *mode == "sync", length.parse()?, Duration::from_secs(seconds.parse()?))
        }
        ["record", file, seconds, figures] => {
            let mut record = serde_json::from_str(&fs::read_to_string(file)?)?;
            lengthen(&mut record, seconds.parse()?, figures.parse()?);
            println!("{record}");
            Ok(())
        }
        _ => bail!("{WORD} server, client or record"),
    }
}

/// CPU time of this thread, which is the whole process, s.
fn cpu_s() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or(f64::NAN) / 1e9
}

/// Takes messages until there are no more, makes them durable in a file if there is one, and tells the CPU time it took.
fn serve(stream: &mut TcpStream, is_sync: bool, length: usize, file: Option<&str>) -> Result<()> {
    stream.set_nodelay(true)?;
    let file = file.map(|path| File::options().write(true).open(path)).transpose()?;
    let room = file.as_ref().map_or(Ok(0), |file| file.metadata().map(|file| file.len()))?;
    let mut buffer = vec![0; HEADER + length];
    let (begun, mut at) = (cpu_s(), 0);
    while stream.read_exact(&mut buffer).is_ok() {
        if let Some(file) = &file {
            file.write_all_at(&buffer[HEADER..], at)?;
            file.sync_data()?;
            at = (at + length as u64) % (room - length as u64);
        }
        if is_sync {
            stream.write_all(&[0; ACK])?;
        }
    }
    // Whoever only looked for a listener is gone by now.
    let _ = stream.write_all(&(cpu_s() - begun).to_le_bytes());
    Ok(())
}

fn send(stream: &mut TcpStream, is_sync: bool, length: usize, time: Duration) -> Result<()> {
    stream.set_nodelay(true)?;
    // The same messages as ours: each from another place of a pool, so that no cache holds them all.
    let pool: Vec<u8> = (0..POOL.max(2 * length) as u32).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    let header = [7; HEADER];
    let mut ack = [0; ACK];
    let (begun, cpu) = (Instant::now(), cpu_s());
    let mut messages = 0_usize;
    while begun.elapsed() < time {
        let from = (messages * STEP) % (pool.len() - length + 1);
        let sent = stream.write_vectored(&[IoSlice::new(&header), IoSlice::new(&pool[from..from + length])])?;
        let of_header = sent.min(HEADER);
        stream.write_all(&header[of_header..])?;
        stream.write_all(&pool[from + sent - of_header..from + length])?;
        if is_sync {
            stream.read_exact(&mut ack)?;
        }
        messages += 1;
    }
    stream.shutdown(Shutdown::Write)?;
    // It comes when all is consumed.
    let mut server_cpu_s = [0; 8];
    stream.read_exact(&mut server_cpu_s)?;
    println!("messages_per_s={}", messages as f64 / begun.elapsed().as_secs_f64());
    println!("message_cpu_us={}", 1e6 * (cpu_s() - cpu + f64::from_le_bytes(server_cpu_s)) / messages as f64);
    Ok(())
}

/// Gives a record a series of so many seconds with so many figures: those that it has, over and over, each time a little
/// different, and the same each time this is called.
fn lengthen(record: &mut Value, seconds: usize, figures: usize) {
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        0.8 + 0.4 * (state >> 40) as f64 / f64::from(1 << 24)
    };
    let series = &mut record["series"];
    let mut varied = |column: &Value| -> Value {
        let column = column.as_array().map_or(&[][..], Vec::as_slice);
        let value =
            |value: &Value| value.as_f64().map_or(value.clone(), |old| json!((1e3 * old * noise()).round() / 1e3));
        column.iter().cycle().take(seconds).map(value).collect()
    };
    let columns = series["metrics"].as_object().cloned().unwrap_or_default();
    let longer: Map<String, Value> =
        columns.iter().take(figures).map(|(name, column)| (name.clone(), varied(column))).collect();
    series["metrics"] = longer.into();
    series["t_s"] = (1..=seconds).collect();
    series["in_window"] = vec![true; seconds].into();
    if let Some(maps) = series["heat"].as_array_mut() {
        maps.truncate(1);
        for map in maps {
            let columns = HEAT_COLUMNS.min(seconds);
            let buckets = map["buckets"].as_array().cloned().unwrap_or_default();
            map["buckets"] = buckets.into_iter().cycle().take(columns).collect();
            map["t_s"] = (1..=columns).map(|column| column * seconds / columns).collect();
        }
    }
    record["interval"]["end_s"] = seconds.into();
    record["interval"]["elapsed_s"] = seconds.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lengthened_record_has_every_figure_of_every_second() {
        let metrics = json!({"a_count": [1.0, {"na": "too few"}], "b_us": [2.0, 4.0], "c_us": [0.0, 0.0]});
        let heat = json!([{"t_s": [1, 2], "buckets": [[[4, 1]], [[5, 2]]]}]);
        let mut record = json!({"schema": "assay/2", "series": {"t_s": [1.0, 2.0], "metrics": metrics, "heat": heat}});
        lengthen(&mut record, 200, 2);
        let metrics = record["series"]["metrics"].as_object().unwrap();
        assert_eq!(metrics.len(), 2);
        assert!(metrics.values().all(|column| column.as_array().unwrap().len() == 200));
        assert_eq!(metrics["a_count"][199], json!({"na": "too few"}));
        assert_ne!(metrics["b_us"][0], metrics["b_us"][2]);
        assert_eq!(record["series"]["heat"][0]["buckets"].as_array().unwrap().len(), 200);
        assert_eq!(record["schema"], "assay/2");
    }

    #[test]
    fn the_bare_loop_sends_what_it_is_asked_for_and_hears_what_the_other_end_took() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(&mut listener.accept().unwrap().0, true, 512, None));
        let mut stream = TcpStream::connect(address).unwrap();
        send(&mut stream, true, 512, Duration::from_millis(50)).unwrap();
        server.join().unwrap().unwrap();
        assert!(run(&["client"]).is_err());
    }
}
