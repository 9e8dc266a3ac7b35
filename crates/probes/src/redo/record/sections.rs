//! The report of a redo test.

use super::compat;
use super::info::{RedoInfo, StandbyInfo};
use assay_measure::record::{Latency, Record};
use assay_measure::section::common;
use assay_measure::section::{Align, Cell, Column, Sections, left, number, number_or_reason, right, wrapped};
use assay_measure::units::fixed;

pub(super) fn render(record: &Record, info: &RedoInfo) -> Sections {
    let mut page = Sections::default();
    let run = &record.run;
    let names: Vec<&str> = info.standbys.iter().map(|one| one.name.as_str()).collect();
    page.title(&format!(
        "ASSAY REDO TRANSPORT REPORT for run {}{}: {}",
        run.id,
        common::label(record),
        names.join(", ")
    ));
    page.line(&format!(
        "assay {}, started {}, {} s in all. {}",
        run.version,
        run.started,
        number(&record.interval.whole_run_s, 1),
        common::verdict(record)
    ));
    page.wrapped(
        "",
        "Layer client: a message counts from the start of its send call to its acknowledgement. Network is this time \
         less the standby's own time, which the standby measures with its own clock; assay compares no clocks. n/a \
         (reason): the figure cannot be known.",
    );
    common::integrity(&mut page, record);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.heading("As oratcptest Prints It");
    page.drawing(compat::report(info).lines().map(expanded).collect());
    modes(&mut page, info);
    super::demand::sections(&mut page, info);
    parts(&mut page, info);
    if info.standbys.len() > 1 && info.mode != "async" {
        rules(&mut page, info);
    }
    if info.local != "none" {
        local(&mut page, info);
    }
    alone(&mut page, info);
    products(&mut page, info);
    if info.mode != "async" {
        page.heading("Commit Histogram");
        page.histogram(&info.commit.hist_ns, right("Commits", 12));
        worst(&mut page, info);
    }
    ends(&mut page, info);
    common::identities(&mut page, record);
    common::parameters(&mut page, record);
    page
}

/// A page has no tabs.
fn expanded(line: &str) -> String {
    line.replace('\t', "        ")
}

const TIMES: [Column; 9] = [
    left("", 26),
    right("n", 12),
    right("avg us", 11),
    right("p50 us", 11),
    right("p90 us", 11),
    right("p99 us", 11),
    right("p99.9 us", 11),
    right("min us", 11),
    right("max us", 12),
];

fn times(page: &mut Sections, name: &str, of: &Latency) {
    if of.hist_ns.count() == 0 {
        return;
    }
    let mut cells: Vec<Cell> = vec![name.into(), Cell::figure(&of.hist_ns.count().into(), 0)];
    let figures = [&of.us_avg, &of.us_p50, &of.us_p90, &of.us_p99, &of.us_p999, &of.us_min, &of.us_max];
    cells.extend(figures.map(|figure| Cell::figure(figure, 1)));
    page.row(&TIMES, &cells);
}

/// Where the time of a message goes.
fn parts(page: &mut Sections, info: &RedoInfo) {
    page.heading("Where the Time Goes");
    let is_one = info.standbys.len() == 1;
    if is_one || info.mode != "async" {
        page.columns(&TIMES);
        times(page, "commit", &info.commit);
    }
    for standby in &info.standbys {
        if !is_one {
            page.line(&format!("To {}:", standby.name));
            page.columns(&TIMES);
        }
        for (part, of) in [
            ("message", &standby.total),
            ("  compression", &standby.pack),
            ("  send call", &standby.send),
            ("  network", &standby.network),
            ("  standby", &standby.server),
            ("    write", &standby.write),
            ("    sync", &standby.sync),
            ("    disk-write (both)", &standby.disk),
            ("    decompression", &standby.unpack),
            ("    apply", &standby.apply),
            ("    rest", &standby.queue),
            ("  first to last byte", &standby.assembly),
        ] {
            if of.us_max.value().is_some_and(|max| max > 0.0) {
                times(page, part, of);
            }
        }
        if standby.negative_count > 0 {
            page.line(&format!(
                "For {} of {} messages the standby's time exceeds the whole, because of the clocks' resolution: their \
                 network part counts as 0.",
                standby.negative_count, standby.messages_count
            ));
        }
    }
}

