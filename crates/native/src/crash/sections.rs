//! The report of recovery as a figure.

use super::RecoveryInfo;
use assay_measure::record::Record;
use assay_measure::section::common as header;
use assay_measure::section::{Cell, Column, Sections, number, number_or_reason, right};
use assay_measure::units::{size, thousands};

/// The whole report.
pub(super) fn render(record: &Record, info: &RecoveryInfo) -> Sections {
    let mut page = Sections::default();
    let run = &record.run;
    page.title(&format!("ASSAY RECOVERY REPORT for run {}: {} on {}", run.id, run.workload, run.engine));
    page.line(&format!("assay {}, started {}. {}", run.version, run.started, header::verdict(record)));
    page.wrapped(
        "",
        &format!(
            "A process with {} sessions, one in each schema, updates without pause (COMMIT_MODE {}); assay kills it \
             with SIGKILL while checkpoints keep the given distance. assay then opens the data set again, compares \
             every row with the journal of acknowledged commits (not part of the times), and continues the same \
             load. Times count from the open. MB is 10^6 bytes.",
            info.sessions_count, info.commit_mode
        ),
    );
    header::warnings(&mut page, record);
    header::advice(&mut page, record);
    kills(&mut page, info);
    losses(&mut page, info);
    page.heading("Line Through the Kills");
    page.line(&format!(
        "first commit = {} s + {} s per MiB of log; for {} s: {} of log, LOG_CHECKPOINT_INTERVAL {}{}",
        number_or_reason(&info.fixed_s, 3),
        number_or_reason(&info.per_mib_s, 5),
        number(&info.rto_wanted_s, 1),
        info.recommended_distance_bytes.value().map_or_else(|| "n/a".to_owned(), |bytes| size(bytes as u64)),
        number(&info.recommended_interval_blocks, 0),
        if info.is_projection { " (projection, untested)" } else { "" }
    ));
    header::parameters(&mut page, record);
    page
}

fn kills(page: &mut Sections, info: &RecoveryInfo) {
    page.heading("Kill by Kill: Times");
    const TABLE: [Column; 12] = [
        right("Distance", 10),
        right("load s", 8),
        right("old tx/s", 11),
        right("age MiB", 10),
        right("replayed MiB", 14),
        right("blocks read", 13),
        right("written", 10),
        right("recovery s", 12),
        right("MB/s", 9),
        right("open s", 9),
        right("1st commit s", 14),
        right("95 % rate s", 13),
    ];
    page.columns(&TABLE);
    for step in &info.steps {
        page.row(
            &TABLE,
            &[
                size(step.distance_bytes).into(),
                Cell::figure(&step.load_s, 1),
                Cell::figure(&step.old_commits_per_s, 0),
                Cell::figure(&step.age_at_kill_bytes.scaled(1.0 / 1_048_576.0), 1),
                Cell::figure(&step.replayed_bytes.scaled(1.0 / 1_048_576.0), 1),
                Cell::figure(&step.blocks_read_count, 0),
                Cell::figure(&step.blocks_written_count, 0),
                Cell::figure(&step.recovery_s, 3),
                Cell::figure(&step.replay_mb_per_s, 1),
                Cell::figure(&step.open_s, 3),
                Cell::figure(&step.first_commit_s, 3),
                Cell::figure(&step.rate_95_s, 1),
            ],
        );
        for figure in [&step.replayed_bytes, &step.first_commit_s, &step.rate_95_s] {
            if let Some(reason) = figure.reason() {
                page.wrapped("           ", &format!("n/a ({reason})"));
            }
        }
    }
}

fn losses(page: &mut Sections, info: &RecoveryInfo) {
    page.heading("Kill by Kill: Commits");
    const TABLE: [Column; 7] = [
        right("Distance", 10),
        right("acknowledged", 14),
        right("lost", 8),
        right("half there", 12),
        right("unreported, there", 19),
        right("rolled back", 13),
        right("rows compared", 15),
    ];
    page.columns(&TABLE);
    for step in &info.steps {
        page.row(
            &TABLE,
            &[
                size(step.distance_bytes).into(),
                thousands(step.acknowledged_count).into(),
                thousands(step.lost_count).into(),
                thousands(step.half_there_count).into(),
                thousands(step.unacknowledged_there_count).into(),
                Cell::figure(&step.rolled_back_count, 0),
                thousands(step.rows_compared_count).into(),
            ],
        );
    }
}
