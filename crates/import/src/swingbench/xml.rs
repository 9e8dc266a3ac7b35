//! The results file.

use super::super::draft::Draft;
use super::super::number;
use super::super::rows::{clock_s, file, op_row, put_step, setting, step};
use super::super::text::{At, Text};
use super::super::{Confidence, ImportError};
use super::{client, response, whole};
use assay_measure::plain::slug;
use roxmltree::{Document, Node};

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    Confidence::of(
        96,
        &[
            ("an element <Results", has("<Results")),
            ("an element <Overview> or <TransactionResults>", has("<Overview") || has("<TransactionResults")),
            ("BenchmarkName or swingbench", has("BenchmarkName") || has("swingbench")),
        ],
    )
}

/// The document as lines, and where its elements stand.
struct Source<'a> {
    file: u64,
    document: &'a Document<'a>,
}

impl Source<'_> {
    fn at(&self, node: Node<'_, '_>) -> At {
        // The text of an element may stand on a later line than its tag.
        let inner = node.first_child().unwrap_or(node);
        let blanks = node.text().map_or(0, |text| text.len() - text.trim_start().len());
        let position = self.document.text_pos_at(inner.range().start + blanks);
        At { file: self.file, line: u64::from(position.row) }
    }
}

pub(super) fn read(text: &Text, draft: &mut Draft) -> Result<(), ImportError> {
    let lines: Vec<&str> = text.lines.iter().map(|line| line.text.as_str()).collect();
    // A declaration must stand first; whoever pasted a blank line above it meant no harm.
    let joined = lines.join("\n");
    let blank = joined.len() - joined.trim_start().len();
    let skipped = joined[..blank].matches('\n').count() as u64;
    let document = Document::parse(&joined[blank..]).map_err(|error| ImportError::Damaged {
        path: text.path.clone(),
        line: u64::from(error.pos().row) + skipped,
        what: format!("the XML is incomplete: {error}; import the file as Swingbench wrote it"),
    })?;
    draft.recognised("", "Swingbench results XML");
    let source = Source { file: text.file, document: &document };
    let shift = |at: At| At { line: at.line + skipped, ..at };
    for node in document.root_element().children().filter(Node::is_element) {
        for child in node.children().filter(Node::is_element) {
            let at = shift(source.at(child));
            match node.tag_name().name() {
                "Overview" => overview(draft, at, child),
                "Configuration" => configuration(draft, at, child),
                "DMLResults" => dml(draft, at, child),
                "TransactionResults" => transaction(draft, &source, skipped, child),
                "BenchmarkMetrics" => readings(draft, at, child),
                _ => {}
            }
        }
    }
    Ok(())
}

fn text_of<'a>(node: Node<'a, '_>) -> &'a str {
    node.text().map_or("", str::trim)
}

fn overview(draft: &mut Draft, at: At, node: Node<'_, '_>) {
    let (name, text) = (node.tag_name().name(), text_of(node));
    let (key, printed) = match name {
        "TotalRunTime" => ("elapsed_s", clock_s(text)),
        "TotalCompletedTransactions" => ("transactions_count", number::count(text)),
        "TotalFailedTransactions" => ("transactions_failed_count", number::count(text)),
        "AverageTransactionsPerSecond" => ("transactions_per_s", number::measure(text)),
        "MaximumTransactionRate" => ("transactions_per_min_max", number::count(text)),
        "TimeOfRun" => {
            text.clone_into(&mut draft.record.run.started);
            return;
        }
        _ => {
            setting(draft, name, text.trim_matches('"'));
            return;
        }
    };
    whole(draft, at, name, key, printed);
}

fn configuration(draft: &mut Draft, at: At, node: Node<'_, '_>) {
    let (name, text) = (node.tag_name().name(), text_of(node));
    let key = match name {
        "NumberOfUsers" => "sessions_count",
        "MinimumInterThinkTime" => "think_inter_ms_min",
        "MaximumInterThinkTime" => "think_inter_ms_max",
        "MinimumIntraThinkTime" => "think_intra_ms_min",
        "MaximumIntraThinkTime" => "think_intra_ms_max",
        _ => {
            setting(draft, name, text);
            return;
        }
    };
    whole(draft, at, name, key, number::count(text));
}