fn modes(page: &mut Sections, info: &RedoInfo) {
    if info.modes.is_empty() {
        return;
    }
    page.heading("Every Way to Write");
    page.line("One after the other, each on its own log; the figures of the other sections are those of the last.");
    page.columns(&TIMES);
    for row in &info.modes {
        times(page, &format!("{} message", row.mode), &row.total);
        times(page, "  disk-write", &row.disk);
    }
}

fn rules(page: &mut Sections, info: &RedoInfo) {
    page.heading("Commit Latency under Every Rule, from This One Run");
    page.line(&format!(
        "The run waited for {}; the other rules are derived from the same acknowledgements.",
        info.rule
    ));
    page.columns(&TIMES);
    for row in &info.rules {
        times(page, &row.rule, &row.latency);
    }
}

fn local(page: &mut Sections, info: &RedoInfo) {
    page.heading("The Primary's Own Log");
    page.columns(&TIMES);
    times(page, "local log write", &info.local_write);
    times(page, "local, then remote", &info.serial);
    times(page, "both at once", &info.parallel);
    page.line(
        "PostgreSQL ships only what is locally durable: one after the other. Oracle writes and ships at once: the longer \
         of both.",
    );
    if info.local == "serial" {
        page.line("\"Both at once\" is derived: the longer of both times of each commit.");
    } else if info.serial.hist_ns.count() > 0 {
        page.line("\"Local, then remote\" is derived: the sum of both times of each commit.");
    }
}

fn alone(page: &mut Sections, info: &RedoInfo) {
    let known = [&info.disk_alone, &info.network_alone];
    if known.iter().all(|of| of.hist_ns.count() == 0) {
        return;
    }
    page.heading("Disk Alone, Network Alone, Both");
    page.columns(&TIMES);
    times(page, "disk alone", &info.disk_alone);
    times(page, "network alone", &info.network_alone);
    if let Some(standby) = info.standbys.first() {
        times(page, "both", &standby.total);
    }
}

/// Settings of products and what a commit waits for under them.
const PRODUCTS: [[&str; 4]; 9] = [
    ["Data Guard ASYNC (maximum performance)", "nothing remote; watch the backlog", "async", "--mode async --write"],
    ["Data Guard SYNC NOAFFIRM (FASTSYNC)", "receipt in the standby's memory", "sync none", "(no --write)"],
    [
        "Data Guard SYNC AFFIRM (maximum availability, protection)",
        "the standby redo log write",
        "sync direct-dsync",
        "--write-mode direct-dsync",
    ],
    [
        "PostgreSQL synchronous_commit = remote_write",
        "the standby's operating system has it",
        "sync pagecache",
        "--write-mode pagecache --local serial",
    ],
    [
        "PostgreSQL synchronous_commit = on",
        "the standby's flush",
        "sync fdatasync",
        "--write-mode fdatasync --local serial",
    ],
    [
        "PostgreSQL synchronous_commit = remote_apply",
        "replayed on the standby (emulated)",
        "sync apply",
        "--write-mode apply:500 --local serial",
    ],
    [
        "PostgreSQL synchronous_standby_names ANY k, FIRST k",
        "k standbys, by quorum or by priority",
        "",
        "--ack \"any k\", --ack \"first k\"",
    ],
    [
        "MariaDB, MySQL semi-sync, sync_relay_log = 1",
        "the replica's flushed relay log",
        "sync fdatasync",
        "--write-mode fdatasync --local serial",
    ],
    [
        "MariaDB, MySQL semi-sync, sync_relay_log as shipped",
        "the replica's relay log in its page cache",
        "sync pagecache",
        "--write-mode pagecache --local serial",
    ],
];

