//! The record of round trips: from the tally to what follows from it.

mod build;
mod charts;
mod face;
mod headline;
mod info;
mod metrics;
mod sections;
mod warnings;

use super::Ping;
use assay_measure::chart::Drawn;
use assay_measure::kind::{Check, Finding, Headline, Kind};
use assay_measure::record::{Metric, Part, Record};
use assay_measure::section::Sections;
use info::PingInfo;

pub(super) use build::build;

impl Ping {
    fn info(record: &Record) -> PingInfo {
        record.parts.get().unwrap_or_default()
    }
}

impl Kind for Ping {
    fn name(&self) -> &'static str {
        PingInfo::NAME
    }

    fn tells(&self, record: &Record) -> bool {
        record.import.is_none()
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        metrics::all(&Self::info(record))
    }

    fn sections(&self, record: &Record) -> Sections {
        sections::render(record, &Self::info(record))
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        charts::all(&Self::info(record)).into_iter().for_each(draw);
    }

    fn headline(&self, record: &Record) -> Headline {
        headline::of(record, &Self::info(record))
    }

    fn in_words_of_tool(&self, record: &Record) -> Option<String> {
        Some(face::text(&Self::info(record)))
    }

    fn in_json_of_tool(&self, record: &Record) -> Option<String> {
        Some(face::json(&Self::info(record)))
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        let (a, b) = (Self::info(baseline), Self::info(candidate));
        let text = |what: &str, get: &dyn Fn(&PingInfo) -> String, otherwise: Finding| {
            Check::text(what, &get(&a), &get(&b), otherwise)
        };
        vec![
            text("method", &|info| info.method.clone(), Finding::Forbids),
            text(
                "payload, bytes",
                &|info| info.size_bytes.to_string(),
                Finding::Forbids,
            ),
            text(
                "payload of the reply, bytes",
                &|info| info.reply_bytes.to_string(),
                Finding::Tolerable,
            ),
            text(
                "requests per second",
                &|info| info.rate_per_s.to_string(),
                Finding::Tolerable,
            ),
            text(
                "loopback",
                &|info| info.is_loopback.to_string(),
                Finding::Forbids,
            ),
        ]
    }

    fn readable(&self, record: &Record) -> Result<(), serde_json::Error> {
        record.parts.read::<PingInfo>().map(drop)
    }
}
