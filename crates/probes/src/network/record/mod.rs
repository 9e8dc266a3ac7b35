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

use assay_measure::kind::{Finding, OwnKind, TestConditions};
pub(super) use build::build;
use info::NetworkInfo;

/// The kind of its records.
pub(super) const KIND: OwnKind<NetworkInfo> = OwnKind {
    judges: advice::RULES,
    charts: charts::all,
    conditions,
    in_words_of_tool: |info| Some(iperf::text(info)),
    in_json_of_tool: |info| Some(iperf::json(info)),
    ..OwnKind::new(metrics::all, sections::render, headline::of)
};

fn conditions(info: &NetworkInfo) -> TestConditions {
    let word = |is: bool| if is { "yes" } else { "no" }.to_owned();
    vec![
        ("protocol", info.protocol.clone(), Finding::Forbids),
        ("streams", info.streams_count.to_string(), Finding::Forbids),
        ("both ways at once", word(info.is_bidirectional), Finding::Forbids),
        ("the server sends", word(info.is_reverse), Finding::Tolerable),
        ("requested rate", info.rate_bits_per_s.to_string(), Finding::Forbids),
        ("block, bytes", info.block_bytes.to_string(), Finding::Tolerable),
        ("window asked for, bytes", info.window_bytes.to_string(), Finding::Tolerable),
        ("TCP segment, bytes", info.max_segment_bytes.to_string(), Finding::Tolerable),
        ("congestion control", info.congestion_local.clone(), Finding::Tolerable),
        ("loopback", word(info.is_loopback), Finding::Forbids),
    ]
}
