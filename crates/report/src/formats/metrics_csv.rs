//! Every figure of a record as CSV, a line each: what it is, its value, or why there is none.

use super::Format;
use assay_measure::plain::csv_field;
use assay_measure::record::Figure;
use assay_measure::record::metric::Better;

pub(super) const METRICS_CSV: Format = Format {
    name: "metrics-csv",
    also: &["csv-summary"],
    help: "Every figure, one per line, with unit and reason",
    media_type: "text/csv",
    write: |input, out| {
        writeln!(out, "key,scope,name,value,unit,better,layer,primary,reason")?;
        for metric in &input.record()?.metrics {
            let value = match &metric.value {
                Figure::Count(count) => count.to_string(),
                Figure::Decimal(value) => value.to_string(),
                Figure::Na(_) => String::new(),
            };
            let better = match metric.better {
                Better::Higher => "higher",
                Better::Lower => "lower",
                Better::Neither => "",
            };
            let cells = [
                csv_field(&metric.key),
                csv_field(&metric.scope),
                csv_field(&metric.name),
                value,
                csv_field(&metric.unit),
                better.to_owned(),
                csv_field(&metric.layer),
                u8::from(metric.is_primary).to_string(),
                csv_field(metric.value.reason().unwrap_or_default()),
            ];
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    },
};
