use super::KIND;
use super::info::{PingInfo, WorstRow};
use assay_measure::kind::Kind as _;
use assay_measure::record::Record;
use assay_testkit::rules::{Case, beside, just_fire};

/// Ten seconds of a hundred requests each.
fn with(change: impl FnOnce(&mut PingInfo)) -> Record {
    let mut info = PingInfo {
        method: "tcp-echo".to_owned(),
        rate_per_s: 100.0,
        sent_count: 1000,
        elapsed_s: 10.0,
        ..PingInfo::default()
    };
    change(&mut info);
    KIND.complete(Record::default(), &info)
}

fn slowest(service_us: f64) -> Record {
    with(|info| info.worst = vec![WorstRow { service_us, ..WorstRow::default() }])
}

const CASES: &[Case] = &[
    ("E1", |fires| with(|info| info.is_loopback = fires)),
    ("E2", |fires| with(|info| info.why_not.extend(fires.then(|| "icmp-raw: not permitted".to_owned())))),
    ("E3", |fires| with(|info| info.sent_count = if fires { 949 } else { 950 })),
    ("E4", |fires| with(|info| info.late_us_p99 = if fires { 1000.1 } else { 1000.0 }.into())),
    ("E5", |fires| slowest(if fires { 195_000.0 } else { 194_999.0 })),
    ("E6", |fires| slowest(if fires { 47_999.0 } else { 48_000.0 })),
    ("E7", |fires| with(|info| info.first_error = if fires { "refused" } else { "" }.to_owned())),
    ("E8", |fires| {
        let record = beside(if fires { 10.0 } else { 9.9 });
        KIND.complete(record, &PingInfo::default())
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    just_fire(&KIND.rules(), CASES);
}

/// Datagrams and packets of ICMP are acknowledged by nobody, and a connection that was just made has sent no segment.
#[test]
fn only_an_echo_over_tcp_waits_for_acknowledgements() {
    for (method, ids) in [("tcp-echo", &["E5", "E6"][..]), ("udp-echo", &[]), ("icmp-dgram", &[]), ("tcp-connect", &[])]
    {
        let record = with(|info| {
            info.method = method.to_owned();
            info.worst =
                [200_500.0, 40_200.0].map(|service_us| WorstRow { service_us, ..WorstRow::default() }).to_vec();
        });
        let found: Vec<&str> = record.advice.iter().map(|found| found.id.as_str()).collect();
        assert_eq!(found, ids, "{method}");
    }
}

/// A rate that was not kept makes every request late: that is said once.
#[test]
fn requests_that_wait_for_replies_are_not_called_late() {
    let record = with(|info| {
        info.sent_count = 500;
        info.late_us_p99 = 5e6.into();
    });
    let ids: Vec<&str> = record.advice.iter().map(|found| found.id.as_str()).collect();
    assert_eq!(ids, ["E3"]);
}
