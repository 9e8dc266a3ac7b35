//! The result of a run against a server in pgio's format: one line with RIOPS and CACHE_HITS/s, then the server's
//! counters before and after.
//!
//! The figures cover exactly the measured window: the counters are read at its two ends, while every session works, and
//! the time is that between them. An unknown figure is empty, never 0.

use assay_measure::record::{Figure, Record, ServerInfo};
use assay_measure::units::fixed;

/// The lines of a record; `None` where the target is no server.
#[must_use]
pub(crate) fn render(record: &Record) -> Option<String> {
    let server = record.instance.server.as_ref()?;
    Some(lines(record, server).join("\n") + "\n")
}

pub(crate) fn lines(record: &Record, server: &ServerInfo) -> Vec<String> {
    let mut lines = vec![line(record, server)];
    lines.push(format!(
        "{:<8} {:<12}  {:>18}  {:>18}  {:>18}  {:>18}  {:>18}",
        "", "datname", "blks_hit", "blks_read", "tup_returned", "tup_fetched", "tup_updated"
    ));
    for row in &server.rows {
        let name = &server.database;
        let cells = [
            &row.hits_blocks,
            &row.reads_blocks,
            &row.tuples_returned_count,
            &row.tuples_fetched_count,
            &row.tuples_updated_count,
        ]
        .map(|figure| format!("{:>18}", plain(figure)));
        lines.push(format!("{:<8} {name:<12}  {}", row.when, cells.join("  ")));
    }
    lines
}

fn line(record: &Record, server: &ServerInfo) -> String {
    format!(
        "DBNAME:  {}. {} schemas, {} threads(each). Run time: {} seconds. RIOPS >{}< CACHE_HITS/s >{}<",
        server.database,
        plain(&server.schemas_count),
        plain(&server.threads_per_schema_count),
        plain(&record.interval.elapsed_s),
        plain(&server.reads_blocks_per_s),
        plain(&server.cache_hits_blocks_per_s),
    )
}

/// A whole number without separators, for programs; empty where there is none. What is not
/// zero is not printed as zero.
fn plain(figure: &Figure) -> String {
    match figure.value() {
        Some(value) => fixed(value, 0).replace(',', ""),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::counter_catalog;
    use assay_measure::snapshot::Reading;
    use assay_testkit::fixtures;

    #[test]
    fn slob_48_the_result_line_is_of_the_window_between_the_two_rows() {
        let record = crate::record::build(&fixtures::postgres(15));
        let text = render(&record).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "DBNAME:  assay. 4 schemas, 1 threads(each). Run time: 20 seconds. RIOPS >6000< CACHE_HITS/s >1400<"
        );
        let cells = |line: &str| -> Vec<u64> {
            let words = line.split_whitespace();
            words.filter_map(|word| word.parse().ok()).collect()
        };
        let (before, after) = (cells(lines[2]), cells(lines[3]));
        assert_eq!((before.len(), after.len()), (5, 5));
        let per_s: Vec<u64> = after.iter().zip(&before).map(|(after, before)| (after - before) / 20).collect();
        assert_eq!(per_s, [1400, 6000, 6400, 6400, 640]);
    }

    #[test]
    fn what_the_server_does_not_tell_is_empty_and_an_engine_of_its_own_has_no_such_line() {
        let mut run = fixtures::postgres(18);
        let denied = Reading::Na("denied".to_owned());
        for mark in [&mut run.begin, &mut run.end] {
            let name = counter_catalog::CACHE_HITS.name.to_owned();
            mark.stats.counters.insert(name, denied.clone());
        }
        let text = render(&crate::record::build(&run)).unwrap();
        assert!(text.contains("CACHE_HITS/s ><"), "{text}");
        assert_eq!(render(&crate::record::build(&fixtures::run())), None);
    }
}
