//! What follows from a redo test, in plain words.

use super::demand::{self, CARRIED, FILE_OF_ZEROS, NO_REDO, carried, file_of_zeros, no_redo};
use super::info::RedoInfo;
use crate::rules;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::section::number;
use assay_measure::units::{fixed, many, thousands, told};
use assay_measure::{cap, cpu};

/// The rules with what judges them, in the order in which findings are read.
pub(super) const RULES: &Judges<RedoInfo> = &[
    (NO_REDO, no_redo),
    (FILE_OF_ZEROS, file_of_zeros),
    (OTHER_WRITES, other_writes),
    (STANDBY_LOST, standby_lost),
    (ONE_HOST, one_host),
    (SEVERAL_UNDER_WAY, several_under_way),
    (BACKLOG, backlog),
    (DISTURBED, |record, _| rules::disturbed(&DISTURBED, record)),
    (cap::RULE, |record, _| cap::judge(record)),
    (DISTANCE, distance),
    (SESSION, session),
    (SUMS, sums),
    (CARRIED, carried),
];

const OTHER_WRITES: Rule = Rule {
    id: "RT8",
    title: "The standby wrote otherwise than asked",
    changes_figures: true,
    fires_when: || {
        "The standby could not open its log for direct and synchronous writes, and wrote in another way".to_owned()
    },
    why: "The figures of its disk describe that way of writing.",
    what_to_do: "Put the log of the standby on a file system with direct I/O.",
    cannot_judge_when: "Never: the standby tells.",
    source: "Decided here.",
};

fn other_writes(_: &Record, info: &RedoInfo) -> Option<Advice> {
    (!info.write_why.is_empty()).then(|| {
        let text = format!("The standby wrote by {} instead of direct-dsync: {}.", info.write, info.write_why);
        OTHER_WRITES.explain(false, text, &[])
    })
}

const STANDBY_LOST: Rule = Rule {
    id: "RT9",
    title: "A standby was lost",
    changes_figures: true,
    fires_when: || "A standby closed, was silent for --timeout, or fell --max-lag behind; always high".to_owned(),
    why: "From then on no commit waited for it.",
    what_to_do: "Find out why, and repeat the test.",
    cannot_judge_when: "Never: every loss is told.",
    source: "Decided here.",
};

fn standby_lost(_: &Record, info: &RedoInfo) -> Option<Advice> {
    let lost = info.standbys.iter().filter(|one| !one.lost.is_empty());
    let each: Vec<String> = lost
        .map(|standby| {
            format!("{} was lost {} s after the start: {}.", standby.name, number(&standby.lost_s, 1), standby.lost)
        })
        .collect();
    let evidence = [("lost_standbys_count", each.len() as f64)];
    (!each.is_empty()).then(|| STANDBY_LOST.advise(true, each.join(" "), &evidence))
}

const ONE_HOST: Rule = Rule {
    id: "RT10",
    title: "The standby is this host",
    changes_figures: true,
    fires_when: || "The address of a standby is on loopback; always high".to_owned(),
    why: "Its figures include no network, and both ends share the CPUs.",
    what_to_do: "Run the standby on another host.",
    cannot_judge_when: "The standby is named by a host name other than localhost, or by another address of this host: then the rule is silent.",
    source: "Decided here.",
};

fn one_host(_: &Record, info: &RedoInfo) -> Option<Advice> {
    let is_here = info.standbys.iter().any(|one| super::is_here(&one.name));
    is_here.then(|| ONE_HOST.explain(true, "A standby is this host.", &[]))
}

const SEVERAL_UNDER_WAY: Rule = Rule {
    id: "RT11",
    title: "Several messages were in flight",
    changes_figures: true,
    fires_when: || "More than one message was in flight at once (--inflight)".to_owned(),
    why: "A log writer has only one message in flight, so this is not a commit latency.",
    what_to_do: "Read the throughput, or measure a commit with one message in flight.",
    cannot_judge_when: "Never: the number is known.",
    source: "Decided here.",
};

fn several_under_way(_: &Record, info: &RedoInfo) -> Option<Advice> {
    (info.inflight_count > 1).then(|| {
        let count = info.inflight_count;
        let text = format!("{count} messages were in flight at once.");
        SEVERAL_UNDER_WAY.explain(false, text, &[("inflight_count", count as f64)])
    })
}

const BACKLOG: Rule = Rule {
    id: "RT12",
    title: "The rate was not kept",
    changes_figures: true,
    fires_when: || "A message or commit was due and not sent when the time was over".to_owned(),
    why: "Latencies grow with the length of the test.",
    what_to_do: "Ask for a lower rate.",
    cannot_judge_when: "No rate was asked for: then the rule is silent.",
    source: "Decided here.",
};

