//! The network record: from what the two ends have seen to what follows from it.

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

use super::Network;
use assay_measure::chart::Drawn;
use assay_measure::kind::{Check, Finding, Headline, Kind};
use assay_measure::record::{Metric, Part, Record};
use assay_measure::section::Sections;
use info::NetworkInfo;

pub(super) use build::build;

impl Network {
    fn info(record: &Record) -> NetworkInfo {
        record.parts.get().unwrap_or_default()
    }
}

impl Kind for Network {
    fn name(&self) -> &'static str {
        NetworkInfo::NAME
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
        Some(iperf::text(&Self::info(record)))
    }

    fn in_json_of_tool(&self, record: &Record) -> Option<String> {
        Some(iperf::json(&Self::info(record)))
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        let (a, b) = (Self::info(baseline), Self::info(candidate));
        let text = |what: &str, get: &dyn Fn(&NetworkInfo) -> String, otherwise: Finding| {
            Check::text(what, &get(&a), &get(&b), otherwise)
        };
        let word = |is: bool| if is { "yes" } else { "no" }.to_owned();
        vec![
            text("protocol", &|info| info.protocol.clone(), Finding::Forbids),
            text(
                "streams",
                &|info| info.streams_count.to_string(),
                Finding::Forbids,
            ),
            text(
                "both ways at once",
                &|info| word(info.is_bidirectional),
                Finding::Forbids,
            ),
            text(
                "the server sends",
                &|info| word(info.is_reverse),
                Finding::Tolerable,
            ),
            text(
                "rate asked for",
                &|info| info.rate_bits_per_s.to_string(),
                Finding::Forbids,
            ),
            text(
                "block, bytes",
                &|info| info.block_bytes.to_string(),
                Finding::Tolerable,
            ),
            text(
                "window asked for, bytes",
                &|info| info.window_bytes.to_string(),
                Finding::Tolerable,
            ),
            text(
                "TCP segment, bytes",
                &|info| info.max_segment_bytes.to_string(),
                Finding::Tolerable,
            ),
            text(
                "congestion control",
                &|info| info.congestion_local.clone(),
                Finding::Tolerable,
            ),
            text("loopback", &|info| word(info.is_loopback), Finding::Forbids),
        ]
    }

    fn readable(&self, record: &Record) -> Result<(), serde_json::Error> {
        record.parts.read::<NetworkInfo>().map(drop)
    }
}
