use super::*;
use assay_measure::record::{Advice, Figure, ServerInfo};
use proptest::prelude::*;

fn run() -> Record {
    assay_awr::record::build(&assay_testkit::fixtures::run())
}

fn answer(record: &Record) -> String {
    of(&[record], &Context::default()).text()
}

/// A line with those that go on from it, as one text.
fn line(text: &str, title: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(title));
    let first = lines.next().unwrap_or_default().to_owned();
    let more = lines.take_while(|line| line.starts_with("      "));
    more.fold(first, |all, line| format!("{all} {}", line.trim()))
}

/// Host CPU: what all used and what this test used of it, %.
fn host(record: &mut Record, busy: f64, own: f64) {
    let elapsed = record.interval.elapsed_s.value().expect("a window");
    let cpus = record.os.cpus_count.value().expect("CPUs");
    let figure = Figure::decimal(busy);
    record.os.cpu_pct.insert("busy".to_owned(), figure);
    record.os.process.cpu_s = Figure::decimal(own / 100.0 * elapsed * cpus);
    record.instance.time_model.kernel_run_delay_us = Figure::decimal(0.0);
}

/// The driver threads were ready without a CPU for so much of their time, %.
fn delayed(record: &mut Record, pct: f64) {
    let elapsed = record.interval.elapsed_s.value().expect("a window");
    let threads = record.driver.threads_count as f64;
    record.driver.thread_run_delay_s = Figure::decimal(pct / 100.0 * threads * elapsed);
}

/// All of DB time is one event's.
fn waits_for(record: &mut Record, name: &str, class: &str) {
    for event in &mut record.instance.events {
        event.db_time_pct = Figure::decimal(0.0);
    }
    record.instance.time_model.on_thread_us = Figure::decimal(0.0);
    record.instance.time_model.run_queue_us = Figure::decimal(0.0);
    let event = record.instance.events.iter_mut().find(|event| event.actor == "foreground").expect("an event");
    event.name = name.to_owned();
    event.class = class.to_owned();
    event.db_time_pct = Figure::decimal(95.0);
}

fn set(record: &mut Record, name: &str, value: &str) {
    record.plan.settings.retain(|line| line.name != name);
    let line = assay_measure::snapshot::SettingLine {
        name: name.to_owned(),
        value: value.to_owned(),
        origin: "cli".to_owned(),
    };
    record.plan.settings.push(line);
}

