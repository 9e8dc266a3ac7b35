//! The headline of a redo test: what a commit waits for, and where.

use super::info::{RedoInfo, StandbyInfo};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, beside, rerun_command};
use assay_measure::record::{Figure, Record};
use assay_measure::units::{fixed, size, thousands, told};
use assay_measure::{cap, cpu};

/// The headline of a test.
pub(super) fn of(record: &Record, info: &RedoInfo) -> Headline {
    Headline {
        tested: tested(info),
        rows: rows(record, info),
        steadiness: steadiness(record),
        verbatim: super::compat::tail(info),
        rerun_command: rerun_command(record),
        limit: limit(record, info),
        next: next(record, info),
        ..Headline::default()
    }
}

fn tested(info: &RedoInfo) -> String {
    let names: Vec<&str> = info.standbys.iter().map(|s| s.name.as_str()).collect();
    let write = match info.write.as_str() {
        "" | "none" => "acknowledged from memory".to_owned(),
        write => format!("written there by {write}"),
    };
    let rule = match info.standbys.len() {
        0 | 1 => String::new(),
        _ if info.mode == "async" => ", to each at its own speed".to_owned(),
        _ => format!(", a commit waits for {}", info.rule),
    };
    let what = match info.asked_commits_per_s.value() {
        Some(rate) => format!("{rate} commits/s of {}", size(info.commit_bytes)),
        None => format!("messages of {}", size(info.length_bytes)),
    };
    let compress = if super::demand::is_packed(info) {
        format!(" ({} by {})", info.content, info.compress)
    } else {
        String::new()
    };
    format!("Redo transport {} to {}: {what}{compress}, {write}{rule}.", info.mode.to_uppercase(), names.join(", "))
}

fn rows(record: &Record, info: &RedoInfo) -> Vec<HeadlineLine> {
    let metric = |key: &str| {
        let found = assay_measure::record::metric::find(&record.metrics, key);
        found.map_or_else(Figure::default, |metric| metric.value.clone())
    };
    let rate = HeadlineLine::of(
        "Rate",
        vec![
            HeadlineFigure::new(&metric("redo_transport_per_s"), "messages/s"),
            HeadlineFigure::new(&metric("redo_transport_bytes_per_s").scaled(1e-6), "MB/s with headers"),
        ],
        "n/a (nothing was acknowledged)",
    );
    let mut rows = vec![rate];
    rows.extend(super::demand::rows(info));
    if info.mode == "async" {
        rows.push(HeadlineLine::of(
            "Drain",
            vec![
                HeadlineFigure::new(&info.sent_s, "s of sending"),
                HeadlineFigure::new(&info.elapsed_s, "s until the standby had consumed everything"),
            ],
            "n/a (nothing was sent)",
        ));
        rows.extend(streams(info));
        return rows;
    }
    rows.push(times("Commit", &info.commit));
    if info.standbys.len() == 1 {
        let standby = &info.standbys[0];
        rows.push(times("Network", &standby.network));
        if standby.write_mode != "none" {
            rows.push(times("Disk write", &standby.disk));
        }
    } else {
        for row in &info.rules {
            let mut line = times("", &row.latency);
            line.lead = format!("{}: ", row.rule);
            rows.push(line);
        }
    }
    for row in &info.modes {
        let mut line = times("", &row.disk);
        line.lead = format!("{}: ", row.mode);
        rows.push(line);
    }
    if info.local != "none" {
        rows.push(times("Local log", &info.local_write));
    }
    rows
}

/// What each standby consumed, where there are several, and its disk.
fn streams(info: &RedoInfo) -> Vec<HeadlineLine> {
    let is_one = info.standbys.len() == 1;
    let mut rows = Vec::new();
    for standby in &info.standbys {
        let named = |mut line: HeadlineLine, what: &str| {
            if !is_one {
                line.lead = format!("{}: {what}", standby.name);
            }
            line
        };
        if !is_one {
            let told = vec![
                HeadlineFigure::new(&standby.per_s, "messages/s"),
                HeadlineFigure::new(&standby.bytes_per_s.scaled(1e-6), "MB/s with headers"),
            ];
            rows.push(named(HeadlineLine::of("", told, "n/a (nothing was consumed)"), ""));
        }
        if standby.write_mode != "none" {
            let title = if is_one { "Disk write" } else { "" };
            rows.push(named(times(title, &standby.disk), "disk write "));
        }
    }
    rows
}

