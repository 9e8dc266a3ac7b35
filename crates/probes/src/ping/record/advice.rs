//! What may change what the round trips mean.

use super::info::PingInfo;
use crate::rules;
use assay_measure::cpu;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::units::{fixed, many, told};
use std::ops::Range;

/// The rules with what judges them, in the order in which findings are read.
pub(super) const RULES: &Judges<PingInfo> = &[
    (ONE_HOST, |_, info| rules::one_host(&ONE_HOST, info.is_loopback)),
    (OTHER_METHOD, other_method),
    (RATE_NOT_KEPT, rate_not_kept),
    (LATE, late),
    (SENT_AGAIN, sent_again),
    (DELAYED_ACK, |_, info| slow(&DELAYED_ACK, info, &DELAYED_ACK_US, "")),
    (ERRORS, errors),
    (DISTURBED, |record, _| rules::disturbed(&DISTURBED, record)),
];

const ONE_HOST: Rule = rules::of_one_host(
    "E1",
    "The packets never left the host: the kernel and the scheduler are measured, not a network.",
);

const OTHER_METHOD: Rule = Rule {
    id: "E2",
    title: "A better method was not possible",
    changes_figures: true,
    fires_when: || "A method whose time includes less than that of the one used was tried and refused".to_owned(),
    why: "The time includes more than the network; assay ping --help says what each method includes.",
    what_to_do: "Allow the better method, for example ICMP sockets for the user's group.",
    cannot_judge_when: "Never: every refusal is known.",
    source: "Decided here.",
};

fn other_method(_: &Record, info: &PingInfo) -> Option<Advice> {
    (!info.why_not.is_empty()).then(|| {
        let text = format!(
            "The method is {}, because a better one was not possible: {}.",
            info.method,
            info.why_not.join("; ")
        );
        OTHER_METHOD.explain(false, text, &[])
    })
}

/// Of the requests that the rate asks for, so many have to go.
const RATE_RATIO: f64 = 0.95;

const RATE_NOT_KEPT: Rule = Rule {
    id: "E3",
    title: "The rate was not kept",
    changes_figures: true,
    fires_when: || format!("Less than {} % of the requests that the rate asks for were sent", 100.0 * RATE_RATIO),
    why: "Each request waits for the reply before it, and the round trip is longer than the gap.",
    what_to_do: "Ask for a lower --rate.",
    cannot_judge_when: "The requests go without a rate (--flood): then the rule is silent.",
    source: "Decided here.",
};

fn rate_not_kept(_: &Record, info: &PingInfo) -> Option<Advice> {
    let rate = info.rate_per_s;
    let ideal = info.elapsed_s * rate;
    if rate <= 0.0 || (info.sent_count as f64) >= RATE_RATIO * ideal.floor() {
        return None;
    }
    let sent = info.sent_count as f64 / info.elapsed_s;
    let text = format!("Sent only {} of {} requests/s.", fixed(sent, 0), fixed(rate, 0));
    Some(RATE_NOT_KEPT.explain(false, text, &[("sent_per_s", sent), ("rate_per_s", rate)]))
}

/// Requests that go this late are not on schedule, us.
const LATE_US: f64 = 1000.0;

const LATE: Rule = Rule {
    id: "E4",
    title: "Requests went late",
    changes_figures: true,
    fires_when: || {
        format!(
            "One request in a hundred was sent more than {LATE_US} us after it was due, although the rate was kept (E3)"
        )
    },
    why: "An earlier request stalled, or this test had no CPU: times since due include this delay, round trips do not.",
    what_to_do: "Read both times, and measure again on an idle host.",
    cannot_judge_when: "The requests go without a rate (--flood), or there are too few: then the rule is silent.",
    source: "Decided here.",
};