#[test]
fn the_answer_fits_one_screen_and_says_what_is_asked() {
    let record = run();
    let text = answer(&record);
    assert!(text.lines().count() <= LINES, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    for title in ["Tested", "Rate", "Limited by", "Steadiness", "Trust", "Next"] {
        assert!(!line(&text, title).is_empty(), "{title}: {text}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_answer_is_as_wide_as_the_terminal_within_what_is_good_to_read() {
    let record = run();
    let widest = |columns| {
        let text = of(&[&record], &on(Screen { columns: Some(columns), ..Screen::default() })).text();
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    };
    let found = [20, 80, 97, 120, 300].map(widest);
    assert!((70..=80).contains(&found[0]), "{found:?}");
    assert_eq!((found[0], found[3]), (found[1], found[4]));
    assert!(found[1] < found[2] && found[2] <= 97 && found[2] < found[3] && found[3] <= 120, "{found:?}");
}

#[test]
fn a_title_is_coloured_by_what_its_line_says() {
    let record = run();
    let text = of(&[&record], &on(Screen { is_coloured: true, ..Screen::default() })).text();
    assert!(text.contains("\u{1b}[1;32mTrust             good\u{1b}[0m: "), "{text}");
    assert!(text.contains("\u{1b}[32mSteadiness\u{1b}[0m"), "{text}");
    assert!(text.starts_with("\u{1b}[1mslob on native"), "{text}");
    assert_eq!(text.matches("\u{1b}[").count(), 2 * text.matches("\u{1b}[0m").count());
}

fn on(screen: Screen) -> Context {
    Context { screen, ..Context::default() }
}

#[test]
fn where_the_screen_is_short_the_headline_is_its_last_line_too() {
    let record = run();
    let shown = |rows| of(&[&record], &on(Screen { rows, ..Screen::default() })).text();
    let (whole, lines) = (shown(None), shown(None).lines().count());
    assert_eq!(shown(Some(lines + 1)), whole);
    let head: Vec<&str> = whole.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(shown(Some(lines)), format!("{whole}\n{}\n", head.join("\n")));
}

type Change = fn(&mut Record);

/// The causes that a run can have, each made in a record, and the words that name it.
#[expect(clippy::too_many_lines, reason = "a list of causes")]
#[test]
fn each_cause_is_named() {
    let causes: [(&str, Change, &str); 15] = [
        (
            "CPU burnt by others",
            |r| {
                host(r, 99.0, 20.0);
                delayed(r, 60.0);
            },
            "which other processes kept busy",
        ),
        (
            "a device beside a host that others kept busy",
            |r| {
                host(r, 99.0, 20.0);
                delayed(r, 5.0);
            },
            "the device: reads wait for it",
        ),
        (
            "a limit on the device beside a host that others kept busy",
            |r| {
                host(r, 99.0, 20.0);
                delayed(r, 5.0);
                r.advice.push(Advice {
                    id: "R12".to_owned(),
                    text: "The reads are at a limit.".to_owned(),
                    ..Advice::default()
                });
            },
            "a limit set on the device",
        ),
        ("CPU used up", |r| host(r, 99.0, 97.0), "which this test used up"),
        (
            "a server that uses the CPU",
            |r| {
                host(r, 99.0, 5.0);
                let elapsed = r.interval.elapsed_s.value().unwrap_or(0.0);
                let cpus = r.os.cpus_count.value().unwrap_or(0.0);
                r.instance.server = Some(ServerInfo::default());
                r.instance.time_model.db_cpu_us = Figure::decimal(0.93 * elapsed * cpus * 1e6);
            },
            "which this test used up",
        ),
        (
            "steal",
            |r| {
                host(r, 95.0, 30.0);
                r.os.cpu_pct.insert("steal".to_owned(), Figure::decimal(55.0));
            },
            "the hypervisor",
        ),
        (
            "a CPU quota",
            |r| {
                host(r, 40.0, 38.0);
                let elapsed = r.interval.elapsed_s.value().unwrap_or(0.0);
                r.os.cgroup_throttled_us = Figure::decimal(0.3 * elapsed * 1e6);
            },
            "the CPU quota",
        ),
        (
            "a rate below what could be done",
            |r| {
                let done = assay_measure::record::metric::find(&r.metrics, "ops_per_s");
                let done = done.and_then(|metric| metric.value.value()).unwrap_or(0.0);
                set(r, "RATE", &format!("{done}"));
            },
            "the requested rate",
        ),
        (
            "think time",
            |r| {
                r.driver.busy_s = Figure::decimal(1.0);
                r.driver.think_s = Figure::decimal(9.0);
            },
            "the think time asked for",
        ),
        (
            "reads from a busy device",
            |r| {
                waits_for(r, "db file sequential read", "User I/O");
                r.os.disk[0].busy_pct = Figure::decimal(99.0);
            },
            "the device: reads wait for it",
        ),
        (
            "one session reads",
            |r| {
                waits_for(r, "db file sequential read", "User I/O");
                r.os.disk[0].busy_pct = Figure::decimal(60.0);
            },
            "add sessions to raise throughput",
        ),
        ("commits", |r| waits_for(r, "log file sync", "Commit"), "the redo log: commits wait"),
        (
            "a tiny log",
            |r| waits_for(r, "log file switch (checkpoint incomplete)", "Configuration"),
            "the size of the redo log files",
        ),
        ("a hot block", |r| waits_for(r, "buffer busy waits", "Concurrency"), "other sessions"),
        ("a small cache whose writers are late", |r| waits_for(r, "free buffer waits", "Configuration"), "the writers"),
    ];
    for (cause, make, words) in causes {
        let mut record = run();
        host(&mut record, 30.0, 25.0);
        make(&mut record);
        let text = answer(&record);
        let limited = line(&text, "Limited by");
        assert!(limited.contains(words), "{cause}: {limited}");
    }
}

#[test]
fn what_others_took_makes_the_figures_doubtful() {
    let mut record = run();
    host(&mut record, 60.0, 25.0);
    let trust = line(&answer(&record), "Trust");
    assert!(trust.contains("with care"), "{trust}");
    assert!(trust.contains("Other processes used 35 % of the host's CPU time"), "{trust}");
}

#[test]
fn an_invalid_run_is_not_to_be_used() {
    let mut record = run();
    record.run.verdict = "invalid".to_owned();
    record.run.verdict_reasons = vec!["the rate was missed".to_owned()];
    let answer = of(&[&record], &Context::default());
    assert_eq!(answer.trust(), Class::Bad);
    let text = answer.text();
    assert!(
        line(&text, "Trust").contains("do not use these figures: the run is invalid (the rate was missed)"),
        "{text}"
    );
}

proptest! {
    /// While the host has no CPU left, it is named beside whatever is called the limit.
    #[test]
    fn a_busy_host_is_always_named(busy in 90.0..=100.0_f64, own in 0.0..=100.0_f64, event in 0..4_usize) {
        let mut record = run();
        let (name, class) = [
            ("db file sequential read", "User I/O"),
            ("log file sync", "Commit"),
            ("buffer busy waits", "Concurrency"),
            ("free buffer waits", "Configuration"),
        ][event];
        waits_for(&mut record, name, class);
        host(&mut record, busy, own.min(busy));
        let text = answer(&record);
        prop_assert!(line(&text, "Limited by").to_lowercase().contains("the host's cpus"), "{text}");
    }
}

/// One line may not call the figures good that the line above calls unsteady.
#[test]
fn figures_that_are_not_steady_are_to_be_taken_with_care() {
    let mut record = run();
    assert!(line(&answer(&record), "Trust").contains(" good: "), "{}", answer(&record));
    for column in record.series.metrics.values_mut() {
        for (step, figure) in column.iter_mut().enumerate() {
            *figure = figure.scaled(1.0 / (1.0 + step as f64));
        }
    }
    let text = answer(&record);
    assert!(line(&text, "Steadiness").contains(" not steady"), "{text}");
    assert!(line(&text, "Trust").contains(" with care: "), "{text}");
    assert!(line(&text, "Trust").contains("The figures were not steady."), "{text}");
}
