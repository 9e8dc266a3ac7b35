//! How long reports of a long run take, and how much memory: a record of 24 hours, each second, 50 figures, made up;
//! and the import of reports of 10 MB, as text and as HTML.

use super::Options;
use super::table::median;
use anyhow::{Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Figures of the record, by the names that charts and tables look for; filled up to 50 with others.
const KNOWN: &str = "\
    ops_count_per_s logical_reads_blocks_per_s read_io_requests_count_per_s \
    write_io_requests_count_per_s read_mib_per_s write_mib_per_s redo_mib_per_s commits_count_per_s \
    db_cpu_s_per_s average_active_sessions_count active_cpu_count active_user_io_count \
    active_commit_count active_max_count usable_cpus_count online_cpus_count op_avg_us op_p50_us \
    op_p90_us op_p99_us op_max_us db_file_sequential_read_waits_count_per_s \
    db_file_sequential_read_p50_us db_file_sequential_read_p90_us db_file_sequential_read_p99_us \
    db_file_sequential_read_max_us log_file_sync_waits_count_per_s log_file_sync_p50_us \
    log_file_sync_p99_us log_file_sync_max_us device_read_requests_count_per_s \
    device_write_requests_count_per_s device_read_mib_per_s device_write_mib_per_s \
    dirty_buffers_blocks checkpoint_age_bytes host_user_pct host_system_pct host_idle_pct \
    host_steal_pct";
const FIGURES: usize = 50;
/// Columns of the latency heat map, as a run joins them.
const HEAT_COLUMNS: u64 = 540;

struct Row {
    name: &'static str,
    words: &'static [&'static str],
    goal_s: Option<f64>,
    goal_mib: Option<f64>,
}

const ROWS: [Row; 4] = [
    Row { name: "report --format html", words: &["--format", "html"], goal_s: Some(2.0), goal_mib: Some(300.0) },
    Row { name: "report (text)", words: &[], goal_s: None, goal_mib: None },
    Row { name: "report --format csv", words: &["--format", "csv"], goal_s: None, goal_mib: None },
    Row { name: "report --format openmetrics", words: &["--format", "openmetrics"], goal_s: None, goal_mib: None },
];

/// Reported, not asserted.
pub(crate) fn run(options: &Options) -> Result<()> {
    let seconds = options.size(86_400, 600);
    let record = options.dir.join("record.json");
    fs::write(&record, record_of(seconds))?;
    let size_mb = fs::metadata(&record)?.len() as f64 / 1e6;
    println!("record.json of {seconds} seconds, {FIGURES} figures each: {size_mb:.1} MB");
    print_head();
    for row in &ROWS {
        let mut command = Command::new(&options.assay);
        command.arg("report").arg(&record).args(row.words);
        let (took_s, peak_mib) = measured(options, &command_line(&command))?;
        print_row(row.name, took_s, row.goal_s, peak_mib, row.goal_mib);
    }
    fs::remove_file(&record)?;
    let bytes = options.size(10_000_000, 200_000);
    import(options, "import, 10 MB of text", &text_report(bytes))?;
    import(options, "import, 10 MB of AWR HTML", &html_report(bytes))
}

/// The import of a report.
fn import(options: &Options, name: &str, content: &str) -> Result<()> {
    let report = options.dir.join("imported-report");
    fs::write(&report, content)?;
    let mut command = Command::new(&options.assay);
    let place = options.dir.join("imported");
    command.arg("import").arg(&report).arg("-o").arg(&place);
    let measured = measured(options, &command_line(&command));
    fs::remove_file(&report)?;
    let (took_s, peak_mib) = measured?;
    print_row(name, took_s, Some(0.5), peak_mib, None);
    Ok(())
}

fn print_head() {
    println!("{:<30} {:>8} {:>8} {:>7} {:>10} {:>9} {:>7}", "", "s", "goal", "ratio", "peak MiB", "goal", "ratio");
}

