//! The report on compression, on commits that share messages, and on the requested workload.

use super::info::RedoInfo;
use assay_measure::kind::{HeadlineFigure, HeadlineLine};
use assay_measure::record::metric::{Better, Group, lower, plain};
use assay_measure::record::{Advice, Figure, Metric, Record};
use assay_measure::rule::Rule;
use assay_measure::section::{Column, Sections, left, number, right, wrapped};
use assay_measure::units::{fixed, size, thousands, told};

/// Part of a link that redo may fill: Oracle's rule of thumb for redo transport (bandwidth = redo rate / 0.7).
const LINK_FILL: f64 = 0.7;

const PAIRS: [Column; 2] = [left("Of", 40), wrapped("What")];

/// Whether payloads were compressed.
pub(super) fn is_packed(info: &RedoInfo) -> bool {
    !matches!(info.compress.as_str(), "" | "none")
}

/// Whether commits shared messages.
pub(super) fn is_grouped(info: &RedoInfo) -> bool {
    info.commit_bytes > 0
}

/// Payload bytes over the bytes that crossed the wire for them.
fn ratio(info: &RedoInfo) -> Figure {
    Figure::Count(info.payload_bytes).per(info.wire_bytes as f64, "nothing was sent")
}

fn elapsed_s(info: &RedoInfo) -> f64 {
    info.elapsed_s.value().unwrap_or(0.0)
}

fn pack_cpu_us(info: &RedoInfo) -> Figure {
    let count = info.pack.hist_ns.count() as f64;
    info.pack_cpu_s.scaled(1e6).per(count, "no messages")
}

fn wire_bytes_per_s(info: &RedoInfo) -> Figure {
    Figure::Count(info.wire_bytes).per(elapsed_s(info), "no time passed")
}

fn commits_per_s(info: &RedoInfo) -> Figure {
    Figure::Count(info.commits_count).per(elapsed_s(info), "no time passed")
}

fn commits_per_message(info: &RedoInfo) -> Figure {
    Figure::Count(info.commits_count).per(info.messages_count as f64, "no messages")
}

pub(super) fn metrics(info: &RedoInfo) -> Vec<Metric> {
    let mut all = Vec::new();
    let of = |key: &str, name: &str, unit: &str, better, value| plain(Group::Operation, key, name, unit, better, value);
    if is_packed(info) {
        let name = "payload over its bytes on the wire";
        all.push(of("redo_compression_ratio", name, "ratio", Better::Neither, ratio(info)));
        let name = "compressed payload on the wire";
        let rate = wire_bytes_per_s(info);
        all.push(of("redo_wire_bytes_per_s", name, "bytes/s", Better::Neither, rate));
        let (key, name) = ("redo_compression_cpu_us", "CPU of compression per message");
        all.push(lower(Group::Host, key, name, &pack_cpu_us(info)));
    }
    if is_grouped(info) {
        let rate = commits_per_s(info);
        all.push(of("redo_commits_per_s", "commits", "1/s", Better::Higher, rate));
        let (key, name) = ("redo_commits_per_message_ratio", "commits in a message, on average");
        all.push(of(key, name, "ratio", Better::Neither, commits_per_message(info)));
    }
    if let Some(verdict) = Verdict::of(info) {
        let (key, name) = ("redo_required_mbit_per_s", "bandwidth that the workload requires");
        let link = Figure::decimal(verdict.required_mbit_per_s);
        all.push(of(key, name, "Mbit/s", Better::Neither, link));
        let (key, name) = ("redo_carried_ratio", "messages over the workload's redo writes");
        let carried = Figure::decimal(verdict.carried_ratio);
        all.push(of(key, name, "ratio", Better::Higher, carried));
    }
    all
}

/// Lines of the answer.
pub(super) fn rows(info: &RedoInfo) -> Vec<HeadlineLine> {
    let mut rows = Vec::new();
    let nothing = "n/a (nothing was acknowledged)";
    if let Some(verdict) = Verdict::of(info) {
        let told = vec![
            HeadlineFigure::new(&Figure::decimal(verdict.carried_ratio), "times its writes/s"),
            HeadlineFigure::new(&Figure::decimal(verdict.required_mbit_per_s), "Mbit/s of bandwidth are needed"),
            HeadlineFigure::new(&Figure::decimal(verdict.measured_mbit_per_s), "Mbit/s were moved"),
        ];
        let mut line = HeadlineLine::of("Workload", told, nothing);
        line.lead = format!("{}: ", verdict.word());
        rows.push(line);
    }
    if is_grouped(info) {
        let told = vec![
            HeadlineFigure::new(&commits_per_s(info), "commits/s"),
            HeadlineFigure::new(&commits_per_message(info), "in a message on average"),
            HeadlineFigure::new(&info.group_bytes_max, "bytes in the longest"),
        ];
        rows.push(HeadlineLine::of("Group commit", told, nothing));
    }
    if is_packed(info) {
        let told = vec![
            HeadlineFigure::new(&ratio(info), "times smaller"),
            HeadlineFigure::new(&pack_cpu_us(info), "us of CPU for each message"),
            HeadlineFigure::new(&wire_bytes_per_s(info).scaled(1e-6), "MB/s on the wire"),
        ];
        rows.push(HeadlineLine::of("Compression", told, nothing));
    }
    rows
}

