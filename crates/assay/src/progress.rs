//! Progress on stderr: one redrawn line on a terminal, a line every ten seconds otherwise.

use crate::ui;
use assay_measure::counter_catalog::{PHYSICAL_READ_REQUESTS, PHYSICAL_READ_TOTAL_BYTES, PHYSICAL_WRITE_TOTAL_BYTES};
use assay_measure::snapshot::Snapshot;
use assay_measure::units;
use assay_run::engine::Progress;
use assay_run::workload::LiveLine;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Redraws a second, at most.
const REDRAWS_HZ: u8 = 5;
/// Between two lines where nothing can be redrawn.
const LINE_EVERY: Duration = Duration::from_secs(10);
const NS_PER_S: f64 = 1e9;
/// A rate over less than this is noise, s.
const LEAST_RATED_S: f64 = 0.1;

/// `18 s`, `4 min`, `1 h 20 min`: how long something still takes.
pub(crate) fn left(seconds: f64) -> String {
    let s = seconds.max(0.0).ceil() as u64;
    match s {
        0..100 => format!("{s} s"),
        100..6000 => format!("{} min", s.div_ceil(60)),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// `42 %`: never all before the end.
pub(crate) fn share(done: f64, all: f64) -> String {
    let pct = if all > 0.0 { 100.0 * done / all } else { 0.0 };
    format!("{:.0} %", pct.clamp(0.0, 99.0).floor())
}

/// A line that is redrawn, or written now and then.
pub(crate) struct Line {
    bar: Option<ProgressBar>,
    written: Option<Instant>,
}

impl Line {
    pub(crate) fn new() -> Self {
        let bar = ui::is_live().then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_HZ);
            let bar = ProgressBar::with_draw_target(None, target);
            bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is legal"));
            bar
        });
        Self { bar, written: None }
    }

    /// Shows `text`, if it is time.
    pub(crate) fn show(&mut self, text: &str) {
        if ui::held(|held| text.clone_into(&mut held.progress)).is_some() {
            return;
        }
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
        } else if self.written.is_none_or(|at| at.elapsed() >= LINE_EVERY) {
            self.written = Some(Instant::now());
            ui::say(text);
        }
    }

    /// Lets the next text pass, however soon it comes.
    pub(crate) fn due(&mut self) {
        self.written = None;
    }

    /// Writes a line of its own, above the one that is redrawn; a view has better ones.
    pub(crate) fn above(&mut self, text: &str) {
        if ui::held(|held| text.clone_into(&mut held.progress)).is_some() {
            return;
        }
        match &self.bar {
            Some(bar) => bar.println(text),
            None => ui::say(text),
        }
    }

    /// Leaves the terminal as it was.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.as_ref().filter(|_| ui::held(|_| ()).is_none()) {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The live figures of a run, from its snapshots.
pub(crate) struct Live {
    line: Line,
    phase: String,
    previous: Option<Snapshot>,
    /// From where percentiles are taken: a fifth of a second has too few operations for them.
    calm: [Option<Snapshot>; 2],
    /// When the run ends, ns after the gate; `None` if it counts operations.
    ends_ns: Option<u64>,
    /// The workload's own line in place of this one; whether its head was shown.
    own: Option<(Box<dyn LiveLine>, bool)>,
}

/// The run's line is written this often where it cannot be redrawn, ns of the run.
const LINE_EVERY_NS: u64 = 10_000_000_000;
/// Rates over less than this are noise, ns.
const LEAST_WINDOW_NS: u64 = 200_000_000;

impl Live {
    pub(crate) fn new(ends_ns: Option<u64>) -> Self {
        Self { line: Line::new(), phase: String::new(), previous: None, calm: [None, None], ends_ns, own: None }
    }

    /// Shows the workload's own line.
    pub(crate) fn by(mut self, own: Option<Box<dyn LiveLine>>) -> Self {
        self.own = own.map(|own| (own, false));
        self
    }

    pub(crate) fn phase(&mut self, name: &str) {
        name.clone_into(&mut self.phase);
    }