fn late(record: &Record, info: &PingInfo) -> Option<Advice> {
    let late_us = info.late_us_p99.value().filter(|late| *late > LATE_US && info.rate_per_s > 0.0)?;
    if rate_not_kept(record, info).is_some() {
        return None;
    }
    let text = format!("One request in a hundred was sent more than {} after it was due.", told(late_us, "us", 0));
    Some(LATE.explain(false, text, &[("late_us_p99", late_us)]))
}

/// Linux sends a lost segment again after 200 ms at the earliest. It counts in ticks of up to 10 ms and may lack a part of one, us.
const RTO_US: Range<f64> = 195_000.0..260_000.0;
/// It holds an acknowledgement back for 40 ms at least, in the same ticks, us.
const DELAYED_ACK_US: Range<f64> = 38_000.0..48_000.0;
/// Neither ICMP nor UDP acknowledges, and a connection's first segment has timeouts of its own.
const ACKNOWLEDGED: &str = "tcp-echo";

/// How many of the slowest lie in this range, where there are some and the method waits for acknowledgements.
fn slow(rule: &Rule, info: &PingInfo, range: &Range<f64>, more: &str) -> Option<Advice> {
    let slow = info.worst.iter().filter(|row| !row.is_lost);
    let slow = slow.filter(|row| range.contains(&row.service_us)).count();
    let text = format!("{slow} of the slowest round trips took {}{more}.", ms(range));
    (slow > 0 && info.method == ACKNOWLEDGED).then(|| rule.explain(false, text, &[("slow_count", slow as f64)]))
}

fn ms(range: &Range<f64>) -> String {
    format!("{} to {} ms", range.start / 1e3, range.end / 1e3)
}

fn is_slow(range: &Range<f64>) -> String {
    format!("With {ACKNOWLEDGED}, one of the slowest round trips that were answered took {}", ms(range))
}

const SENT_AGAIN: Rule = Rule {
    id: "E5",
    title: "Segments were sent again",
    changes_figures: true,
    fires_when: || is_slow(&RTO_US),
    why: "A lost segment that TCP sent again after its shortest timeout is the usual reason.",
    what_to_do: "Look for the loss: assay net counts segments sent again.",
    cannot_judge_when: "The method is another one: then the rule is silent.",
    source: "Linux waits at least 200 ms, less a part of a tick, before it sends a segment again.",
};

fn sent_again(_: &Record, info: &PingInfo) -> Option<Advice> {
    let again = match info.retransmits_count {
        Some(0) => " (this end sent none again; it cannot see what the other end did)".to_owned(),
        Some(count) => format!(" (this end sent {} again)", many(count, "segment")),
        None => String::new(),
    };
    slow(&SENT_AGAIN, info, &RTO_US, &again)
}

const DELAYED_ACK: Rule = Rule {
    id: "E6",
    title: "Acknowledgements were held back",
    changes_figures: true,
    fires_when: || is_slow(&DELAYED_ACK_US),
    why: "An acknowledgement held back, with a sender that waits for it, is the usual reason.",
    what_to_do: "Look for a sender that writes twice before it reads and does not set TCP_NODELAY.",
    cannot_judge_when: "The method is another one: then the rule is silent.",
    source: "Linux holds an acknowledgement back for at least 40 ms, less a part of a tick.",
};

const ERRORS: Rule = Rule {
    id: "E7",
    title: "Requests met an error",
    changes_figures: true,
    fires_when: || "A request met an error".to_owned(),
    why: "Such a request was not answered, and not for lack of time.",
    what_to_do: "Remove the cause, and repeat the test.",
    cannot_judge_when: "Never: every error is counted.",
    source: "Decided here.",
};

fn errors(_: &Record, info: &PingInfo) -> Option<Advice> {
    (!info.first_error.is_empty()).then(|| {
        let text = format!("{} met an error, the first: {}.", many(info.errors_count, "request"), info.first_error);
        ERRORS.advise(false, text, &[("errors_count", info.errors_count as f64)])
    })
}

const DISTURBED: Rule = rules::of_other_load("E8", cpu::disturbs, "Round trips include waiting for a CPU.");
