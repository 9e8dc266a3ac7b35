//! The page around charts and tables: what comes first, and how it is put together.

use super::draw;
use super::from_sections::{Block, Shown};
use super::live::Live;
use super::script::{self, Assets, BEHAVIOUR, SHARED};
use super::spark;
use super::table::{Table, behind};
use super::tile::{Tile, tile};
use crate::answer::{self, Answer, Context, Said};
use askama::Template;
use assay_measure::chart::{Chart, Drawn, Stroke, Trace};
use assay_measure::plain::plain;
use assay_measure::record::Record;
use assay_measure::record::metric::Group;
use assay_measure::units::significant;

/// Everything a page shows, in the order it shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) version: String,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) verdict: String,
    /// `good`, `warn`, `bad`, or nothing where there is nothing to judge.
    pub(crate) verdict_class: &'static str,
    /// The answer of a record, a line each.
    pub(crate) answer: Vec<Said>,
    /// The command that repeats the test.
    pub(crate) rerun_command: String,
    pub(crate) tiles: Vec<Tile>,
    /// The chart that stands on the first screen beside what the sections show there.
    pub(crate) first: Option<View>,
    pub(crate) charts: Vec<View>,
    /// Titles of the charts that would say nothing, by the reason.
    pub(crate) left_out: Vec<(String, Vec<String>)>,
    /// The sections of a record's report.
    pub(crate) sections: Vec<Shown>,
    /// Whether rows can be looked for: a page of rows alone, without an answer and without a plotting script.
    pub(crate) can_be_searched: bool,
    /// Where the script is, if not in the page.
    pub(crate) shared: Option<String>,
    /// The script itself as text, if it is in the page.
    pub(crate) packed: String,
    /// What that file is called.
    pub(crate) script_name: String,
    /// What the page's own script is called where a server sends it; in the page otherwise.
    pub(crate) served: Option<&'static str>,
    /// What is new each second of a run that goes on.
    pub(crate) live: Option<Live>,
    /// Runs of which a served page offers to compare two, by path and name.
    pub(crate) choices: Vec<(String, String)>,
    /// What who may start runs is offered.
    pub(crate) control: Option<Control>,
}

/// What a page over runs offers who may start some.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// The field of its forms that holds their token.
    pub field: &'static str,
    /// That token.
    pub token: String,
    /// Tests that may be started; whether it is the one that was chosen.
    pub tests: Vec<(&'static str, bool)>,
    /// What was typed.
    pub settings: String,
    /// What was typed.
    pub label: String,
    /// The run that goes on, by the name of its directory.
    pub running: Option<String>,
    /// What went wrong with the last form or run.
    pub said: String,
}

/// A chart ready for the page, or why there is none.
#[derive(Clone, Debug)]
pub(crate) enum View {
    Chart(Box<ChartView>),
    Missing { title: String, reason: String },
}

/// A chart ready for the page.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChartView {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) aria: String,
    pub(crate) note: String,
    pub(crate) marks: Vec<String>,
    /// Id of an earlier chart with the same marks, whose list stands for this one's.
    pub(crate) marks_at: String,
    pub(crate) json: String,
    pub(crate) tables: Vec<Table>,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Shell<'a> {
    page: &'a Page,
    style: &'a str,
    behaviour: &'a str,
}

impl Page {
    /// The page of a record with its verdict and headline, without its tables.
    pub(crate) fn of(record: &Record, context: &Context, charts: Vec<View>) -> Self {
        Self {
            title: answer::title(record),
            version: record.run.version.clone(),
            facts: super::facts::facts(record),
            tiles: tiles(record),
            charts,
            ..Self::default()
        }
        .answered(answer::of(&[record], context))
    }

    /// With an answer at its head.
    pub(crate) fn answered(self, answer: Answer) -> Self {
        Self {
            verdict_class: answer.trust().word(),
            verdict: answer.first,
            answer: answer.said,
            rerun_command: answer.rerun_command,
            ..self
        }
    }

    /// Whether there is more than words on the first screen.
    pub(crate) fn has_first_screen(&self) -> bool {
        self.sections.iter().any(|section| section.brief.is_some())
    }

    /// Where sections have something for the first screen, the first chart goes there too.
    fn begin_with_a_chart(&mut self) {
        if self.has_first_screen() && matches!(self.charts.first(), Some(View::Chart(_))) {
            self.first = Some(self.charts.remove(0));
        }
    }

    /// Whether a chart is drawn below the answer, or said to be left out.
    pub(crate) fn has_charts(&self) -> bool {
        !self.charts.is_empty() || !self.left_out.is_empty()
    }

    /// Charts that are not there are told of together.
    fn leave_out(&mut self) {
        let left_out = &mut self.left_out;
        self.charts.retain(|view| match view {
            View::Missing { title, reason } => {
                match left_out.iter_mut().find(|(known, _)| known == reason) {
                    Some((_, titles)) => titles.push(title.clone()),
                    None => left_out.push((reason.clone(), vec![title.clone()])),
                }
                false
            }
            View::Chart(_) => true,
        });
    }

