//! A page with the output of several tools: where each begins.

use super::text::Text;
use super::{Parser, RECOGNISED, Tool, best};
use assay_measure::record::ImportNote;

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
    (Tool::Pgio, &["DBNAME:"]),
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

/// The outputs in a text of several tools, each with its parser; empty where there is but one.
pub(crate) fn outputs(text: &Text) -> Vec<(&'static Parser, Text)> {
    let mut found: Vec<(Tool, usize)> = Vec::new();
    for (i, line) in text.lines.iter().enumerate() {
        if let Some(tool) = begins(&line.text)
            && found.last().is_none_or(|(last, _)| !goes_on(*last, tool, &line.text))
        {
            found.push((tool, i));
        }
    }
    let is_one = found.iter().all(|(tool, _)| Some(*tool) == found.first().map(|(first, _)| *first));
    if is_one {
        return Vec::new();
    }
    let ends = found.iter().skip(1).map(|(_, begin)| *begin).chain([text.lines.len()]);
    let parts = found.iter().zip(ends).map(|((tool, begin), end)| (*tool, *begin, text.part(*begin..end)));
    let (mut outputs, mut left_out) = (Vec::new(), Vec::new());
    let first = found.first().map_or(0, |(_, begin)| *begin);
    if text.part(0..first).lines.iter().any(|line| !line.text.is_empty()) {
        left_out.push((0, first));
    }
    for (tool, begin, part) in parts {
        match best(&part).filter(|parser| parser.tool == tool && parser.confidence(&part).score >= RECOGNISED) {
            Some(parser) => outputs.push((parser, part)),
            None => left_out.push((begin, begin + part.lines.len())),
        }
    }
    let is_several = outputs.iter().any(|(parser, _)| parser.tool != outputs[0].0.tool);
    if !is_several {
        return Vec::new();
    }
    let number = |at: usize| (text.skipped() + at) as u64;
    let note = |line: u64, what: String| ImportNote { file: text.file, line, text: what };
    for (parser, part) in &mut outputs {
        let line = part.lines.first().map_or(1, |line| line.at.line);
        let end = line + part.lines.len() as u64 - 1;
        let what =
            format!("a page with several outputs: this record is of {}, lines {line} to {end}", parser.tool.name());
        part.notes.push(note(line, what));
    }
    let left_out = left_out.into_iter().map(|(from, to)| {
        let (from, to) = (number(from) + 1, number(to));
        note(from, format!("lines {from} to {to} were left out: they are no output that assay knows"))
    });
    outputs[0].1.inherit(text);
    outputs[0].1.notes.extend(left_out);
    outputs
}