fn print_row(name: &str, took_s: f64, goal_s: Option<f64>, peak_mib: f64, goal_mib: Option<f64>) {
    let goal = |goal: Option<f64>, got: f64| match goal {
        Some(goal) => (format!("< {goal}"), format!("{:.2}", got / goal)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let (within_s, ratio_s) = goal(goal_s, took_s);
    let (within_mib, ratio_mib) = goal(goal_mib, peak_mib);
    println!("{name:<30} {took_s:>8.2} {within_s:>8} {ratio_s:>7} {peak_mib:>10.0} {within_mib:>9} {ratio_mib:>7}");
}

fn command_line(command: &Command) -> Vec<std::ffi::OsString> {
    let program = command.get_program().to_owned();
    let words = command.get_args().map(std::ffi::OsStr::to_owned);
    std::iter::once(program).chain(words).collect()
}

/// Median time of some runs, s, and the largest peak of resident memory, MiB.
fn measured(options: &Options, line: &[std::ffi::OsString]) -> Result<(f64, f64)> {
    let (mut times, mut peak) = (Vec::new(), 0.0_f64);
    for _ in 0..options.pairs {
        let place = options.dir.join("imported");
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).current_dir(&options.dir);
        let (took, most) = once(&mut command)?;
        times.push(took.as_secs_f64());
        peak = peak.max(most);
    }
    Ok((median(&times), peak))
}

fn once(command: &mut Command) -> Result<(Duration, f64)> {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak_mib = 0.0_f64;
    loop {
        // The high-water mark is the kernel's own; only its last words may be missed.
        if let Ok(text) = fs::read_to_string(&status) {
            peak_mib = peak_mib.max(peak_of(&text).unwrap_or(0.0));
        }
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("{status}: {command:?}");
            }
            return Ok((begun.elapsed(), peak_mib));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn peak_of(status: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

/// Noise without a library: the same each time.
struct Noise(u64);

impl Noise {
    /// 0..1
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1_u64 << 24) as f64
    }
}

/// The text of a record with a long series.
fn record_of(seconds: u64) -> String {
    let mut noise = Noise(1);
    let mut out = String::with_capacity(seconds as usize * FIGURES * 11);
    out.push_str(r#"{"schema":"assay/1","run":{"id":"00000001","workload":"slob","engine":"native","started":"2026-01-01T00:00:00Z","verdict":"complete","sessions":32},"#);
    let _ = write!(
        out,
        r#""interval":{{"begin":"2026-01-01T00:00:00Z","end":"2026-01-02T00:00:00Z","begin_s":0,"end_s":{seconds},"elapsed_s":{seconds}}},"series":{{"step_s":1,"t_s":["#
    );
    list(&mut out, seconds, |second| format!("{}", second + 1));
    out.push_str("],\"in_window\":[");
    list(&mut out, seconds, |_| "true".to_owned());
    out.push_str("],\"metrics\":{");
    for figure in 0..FIGURES {
        let name = KNOWN.split(' ').nth(figure).map_or_else(|| format!("figure_{figure}_count"), str::to_owned);
        let comma = if figure > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\"{name}\":[");
        // One figure in a hundred seconds is not known, as percentiles of quiet seconds are.
        list(&mut out, seconds, |second| match (figure % 5, second % 100) {
            (4, 99) => r#"{"na":"too few samples"}"#.to_owned(),
            _ => format!("{:.3}", (1.0 + figure as f64) * (100.0 + 20.0 * noise.next())),
        });
        out.push(']');
    }
    out.push_str("},\"heat\":[{\"name\":\"db file sequential read\",\"layer\":\"engine\",\"t_s\":[");
    let columns = HEAT_COLUMNS.min(seconds);
    list(&mut out, columns, |column| format!("{}", (column + 1) * seconds / columns));
    out.push_str("],\"buckets\":[");
    list(&mut out, columns, |_| {
        let pairs: Vec<String> =
            (4..14).map(|bucket| format!("[{bucket},{}]", (1000.0 * noise.next()) as u64)).collect();
        format!("[{}]", pairs.join(","))
    });
    out.push_str("]}]}}\n");
    out
}

fn list(out: &mut String, n: u64, mut of: impl FnMut(u64) -> String) {
    for i in 0..n {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&of(i));
    }
}

/// A text report of about so many bytes: a load profile, events, and long lists of statistics and statements.
fn text_report(bytes: usize) -> String {
    let mut out = String::from(
        "WORKLOAD REPORT FOR\n\n\
         DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC\n\
         ------------ ----------- ------------ -------- --------------- ----------- ---\n\
         ORCL          1234567890 orcl                1 01-Jan-26 00:00 19.0.0.0.0  NO\n\n\
         \x20             Snap Id      Snap Time      Sessions Curs/Sess\n\
         \x20           --------- ------------------- -------- ---------\n\
         Begin Snap:       100 01-Jan-26 10:00:00        50       1.0\n\
         \x20 End Snap:       101 01-Jan-26 10:10:00        50       1.0\n\
         \x20  Elapsed:               10.00 (mins)\n\
         \x20  DB Time:               80.00 (mins)\n\n\
         Load Profile                    Per Second   Per Transaction  Per Exec  Per Call\n\
         ~~~~~~~~~~~~~~~            ---------------   --------------- --------- ---------\n\
         \x20            DB Time(s):               8.0               0.1      0.00      0.01\n\
         \x20             DB CPU(s):               2.0               0.0      0.00      0.00\n\
         \x20     Redo size (bytes):       1,048,576.0          10,485.8\n\
         \x20 Logical read (blocks):         500,000.0           5,000.0\n\
         \x20      Read IO requests:          20,000.0             200.0\n\
         \x20     Write IO requests:           5,000.0              50.0\n\
         \x20        Executes (SQL):           1,000.0              10.0\n\
         \x20          Transactions:             100.0\n\n\
         Instance Activity Stats\n\
         -> Ordered by statistic name\n\n\
         Statistic                                     Total     per Second     per Trans\n\
         -------------------------------- ------------------ -------------- -------------\n",
    );
    for row in 0..1000_u64 {
        let _ = writeln!(
            out,
            "{:<32} {:>18} {:>14}.0 {:>13.1}",
            format!("made up statistic b{}b", letters(row)),
            row * 600,
            row,
            row as f64 / 100.0
        );
    }
    // Most of a large report is the text of statements.
    out.push_str("\nComplete List of SQL Text\n\nSQL Id           SQL Text\n");
    let mut row = 1_000_000_000_u64;
    while out.len() < bytes {
        let _ = writeln!(
            out,
            "{:<13} SELECT COUNT(c2) FROM cf1 WHERE custid > ( :B1 - :B2 ) AND custid < :B1",
            letters(row)
        );
        row += 1;
    }
    out.push_str("\nEnd of Report\n");
    out
}

