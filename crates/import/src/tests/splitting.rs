//! How many records a text gives, as the command line reads it.

use super::super::testing::{info, number, sample};
use super::source;
use crate::import_all;
use assay_measure::record::Record;

/// The records of one text.
fn records(text: &str) -> Vec<Record> {
    let all = import_all(vec![source("page.txt", text)]);
    all.map(|one| one.result.unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn tools(text: &str) -> Vec<String> {
    records(text).iter().map(|record| info(record).tool.clone()).collect()
}

#[test]
fn a_sample_of_one_run_is_one_record() {
    const SEVERAL: [(&str, usize); 1] = [("iperf3-3.12-server.txt", 4)];
    let mut wrongs = Vec::new();
    for place in ["awr", "import"] {
        let place = format!("{}/../../testdata/{place}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(place).expect("samples") {
            let path = entry.expect("a sample").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a text");
            let count = import_all(vec![source(&name, &text)]).count();
            let expected = SEVERAL.iter().find(|(known, _)| *known == name).map_or(1, |(_, count)| *count);
            if count != expected {
                wrongs.push(format!("{name}: {count}"));
            }
        }
    }
    assert!(wrongs.is_empty(), "{wrongs:?}");
}

#[test]
fn reports_of_databases_below_each_other_are_told_apart_by_their_titles() {
    let awr = |name: &str| {
        let path = format!("{}/../../testdata/awr/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("a report")
    };
    let both = format!("{}\n{}", awr("statspack-11.2.txt"), awr("awr-19c.txt"));
    assert_eq!(tools(&both), ["statspack", "awr"]);
}

#[test]
fn our_own_report_is_one_record() {
    let snapshot = include_str!("../../../../testdata/frozen/native-updates/text.snap");
    let (_, report) = snapshot.split_once("ASSAY WORKLOAD").expect("a report");
    assert_eq!(tools(&format!("ASSAY WORKLOAD{report}")), ["assay"]);
    assert_eq!(tools(&format!("{}\nASSAY WORKLOAD{report}", sample("ping-bsd.txt"))), ["ping", "assay"]);
}

#[test]
fn quoted_lines_of_one_width_are_no_wrapped_line() {
    let quoted = |text: &str| text.lines().map(|line| format!("> {line}\n")).collect::<String>();
    let step = |s: u32| format!("progress: {s}.0 s, 1000.0 tps, lat 4.000 ms stddev 0.500, 0 failed\n");
    let pgbench: String = (1..=5).map(step).collect();
    let reply = |seq: u32| format!("64 bytes from 10.9.0.2: icmp_seq={seq} ttl=64 time=0.300 ms\n");
    let ping: String = (1..=5).map(reply).collect();
    let row = |s: u32| format!("[  5]   {s}.00-{}.00   sec   400 MBytes  3.36 Gbits/sec    0    446 KBytes\n", s + 1);
    let iperf3 = format!("[ ID] Interval  Transfer  Bitrate  Retr  Cwnd\n{}", (0..5).map(row).collect::<String>());
    assert_eq!(records(&quoted(&pgbench))[0].series.t_s.len(), 5);
    assert_eq!(records(&quoted(&ping))[0].driver.ops[0].count, 5);
    assert_eq!(records(&quoted(&iperf3))[0].series.t_s.len(), 5);
    // One torn line does not tear the others, which are as wide.
    let (begin, end) =
        ("[ 1s ] thds: 4 tps: 1000.00 qps: 20000.00 (r/w/o: 1400.00/400.00/200.00)", "lat (ms,95%): 4.00");
    let other = format!("{:x<1$}\n", "64 bytes from ", begin.len());
    let all = crate::text::Text::read(0, "", quoted(&format!("{begin}\n{end}\n{}", other.repeat(3))));
    let joined: Vec<String> = all.lines.iter().map(|line| line.text.clone()).collect();
    assert_eq!(joined, [&format!("{begin} {end}"), other.trim_end(), other.trim_end(), other.trim_end()]);
}

#[test]
fn a_figure_whose_title_was_cut_is_not_of_the_whole() {
    let of = |name: &str, cut: fn(&str) -> bool| {
        let lines: Vec<String> = sample(name).lines().filter(|line| !cut(line)).map(str::to_owned).collect();
        records(&lines.join("\n")).remove(0)
    };
    let notes = |record: &Record| info(record).notes.iter().map(|note| note.text.clone()).collect::<Vec<_>>();
    let has =
        |record: &Record, key: &str| info(record).values.iter().any(|value| value.key == key && value.scope.is_empty());

    let scripts = of("pgbench-15-scripts.txt", |line| {
        ["tps = ", "latency ", "SQL script"].iter().any(|begin| line.starts_with(begin))
    });
    assert!(!has(&scripts, "transaction_us_avg") && !has(&scripts, "transaction_per_s"));
    assert!(notes(&scripts).iter().any(|note| note.contains("is of a script whose title is missing")));

    let procedures = of("hammerdb.log", |line| line.contains("PROC: "));
    assert!(!info(&procedures).values.iter().any(|value| value.key.starts_with('_')));
    assert!(notes(&procedures).iter().any(|note| note.contains("is of a procedure whose title is missing")));

    let yaml = sample("stress-ng-0.15.yaml");
    let doubled = yaml.replacen("    - stressor: cpu\n", "      bogo-ops: 7\n    - stressor: cpu\n", 1);
    let stressors = records(&doubled).remove(0);
    assert!(!has(&stressors, "stress_ops_count"));
    assert!(notes(&stressors).iter().any(|note| note.contains("is of a stressor whose title is missing")));
}

#[test]
fn what_pasting_did_to_a_text_of_several_runs_is_told_with_the_first() {
    let stamped = |text: &str| text.lines().map(|line| format!("[2024-03-05 10:00:01] {line}\n")).collect::<String>();
    let mut titled = String::new();
    for line in sample("iperf3-tcp.txt").lines() {
        titled.push_str(&format!("a:  {line}\n"));
    }
    let two_runs = format!("{0}{0}", sample("pgbench-15-transactions.txt"));
    let page = format!("{}{}", sample("pgbench-15-transactions.txt"), sample("ping-bsd.txt"));
    for (text, count) in [(titled, 1), (two_runs, 2), (page, 2)] {
        let all = records(&stamped(&text));
        assert_eq!(all.len(), count, "{text}");
        let is_told = |note: &assay_measure::record::ImportNote| note.text.contains("the time in front of each line");
        let told: Vec<usize> =
            all.iter().map(|record| info(record).notes.iter().filter(|note| is_told(note)).count()).collect();
        assert_eq!(told, [1, 0][..count], "{text}");
        assert_eq!(all[0].run.started, "2024-03-05T10:00:01-00:00", "{text}");
    }
}

#[test]
fn statistics_of_the_host_between_the_lines_of_a_run_do_not_split_it() {
    let run = sample("sysbench-1.0-oltp.txt");
    let steps = |run: &str| record_steps(&records(run)[0], "commits_count_per_s");
    let iostat = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           1.00    0.00    2.00    3.00    0.00   94.00\n\nDevice            r/s     w/s     rkB/s     wkB/s  %util\nsda              1.00    2.00      8.00     16.00   3.00\n\n";
    let mut between = String::new();
    for line in run.lines() {
        between.push_str(&format!("{line}\n"));
        if line.contains("thds:") {
            between.push_str(iostat);
        }
    }
    assert!(between.matches(iostat).count() > 1);
    let all = records(&between);
    assert_eq!(all.len(), 1);
    assert_eq!(record_steps(&all[0], "commits_count_per_s"), steps(&run));
    assert_eq!(number(&all[0], "", "transactions_per_s"), number(&records(&run)[0], "", "transactions_per_s"));
    assert!(all[0].series.metrics.contains_key("host_user_pct"));
    let twice = format!("{0}{iostat}{0}", sample("pgbench-15-transactions.txt"));
    assert_eq!(tools(&twice), ["pgbench", "pgbench", "host"]);
}

fn record_steps(record: &Record, name: &str) -> usize {
    record.series.metrics[name].iter().filter(|step| step.value().is_some()).count()
}

#[test]
fn pgio_begins_at_its_first_line() {
    let all = records(&format!("Two tests.\n\n{}\n{}", sample("ping-bsd.txt"), sample("pgio.txt")));
    assert_eq!(all.len(), 2);
    assert!(all[1].run.started.starts_with("2023-03-02"));
    assert_eq!(number(&all[1], "before", "pgio_blocks_read_count"), 500_000.0);
    let notes = &info(&all[0]).notes;
    assert!(
        notes.iter().any(|note| note.text.ends_with("left out: no output of a tool was recognised in them")),
        "{notes:#?}"
    );
}

#[test]
fn a_test_without_a_title_beside_titled_ones_is_a_record() {
    let test = sample("iperf3-tcp.txt");
    let titled = |title: &str| test.lines().map(|line| format!("{title}:  {line}\n")).collect::<String>();
    let all = records(&format!("{}{test}{}{test}", titled("a"), titled("b")));
    let alone = records(&test).remove(0);
    let rate = |record: &Record| number(record, "receiver", "tcp_throughput_bits_per_s_mean");
    assert_eq!(all.iter().map(rate).collect::<Vec<_>>(), [rate(&alone); 4]);
    // Lines around titled tests that are no test are no record.
    assert_eq!(records(&format!("a note\n{}{}", titled("a"), titled("b"))).len(), 2);
}
