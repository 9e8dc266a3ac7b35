//! Follows the figure of UNTIL through a run, second by second.

use assay_measure::config::Settings;
use assay_measure::precision::{End, Goal, RunFigure, SECONDS_LEAST, Watch};
use assay_measure::record::Precision;
use assay_measure::snapshot::Snapshot;
use assay_run::Mark;

/// See the module.
pub(crate) struct Follow {
    goal: Goal,
    figure: RunFigure,
    at_most_s: f64,
    watch: Watch,
    /// The last snapshot of the measured window.
    before: Option<Snapshot>,
    /// A second whose figure the target did not tell.
    is_untold: bool,
    end: Option<End>,
}

impl Follow {
    /// Of a run with UNTIL, whose settings were checked.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let goal = Goal::parse(settings.text("UNTIL")).ok()?;
        let figure = RunFigure::named(&goal.figure).ok()?;
        Some(Self {
            watch: Watch::new(figure.statistic, goal.ratio, SECONDS_LEAST),
            at_most_s: settings.ns("AT_MOST") as f64 / 1e9,
            goal,
            figure,
            before: None,
            is_untold: false,
            end: None,
        })
    }

    /// Takes a second of the measured window.
    pub(crate) fn snapshot(&mut self, mark: Mark, now: &Snapshot) {
        match (mark, &self.before) {
            (Mark::Begin, _) => self.before = Some(now.clone()),
            (Mark::Second, Some(before)) if self.end.is_none() => {
                match self.figure.portion(before, now) {
                    Some(portion) => self.end = self.watch.take(&portion),
                    None => self.is_untold = true,
                }
                self.before = Some(now.clone());
            }
            _ => {}
        }
    }

    /// Whether more seconds would tell no more.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some() || self.is_untold
    }

    /// What the record says; `is_stopped`: by the user.
    pub(crate) fn finish(mut self, is_stopped: bool) -> Precision {
        let end = self.end.or_else(|| (!is_stopped).then(|| self.watch.over()));
        let RunFigure { key, what, unit, .. } = &self.figure;
        let found = Precision::of(&self.goal, (key, what, unit), self.at_most_s, &self.watch, end);
        if self.is_untold { found.untold("the target does not count it") } else { found }
    }
}
