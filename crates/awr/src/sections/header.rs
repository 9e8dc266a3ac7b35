//! Title, snapshots, integrity, warnings, advice and parameters.

use assay_measure::record::{Figure, Record};
pub(crate) use assay_measure::section::common::{advice, identities, integrity, label, parameters, verdict, warnings};
use assay_measure::section::{Cell, Column, Sections, left, number, number_or_reason, right};

pub(crate) fn title(page: &mut Sections, record: &Record) {
    let run = &record.run;
    let label = label(record);
    page.title(&format!("ASSAY WORKLOAD REPORT for run {}{label}: {} on {}", run.id, run.workload, run.engine));
    const IDENTITY: [Column; 7] = [
        left("Run", 14),
        left("Workload", 12),
        left("Target", 12),
        left("Version", 12),
        left("Started", 28),
        right("Sessions", 10),
        right("Seed", 22),
    ];
    page.columns(&IDENTITY);
    page.row(
        &IDENTITY,
        &[
            run.id.clone().into(),
            run.workload.clone().into(),
            run.engine.clone().into(),
            version(record).into(),
            wall(&run.started).into(),
            Cell::figure(&Figure::Count(run.sessions), 0),
            run.seed.to_string().into(),
        ],
    );
    if record.instance.server.is_some() {
        page.line(&format!("Measured and reported by assay {}.", run.version));
    }
    page.line("");
    snapshots(page, record);
    page.line("");
    page.line("n/a (reason): the figure cannot be known. 0 is an observed zero. MB is 2^20 bytes.");
    page.line(&verdict(record));
    if run.fixed_iterations {
        page.line("Fixed iterations (WORK_LOOP): the window is the time that the sessions took.");
    }
}

/// The version of what was measured: a server's own number, else ours, whose engine it was.
fn version(record: &Record) -> String {
    let server = record.instance.server.as_ref();
    let told = server.and_then(|server| server.version.split_whitespace().next());
    told.map_or_else(|| format!("assay {}", record.run.version), str::to_owned)
}

/// A wall time to the millisecond: it is a label, durations come from elsewhere.
fn wall(text: &str) -> String {
    match text.split_once('.') {
        Some((seconds, fraction)) => {
            let (digits, zone) =
                fraction.split_at(fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len()));
            format!("{seconds}.{digits:.3}{zone}")
        }
        None => text.to_owned(),
    }
}

fn snapshots(page: &mut Sections, record: &Record) {
    let interval = &record.interval;
    const SNAPSHOTS: [Column; 4] =
        [left("", 12), left("Snap Time", 32), right("After Gate (s)", 16), right("Sessions", 10)];
    page.columns(&SNAPSHOTS);
    let row = |name: &str, wall: &str, at: &Figure, sessions: &Figure| {
        [name.to_owned(), self::wall(wall), number(at, 3), number(sessions, 0)]
    };
    page.row(&SNAPSHOTS, &row("Begin Snap", &interval.begin, &interval.begin_s, &interval.sessions_begin_count));
    page.row(&SNAPSHOTS, &row("  End Snap", &interval.end, &interval.end_s, &interval.sessions_end_count));
    let minutes = |seconds: &Figure| {
        format!("{:>16} (mins) {:>16} (s)", number(&seconds.scaled(1.0 / 60.0), 2), number(seconds, 3))
    };
    page.line(&format!("   Elapsed: {}", minutes(&interval.elapsed_s)));
    page.line(&format!("   DB Time: {}", minutes(&record.instance.time_model.db_time_us.scaled(1e-6))));
    page.line(&format!(
        "Snapshots took up to {} ms to collect; sessions were active for {} % of the window.",
        number(&interval.skew_ms, 2),
        number_or_reason(&interval.worker_active_fraction.scaled(100.0), 2)
    ));
}

/// A percentage with one decimal.
pub(crate) fn percent(figure: &Figure) -> Cell {
    Cell::figure(figure, 1)
}