/// A number in letters: a name that ends in digits would be read as a name and a value.
fn letters(mut number: u64) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return letters.iter().rev().collect();
        }
    }
}

/// A report of HTML of about so many bytes: a load profile, events, statistics, and long tables of statements, which
/// are most of a real one.
fn html_report(bytes: usize) -> String {
    let mut out = String::from(
        "<html lang=\"en\"><head><title>AWR Report for DB: ORCL, Inst: orcl, Snaps: 100-101</title></head>\n\
         <body class=\"awr\"><h1 class=\"awr\">\nWORKLOAD REPOSITORY report for\n</h1>\n",
    );
    table(
        &mut out,
        "This table displays snapshot information",
        &["", "Snap Id", "Snap Time", "Sessions"],
        [["Begin Snap:", "100", "01-Jan-26 10:00:00", "50"], ["Elapsed:", "", "10.00 (mins)", ""]]
            .map(|row| row.map(str::to_owned).to_vec()),
    );
    table(
        &mut out,
        "This table displays load profile",
        &["", "Per Second", "Per Transaction"],
        [["Redo size (bytes):", "1,048,576.0", "10,485.8"]].map(|row| row.map(str::to_owned).to_vec()),
    );
    figures(&mut out);
    while out.len() < bytes {
        let statements = (0..100).map(|i| {
            let text = "select c1, c2 from cf1 where custid &gt; :b1 and custid &lt; :b2 ".repeat(4);
            vec![format!("{}.50", 100 + i), (i + 1).to_string(), format!("sql{i:010}"), text]
        });
        table(
            &mut out,
            "This table displays top SQL by elapsed time",
            &["Elapsed Time (s)", "Executions", "SQL Id", "SQL Text"],
            statements,
        );
    }
    out.push_str("End of Report\n</body></html>\n");
    out
}

/// Events and statistics of a page.
fn figures(out: &mut String) {
    let mut noise = Noise(2);
    let events = (0..300).map(|i| {
        let waits = (1e6 * noise.next()) as u64 + 1;
        vec![
            format!("some event of the instance {i}"),
            waits.to_string(),
            "0".to_owned(),
            (waits / 2000).to_string(),
            "500.00us".to_owned(),
            "1.0".to_owned(),
            "0.1".to_owned(),
        ]
    });
    table(
        out,
        "This table displays Foreground Wait Events and their wait statistics",
        &["Event", "Waits", "%Time -outs", "Total Wait Time (s)", "Avg wait", "Waits /txn", "% DB time"],
        events,
    );
    let statistics = (0..1000).map(|i| {
        let total = (i + 1) * 600;
        vec![
            format!("statistic number {i} of the instance"),
            total.to_string(),
            format!("{}.00", total / 600),
            format!("{}.00", total / 600),
        ]
    });
    table(
        out,
        "This table displays Instance activity statistics. For each instance, activity total",
        &["Statistic", "Total", "per Second", "per Trans"],
        statistics,
    );
}

fn table(out: &mut String, summary: &str, titles: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let _ = write!(out, "<table border=\"0\" class=\"tdiff\" summary=\"{summary}\"><tr>");
    for title in titles {
        let _ = write!(out, "<th class=\"awrbg\" scope=\"col\">{title}</th>");
    }
    out.push_str("</tr>\n");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td align=\"right\" class='awrc'>{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_json_with_every_figure_of_every_second() {
        let record: serde_json::Value = serde_json::from_str(&record_of(200)).unwrap();
        let metrics = record["series"]["metrics"].as_object().unwrap();
        assert_eq!(metrics.len(), FIGURES);
        assert!(metrics.values().all(|column| column.as_array().unwrap().len() == 200));
        assert_eq!(record["series"]["heat"][0]["buckets"].as_array().unwrap().len(), 200);
    }

    #[test]
    fn the_peak_is_the_kernels_high_water_mark() {
        assert_eq!(peak_of("Name:\tx\nVmHWM:\t    2048 kB\n"), Some(2.0));
    }

    #[test]
    fn the_text_has_the_size_asked_for() {
        assert!((200_000..210_000).contains(&text_report(200_000).len()));
    }
}
