//! A record for other programs: tables for spreadsheets, text for monitoring systems. What is not known is left out
//! or named with its reason, never written as 0.

mod families;
mod openmetrics;
mod units;

#[cfg(test)]
mod tests;

pub use openmetrics::{series, summary};

use assay_measure::plain::csv_field;
use assay_measure::record::metric::Better;
use assay_measure::record::{Figure, Record};

/// Every figure of a record as CSV, a line each: what it is, its value, or why there is none.
#[must_use]
pub fn csv_summary(record: &Record) -> String {
    let mut out = String::from("key,scope,name,value,unit,better,layer,primary,reason\n");
    for metric in &record.metrics {
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
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}
