//! R43: most transactions were rollbacks.

use super::*;

const MOST_PCT: f64 = 50.0;
const HIGH_PCT: f64 = 90.0;
/// Of fewer transactions a share says little.
const LEAST: f64 = 100.0;

pub(super) const RULE: Rule = Rule {
    id: "R43",
    title: "Most transactions were rollbacks",
    changes_figures: true,
    fires_when: || {
        format!(
            "Rollbacks are more than {MOST_PCT} % of at least {LEAST} commits and rollbacks; high above {HIGH_PCT} %"
        )
    },
    why: "Transactions per second and the work of a transaction count each of them; some clients and connection pools \
          send a rollback when there is nothing to undo.",
    what_to_do: "Compare commits or executions, not transactions, and find out which program rolls back.",
    cannot_judge_when: "Commits or rollbacks are n/a, or there are fewer transactions.",
    source: "What the reference of AWR's statistics says of user rollbacks and transaction rollbacks; the limits are decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let (rollbacks, all) = counted(record)?;
    let pct = 100.0 * rollbacks / all;
    // No transaction gives no share.
    if pct.is_nan() || pct <= MOST_PCT {
        return Ok(None);
    }
    if all < LEAST {
        return Err(Missing(format!("share of rollbacks: {} transactions are too few", fixed(all, 0))));
    }
    let undid = stat(record, "transaction_rollbacks_count").ok();
    let text = format!(
        "{} % of the transactions were rollbacks ({} of {}).{} {}",
        fixed(pct, 1),
        thousands(rollbacks as u64),
        thousands(all as u64),
        said(&[undid.map(|undid| format!("{} of them undid changes", thousands(undid as u64)))]),
        RULE.why
    );
    let evidence = [("rollbacks_pct", pct), ("rollbacks_count", rollbacks), ("transactions_count", all)];
    Ok(Some(RULE.advise(pct > HIGH_PCT, text, &evidence)))
}

/// Rollbacks, and transactions in all: as the statistics count them, else as the load profile has them.
fn counted(record: &Record) -> Result<(f64, f64), Missing> {
    if let (Ok(commits), Ok(rollbacks)) = (stat(record, "user_commits_count"), stat(record, "user_rollbacks_count")) {
        return Ok((rollbacks, commits + rollbacks));
    }
    let total = |name: &str| {
        let row = record.instance.load_profile.iter().find(|row| row.name == name);
        need(&row.ok_or_else(|| Missing(format!("{name}: absent")))?.total, name)
    };
    Ok((total("Rollbacks")?, total("Transactions")?))
}