fn backlog(_: &Record, info: &RedoInfo) -> Option<Advice> {
    let count = info.backlog_count.value().filter(|count| *count >= 1.0)?;
    let text = format!(
        "The rate was not kept: {} unsent at the end.",
        many(count as u64, if demand::is_grouped(info) { "commit" } else { "message" })
    );
    Some(BACKLOG.explain(false, text, &[("backlog_count", count)]))
}

const DISTURBED: Rule = rules::of_other_load("RT13", cpu::disturbs, "Latencies include waiting for a CPU.");

/// SYNC transport works best below this round trip, us; beyond twice it ASYNC or a near relay does better.
const SYNC_RTT_US: f64 = 5_000.0;

const DISTANCE: Rule = Rule {
    id: "RT2",
    title: "How far the standby is for SYNC",
    changes_figures: false,
    fires_when: || {
        format!("In SYNC the shortest round trip takes at least {} ms; high from twice that", SYNC_RTT_US / 1e3)
    },
    why: "Each commit waits for at least this round trip.",
    what_to_do: "If commits cannot wait that long, use ASYNC, or a relay near the primary (Far Sync).",
    cannot_judge_when: "The kernel tells no shortest round trip, or the mode is ASYNC: then the rule is silent.",
    source: "Oracle's advice for Data Guard: SYNC succeeds most often below 5 ms; beyond 10 ms ASYNC or a relay does better.",
};

fn distance(_: &Record, info: &RedoInfo) -> Option<Advice> {
    let mut standbys = info.standbys.iter();
    let rtt = standbys.find_map(|one| one.min_rtt_us.value())?;
    if info.mode == "async" || rtt < SYNC_RTT_US {
        return None;
    }
    let text = format!(
        "The round trip takes at least {} ms; SYNC transport succeeds most often below {} ms.",
        fixed(rtt / 1e3, 1),
        SYNC_RTT_US / 1e3
    );
    Some(DISTANCE.advise(rtt >= 2.0 * SYNC_RTT_US, text, &[("min_rtt_us", rtt)]))
}

const SESSION: Rule = Rule {
    id: "RT3",
    title: "What one session can commit",
    changes_figures: false,
    fires_when: || "The mode is SYNC, without a rate and with one message in flight".to_owned(),
    why: "One session waits for each of its commits.",
    what_to_do: "Let several sessions commit: group commit raises the total of many sessions, not that of one.",
    cannot_judge_when: "The mode is ASYNC, a rate was asked for, or several messages were in flight: then the rule is silent.",
    source: "1 / average latency of a commit.",
};

fn session(_: &Record, info: &RedoInfo) -> Option<Advice> {
    let is_scheduled = info.asked_per_s.value().is_some() || demand::is_grouped(info);
    if info.mode == "async" || is_scheduled || info.inflight_count > 1 {
        return None;
    }
    let us = info.commit.us_avg.value().filter(|us| *us > 0.0)?;
    let text = format!(
        "A commit that waits for the standby takes at least {}: one session makes at most {} commits/s.",
        told(us, "us", 0),
        thousands((1e6 / us) as u64)
    );
    Some(SESSION.advise(false, text, &[("commit_us_avg", us)]))
}

/// Disk, network and both should add up within this part.
const SUM_RATIO: f64 = 0.1;

const SUMS: Rule = Rule {
    id: "RT4",
    title: "Whether disk and network make up the whole",
    changes_figures: false,
    fires_when: || {
        format!(
            "Disk and network were measured alone (--alone); high where both together take more than {} % longer than their sum",
            100.0 * SUM_RATIO
        )
    },
    why: "What exceeds the sum is CPU time, or waiting in a queue, at one of the ends.",
    what_to_do: "Look at the CPUs of both ends.",
    cannot_judge_when: "One of the two was not measured alone: then the rule is silent.",
    source: "Decided here.",
};

fn sums(_: &Record, info: &RedoInfo) -> Option<Advice> {
    let disk = info.disk_alone.us_avg.value()?;
    let network = info.network_alone.us_avg.value()?;
    // Without the primary's own log.
    let both = info.standbys.first()?.total.us_avg.value()?;
    let off = both / (disk + network) - 1.0;
    let text = format!(
        "The disk alone takes {}, the network alone {}, both together {} ({} % {} than their sum).",
        told(disk, "us", 0),
        told(network, "us", 0),
        told(both, "us", 0),
        fixed(100.0 * off.abs(), 0),
        if off >= 0.0 { "more" } else { "less" }
    );
    let evidence = [("disk_us", disk), ("network_us", network), ("both_us", both)];
    Some(if off > SUM_RATIO { SUMS.explain(true, text, &evidence) } else { SUMS.finding(false, text, &evidence) })
}