fn dml(draft: &mut Draft, at: At, node: Node<'_, '_>) {
    let name = node.tag_name().name();
    if let Some(printed) = number::count(text_of(node)) {
        draft.alone(client(at, &format!("{}_count", snake(name)), name, printed));
    }
}

/// `SelectStatements` as `select_statements`.
fn snake(name: &str) -> String {
    let mut key = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !key.is_empty() {
            key.push('_');
        }
        key.push(c.to_ascii_lowercase());
    }
    slug(&key)
}

/// The names of percentiles are spelled as the format spells them, and as they should be.
const STATISTICS: [(&str, &str); 18] = [
    ("StandardDeviation", "stddev"),
    ("AverageResponse", "avg"),
    ("MinimumResponse", "min"),
    ("MaximumResponse", "max"),
    ("GeometricMean", "geometric_avg"),
    ("StdDeviation", "stddev"),
    ("TenthPrecentile", "p10"),
    ("TenthPercentile", "p10"),
    ("TwentiethPercentile", "p20"),
    ("ThirtiethPercentile", "p30"),
    ("FortiethPrecentile", "p40"),
    ("FortiethPercentile", "p40"),
    ("FiftythPercentile", "p50"),
    ("FiftiethPercentile", "p50"),
    ("SixtiethPercentile", "p60"),
    ("SeventiethPercentile", "p70"),
    ("EightiethPercentile", "p80"),
    ("NinetiethPercentile", "p90"),
];

fn transaction(draft: &mut Draft, source: &Source<'_>, skipped: u64, result: Node<'_, '_>) {
    let kind = result.attribute("id").unwrap_or("transaction");
    let slug = slug(kind);
    for node in result.children().filter(Node::is_element) {
        let (name, text) = (node.tag_name().name(), text_of(node));
        let mut at = source.at(node);
        at.line += skipped;
        if let Some((_, statistic)) = STATISTICS.iter().find(|(label, _)| *label == name) {
            response(draft, at, kind, statistic, number::measure(text));
            continue;
        }
        let Some(printed) = number::count(text) else {
            continue;
        };
        match name {
            "TransactionCount" => {
                file(draft, client(at, &format!("{slug}_count"), name, printed), &slug);
                rate(draft, &slug);
            }
            "FailedTransactionCount" => draft.alone(client(at, &format!("{slug}_failed_count"), name, printed)),
            "RollbackCount" => draft.alone(client(at, &format!("{slug}_rollbacks_count"), name, printed)),
            _ => {}
        }
    }
}

/// Per second follows from the count and the run time.
fn rate(draft: &mut Draft, kind: &str) {
    let Some(elapsed) = draft.record.interval.elapsed_s.value() else {
        return;
    };
    let row = op_row(draft, kind);
    let op = &mut draft.record.driver.ops[row];
    op.per_s = assay_measure::record::Figure::from(op.count).per(elapsed, "no time passed");
}

/// `epoch_ms, tps,epoch_ms, tps,...`
fn readings(draft: &mut Draft, at: At, node: Node<'_, '_>) {
    if node.tag_name().name() != "TPSReadings" {
        return;
    }
    let mut cells = Vec::new();
    let mut line = at.line;
    for cell in text_of(node).split(',') {
        let begin = cell.len() - cell.trim_start().len();
        line += cell[..begin].matches('\n').count() as u64;
        cells.push((cell.trim(), line));
        line += cell[begin..].matches('\n').count() as u64;
    }
    let mut begin_ms = None;
    for pair in cells.chunks_exact(2) {
        let [(time, _), (rate, line)] = pair else {
            continue;
        };
        let (Ok(ms), Some(printed)) = (time.parse::<f64>(), number::measure(rate)) else {
            continue;
        };
        let begin = *begin_ms.get_or_insert(ms);
        let since = (ms - begin) / 1000.0;
        if let Some(step) = step(draft, since) {
            let at = At { line: *line, ..at };
            let reading = client(at, "transactions_per_s", "TPSReadings", printed);
            put_step(draft, reading.scope(&format!("{since} s")), "commits_count_per_s", step);
        }
    }
}
