//! The peer of `cargo xtask bench sqlite`: a bare loop of `rusqlite` with the statement that SLOB selects by, on the data
//! that `assay prepare` made. `sqlite_peer FILE SCHEMAS ROWS WORK_UNIT CACHE_KIB SECONDS` prints statements per second as JSON.

use rusqlite::{Connection, OpenFlags, Result};
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(1);
    let (schemas, rows, width, cache, seconds) = (number(1), number(2), number(3), number(4), number(5));
    let threads: Vec<_> = (1..=schemas)
        .map(|n| {
            let file = words.first().cloned().unwrap_or_default();
            std::thread::spawn(move || selects(&file, n, (rows, width), cache, Duration::from_secs(seconds)))
        })
        .collect();
    let mut done = 0;
    for thread in threads {
        done += thread.join().unwrap_or(Ok(0))?;
    }
    #[expect(clippy::print_stdout, reason = "what is printed is the figure")]
    {
        println!("{{\"execute_count_per_s\": {}}}", done / seconds.max(1));
    }
    Ok(())
}

/// Selects of one session, after a second that does not count.
fn selects(file: &str, n: u64, (rows, width): (u64, u64), cache: u64, time: Duration) -> Result<u64> {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.execute_batch(&format!("pragma cache_size = -{cache}; pragma synchronous = full"))?;
    let sql = format!("select count(c2) from cf1_{n} indexed by i_cf1_{n} where custid between ?1 and ?2");
    let mut statement = db.prepare(&sql)?;
    let (mut word, mut done, begun) = (n, 0, Instant::now());
    let warm = Duration::from_secs(1);
    while begun.elapsed() < warm + time {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let first = ((word >> 32) % (rows - width + 1) + 1) as i64;
        statement.query_row([first, first + width as i64 - 1], |row| row.get::<_, i64>(0))?;
        done += u64::from(begun.elapsed() >= warm);
    }
    Ok(done)
}
