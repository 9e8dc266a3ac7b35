//! What may change what the round trips mean.

use super::info::PingInfo;
use assay_measure::cpu;
use assay_measure::record::{Advice, Record};
use assay_measure::rule::Rule;
use assay_measure::section::number;
use assay_measure::units::fixed;
use std::ops::Range;

/// What judges by a rule.
type Judge = fn(&Record, &PingInfo) -> Option<Advice>;

/// The rules with what judges them, in the order in which findings are read.
const RULES: &[(Rule, Judge)] = &[
    (ONE_HOST, one_host),
    (OTHER_METHOD, other_method),
    (RATE_NOT_KEPT, rate_not_kept),
    (LATE, late),
    (SENT_AGAIN, sent_again),
    (DELAYED_ACK, delayed_ack),
    (ERRORS, errors),
    (DISTURBED, disturbed),
];

/// The rules of round trips.
pub(super) fn rules() -> Vec<Rule> {
    RULES.iter().map(|(rule, _)| *rule).collect()
}

/// All findings, in the order they are read.
pub(super) fn advise(record: &Record, info: &PingInfo) -> Vec<Advice> {
    RULES.iter().filter_map(|(_, judge)| judge(record, info)).collect()
}

const ONE_HOST: Rule = Rule {
    id: "E1",
    title: "The other end is this host",
    changes_figures: true,
    fires_when: || {
        "The address of the other end is on loopback, or the one that this host sends from; always high".to_owned()
    },
    why: "The packets never left the host: the kernel and the scheduler are measured, not a network.",
    what_to_do: "Name another host.",
    cannot_judge_when: "The other end is this host by another of its addresses: then the rule is silent.",
    source: "Decided here.",
};

fn one_host(_: &Record, info: &PingInfo) -> Option<Advice> {
    info.is_loopback.then(|| {
        let text = "The other end is this host: the packets never left it. This measures the kernel and the scheduler, not a \
                    network.";
        ONE_HOST.finding(true, text.to_owned(), &[])
    })
}

const OTHER_METHOD: Rule = Rule {
    id: "E2",
    title: "A better method was not possible",
    changes_figures: true,
    fires_when: || "A method that holds less than the one used was tried and refused".to_owned(),
    why: "The time holds more than the network: assay ping --help says what each method holds.",
    what_to_do: "Allow the better method, such as ICMP sockets for the group of the user.",
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
        OTHER_METHOD.finding(false, text, &[])
    })
}

/// Of the requests that the rate asks for, so many have to go.
const RATE_RATIO: f64 = 0.95;

const RATE_NOT_KEPT: Rule = Rule {
    id: "E3",
    title: "The rate was not kept",
    changes_figures: true,
    fires_when: || format!("Less than {} % of the requests that the rate asks for went", 100.0 * RATE_RATIO),
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
    let text = format!(
        "Sent only {} of {} requests/s: each waits for the previous reply, and the round trip is longer than the \
         gap. Ask for a lower --rate.",
        fixed(sent, 0),
        fixed(rate, 0)
    );
    Some(RATE_NOT_KEPT.finding(false, text, &[("sent_per_s", sent), ("rate_per_s", rate)]))
}

/// Requests that go this late are not on schedule, us.
const LATE_US: f64 = 1000.0;

