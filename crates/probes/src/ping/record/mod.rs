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

use assay_measure::chart::Drawn;
use assay_measure::kind::{Finding, Headline, OwnKind};
use assay_measure::record::{Metric, Record};
use assay_measure::rule::Rule;
use assay_measure::section::Sections;
use info::PingInfo;

pub(super) use build::build;

/// The kind of its records.
#[derive(Debug)]
pub(super) struct PingRecords;

impl OwnKind for PingRecords {
    type Info = PingInfo;

    fn rules() -> Vec<Rule> {
        advice::rules()
    }

    fn metrics(info: &PingInfo) -> Vec<Metric> {
        metrics::all(info)
    }

    fn sections(record: &Record, info: &PingInfo) -> Sections {
        sections::render(record, info)
    }

    fn charts(info: &PingInfo) -> Vec<Drawn> {
        charts::all(info).into_iter().collect()
    }

    fn headline(record: &Record, info: &PingInfo) -> Headline {
        headline::of(record, info)
    }

    fn conditions(info: &PingInfo) -> Vec<(&'static str, String, Finding)> {
        vec![
            ("method", info.method.clone(), Finding::Forbids),
            ("payload, bytes", info.size_bytes.to_string(), Finding::Forbids),
            ("payload of the reply, bytes", info.reply_bytes.to_string(), Finding::Tolerable),
            ("requests per second", info.rate_per_s.to_string(), Finding::Tolerable),
            ("loopback", info.is_loopback.to_string(), Finding::Forbids),
        ]
    }

    fn in_words_of_tool(info: &PingInfo) -> Option<String> {
        Some(face::text(info))
    }

    fn in_json_of_tool(info: &PingInfo) -> Option<String> {
        Some(face::json(info))
    }
}
