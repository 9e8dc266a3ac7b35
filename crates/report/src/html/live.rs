//! A run that goes on: figures that are new each second, and of a fleet its hosts, above its page and on a terminal.

use super::script::Assets;
use super::tile::tile;
use crate::answer::{Context, Page, title};
use crate::kinds;
use assay_measure::config::duration_ns;
use assay_measure::fleet::{Fleet, HostCell};
use assay_measure::record::metric::find;
use assay_measure::record::{Figure, Metric, Record};
use assay_measure::units::shorten;
use serde::Serialize;

/// A figure above the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveTile {
    /// What it is.
    pub name: String,
    /// Of which time: [`RECENT`], [`WHOLE`] or other words; empty where the name says all.
    pub of: &'static str,
    /// For people.
    pub value: String,
    /// Its unit; empty for words and what is not known.
    pub unit: String,
    /// The metric of the whole run's record that it is; empty where it is of the last seconds or none of them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The metric's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
}

/// A figure of the last seconds.
pub const RECENT: &str = "last 10 s";
/// The same of all of the measured window.
pub const WHOLE: &str = "whole";

/// One second of a run: what stands above its page, and what a terminal shows of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Live {
    /// Which run it is.
    pub title: String,
    /// Whether the run has ended and its record is kept.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// How far it is, in a sentence.
    pub now: String,
    /// The figures.
    pub tiles: Vec<LiveTile>,
    /// The hosts of a fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostCell>,
    /// The page of a run that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

/// Columns that the lines of a terminal need: a name and two figures.
pub const COLUMNS_LEAST: usize = NAME + 2 * FIGURE;
const NAME: usize = 30;
const FIGURE: usize = 17;
/// How the value of a figure begins that is not known.
const NA: &str = "n/a (";
/// Of the title of a sentence.
const TITLE: usize = 17;
/// Why nothing is known of the last seconds.
const ENDED: &str = "the run has ended";
/// Lines of a terminal for hosts, at most, and columns of one host.
const HOST_LINES: usize = 8;
const HOST_COLUMNS: usize = 38;

impl Live {
    /// Of a record so far and that of the last ten seconds, which a run that has ended lacks.
    #[must_use]
    pub fn of(whole: &Record, recent: Option<&Record>) -> Self {
        let fleet = recent.unwrap_or(whole).parts.get::<Fleet>();
        let limit = recent.map(|recent| kinds::of(recent).headline(recent).limit);
        let limit = limit.map_or_else(
            || format!("{NA}{ENDED})"),
            |limit| if limit.what.is_empty() { limit.evidence } else { limit.what },
        );
        let asked = whole.plan.settings.iter().find(|line| line.name == "RATE" && line.value != "0");
        let mut tiles = Vec::new();
        let mut both = |key: &str| {
            let Some(metric) = find(&whole.metrics, key) else { return };
            let value = recent.map_or(Figure::na(ENDED), |recent| {
                find(&recent.metrics, key).map_or(Figure::na("absent"), |metric| metric.value.clone())
            });
            tiles.push(shown(&Metric { value, ..metric.clone() }, RECENT));
            tiles.push(LiveTile { key: metric.full_key(), figure: Some(metric.value.clone()), ..shown(metric, WHOLE) });
        };
        both("ops_per_s");
        let operation = whole.driver.ops.iter().max_by_key(|row| row.count);
        for suffix in ["p50", "p99"] {
            let name = operation.map(|row| format!("{} response {suffix}", row.kind));
            let metric = whole.metrics.iter().find(|metric| Some(&metric.name) == name.as_ref());
            metric.iter().for_each(|metric| both(&metric.key));
        }
        let words = |name: &str, of, value: String, unit: &str| LiveTile {
            name: name.to_owned(),
            of,
            value,
            unit: unit.to_owned(),
            ..LiveTile::default()
        };
        tiles.extend(asked.map(|line| words("Operations asked for", "", line.value.clone(), "1/s")));
        tiles.push(words("Limited by", RECENT, limit, ""));
        let errors = Figure::Count(whole.driver.errors_whole_run_count);
        let plain = |name: &str, unit: &str, value| Metric {
            name: name.to_owned(),
            unit: unit.to_owned(),
            value,
            ..Metric::default()
        };
        tiles.push(shown(&plain("Errors", "operations", errors), "whole run"));
        let cpu = recent.map_or(Figure::na(ENDED), |recent| recent.driver.thread_cpu_pct.clone());
        tiles.push(shown(&plain("Driver CPU, of its threads", "%", cpu), RECENT));
        let now = whole.run.verdict_reasons.first().unwrap_or(&whole.run.verdict);
        let is_final = recent.is_none();
        let now = match planned_s(whole) {
            _ if is_final => format!("the run has ended: {}", whole.run.verdict),
            Some(planned_s) => format!("{now} of {planned_s}"),
            None => now.clone(),
        };
        let now = match &fleet {
            Some(fleet) if !is_final && whole.driver.ops.is_empty() => fleet.states(),
            Some(fleet) if !is_final => format!("{}; {now}", fleet.states()),
            _ => now,
        };
        let hosts = fleet.map(|fleet| fleet.cells()).unwrap_or_default();
        Self { title: title(whole), is_final, now, tiles, hosts, page: None }
    }

