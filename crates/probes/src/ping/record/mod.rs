//! The record of round trips: from the tally to what follows from it.

mod advice;
mod build;
mod charts;
mod face;
mod headline;
mod info;
mod metrics;
mod sections;

#[cfg(test)]
mod tests;

use assay_measure::kind::{Finding, OwnKind, TestConditions};
use info::PingInfo;

pub(super) use build::build;

/// The kind of its records.
pub(super) const KIND: OwnKind<PingInfo> = OwnKind {
    judges: advice::RULES,
    charts: charts::all,
    conditions,
    in_words_of_tool: |info| Some(face::text(info)),
    in_json_of_tool: |info| Some(face::json(info)),
    ..OwnKind::new(metrics::all, sections::render, headline::of)
};

fn conditions(info: &PingInfo) -> TestConditions {
    vec![
        ("method", info.method.clone(), Finding::Forbids),
        ("payload, bytes", info.size_bytes.to_string(), Finding::Forbids),
        ("payload of the reply, bytes", info.reply_bytes.to_string(), Finding::Tolerable),
        ("requests per second", info.rate_per_s.to_string(), Finding::Tolerable),
        ("loopback", info.is_loopback.to_string(), Finding::Forbids),
    ]
}