/// How this test stands to what databases do.
fn products(page: &mut Sections, info: &RedoInfo) {
    page.heading("What Databases Wait for, and How to Reproduce It");
    let here = match (info.mode.as_str(), info.asked_write.split(':').next()) {
        ("async", _) => "async".to_owned(),
        (mode, write) => format!("{mode} {}", write.unwrap_or("none")),
    };
    let rows = PRODUCTS.iter().map(|[product, waits, run, options]| {
        let mark = if *run == here { "this run" } else { "" };
        vec![(*product).into(), (*waits).into(), (*options).into(), Cell::from(mark)]
    });
    let titles =
        [("Setting", Align::Left), ("A commit waits for", Align::Left), ("Options", Align::Left), ("", Align::Left)];
    page.fitted(&titles, rows.collect());
    page.line(
        "Semi-sync: with AFTER_SYNC (lossless) other sessions see a commit only after the acknowledgement, with \
         AFTER_COMMIT before it; the session waits equally long in both.",
    );
    page.line("assay emulates remote_apply by keeping a CPU of the standby busy; none of these involves a database.");
}

fn worst(page: &mut Sections, info: &RedoInfo) {
    page.heading("The Slowest Messages");
    const WORST: [Column; 4] =
        [left("s after the start", 18), right("total us", 13), right("standby us", 13), right("disk us", 13)];
    page.columns(&WORST);
    for row in &info.worst {
        let cells = [fixed(row.at_s, 3), fixed(row.total_us, 1), fixed(row.server_us, 1), fixed(row.disk_us, 1)];
        page.row(&WORST, &cells);
    }
}

/// Both ends: connection, CPUs, host.
fn ends(page: &mut Sections, info: &RedoInfo) {
    page.heading("The Ends");
    const PAIRS: [Column; 2] = [left("Of", 40), wrapped("What")];
    page.untitled(&PAIRS);
    let mut row = |of: &str, what: String| page.row(&PAIRS, &[of.to_owned(), what]);
    row("primary: CPU of its threads", format!("{} s", number(&info.cpu_s, 3)));
    row("primary: clock of its CPU", format!("{} MHz", number(&info.cpu_mhz, 0)));
    row("primary: messages sent", format!("{} in {} s", info.sent_count, number(&info.sent_s, 3)));
    for standby in &info.standbys {
        of_standby(&mut row, standby);
    }
    for standby in &info.standbys {
        page.heading(&format!("Standby {}", standby.name));
        let facts = standby.facts.iter().map(|fact| (fact.name.clone(), fact.value.clone()));
        page.pairs(&facts.collect::<Vec<_>>());
    }
}

fn of_standby(row: &mut dyn FnMut(&str, String), standby: &StandbyInfo) {
    let name = &standby.name;
    let told = number_or_reason;
    row(&format!("{name}: write"), standby.write_mode.clone());
    row(
        &format!("{name}: connection at the end"),
        format!(
            "round trip {} us, least {} us, segments retransmitted {}, congestion window {} bytes, send buffer {} \
             bytes",
            told(&standby.rtt_us, 0),
            told(&standby.min_rtt_us, 0),
            told(&standby.retransmits_count, 0),
            told(&standby.cwnd_bytes, 0),
            told(&standby.send_buffer_bytes, 0)
        ),
    );
    row(
        &format!("{name}: host"),
        format!(
            "CPU of its threads {} s, CPUs busy {} %, steal {} %, clock {} MHz",
            told(&standby.cpu_s, 3),
            told(&standby.busy_pct, 1),
            told(&standby.steal_pct, 2),
            told(&standby.cpu_mhz, 0)
        ),
    );
    if !standby.lost.is_empty() {
        row(&format!("{name}: lost"), standby.lost.clone());
    }
}