fn times(title: &'static str, of: &assay_measure::record::Latency) -> HeadlineLine {
    HeadlineLine::of(
        title,
        vec![
            HeadlineFigure::new(&of.us_avg, "us on average"),
            HeadlineFigure::new(&of.us_p50, "p50"),
            HeadlineFigure::new(&of.us_p99, "p99"),
            HeadlineFigure::new(&of.us_max, "max"),
        ],
        "n/a (nothing was acknowledged)",
    )
}

fn steadiness(record: &Record) -> String {
    let found = &record.checks.steadiness;
    let Some(variation) = found.variation_ratio.value() else {
        return "n/a (fewer than four whole seconds)".to_owned();
    };
    let seconds = found.steps_count.value().unwrap_or(0.0);
    let range = format!(
        "messages/s of {} seconds vary by {} % ({} to {})",
        fixed(seconds, 0),
        fixed(100.0 * variation, 1),
        thousands(found.min_per_s.value().unwrap_or(0.0).round() as u64),
        thousands(found.max_per_s.value().unwrap_or(0.0).round() as u64)
    );
    if let Some(at) = found.change_points_s.first() {
        return format!("not steady: the level changes after {} s; {range}", fixed(*at, 0));
    }
    match variation {
        ..=0.05 => format!("steady: {range}"),
        ..=0.2 => format!("fairly steady: {range}"),
        _ => format!("not steady: {range}"),
    }
}

/// Mean time, us.
fn mean(figure: &Figure) -> f64 {
    figure.value().unwrap_or(0.0)
}

/// The cap first, then the host, then the largest part of a message's time.
fn limit(record: &Record, info: &RedoInfo) -> Limit {
    if let Some(cap) = cap::of(record) {
        let where_from = match info.write.as_str() {
            "" | "none" => "the link to the standby",
            _ => "the standby's volume",
        };
        let limit = cap.limit();
        return Limit { what: format!("{}, most likely of {where_from}", limit.what), ..limit };
    }
    if info.mode == "async" {
        let rate = |one: &&StandbyInfo| mean(&one.per_s);
        let slowest = info.standbys.iter().min_by(|a, b| rate(a).total_cmp(&rate(b)));
        return match slowest {
            Some(standby) => streaming(record, info, standby),
            None => Limit::unknown("no standby answered"),
        };
    }
    if info.standbys.len() > 1 {
        return slowest(info);
    }
    let Some(standby) = info.standbys.first() else {
        return Limit::unknown("no standby answered");
    };
    let total = mean(&standby.total.us_avg);
    if total <= 0.0 {
        return Limit::unknown("nothing was acknowledged");
    }
    let (network, disk) = (mean(&standby.network.us_avg), mean(&standby.disk.us_avg));
    let (queue, apply) = (mean(&standby.queue.us_avg), mean(&standby.apply.us_avg));
    let (pack, unpack) = (mean(&standby.pack.us_avg), mean(&standby.unpack.us_avg));
    let packing = if super::demand::is_packed(info) {
        format!("{} in compression here, {} in decompression there, ", told(pack, "us", 0), told(unpack, "us", 0))
    } else {
        String::new()
    };
    let evidence = format!(
        "Of {} a message spends {packing}{} in the network, {} at the standby's disk, {} in its apply and {} waiting \
         there for a CPU or its own work.",
        told(total, "us", 0),
        told(network, "us", 0),
        told(disk, "us", 0),
        told(apply, "us", 0),
        told(queue, "us", 0)
    );
    let asked = info.asked_per_s.value();
    if let Some(rate) = asked.or(info.asked_commits_per_s.value())
        && info.backlog_count.value().unwrap_or(0.0) <= rate * 0.01
    {
        let all = if super::demand::is_grouped(info) {
            "All due commits went with the next message."
        } else {
            "All messages went at their due times."
        };
        let text = format!("{all} {evidence}");
        return Limit::new("the requested rate", text);
    }
    largest(record, standby, evidence)
}

