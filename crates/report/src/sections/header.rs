//! Title, snapshots, integrity, warnings, advice and parameters.

use crate::integrity::violated;
use assay_measure::record::{Figure, Record, Truth};
pub(crate) use assay_measure::section::common::{advice, label, verdict, warnings};
use assay_measure::section::{
    Cell, Column, Sections, Weight, left, number, number_or_reason, right, wrapped,
};

pub(crate) fn title(page: &mut Sections, record: &Record) {
    let run = &record.run;
    let label = label(record);
    page.title(&format!(
        "ASSAY WORKLOAD REPORT for run {}{label}: {} on {}",
        run.id, run.workload, run.engine
    ));
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
    page.line(
        "n/a (reason) is a figure that cannot be known; 0 is an observed zero. MB is 2^20 bytes.",
    );
    page.line(&verdict(record));
    if run.fixed_iterations {
        page.line("Fixed iterations (WORK_LOOP): the window is the time the sessions took.");
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
            let (digits, zone) = fraction.split_at(
                fraction
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(fraction.len()),
            );
            format!("{seconds}.{digits:.3}{zone}")
        }
        None => text.to_owned(),
    }
}

fn snapshots(page: &mut Sections, record: &Record) {
    let interval = &record.interval;
    const SNAPSHOTS: [Column; 4] = [
        left("", 12),
        left("Snap Time", 32),
        right("After Gate (s)", 16),
        right("Sessions", 10),
    ];
    page.columns(&SNAPSHOTS);
    let row = |name: &str, wall: &str, at: &Figure, sessions: &Figure| {
        [
            name.to_owned(),
            self::wall(wall),
            number(at, 3),
            number(sessions, 0),
        ]
    };
    page.row(
        &SNAPSHOTS,
        &row(
            "Begin Snap",
            &interval.begin,
            &interval.begin_s,
            &interval.sessions_begin_count,
        ),
    );
    page.row(
        &SNAPSHOTS,
        &row(
            "  End Snap",
            &interval.end,
            &interval.end_s,
            &interval.sessions_end_count,
        ),
    );
    let minutes = |seconds: &Figure| {
        format!(
            "{:>16} (mins) {:>16} (s)",
            number(&seconds.scaled(1.0 / 60.0), 2),
            number(seconds, 3)
        )
    };
    page.line(&format!("   Elapsed: {}", minutes(&interval.elapsed_s)));
    page.line(&format!(
        "   DB Time: {}",
        minutes(&record.instance.time_model.db_time_us.scaled(1e-6))
    ));
    page.line(&format!(
        "Snapshots took up to {} ms to collect; sessions were active for {} % of the window.",
        number(&interval.skew_ms, 2),
        number_or_reason(&interval.worker_active_fraction.scaled(100.0), 2)
    ));
}

pub(crate) fn integrity(page: &mut Sections, record: &Record) {
    page.judgement("Integrity");
    if record.integrity.is_empty() {
        page.line("n/a (no identity was evaluated)");
        return;
    }
    let count = |is: fn(&Truth) -> bool| record.integrity.iter().filter(|i| is(&i.ok)).count();
    let unknown = count(|ok| matches!(ok, Truth::Na(_)));
    let violations = violated(record);
    page.line(&format!(
        "{} identities hold, {} violated, {unknown} n/a; all are listed under Integrity Detail.",
        count(|ok| *ok == Truth::Holds),
        violations.len(),
    ));
    for identity in violations {
        let (weight, word) = match identity.exact {
            true => (Weight::Bad, "VIOLATED, A BUG OF ASSAY"),
            false => (Weight::Warning, "violated"),
        };
        page.finding(
            weight,
            &format!("{:<5} ", identity.id),
            &format!(
                "{word}: {} ({}): {}",
                identity.rule, identity.scope, identity.sentence
            ),
        );
    }
}

pub(crate) fn identities(page: &mut Sections, record: &Record) {
    page.heading("Integrity Detail");
    page.line("exact: a violation is a bug of assay; whole run: gate to drained, threads quiet; window: begin to end.");
    const IDENTITIES: [Column; 5] = [
        left("Identity", 5),
        left("State", 9),
        left("Kind", 6),
        left("Scope", 10),
        wrapped("Rule and Outcome"),
    ];
    page.untitled(&IDENTITIES);
    let mut others = 0_u64;
    for identity in &record.integrity {
        if record.instance.server.is_some() && is_of_others(&identity.ok) {
            others += 1;
            continue;
        }
        let state = match (&identity.ok, identity.exact) {
            (Truth::Holds, _) => "holds",
            (Truth::Violated, true) => "VIOLATED",
            (Truth::Violated, false) => "violated",
            (Truth::Na(_), _) => "n/a",
        };
        page.row(
            &IDENTITIES,
            &[
                identity.id.clone(),
                state.to_owned(),
                if identity.exact { "exact" } else { "" }.to_owned(),
                identity.scope.clone(),
                format!("{}: {}", identity.rule, identity.sentence),
            ],
        );
    }
    if others > 0 {
        page.line(&format!(
            "Left out: {others} identities of figures this target has no notion of; the record has them."
        ));
    }
}

/// Whether an identity is about something the target does not count at all.
fn is_of_others(ok: &Truth) -> bool {
    matches!(ok, Truth::Na(reason) if reason.ends_with("unsupported"))
}

pub(crate) fn parameters(page: &mut Sections, record: &Record) {
    page.heading("Parameters");
    const PARAMETERS: [Column; 3] = [left("Parameter", 28), left("Value", 42), left("Origin", 30)];
    if record.plan.settings.is_empty() {
        page.line("n/a (absent)");
    } else {
        page.columns(&PARAMETERS);
    }
    for line in &record.plan.settings {
        let value = if line.value.is_empty() {
            "(unset)"
        } else {
            line.value.as_str()
        };
        page.row(
            &PARAMETERS,
            &[line.name.clone(), value.to_owned(), line.origin.clone()],
        );
    }
    const FACTS: [Column; 2] = [left("Fact", 36), left("Value", 60)];
    for (title, facts) in [
        ("Engine Facts", &record.plan.engine_facts),
        ("Host Facts", &record.host.facts),
    ] {
        if facts.is_empty() {
            page.missing(title, "absent");
            continue;
        }
        page.heading(title);
        page.columns(&FACTS);
        for fact in facts {
            page.row(&FACTS, &[fact.name.clone(), fact.value.clone()]);
        }
    }
}

/// A percentage with one decimal.
pub(crate) fn percent(figure: &Figure) -> Cell {
    Cell::figure(figure, 1)
}