/// Sections of the report.
pub(super) fn sections(page: &mut Sections, info: &RedoInfo) {
    if let Some(verdict) = Verdict::of(info) {
        page.heading("Whether This Link Carries the Workload");
        page.untitled(&PAIRS);
        for (of, what) in verdict.pairs(info) {
            page.row(&PAIRS, &[of.to_owned(), what]);
        }
        page.wrapped(
            "",
            "The bandwidth follows Oracle's rule of thumb: redo in bytes/s / 0.7 x 8 / 1,000,000 Mbit/s. Take redo \
             size and redo writes from AWR's busiest interval: daily means hide the peak.",
        );
    }
    if is_grouped(info) {
        groups(page, info);
    }
    if is_packed(info) {
        page.heading("Compression");
        page.untitled(&PAIRS);
        for (of, what) in packed(info) {
            page.row(&PAIRS, &[of.to_owned(), what]);
        }
    }
}

fn groups(page: &mut Sections, info: &RedoInfo) {
    page.heading("Commits That Share Messages");
    page.wrapped(
        "",
        "Commits follow a schedule. Commits due during a message share the next one, up to 1 MiB, as with a log \
         writer. The time of a commit runs from the instant it was due until its message was acknowledged.",
    );
    page.untitled(&PAIRS);
    let bytes = |figure: &Figure| number(figure, 0);
    let (asked, count) = (number(&info.asked_commits_per_s, 1), info.commits_count);
    for (of, what) in [
        ("requested commits", format!("{asked} /s of {} bytes", info.commit_bytes)),
        ("commits", format!("{count}, {} /s", number(&commits_per_s(info), 1))),
        (
            "payload of a message, bytes",
            format!(
                "{} on average, {} p50, {} p99, {} at most",
                bytes(&info.group_bytes_avg),
                bytes(&info.group_bytes_p50),
                bytes(&info.group_bytes_p99),
                bytes(&info.group_bytes_max)
            ),
        ),
    ] {
        page.row(&PAIRS, &[of.to_owned(), what]);
    }
    const SIZES: [Column; 3] = [left("Commits in a message", 22), right("Messages", 12), right("%", 8)];
    page.columns(&SIZES);
    let all: u64 = info.group_messages.iter().sum();
    for (at, messages) in info.group_messages.iter().enumerate() {
        let most = 1_u64 << at.min(63);
        let range = match at {
            0 | 1 => most.to_string(),
            _ => format!("{} to {most}", most / 2 + 1),
        };
        let share = fixed(100.0 * *messages as f64 / all.max(1) as f64, 1);
        page.row(&SIZES, &[range, messages.to_string(), share]);
    }
}

fn packed(info: &RedoInfo) -> Vec<(&'static str, String)> {
    let effective: u64 = info.seconds.iter().map(|second| second.bytes).sum();
    let effective = Figure::Count(effective).per(elapsed_s(info), "no time passed");
    vec![
        ("compression", info.compress.clone()),
        (
            "payload",
            format!(
                "{}: {} bytes became {}, {} times smaller",
                info.content,
                info.payload_bytes,
                info.wire_bytes,
                number(&ratio(info), 3)
            ),
        ),
        (
            "CPU of the primary for each message",
            format!(
                "{} us of {} us in all",
                number(&pack_cpu_us(info), 2),
                number(&info.cpu_s.scaled(1e6).per(info.messages_count as f64, "no messages"), 2)
            ),
        ),
        (
            "effective throughput",
            format!(
                "{} MB/s of redo in {} MB/s on the wire",
                number(&effective.scaled(1e-6), 1),
                number(&wire_bytes_per_s(info).scaled(1e-6), 1)
            ),
        ),
    ]
}

pub(super) const NO_REDO: Rule = Rule {
    id: "RT6",
    title: "What was compressed is no redo",
    changes_figures: true,
    fires_when: || "Compressed messages held zeros or random bytes; always high".to_owned(),
    why: "Zeros shrink to nothing and random bytes do not shrink: neither shows what compression saves.",
    what_to_do: "Use --content file:PATH with real redo, or mix:R.",
    cannot_judge_when: "Never: the content is known.",
    source: "Decided here.",
};

pub(super) fn no_redo(_: &Record, info: &RedoInfo) -> Option<Advice> {
    let text = match info.content.as_str() {
        "zeros" => "The test compressed zeros.",
        "random" => "The test compressed random bytes.",
        _ => return None,
    };
    is_packed(info).then(|| NO_REDO.explain(true, text, &[]))
}

/// Zeros in a file of redo from this share on, %.
const ZERO_PCT: f64 = 50.0;

