//! Which of several texts make one record: fragments of one run, and notes beside it.

use super::articles;
use super::error::ImportError;
use super::text::Text;
use super::{Parser, Source, Tool, parser_for, record_of};
use assay_measure::record::Record;

/// Runs of one file at most; the rest of a longer one is left alone.
const MOST_RUNS: usize = 1000;

/// The result of some of the texts.
#[derive(Debug)]
pub struct Imported {
    /// Places of the texts in the given list, in order; a text with several runs is in several.
    pub sources: Vec<usize>,
    /// The record, or why there is none.
    pub result: Result<Record, ImportError>,
}

/// A text, or one run of it.
#[derive(Clone)]
struct Piece {
    source: usize,
    parser: &'static Parser,
    text: Text,
    size_bytes: u64,
    /// It is a fragment, which may belong to others of its tool.
    is_part: bool,
}

/// Reads texts into as many records as there are runs: fragments of one run make one record, and so does a run with
/// notes beside it (a test card, statistics of the host, the banner of the SLOB kit beside its AWR). A refused text
/// does not affect the others. Records are made on demand: many at once would take more memory than their texts.
pub fn import_all(sources: Vec<Source>) -> impl Iterator<Item = Imported> {
    let (mut pieces, mut refused) = (Vec::new(), Vec::new());
    for (source, given) in sources.into_iter().enumerate() {
        let size_bytes = given.text.len() as u64;
        let text = Text::read(0, &given.path, given.text);
        let outputs = articles::outputs(&text);
        let outputs =
            if outputs.is_empty() { parser_for(&text).map(|parser| vec![(parser, text)]) } else { Ok(outputs) };
        match outputs {
            Ok(outputs) => {
                for (parser, text) in outputs {
                    pieces.extend(pieces_of(source, parser, &text, size_bytes));
                }
            }
            Err(error) => refused.push((source, error)),
        }
    }
    // In the order of the command line.
    let groups = groups(pieces).into_iter().map(|group| {
        let first = group.iter().map(|piece| piece.source).min();
        (first.unwrap_or(0), Ok(group))
    });
    let mut all: Vec<_> = groups.chain(refused.into_iter().map(|(source, error)| (source, Err(error)))).collect();
    all.sort_by_key(|(source, _)| *source);
    all.into_iter().flat_map(|(source, group)| match group {
        Ok(group) => read(group),
        Err(error) => vec![Imported { sources: vec![source], result: Err(error) }],
    })
}

/// The runs of a tool's text.
fn pieces_of(source: usize, parser: &'static Parser, text: &Text, size_bytes: u64) -> Vec<Piece> {
    let runs = parser.split(text, MOST_RUNS);
    // Runs of one file are no fragments of each other.
    let is_several = runs.len() > 1;
    let piece = |text: Text| {
        let is_part = (parser.is_part)(&text) && !is_several;
        Piece { source, parser, text, size_bytes, is_part }
    };
    runs.into_iter().map(piece).collect()
}

/// Pieces by the record they go into. What stands beside a run goes with it where there is but one.
fn groups(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let is_beside = |piece: &Piece| piece.parser.is_beside;
    let (beside, runs): (Vec<Piece>, Vec<Piece>) = pieces.into_iter().partition(is_beside);
    let mut groups: Vec<Vec<Piece>> = Vec::new();
    // The first group of each tool, and whether a whole report is in it.
    let mut firsts: Vec<(Tool, usize, bool)> = Vec::new();
    for piece in runs {
        let known = firsts.iter_mut().find(|(tool, ..)| *tool == piece.parser.tool);
        // A fragment joins what there is of its tool: the whole report, or other fragments.
        match known {
            Some((_, at, has_whole)) if piece.is_part || !*has_whole => {
                *has_whole |= !piece.is_part;
                groups[*at].push(piece);
                continue;
            }
            Some(_) => {}
            None => firsts.push((piece.parser.tool, groups.len(), !piece.is_part)),
        }
        groups.push(vec![piece]);
    }
    let of_database = |group: &Vec<Piece>| matches!(group[0].parser.tool, Tool::Awr | Tool::Statspack);
    let is_banner = |group: &Vec<Piece>| group[0].parser.tool == Tool::Slob;
    if groups.len() == 2
        && groups.iter().any(of_database)
        && let Some(at) = groups.iter().position(is_banner)
    {
        let banner = groups.remove(at);
        groups[0].extend(banner);
    }
    match groups.as_mut_slice() {
        [only] => only.extend(beside),
        [] if !beside.is_empty() => groups.push(beside),
        _ => groups.extend(beside.into_iter().map(|piece| vec![piece])),
    }
    groups
}

