//! A page with the output of several tools: where each begins.

use super::text::{Line, Text};
use super::{Parser, RECOGNISED, Tool, best, host};
use assay_measure::record::ImportNote;
use std::ops::Range;

/// Lines with which the output of a tool begins, whatever stands before them.
const BEGINS: &[(Tool, &[&str])] = &[
    (Tool::Pgbench, &["pgbench (", "transaction type:", "starting vacuum"]),
    (Tool::Sysbench, &["sysbench 0.", "sysbench 1.", "Running the test with following options"]),
    (Tool::Iperf3, &["Connecting to host", "Server listening on", "Client connecting to", "[ ID] Interval"]),
    (Tool::Ping, &["PING ", "Pinging "]),
    (Tool::StressNg, &["stress-ng: "]),
    (Tool::HammerDb, &["Vuser 1:", "HammerDB CLI"]),
    (Tool::Oratcptest, &["[Requesting a test]"]),
    (Tool::Vdbench, &["Vdbench distribution"]),
    (Tool::Pgio, &["Database connect string:", "DBNAME:"]),
    (Tool::Host, &["procs ---", "avg-cpu:", "Linux 2.", "Linux 3.", "Linux 4.", "Linux 5.", "Linux 6."]),
    (Tool::Awr, &["WORKLOAD REPOSITORY report", "Load Profile  "]),
    (Tool::Statspack, &["STATSPACK report"]),
    (Tool::Assay, &["ASSAY WORKLOAD REPORT"]),
];

/// What the first line of fio's output has in it.
const FIO: [&str; 2] = [": (g=", ": (groupid="];

fn begins(line: &str) -> Option<Tool> {
    let line = line.trim_start();
    if FIO.iter().any(|part| line.contains(part)) {
        return Some(Tool::Fio);
    }
    let (tool, _) = BEGINS.iter().find(|(_, marks)| marks.iter().any(|mark| line.starts_with(mark)))?;
    Some(*tool)
}

/// Whether an output goes on at a line that begins one of this tool: reports of databases have sections of one name.
fn goes_on(last: Tool, tool: Tool, line: &str) -> bool {
    let is_section = tool == Tool::Awr && !line.contains("WORKLOAD REPOSITORY");
    last == tool || (is_section && matches!(last, Tool::Statspack | Tool::Assay))
}

/// One output: whose, and the lines it stands in.
type Output = (Tool, Vec<Range<usize>>);

/// The outputs by their beginnings. Statistics of the host are one output; behind them the tool that printed before goes on.
fn found(text: &Text) -> Vec<Output> {
    let mut all: Vec<Output> = Vec::new();
    // The tool whose lines these are, and the host's statistics among them.
    let (mut own, mut beside): (Option<usize>, Option<usize>) = (None, None);
    let mut is_beside = false;
    for (i, line) in text.lines.iter().enumerate() {
        let tool = begins(&line.text);
        let last = own.map(|at| all[at].0);
        is_beside = match (tool, last) {
            (Some(tool), _) => tool == Tool::Host,
            (None, Some(_)) => is_beside && host::may_print(&line.text),
            (None, None) => is_beside,
        };
        let begin = i - usize::from(tool == Some(Tool::Pgio) && i > 0 && text.lines[i - 1].text.starts_with("Date: "));
        let place = match tool {
            _ if is_beside => &mut beside,
            Some(tool) if last.is_none_or(|last| !goes_on(last, tool, &line.text)) => {
                (own, beside) = (None, None);
                &mut own
            }
            _ if own.is_none() => continue,
            _ => &mut own,
        };
        let at = *place.get_or_insert_with(|| {
            all.push((tool.unwrap_or(Tool::Host), Vec::new()));
            all.len() - 1
        });
        match all[at].1.last_mut().filter(|range| range.end == i) {
            Some(range) => range.end = i + 1,
            None => all[at].1.push(begin..i + 1),
        }
    }
    all
}

/// The outputs in a text of several tools, each with its parser; empty where there is but one.
pub(crate) fn outputs(text: &Text) -> Vec<(&'static Parser, Text)> {
    let found = found(text);
    let is_one = found.iter().all(|(tool, _)| Some(*tool) == found.first().map(|(first, _)| *first));
    if is_one {
        return Vec::new();
    }
    let (mut outputs, mut left_out) = (Vec::new(), Vec::new());
    let first = found.first().and_then(|(_, lines)| lines.first()).map_or(0, |range| range.start);
    if text.part(0..first).lines.iter().any(|line| !line.text.is_empty()) {
        left_out.push(0..first);
    }
    for (tool, lines) in found {
        let part = text.parts(&lines);
        match best(&part).filter(|parser| parser.tool == tool && parser.confidence(&part).score >= RECOGNISED) {
            Some(parser) => outputs.push((parser, part)),
            None => left_out.extend(lines),
        }
    }
    let is_several = outputs.iter().any(|(parser, _)| parser.tool != outputs[0].0.tool);
    if !is_several {
        return Vec::new();
    }
    let note = |line: u64, what: String| ImportNote { file: text.file, line, text: what };
    for (parser, part) in &mut outputs {
        let (line, end) = ends(&part.lines);
        let is_apart = end - line >= part.lines.len() as u64;
        let lines = if is_apart { format!("some of lines {line} to {end}") } else { format!("lines {line} to {end}") };
        let what = format!("a page with several outputs: this record is of {}, {lines}", parser.tool.name());
        part.notes.push(note(line, what));
    }
    let left_out = left_out.into_iter().map(|range| {
        let (from, to) = ends(&text.lines[range]);
        note(from, format!("lines {from} to {to} were left out: no output of a tool was recognised in them"))
    });
    outputs[0].1.inherit(text);
    outputs[0].1.notes.extend(left_out);
    outputs
}

/// The numbers of the first and the last of some lines.
fn ends(lines: &[Line]) -> (u64, u64) {
    let number = |line: Option<&Line>| line.map_or(1, |line| line.at.line);
    (number(lines.first()), number(lines.last()))
}
