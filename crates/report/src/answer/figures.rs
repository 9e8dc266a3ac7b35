//! The figures of the page: those of the kind's headline; of repeats their median with its range.

use assay_measure::kind::{Headline, HeadlineLine};
use assay_measure::record::Figure;
use assay_measure::statistics::median;
use assay_measure::units::{fixed, readable, short};

/// Every line of figures, with its title.
pub(crate) fn rows(headlines: &[Headline]) -> Vec<(&'static str, String)> {
    let Some(first) = headlines.first() else {
        return Vec::new();
    };
    let lines = first.rows.iter().enumerate();
    let text = |(at, line): (usize, &HeadlineLine)| Some((line.title, row(headlines, at, line)?));
    lines.filter_map(text).collect()
}

/// One line of every repeat; `None` where nothing is known and nothing is said of it.
fn row(headlines: &[Headline], at: usize, first: &HeadlineLine) -> Option<String> {
    let parts = first.told.iter().enumerate().filter_map(|(i, part)| {
        let values = headlines.iter().filter_map(|headline| {
            let told = headline.rows.get(at)?.told.get(i)?;
            told.value.value().filter(|_| told.unit == part.unit)
        });
        let known = told(values.collect(), headlines.len(), &part.unit, number_of(&part.value));
        known.or_else(|| (!part.otherwise.is_empty()).then(|| part.otherwise.clone()))
    });
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true if first.otherwise.is_empty() => None,
        true => Some(format!("{}{}", first.lead, first.otherwise)),
        false => Some(format!("{}{}", first.lead, parts.join(first.glue))),
    }
}

/// How a figure is written: what is counted has no digits behind the point to be shown.
pub(super) fn number_of(figure: &Figure) -> fn(f64) -> String {
    match figure {
        Figure::Count(_) => counted,
        _ => short,
    }
}

fn counted(value: f64) -> String {
    if value.fract() == 0.0 { fixed(value, 0) } else { short(value) }
}

/// A value with its unit, as it reads best.
pub(super) fn one(value: f64, unit: &str, number: fn(f64) -> String) -> String {
    let (factor, unit) = readable(value, unit);
    format!("{} {unit}", scaled(factor, number)(value))
}

/// Writes values that are divided by a factor: such a one is no count any more.
fn scaled(factor: f64, number: fn(f64) -> String) -> impl Fn(f64) -> String {
    move |value| if factor == 1.0 { number(value) } else { short(value / factor) }
}

/// `5,996`, or of repeats `5,996 (5,812 to 6,104)`; what some repeat has not is not there.
fn told(mut values: Vec<f64>, repeats: usize, unit: &str, number: fn(f64) -> String) -> Option<String> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (values.first()?, values.last()?);
    let median = median(&values)?;
    let (factor, words) = readable(median, unit);
    let number_of = scaled(factor, number);
    Some(match repeats {
        1 => one(median, unit, number),
        _ if values.len() < repeats => return None,
        _ => format!("{} {words} ({} to {})", number_of(median), number_of(*least), number_of(*most)),
    })
}
