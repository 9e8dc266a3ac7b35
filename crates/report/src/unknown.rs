//! A record whose kind this program does not know: one of a later version. Its figures are shown as they are.

use assay_measure::chart::Drawn;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Kind, Limit};
use assay_measure::record::{Metric, Record};
use assay_measure::section::common::{advice, integrity, label, parameters, verdict, warnings};
use assay_measure::section::{Cell, Column, Sections, left, right};
use assay_measure::units::significant;

/// Figures of the headline.
const FEW: usize = 6;

#[derive(Debug)]
pub(crate) struct Unknown;

impl Kind for Unknown {
    fn name(&self) -> &'static str {
        ""
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        record.metrics.clone()
    }

    fn sections(&self, record: &Record) -> Sections {
        let mut page = Sections::default();
        page.title(&format!("ASSAY REPORT for run {}{}: {}", record.run.id, label(record), record.kind));
        page.line(&format!(
            "This version of assay does not know the kind of test \"{}\": it lists the figures as they are in the \
             record.",
            record.kind
        ));
        page.line(&verdict(record));
        integrity(&mut page, record);
        warnings(&mut page, record);
        advice(&mut page, record);
        page.heading("Figures");
        const FIGURES: [Column; 4] = [left("Figure", 60), left("Of", 30), right("Value", 20), left("Unit", 12)];
        page.columns(&FIGURES);
        for metric in &record.metrics {
            let value = match metric.value.reason() {
                Some(reason) => format!("n/a ({reason})").into(),
                None => Cell::from(metric.value.value().map_or_else(String::new, |value| significant(value, 4))),
            };
            page.row(
                &FIGURES,
                &[metric.name.clone().into(), metric.scope.clone().into(), value, metric.unit.clone().into()],
            );
        }
        parameters(&mut page, record);
        page
    }

    fn charts(&self, _record: &Record, _draw: &mut dyn FnMut(Drawn)) {}

    fn headline(&self, record: &Record) -> Headline {
        let first = record.metrics.iter().filter(|metric| metric.value.value().is_some());
        let told = first
            .take(FEW)
            .map(|metric| HeadlineFigure::new(&metric.value, &format!("{} ({})", metric.unit, metric.name)));
        Headline {
            tested: format!("A test of kind \"{}\", which is unknown to this version of assay.", record.kind),
            rows: vec![HeadlineLine::told("Figures", told.collect())],
            steadiness: "n/a (the kind is not known)".to_owned(),
            limit: Limit::unknown("the kind is not known"),
            ..Headline::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{answer, html, json, text};
    use assay_awr::record;
    use assay_testkit::fixtures;

    #[test]
    fn a_record_of_a_later_kind_is_told_by_its_figures() {
        let mut later = record::build(&fixtures::run());
        later.kind = "tidal".to_owned();
        let read = json::read(&json::write(&later).expect("JSON")).expect("it is read");
        assert_eq!(read.metrics, later.metrics, "nothing of it is lost");
        let report = text::render(&read);
        assert!(report.contains("does not know the kind of test \"tidal\""), "{report}");
        let figure = |line: &str| line.contains("Operations") && line.contains("100.0");
        assert!(report.lines().any(figure), "{report}");
        assert!(!report.contains("Load Profile"), "{report}");
        let page = html::page(&read, &Default::default(), &html::Assets::Shared("plot.js".to_owned()));
        assert!(page.contains("tidal"));
        assert!(answer::of(&[&read], &answer::Context::default()).text().contains("unknown to this version"));
    }
}