pub(super) const FILE_OF_ZEROS: Rule = Rule {
    id: "RT7",
    title: "The file of redo is not filled",
    changes_figures: true,
    fires_when: || format!("At least {ZERO_PCT} % of the bytes of --content file: are zeros"),
    why: "The log was created but not filled, or only partly filled: its compression does not represent that of redo.",
    what_to_do: "Take a log file that a database has filled.",
    cannot_judge_when: "Other content was sent: then the rule is silent.",
    source: "Decided here.",
};

pub(super) fn file_of_zeros(_: &Record, info: &RedoInfo) -> Option<Advice> {
    let pct = info.zero_pct.value().filter(|pct| info.content.starts_with("file:") && *pct >= ZERO_PCT)?;
    let text = format!("{} % of the file's bytes are zeros.", fixed(pct, 0));
    Some(FILE_OF_ZEROS.explain(false, text, &[("zero_pct", pct)]))
}

/// What the measurement says of a workload.
pub(super) struct Verdict {
    redo_bytes_per_s: f64,
    writes_per_s: f64,
    required_mbit_per_s: f64,
    measured_mbit_per_s: f64,
    messages_per_s: f64,
    /// Messages over the workload's writes, both per second.
    carried_ratio: f64,
}

impl Verdict {
    pub(super) fn of(info: &RedoInfo) -> Option<Self> {
        let redo_bytes_per_s = info.redo_bytes_per_s.value()?;
        let writes_per_s = info.redo_writes_per_s.value().filter(|rate| *rate > 0.0)?;
        let elapsed = Some(elapsed_s(info)).filter(|s| *s > 0.0)?;
        let bytes: u64 = info.seconds.iter().map(|second| second.bytes).sum();
        let messages_per_s = info.messages_count as f64 / elapsed;
        Some(Self {
            redo_bytes_per_s,
            writes_per_s,
            required_mbit_per_s: redo_bytes_per_s / LINK_FILL * 8.0 / 1e6,
            measured_mbit_per_s: bytes as f64 * 8.0 / 1e6 / elapsed,
            messages_per_s,
            carried_ratio: messages_per_s / writes_per_s,
        })
    }

    fn word(&self) -> &'static str {
        match self.carried_ratio {
            ratio if ratio * LINK_FILL >= 1.0 => "carried with the usual reserve",
            ratio if ratio >= 1.0 => "carried, with less than the usual reserve",
            _ => "not carried",
        }
    }

    fn pairs(&self, info: &RedoInfo) -> Vec<(&'static str, String)> {
        let rate = |per_s: f64| fixed(per_s, 1);
        let mut pairs = vec![
            (
                "workload",
                format!(
                    "redo size {} bytes/s, redo writes {} /s: {} bytes in an average write",
                    fixed(self.redo_bytes_per_s, 0),
                    rate(self.writes_per_s),
                    info.length_bytes
                ),
            ),
            ("link required", format!("{} Mbit/s", rate(self.required_mbit_per_s))),
            (
                "measured",
                format!(
                    "{} Mbit/s in {} messages/s: {} times the workload",
                    rate(self.measured_mbit_per_s),
                    rate(self.messages_per_s),
                    fixed(self.carried_ratio, 2)
                ),
            ),
            ("verdict", self.word().to_owned()),
        ];
        if info.mode != "async" {
            let us = |figure: &Figure| figure.value().map_or_else(|| number(figure, 0), |us| told(us, "us", 0));
            let (avg, p99) = (us(&info.commit.us_avg), us(&info.commit.us_p99));
            let what = format!("{avg} on average, {p99} p99");
            pairs.push(("added to a commit", what));
        }
        pairs
    }
}

pub(super) const CARRIED: Rule = Rule {
    id: "RT5",
    title: "Whether the workload is carried",
    changes_figures: false,
    fires_when: || {
        format!(
            "A workload is named (--redo-rate and --redo-writes); high where fewer messages went through than it writes. From 1 / {LINK_FILL} of its writes it is carried with the usual reserve"
        )
    },
    why: "A standby that cannot take the redo of the workload slows its commits, or falls behind.",
    what_to_do: "Use a faster link or a faster disk for the standby. In SYNC a log writer that waits also puts more commits into fewer writes: measure that with --commit-rate, or compare with --mode async.",
    cannot_judge_when: "No workload is named, or nothing was measured: then the rule is silent.",
    source: "Oracle's rule of thumb: redo fills 70 % of a link at most.",
};

pub(super) fn carried(_: &Record, info: &RedoInfo) -> Option<Advice> {
    let verdict = Verdict::of(info)?;
    let text = format!(
        "This redo is {}: {}/s in {} writes/s needs a link of {} Mbit/s, and {} messages/s of {} were carried.",
        verdict.word(),
        size(verdict.redo_bytes_per_s as u64),
        thousands(verdict.writes_per_s as u64),
        fixed(verdict.required_mbit_per_s, 1),
        thousands(verdict.messages_per_s as u64),
        size(info.length_bytes)
    );
    let evidence = [("carried_ratio", verdict.carried_ratio), ("required_mbit_per_s", verdict.required_mbit_per_s)];
    Some(if verdict.carried_ratio < 1.0 {
        CARRIED.advise(true, text, &evidence)
    } else {
        CARRIED.finding(false, text, &evidence)
    })
}
