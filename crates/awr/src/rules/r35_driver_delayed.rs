//! R35: the driver threads waited for a CPU.

use super::*;

const DELAY: f64 = 0.05;

pub(super) const RULE: Rule = Rule {
    id: "R35",
    title: "The driver threads waited for a CPU",
    changes_figures: true,
    fires_when: || {
        format!(
            "Driver threads were ready but without a CPU for more than {DELAY} of their time; high from twice that. One thread without a server, on a host with CPUs to spare, is exempt"
        )
    },
    why: "Wait times include that delay.",
    what_to_do: "Repeat the run on an idle host, use fewer DRIVER_THREADS, or drive a server from another host.",
    cannot_judge_when: "Never: where the kernel does not account run delay the rule is silent.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let threads = record.driver.threads_count as f64;
    let (Some(delay), Some(elapsed)) = (record.driver.thread_run_delay_s.value(), record.interval.elapsed_s.value())
    else {
        return Ok(None);
    };
    let part = Some(delay / (threads * elapsed)).filter(|part| part.is_finite()).unwrap_or(0.0);
    // The threads that drive a server's sessions do little: it is the server that takes the CPUs.
    let Some(who) = delayed_by(record, record.instance.server.is_some()).filter(|_| part > DELAY) else {
        return Ok(None);
    };
    let pct = 100.0 * part;
    let text = format!(
        "The driver threads were ready but without a CPU for {} % of the window, and wait times include that delay: {who}.",
        fixed(pct, 1)
    );
    Ok(Some(RULE.finding(part >= 2.0 * DELAY, text, &[("thread_run_delay_pct", pct)])))
}

/// Whose work kept the driver threads from a CPU, and the way out; `None` where nobody's did: one thread on a host with
/// CPUs to spare waits for the CPU that wakes for it, as every program does that sleeps until the device answers.
fn delayed_by(record: &Record, is_server: bool) -> Option<String> {
    /// Below this the host had CPUs left, %.
    const BUSY_PCT: f64 = 80.0;
    let shares = cpu::shares(record);
    let others = shares.is_some_and(|shares| shares.others >= cpu::OTHERS_PCT);
    let is_busy = shares.is_none_or(|shares| shares.busy - shares.steal >= BUSY_PCT);
    if !others && shares.is_some_and(|shares| shares.steal >= cpu::STEAL_PCT) {
        return Some(
            "the hypervisor withheld CPU time; repeat the run at another time, or with dedicated CPUs".to_owned(),
        );
    }
    if !others && !is_busy && !is_server && record.driver.threads_count == 1 {
        return None;
    }
    let (and_processes, or_elsewhere) = match facts::IN_PROCESS.find(&record.plan.engine_facts) {
        Some(_) => ("", ""),
        None => (" and the server's processes", ", or drive the server from another host"),
    };
    let who = match (others, is_busy, is_server) {
        (true, _, true) => {
            return Some(format!(
                "other work on this host took CPU time; repeat the run on an idle host{or_elsewhere}"
            ));
        }
        (true, _, false) => {
            "other work on this host took CPU time; repeat the run on an idle host, or with fewer \
            DRIVER_THREADS"
        }
        (false, true, true) => {
            return Some(format!("they{and_processes} shared the CPUs; use fewer sessions{or_elsewhere}"));
        }
        (false, true, false) => "they waited for each other; use fewer DRIVER_THREADS",
        (false, false, true) => {
            return Some(format!(
                "they{and_processes} waited for each other on one CPU while another was idle; use fewer sessions{or_elsewhere}"
            ));
        }
        (false, false, false) => {
            "they waited for each other on one CPU while another was idle, since the kernel wakes a thread where the device's interrupt arrives; try DRIVER_THREADS=1"
        }
    };
    Some(who.to_owned())
}