    /// Shows the figures since the snapshot shown last, if it is time.
    pub(crate) fn snapshot(&mut self, now: &Snapshot) {
        let own = self.own.as_mut().map(|(own, _)| own.line(now));
        let [older, newer] = &mut self.calm;
        if newer.as_ref().is_none_or(|at| now.at_ns >= at.at_ns + LINE_EVERY_NS) {
            *older = newer.replace(now.clone());
        }
        let Some(before) = &self.previous else {
            self.previous = Some(now.clone());
            return;
        };
        let least_ns = if self.line.bar.is_some() { LEAST_WINDOW_NS } else { LINE_EVERY_NS - LEAST_WINDOW_NS };
        if now.at_ns < before.at_ns + least_ns {
            return;
        }
        self.line.due();
        if let Some(text) = own {
            self.show_own(&text);
            self.previous = Some(now.clone());
            return;
        }
        let calm = self.calm.iter().flatten().next().unwrap_or(before);
        let p99 = now.driver.difference(&calm.driver).service().percentile_ns(0.99);
        self.line.show(&describe(&self.phase, before, now, p99, self.ends_ns));
        self.previous = Some(now.clone());
    }

    /// A line above the one before, and a head above the first.
    fn show_own(&mut self, text: &str) {
        if let Some((own, headed)) = &mut self.own
            && !std::mem::replace(headed, true)
        {
            self.line.above(&own.head());
        }
        self.line.above(text);
    }

    pub(crate) fn clear(&mut self) {
        self.line.clear();
    }
}

/// `measure  12,345 ops/s  790,080 reads/s  6,472.3 MB/s  p99 1.23 ms  62 %  18 s left`, the 99th percentile of the last ten to twenty seconds
fn describe(phase: &str, before: &Snapshot, now: &Snapshot, p99: Option<u64>, ends_ns: Option<u64>) -> String {
    let elapsed = (now.at_ns - before.at_ns) as f64 / NS_PER_S;
    let window = now.driver.difference(&before.driver);
    let rate = |count: u64| units::thousands((count as f64 / elapsed).round() as u64);
    let counted = |stat| {
        let earlier = before.stats.get(stat).unwrap_or(0);
        now.stats.get(stat).map(|count| count.saturating_sub(earlier))
    };
    let mut parts = vec![format!("{phase:<8}"), format!("{} ops/s", rate(window.ops_ended()))];
    if let Some(reads) = counted(PHYSICAL_READ_REQUESTS) {
        parts.push(format!("{} reads/s", rate(reads)));
    }
    let moved = [PHYSICAL_READ_TOTAL_BYTES, PHYSICAL_WRITE_TOTAL_BYTES].map(counted);
    if moved.iter().any(Option::is_some) {
        let bytes: u64 = moved.iter().flatten().sum();
        parts.push(format!("{} MB/s", units::fixed(bytes as f64 / elapsed / 1e6, 1)));
    }
    if let Some(p99) = p99 {
        parts.push(format!("p99 {}", units::duration(p99)));
    }
    if let Some(ends_ns) = ends_ns {
        let left_ns = ends_ns.saturating_sub(now.at_ns);
        parts.push(share(now.at_ns as f64, ends_ns as f64));
        parts.push(format!("{} left", left(left_ns as f64 / NS_PER_S)));
    }
    parts.join("  ")
}

/// Progress of prepare, check and recovery: bytes, rate and time to go.
pub(crate) struct Bytes {
    state: Mutex<BytesState>,
}

struct BytesState {
    line: Line,
    phase: String,
    /// When the phase began: at the last word of the one before.
    begun: Instant,
    latest: Instant,
}

impl Bytes {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(BytesState {
                line: Line::new(),
                phase: String::new(),
                begun: Instant::now(),
                latest: Instant::now(),
            }),
        }
    }
}

impl Progress for Bytes {
    fn update(&self, phase: &str, done_bytes: u64, total_bytes: u64) {
        // A thread that panicked while it held the line spoils nothing but the line.
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if state.phase != phase {
            phase.clone_into(&mut state.phase);
            state.begun = state.latest;
            state.line.due();
        }
        state.latest = Instant::now();
        let elapsed = state.begun.elapsed().as_secs_f64();
        if total_bytes == 0 {
            // Work whose end is not known in bytes.
            state.line.show(phase);
            return;
        }
        let mut text = format!("{phase:<12}  {} of {}", units::size(done_bytes), units::size(total_bytes));
        if done_bytes > 0 && elapsed > LEAST_RATED_S {
            let rate = done_bytes as f64 / elapsed;
            let left = total_bytes.saturating_sub(done_bytes) as f64 / rate;
            text.push_str(&format!(
                "  {} MB/s  {}  {} left",
                units::fixed(rate / 1e6, 1),
                share(done_bytes as f64, total_bytes as f64),
                self::left(left)
            ));
        }
        state.line.show(&text);
    }
}
