//! R34: driver and server share the host.

use super::*;

const DRIVER: f64 = 20.0;
const BUSY: f64 = 90.0;

pub(super) const RULE: Rule = Rule {
    id: "R34",
    title: "Driver and server share the host",
    changes_figures: true,
    fires_when: || {
        format!(
            "The host is at least {BUSY} % busy and the driver threads take at least {DRIVER} % of its CPU time; high from twice that"
        )
    },
    why: "The figures are those of server and load generator together.",
    what_to_do: "Drive the server from another host, increase WORK_UNIT, or use LOOP=server.",
    cannot_judge_when: "Never: without a server, or without its figures, the rule is silent.",
    source: "Decided here.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let server = record.instance.server.as_ref();
    let driver = server.and_then(|server| server.driver_of_host_pct.value());
    let (Some(driver), Ok(busy)) = (driver, busy(record)) else {
        return Ok(None);
    };
    if driver < DRIVER || busy < BUSY {
        return Ok(None);
    }
    let text = format!(
        "The host's CPUs were {} % busy and the driver threads took {} % of them: a server on this host had less CPU, \
         and the load generator limits throughput in part.",
        fixed(busy, 1),
        fixed(driver, 1)
    );
    fired(&RULE, driver, DRIVER, text, &[("driver_of_host_pct", driver), ("busy_pct", busy)])
}