    /// The whole page as text.
    pub(crate) fn render(mut self, assets: &Assets) -> String {
        self.begin_with_a_chart();
        self.leave_out();
        tell_marks_once(self.first.iter_mut().chain(&mut self.charts));
        self.script_name = SHARED.to_owned();
        match assets {
            Assets::Embedded => self.packed = script::packed(),
            Assets::Shared(path) => self.shared = Some(path.clone()),
            Assets::Served => {
                self.shared = Some(format!("/{SHARED}"));
                self.served = Some(BEHAVIOUR);
            }
        }
        let shell =
            Shell { page: &self, style: include_str!("../../templates/style.css"), behaviour: script::behaviour() };
        let mut text = String::with_capacity(1 << 20);
        shell.render_into(&mut text).expect("writing to a string cannot fail and the template has no fallible filter");
        // What a record says turns no letters round.
        plain(&text).into_owned()
    }
}

/// Charts with their tables; each is dropped once it is rendered, so that a long series is held once.
pub(crate) fn view(drawn: Drawn) -> View {
    match drawn {
        Drawn::Missing { title, reason } => View::Missing { title, reason: format!("n/a ({reason})") },
        Drawn::Chart(chart) if is_all_zero(&chart) => {
            View::Missing { title: chart.title, reason: "every value is 0".to_owned() }
        }
        Drawn::Chart(chart) => View::Chart(Box::new(ChartView {
            aria: aria(&chart),
            marks: chart.marks.iter().map(|mark| mark.text.clone()).collect(),
            json: draw::json(&chart),
            tables: behind(&chart),
            marks_at: String::new(),
            id: chart.id,
            title: chart.title,
            note: chart.note,
        })),
    }
}

/// Whether a chart would show that nothing happened; a level line above 0 says that something was steady.
fn is_all_zero(chart: &Chart) -> bool {
    let mut known = chart.traces.iter().flat_map(|trace| trace.y.iter().flatten());
    chart.heat.is_none() && known.all(|value| *value == 0.0)
}

/// Lists marks once: later charts with the same ones point to the first.
fn tell_marks_once<'a>(views: impl Iterator<Item = &'a mut View>) {
    let mut told: Vec<(Vec<String>, String)> = Vec::new();
    for view in views {
        let View::Chart(chart) = view else { continue };
        match told.iter().find(|(marks, _)| *marks == chart.marks) {
            Some((_, id)) if !chart.marks.is_empty() => chart.marks_at.clone_from(id),
            _ => told.push((chart.marks.clone(), chart.id.clone())),
        }
    }
}

/// What a chart shows, for who does not see it.
fn aria(chart: &Chart) -> String {
    if let Some(heat) = &chart.heat {
        return format!("Heat map: {}; {} columns by {} rows.", chart.title, heat.columns.len(), heat.rows.len());
    }
    let kind = match chart.traces.first().map(|trace| trace.kind) {
        Some(Stroke::Stacked) => "Stacked areas",
        Some(Stroke::Bar) => "Bars",
        Some(Stroke::Points | Stroke::Hollow) => "Points",
        _ => "Lines",
    };
    let series: Vec<String> = chart.traces.iter().map(range).collect();
    format!("{kind}: {}. {} over {}. {}.", chart.title, chart.y.label(), chart.x.label(), series.join("; "))
}

fn range(trace: &Trace) -> String {
    let known = || trace.y.iter().filter_map(|value| *value);
    let low = known().min_by(f64::total_cmp).unwrap_or_default();
    let high = known().max_by(f64::total_cmp).unwrap_or_default();
    format!("{} from {} to {}", trace.name, significant(low, 3), significant(high, 3))
}

fn tiles(record: &Record) -> Vec<Tile> {
    let primary = record.metrics.iter().take_while(|metric| metric.group == Group::Primary);
    primary.map(|metric| Tile { spark: spark::of(metric, &record.series), ..tile(metric) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::record::{Figure, Metric};

    #[test]
    fn a_rate_of_bits_stands_in_its_tile_as_people_say_it() {
        let tile = |value: f64, unit: &str, name: &str| {
            let metric = Metric {
                group: Group::Primary,
                scope: "receiver".to_owned(),
                name: name.to_owned(),
                unit: unit.to_owned(),
                value: Figure::decimal(value),
                ..Metric::default()
            };
            let record = Record { metrics: vec![metric], ..Record::default() };
            let tile = tiles(&record).remove(0);
            (tile.name, tile.value, tile.unit)
        };
        let words = |name: &str, value: &str, unit: &str| (name.to_owned(), value.to_owned(), unit.to_owned());
        assert_eq!(tile(21_512_483_060.0, "bits/s", "rate, receiver"), words("rate, receiver", "21.51", "Gbit/s"));
        assert_eq!(tile(2_500_000.0, "bytes/s", "read"), words("receiver: read", "2.500", "MB/s"));
        assert_eq!(tile(400_000.0, "1/s", "reads"), words("receiver: reads", "400,000", "1/s"));
    }
}