const LATE: Rule = Rule {
    id: "E4",
    title: "Requests went late",
    changes_figures: true,
    fires_when: || {
        format!(
            "One request in a hundred went more than {LATE_US} us after it was due, although the rate was kept (E3)"
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
    let text = format!(
        "One request in a hundred was sent more than {} us after it was due: an earlier request stalled, or this \
         test had no CPU. Response times since due include this delay; round trips do not.",
        number(&info.late_us_p99, 0)
    );
    Some(LATE.finding(false, text, &[("late_us_p99", late_us)]))
}

/// Linux sends a lost segment again after 200 ms at the earliest. It counts in ticks of up to 10 ms and may lack a part of one, us.
const RTO_US: Range<f64> = 195_000.0..260_000.0;
/// It holds an acknowledgement back for 40 ms at least, in the same ticks, us.
const DELAYED_ACK_US: Range<f64> = 38_000.0..48_000.0;
/// Neither ICMP nor UDP acknowledges, and a connection's first segment has timeouts of its own.
const ACKNOWLEDGED: &str = "tcp-echo";

/// How many of the slowest lie in this range, where there are some and the method waits for acknowledgements.
fn within(info: &PingInfo, range: &Range<f64>) -> Option<usize> {
    let slow = info.worst.iter().filter(|row| !row.is_lost);
    let slow = slow.filter(|row| range.contains(&row.service_us)).count();
    (slow > 0 && info.method == ACKNOWLEDGED).then_some(slow)
}

fn between_ms(range: &Range<f64>) -> String {
    format!("With {ACKNOWLEDGED}, one of the slowest round trips took {} to {} ms", range.start / 1e3, range.end / 1e3)
}

const SENT_AGAIN: Rule = Rule {
    id: "E5",
    title: "Segments were sent again",
    changes_figures: true,
    fires_when: || between_ms(&RTO_US),
    why: "A lost segment that TCP sent again after its shortest timeout is the usual reason.",
    what_to_do: "Look for the loss: assay net counts segments sent again.",
    cannot_judge_when: "The method is another one, or no round trip is that slow: then the rule is silent.",
    source: "Linux waits at least 200 ms, less a part of a tick, before it sends a segment again.",
};

fn sent_again(_: &Record, info: &PingInfo) -> Option<Advice> {
    let slow = within(info, &RTO_US)?;
    let again = match info.retransmits_count {
        Some(count) => format!(" (the kernel sent {count} segments again)"),
        None => String::new(),
    };
    let text = format!(
        "{slow} of the worst took about 200 ms: a lost segment that TCP sent again after its shortest timeout is the \
         usual reason{again}."
    );
    Some(SENT_AGAIN.finding(false, text, &[("slow_count", slow as f64)]))
}

const DELAYED_ACK: Rule = Rule {
    id: "E6",
    title: "Acknowledgements were held back",
    changes_figures: true,
    fires_when: || between_ms(&DELAYED_ACK_US),
    why: "An acknowledgement held back, with a sender that waits for it, is the usual reason.",
    what_to_do: "Look for a sender that writes twice before it reads and does not set TCP_NODELAY.",
    cannot_judge_when: "The method is another one, or no round trip is that slow: then the rule is silent.",
    source: "Linux holds an acknowledgement back for at least 40 ms, less a part of a tick.",
};

fn delayed_ack(_: &Record, info: &PingInfo) -> Option<Advice> {
    let slow = within(info, &DELAYED_ACK_US)?;
    let text = format!(
        "{slow} of the worst took about 40 ms: an acknowledgement held back, with a sender that waits for it, is \
         the usual reason."
    );
    Some(DELAYED_ACK.finding(false, text, &[("slow_count", slow as f64)]))
}

const ERRORS: Rule = Rule {
    id: "E7",
    title: "Requests met an error",
    changes_figures: true,
    fires_when: || "A request met an error".to_owned(),
    why: "It was not answered for another reason than time.",
    what_to_do: "Remove the cause that the text names and repeat the test.",
    cannot_judge_when: "Never: every error is counted.",
    source: "Decided here.",
};

fn errors(_: &Record, info: &PingInfo) -> Option<Advice> {
    (!info.first_error.is_empty()).then(|| {
        let text = format!("{} requests met an error, the first: {}.", info.errors_count, info.first_error);
        ERRORS.finding(false, text, &[("errors_count", info.errors_count as f64)])
    })
}

const DISTURBED: Rule = Rule {
    id: "E8",
    title: "Others used the CPUs of this host",
    changes_figures: true,
    fires_when: cpu::disturbs,
    why: "Round trips include the wait for a CPU.",
    what_to_do: "Measure again on an idle host.",
    cannot_judge_when: "The CPU use of the host or of this process is n/a: then the rule is silent.",
    source: "Decided here.",
};

fn disturbed(record: &Record, _: &PingInfo) -> Option<Advice> {
    let others = cpu::disturbed(record)?;
    let text = format!("While it was measured, {others}: round trips include the wait for a CPU.");
    Some(DISTURBED.finding(false, text, &[]))
}
