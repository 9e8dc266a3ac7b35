//! The network record: from the readings of both ends to its conclusions.

mod advice;
mod build;
mod charts;
mod headline;
mod info;
mod iperf;
mod limit;
mod metrics;
mod sections;

#[cfg(test)]
mod tests;

use assay_measure::chart::Drawn;
use assay_measure::kind::{Finding, Headline, OwnKind};
use assay_measure::record::{Metric, Record};
use assay_measure::rule::Rule;
use assay_measure::section::Sections;
use info::NetworkInfo;

pub(super) use build::build;

/// The kind of its records.
#[derive(Debug)]
pub(super) struct NetworkRecords;

impl OwnKind for NetworkRecords {
    type Info = NetworkInfo;

    fn rules() -> Vec<Rule> {
        advice::rules()
    }

    fn metrics(info: &NetworkInfo) -> Vec<Metric> {
        metrics::all(info)
    }

    fn sections(record: &Record, info: &NetworkInfo) -> Sections {
        sections::render(record, info)
    }

    fn charts(info: &NetworkInfo) -> Vec<Drawn> {
        charts::all(info).into_iter().collect()
    }

    fn headline(record: &Record, info: &NetworkInfo) -> Headline {
        headline::of(record, info)
    }

    fn conditions(info: &NetworkInfo) -> Vec<(&'static str, String, Finding)> {
        let word = |is: bool| if is { "yes" } else { "no" }.to_owned();
        vec![
            ("protocol", info.protocol.clone(), Finding::Forbids),
            ("streams", info.streams_count.to_string(), Finding::Forbids),
            ("both directions at once", word(info.is_bidirectional), Finding::Forbids),
            ("the server sends", word(info.is_reverse), Finding::Tolerable),
            ("rate asked for", info.rate_bits_per_s.to_string(), Finding::Forbids),
            ("block, bytes", info.block_bytes.to_string(), Finding::Tolerable),
            ("requested window, bytes", info.window_bytes.to_string(), Finding::Tolerable),
            ("TCP segment, bytes", info.max_segment_bytes.to_string(), Finding::Tolerable),
            ("congestion control", info.congestion_local.clone(), Finding::Tolerable),
            ("loopback", word(info.is_loopback), Finding::Forbids),
        ]
    }

    fn in_words_of_tool(info: &NetworkInfo) -> Option<String> {
        Some(iperf::text(info))
    }

    fn in_json_of_tool(info: &NetworkInfo) -> Option<String> {
        Some(iperf::json(info))
    }
}