/// The largest part of a message's time.
fn largest(record: &Record, standby: &StandbyInfo, evidence: String) -> Limit {
    let (network, disk) = (mean(&standby.network.us_avg), mean(&standby.disk.us_avg));
    let (queue, apply) = (mean(&standby.queue.us_avg), mean(&standby.apply.us_avg));
    let packing = mean(&standby.pack.us_avg) + mean(&standby.unpack.us_avg);
    if network.max(disk).max(queue) != apply.max(network).max(disk).max(queue) {
        return Limit::new("the emulated apply", evidence);
    }
    if packing > disk.max(network).max(queue) {
        return Limit::new("compression", evidence);
    }
    if disk >= network.max(queue) {
        return Limit::new("the standby's disk", evidence);
    }
    if let Some(host) = cpu::limit(record) {
        return Limit::new(host.what, format!("{evidence} {}", host.evidence));
    }
    if network >= queue {
        Limit::new("the network, both hosts' network stacks included", evidence)
    } else {
        Limit::new("the standby's CPU", evidence)
    }
}

fn streaming(record: &Record, info: &RedoInfo, standby: &StandbyInfo) -> Limit {
    let elapsed = mean(&info.elapsed_s);
    let disk = mean(&standby.disk.us_avg) * standby.messages_count as f64 / 1e6;
    let streams = info.connections_count.max(1) as f64;
    let share = if elapsed > 0.0 { disk / elapsed / streams } else { 0.0 };
    let who = match info.standbys.len() {
        1 => "The standby".to_owned(),
        _ => format!("The slowest standby, {},", standby.name),
    };
    let evidence = format!("{who} spent {} % of the time writing to its log.", fixed(100.0 * share, 0));
    if share >= 0.8 {
        return Limit::new("the standby's disk", evidence);
    }
    if let Some(host) = cpu::limit(record) {
        return Limit::new(host.what, format!("{evidence} {}", host.evidence));
    }
    Limit::new("the network, or a CPU of one end", evidence)
}

fn slowest(info: &RedoInfo) -> Limit {
    let known = info.standbys.iter().filter(|standby| standby.lost.is_empty());
    let slowest = known.max_by(|a, b| mean(&a.total.us_avg).total_cmp(&mean(&b.total.us_avg)));
    let Some(slowest) = slowest else {
        return Limit::unknown("no standby was left");
    };
    let all: Vec<String> =
        info.standbys.iter().map(|one| format!("{} {}", one.name, told(mean(&one.total.us_avg), "us", 0))).collect();
    let evidence = format!("On average a message takes: {}.", all.join(", "));
    match info.rule.as_str() {
        "all" => Limit::new(format!("the slowest standby, {}", slowest.name), evidence),
        rule => Limit::new(format!("the standbys that \"{rule}\" waits for"), evidence),
    }
}

fn next(record: &Record, info: &RedoInfo) -> Vec<Next> {
    let peer = info.standbys.first().map_or("STANDBY", |one| one.name.as_str());
    let test = beside(record, "redo", peer, &["PORT", "SECRET_FILE"]);
    let length = match info.length_bytes {
        bytes if bytes.is_multiple_of(1024) => assay_measure::units::size_suffix(bytes),
        bytes => bytes.to_string(),
    };
    let mut next = Vec::new();
    if let Some(rate) = info.asked_commits_per_s.value() {
        let (twice, size) = (2.0 * rate, info.commit_bytes);
        next.push(Next::new(
            format!("{test} --commit-rate {twice} --commit-size {size} --write"),
            "whether it sustains twice the commits, written to disk",
        ));
    } else if info.mode == "async" {
        next.push(Next::new(format!("{test} --length {length} --write"), "what a commit waits for with SYNC"));
    } else if matches!(info.write.as_str(), "" | "none") {
        next.push(Next::new(
            format!("{test} --length {length} --write"),
            "the same with the standby's disk (SYNC AFFIRM)",
        ));
    } else {
        next.push(Next::new(
            format!("{test} --length {length} --write --alone 5s"),
            "shows disk and network separately and together",
        ));
    }
    if info.cap.is_some() {
        let half = assay_measure::units::size_suffix((info.length_bytes / 2).max(512));
        next.push(Next::new(
            format!("{test} --length {half} --write --time 60s"),
            "a cap on operations gives the same count at another size",
        ));
    }
    next
}
