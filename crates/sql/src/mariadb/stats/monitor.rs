//! `SHOW ENGINE INNODB STATUS`: requests in flight and identifiers of transactions, which no status variable counts.

use super::super::conn::{Connection, MyError};

/// What assay uses of its text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Monitor {
    pub(super) gauges: Vec<(&'static str, u64)>,
    /// The next identifier of a transaction that writes.
    pub(super) next_id: Option<u64>,
}

/// Reads it; empty without the privilege PROCESS.
pub(super) fn read(connection: &mut Connection) -> Result<Monitor, MyError> {
    match connection.rows("show engine innodb status") {
        Ok(rows) => {
            let text = rows.into_iter().next().and_then(|row| row.into_iter().nth(2));
            Ok(parse(&text.flatten().unwrap_or_default()))
        }
        Err(error) if error.is_fatal() => Err(error),
        Err(_) => Ok(Monitor::default()),
    }
}

fn parse(text: &str) -> Monitor {
    let line = |begins: &str| text.lines().find_map(|line| line.trim().strip_prefix(begins));
    let first = |rest: &str| -> Option<u64> {
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let mut gauges = Vec::new();
    if let Some(reads) = line("Pending reads").and_then(first) {
        gauges.push(("pending_reads_count", reads));
    }
    // `LRU 0, flush list 3`; later versions leave out the flush list.
    let writes: Option<u64> = line("Pending writes:").map(|rest| {
        let words = rest.split([',', ' ']);
        words.filter_map(|word| word.parse::<u64>().ok()).sum()
    });
    gauges.extend(writes.map(|writes| ("pending_writes_count", writes)));
    let views = text.lines().find(|line| line.ends_with("read views open inside InnoDB"));
    gauges.extend(views.and_then(first).map(|views| ("read_views_count", views)));
    Monitor { gauges, next_id: line("Trx id counter").and_then(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_requests_and_read_views_are_found_and_nothing_else_is_made_up() {
        let text = "TRANSACTIONS\nTrx id counter 4711\nPurge done for trx's n:o < 4710 undo n:o < 0\nBUFFER POOL AND MEMORY\nPending reads 7\nPending writes: LRU 2, flush list 3\n\
                    Pages made young 0, not young 0\nROW OPERATIONS\n4 read views open inside InnoDB\n";
        let gauges = vec![("pending_reads_count", 7), ("pending_writes_count", 5), ("read_views_count", 4)];
        assert_eq!(parse(text), Monitor { gauges, next_id: Some(4711) });
        assert_eq!(parse("Pending reads x\nread views open inside InnoDB"), Monitor::default());
        assert_eq!(parse(""), Monitor::default());
    }
}