    /// The figures in lines of so many columns, at least [`COLUMNS_LEAST`]: those of two times side by side, then sentences.
    #[must_use]
    pub fn lines(&self, columns: usize) -> Vec<String> {
        let mut page = Page::new(columns.max(COLUMNS_LEAST));
        let row = |name: &str, recent: &str, whole: &str| format!("{name:<NAME$}{recent:>FIGURE$}{whole:>FIGURE$}");
        page.line(&row("", RECENT, WHOLE));
        let is_figure = |tile: &&LiveTile| !tile.unit.is_empty() || tile.value.starts_with(NA);
        let (figures, sentences): (Vec<_>, Vec<_>) = self.tiles.iter().partition(is_figure);
        let mut rows: Vec<(&str, [String; 2])> = Vec::new();
        for tile in figures {
            let at = rows.iter().position(|(name, _)| *name == tile.name).unwrap_or(rows.len());
            if at == rows.len() {
                rows.push((tile.name.as_str(), Default::default()));
            }
            let is_known = !tile.unit.is_empty();
            let text = if is_known { format!("{} {}", tile.value, tile.unit) } else { "n/a".to_owned() };
            rows[at].1[usize::from(tile.of != RECENT)] = text;
        }
        for (name, [recent, whole]) in rows {
            page.line(&row(&shorten(name, NAME - 1), &recent, &whole));
        }
        for tile in sentences {
            page.item(&shorten(&tile.name, TITLE), &tile.value);
        }
        self.host_lines(columns).iter().for_each(|line| page.line(line));
        page.lines().to_vec()
    }

    /// The hosts side by side; of many those in front, and how many more there are.
    fn host_lines(&self, columns: usize) -> Vec<String> {
        let brief = |host: &HostCell| {
            // Why it is lost is said in a line of its own.
            let state = host.state.split(':').next().unwrap_or_default();
            shorten(&format!("{} {state} {}", host.name, host.rate), HOST_COLUMNS)
        };
        let mut cells: Vec<String> = self.hosts.iter().map(brief).collect();
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0) + 2;
        let in_line = (columns / width).max(1);
        let room = in_line * HOST_LINES;
        if cells.len() > room {
            let more = cells.len() - (room - 1);
            cells.truncate(room - 1);
            cells.push(format!("and {more} more"));
        }
        let line = |cells: &[String]| cells.iter().map(|cell| format!("{cell:<width$}")).collect::<String>();
        cells.chunks(in_line).map(|cells| line(cells).trim_end().to_owned()).collect()
    }
}

/// Seconds from the start to the planned end of a run that ends by time alone.
fn planned_s(record: &Record) -> Option<f64> {
    let setting = |name: &str| record.plan.settings.iter().find(|line| line.name == name);
    let ns = |name: &str| setting(name).and_then(|line| duration_ns(name, &line.value).ok());
    let is_open = setting("UNTIL").is_some_and(|line| line.origin != "default")
        || setting("WORK_LOOP").is_some_and(|line| line.value != "0");
    if is_open { None } else { Some((ns("WARMUP")? + ns("RUN_TIME")?) as f64 / 1e9) }
}

fn shown(metric: &Metric, of: &'static str) -> LiveTile {
    let tile = tile(metric);
    LiveTile { name: tile.name, of, value: tile.value, unit: tile.unit, ..LiveTile::default() }
}

/// The page of a run that goes on.
#[must_use]
pub fn live(whole: &Record, recent: &Record, context: &Context) -> String {
    let mut page = super::page_of(whole, context);
    page.live = Some(Live::of(whole, Some(recent)));
    page.render(&Assets::Served)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_two_times_stand_side_by_side_and_sentences_below() {
        let tile = |name: &str, of, value: &str, unit: &str| LiveTile {
            name: name.to_owned(),
            of,
            value: value.to_owned(),
            unit: unit.to_owned(),
            ..LiveTile::default()
        };
        let tiles = vec![
            tile("Operations", RECENT, "1,234", "1/s"),
            tile("Operations", WHOLE, "1,300", "1/s"),
            tile("response p99", RECENT, "n/a (too few)", ""),
            tile("response p99", WHOLE, "12.5", "ms"),
            tile("Limited by", RECENT, &"the latency of single reads ".repeat(4), ""),
            tile("Errors", "whole run", "0", "operations"),
        ];
        let lines = Live { tiles, ..Live::default() }.lines(80);
        let shown = [
            "                                      last 10 s            whole",
            "Operations                            1,234 1/s        1,300 1/s",
            "response p99                                n/a          12.5 ms",
            "Errors                                              0 operations",
            "Limited by        the latency of single reads the latency of single reads the",
            "                  latency of single reads the latency of single reads",
        ];
        assert_eq!(lines, shown);
    }

    #[test]
    fn hosts_stand_side_by_side_and_of_many_the_first_are_shown() {
        let host = |number: usize| HostCell {
            name: format!("h{number}"),
            state: if number == 1 { "lost: nothing heard for 10 s" } else { "running" }.to_owned(),
            rate: "1,234/s".to_owned(),
            class: "",
        };
        let of = |hosts: usize, columns| {
            let live = Live { hosts: (1..=hosts).map(host).collect(), ..Live::default() };
            live.host_lines(columns)
        };
        assert_eq!(of(3, 80), ["h1 lost 1,234/s     h2 running 1,234/s  h3 running 1,234/s"]);
        let many = of(128, 80);
        assert_eq!((many.len(), many[0].starts_with("h1 lost")), (HOST_LINES, true), "{many:?}");
        assert!(many[HOST_LINES - 1].ends_with("and 105 more"), "{many:?}");
        assert!(of(128, 10).len() == HOST_LINES && of(0, 80).is_empty());
    }
}
