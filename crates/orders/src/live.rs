//! The progress line of a run in the format of Swingbench's load generator: users, rates, errors, response times by
//! transaction.

use crate::mix::ALL;
use assay_measure::snapshot::Snapshot;
use assay_run::workload::LiveLine;
use std::collections::VecDeque;

/// Length of the window for the rate per minute.
const MINUTE_NS: u64 = 60_000_000_000;

/// Builds the progress line; see the module.
#[derive(Debug, Default)]
pub(crate) struct Live {
    sessions: usize,
    before: Option<Snapshot>,
    /// Times, and the number of transactions finished by then.
    ended: VecDeque<(u64, u64)>,
    /// The latest response time of each transaction, ms.
    newest: [u64; ALL.len()],
}

impl Live {
    pub(crate) fn new(sessions: usize) -> Self {
        Self { sessions, ended: VecDeque::from([(0, 0)]), ..Self::default() }
    }
}

impl LiveLine for Live {
    fn head(&self) -> String {
        let shorts: String = ALL.map(|tx| format!("{:<6}", tx.short())).concat();
        format!("{:<9}{:<12}{:<9}{:<8}{:<9}{:<11}{shorts}", "Time", "Users", "TPM", "TPS", "Errors", "Response")
            .trim_end()
            .to_owned()
    }

    fn line(&mut self, now: &Snapshot) -> String {
        let driver = &now.driver;
        let ended = driver.ops_ended();
        self.ended.push_back((now.at_ns, ended));
        while self.ended.len() > 2 && self.ended[1].0 + MINUTE_NS <= now.at_ns {
            self.ended.pop_front();
        }
        let per_minute = ended.saturating_sub(self.ended[0].1);
        let none = Snapshot::default();
        let before = self.before.as_ref().unwrap_or(&none);
        let window = driver.difference(&before.driver);
        let elapsed_s = now.at_ns.saturating_sub(before.at_ns).max(1) as f64 / 1e9;
        for op in &window.ops {
            let at = ALL.iter().position(|tx| tx.key() == op.kind);
            if let (Some(at), Some(ns)) = (at, op.response.mean_ns()) {
                self.newest[at] = (ns / 1e6).round() as u64;
            }
        }
        let (sum, count) = driver
            .ops
            .iter()
            .fold((0, 0), |(sum, count), op| (sum + op.response.sum_ns(), count + op.response.count()));
        let errors: u64 = driver.errors.values().sum();
        let newest: String = self.newest.map(|ms| format!("{ms:<6}")).concat();
        let line = format!(
            "{:<9}{:<12}{:<9}{:<8}{:<9}{:<11}{newest}",
            now.wall.get(11..19).unwrap_or_default(),
            format!("[{}/{}]", driver.sessions_active, self.sessions),
            per_minute,
            (window.ops_ended() as f64 / elapsed_s).round() as u64,
            errors,
            sum.checked_div(count * 1_000_000).unwrap_or(0),
        );
        self.before = Some(now.clone());
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::histogram::Histogram;
    use assay_measure::snapshot::OpReading;

    fn at(s: u64, ops: u64) -> Snapshot {
        let mut times = Histogram::new();
        times.record_n(5_000_000, ops);
        let mut now =
            Snapshot { at_ns: s * 1_000_000_000, wall: "2026-01-02T16:34:08.5Z".to_owned(), ..Snapshot::default() };
        now.driver.sessions_active = 4;
        now.driver.ops =
            vec![OpReading { kind: "order_products".to_owned(), rows: 0, service: times.clone(), response: times }];
        now
    }

    #[test]
    fn rates_rise_over_the_first_minute_and_then_look_back_sixty_seconds() {
        let mut live = Live::new(4);
        assert_eq!(
            live.line(&at(1, 100)),
            "16:34:08 [4/4]       100      100     0        5          0     0     0     5     0     0     0     0     0"
        );
        for s in 2..=120 {
            live.line(&at(s, 100 * s));
        }
        let line = live.line(&at(121, 12_150));
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[2..4], ["6050", "150"]);
        assert!(live.head().ends_with("SQ    WQ    WA"));
    }
}