/// The record of a group; where its texts contradict each other, one of each.
fn read(group: Vec<Piece>) -> Vec<Imported> {
    let together = one(&group);
    match together {
        Err(ImportError::Contradiction { .. }) if group.len() > 1 => {
            let alone = group.into_iter().map(|piece| Imported { sources: vec![piece.source], result: one(&[piece]) });
            alone.collect()
        }
        result => {
            let mut sources: Vec<usize> = group.iter().map(|piece| piece.source).collect();
            sources.sort_unstable();
            sources.dedup();
            vec![Imported { sources, result }]
        }
    }
}

fn one(group: &[Piece]) -> Result<Record, ImportError> {
    let texts = group.iter().enumerate();
    let texts: Vec<Text> = texts.map(|(file, piece)| piece.text.clone().of_file(file as u64)).collect();
    let sizes: Vec<u64> = group.iter().map(|piece| piece.size_bytes).collect();
    let parsers: Vec<&'static Parser> = group.iter().map(|piece| piece.parser).collect();
    record_of(&parsers, &texts, &sizes)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{info, number, sample};
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// The records of some files, each with the files it is of.
    fn of(files: &[(&str, &str)]) -> Vec<(Vec<usize>, Result<Record, ImportError>)> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| source(path, text)).collect();
        import_all(sources).map(|one| (one.sources, one.result)).collect()
    }

    #[test]
    fn each_run_of_a_file_is_a_record_and_no_sum() {
        let other = sample("fio-3.33-mixed.txt");
        let whole = sample("fio-2.1.txt");
        let both = format!("{other}{whole}");
        let all = of(&[("both.txt", &both)]);
        assert_eq!(all.len(), 2);
        let lines = other.lines().count() as u64;
        let places = [(&other, 0), (&whole, lines)];
        for ((sources, record), (alone, skipped)) in all.into_iter().zip(places) {
            assert_eq!(sources, [0]);
            let record = record.expect("a run");
            let alone = of(&[("alone.txt", alone)]).remove(0).1.expect("a run");
            assert_eq!(record.run.sessions, alone.run.sessions);
            assert_eq!(record.metrics, alone.metrics);
            let first = |record: &Record| info(record).values[0].line;
            assert_eq!(first(&record), first(&alone) + skipped);
        }
    }

    #[test]
    fn reports_of_a_run_under_way_are_one_run_and_documents_of_two_are_two() {
        let text = sample("fio-3.33-two-groups.json");
        let later = text.replace("\"io_bytes\" : 412393472", "\"io_bytes\" : 512393472");
        assert_ne!(later, text, "the sample has such a figure");
        assert_eq!(of(&[("status.json", &format!("{text}\n{later}"))]).len(), 1);
        let mixed = sample("fio-3.33-mixed.json");
        let all = of(&[("two.json", &format!("{text}\n{mixed}"))]);
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|(_, record)| record.is_ok()));
    }

    #[test]
    fn each_test_of_a_servers_log_is_a_record() {
        let log = sample("iperf3-3.12-server.txt");
        let all = of(&[("server.txt", &log)]);
        assert_eq!(all.len(), 4);
        let rate = |at: usize| {
            let record = all[at].1.as_ref().expect("a test");
            number(record, "receiver", "tcp_throughput_bits_per_s_mean")
        };
        assert_eq!((rate(0), rate(1), rate(2)), (16.0e9, 19.9e9, 22.4e9));
    }

    #[test]
    fn a_card_and_statistics_of_the_host_go_with_the_run_they_stand_beside() {
        let files = [
            ("lscpu.txt", sample("card-lscpu.txt")),
            ("fio.txt", sample("fio-2.1.txt")),
            ("vmstat.txt", sample("host-vmstat.txt")),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let mut all = of(&files);
        assert_eq!(all.len(), 1);
        let (sources, record) = all.remove(0);
        let record = record.expect("one record");
        assert_eq!(sources, [0, 1, 2]);
        assert_eq!(info(&record).tool, "fio");
        assert_eq!(info(&record).format, "fio text");
        assert!(record.host.facts.iter().any(|fact| fact.value == "32"));
        assert_eq!(record.series.metrics["host_idle_pct"].len(), 3);
        // Beside two runs it is of neither.
        let two = [files[0], files[1], ("ping.txt", &sample("ping-bsd.txt"))];
        assert_eq!(of(&two).len(), 3);
    }

    #[test]
    fn one_refused_file_refuses_no_other() {
        let ping = sample("ping-bsd.txt");
        let all = of(&[("letter.txt", "Dear all,\n"), ("ping.txt", &ping), ("empty", "")]);
        let refused: Vec<bool> = all.iter().map(|(_, record)| record.is_err()).collect();
        assert_eq!(refused, [true, false, true]);
    }
}
