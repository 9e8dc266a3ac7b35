//! The plan of a run and its settings as text and JSON: what will be done, before it is done.

use crate::configure::Configured;
use crate::plan_text::{lines, lines_json, row};
use assay_measure::config;
use assay_measure::snapshot::SettingLine;
use assay_measure::units;
use assay_run::engine::{DataSet, Line};
use assay_run::plan::{Compat, Mix, Plan, RedoStress};
use serde_json::{Map, Value, json};

/// The plan in one line, for stderr.
pub(crate) fn one_line(configured: &Configured, plan: &Plan, data: &DataSet) -> String {
    if !configured.target.heeds("SCALE") {
        let sessions = units::many(plan.sessions() as u64, "session");
        // Such a data set tells its own seed, which a run takes over unless it is given another.
        let seed = format!(", seed {}", plan.seed);
        return format!(
            "running: {}, {sessions} on {}, {}{}",
            configured.shown(),
            data.state,
            duration(plan),
            if data.state.ends_with(&seed) { "" } else { &seed },
        );
    }
    format!(
        "running: {}, {} on {} of {} each, {}, seed {}",
        configured.shown(),
        sessions(plan),
        units::thousands(plan.scale) + " blocks",
        units::size(data.block_bytes),
        duration(plan),
        plan.seed,
    )
}

fn sessions(plan: &Plan) -> String {
    let schemas = units::many(plan.schemas.into(), "schema");
    let dealt = match plan.sessions_asked {
        None => format!("{schemas} x {}", plan.threads_per_schema),
        Some(_) => format!("assigned to {schemas} in turn"),
    };
    let sessions = units::many(plan.sessions() as u64, "session");
    format!("{sessions} ({dealt})")
}

fn duration(plan: &Plan) -> String {
    if plan.work_loop > 0 {
        return format!("{} operations each", units::thousands(plan.work_loop));
    }
    let run = units::duration(plan.run_time_ns);
    match plan.warmup_ns {
        0 => format!("{run} without warm-up"),
        warmup => format!("{run} after {} of warm-up", units::duration(warmup)),
    }
}

/// Everything that will be done, for people.
pub(crate) fn whole(configured: &Configured, plan: &Plan, data: &DataSet, prepare: Option<&[Line]>) -> String {
    let mut out = vec!["Plan (dry run: nothing was touched)".to_owned(), String::new()];
    out.push(row("target", &configured.shown()));
    out.push(row("data set", &data.state));
    // Rows of a workload that works on blocks; another's settings below say what it does.
    let rows = if configured.target.heeds("SCALE") {
        workload(plan)
    } else {
        vec![("sessions", plan.sessions().to_string()), ("duration", duration(plan)), ("schedule", schedule(plan))]
    };
    for (label, value) in rows {
        out.push(row(label, &value));
    }
    for at in &configured.commands {
        let label = format!("command at {} s", config::seconds_text(at.at_ns));
        out.push(row(&label, &at.command));
    }
    if let Some(prepare) = prepare {
        out.push(String::new());
        out.push("Prepared first".to_owned());
        out.push(String::new());
        out.push(lines(prepare));
    }
    out.push(String::new());
    out.push("Settings".to_owned());
    out.push(String::new());
    out.push(settings_table(&configured.lines(), |_| None));
    out.join("\n")
}

fn workload(plan: &Plan) -> Vec<(&'static str, String)> {
    let blocks =
        |n: u64| format!("{} blocks ({})", units::thousands(n), units::size(n.saturating_mul(plan.block_bytes)));
    let mut rows = vec![
        ("sessions", sessions(plan).replacen(" sessions", "", 1)),
        ("active set per schema", blocks(plan.scale)),
        ("active set in total", blocks(plan.scale.saturating_mul(u64::from(plan.schemas)))),
        ("scan table per schema", blocks(plan.scan_blocks)),
        ("duration", duration(plan)),
        (
            "mix",
            format!(
                "{} % updates, {} % of selects are scans ({})",
                plan.update_pct,
                plan.scan_pct,
                match plan.mix {
                    Mix::Exact => "exact in every 100 operations",
                    Mix::Bernoulli => "independent draws",
                    Mix::Slob253 => "SLOB 2.5.3's quota",
                }
            ),
        ),
        ("blocks per operation", format!("{} select, {} update", plan.select_width(), plan.update_width())),
        (
            "redo stress",
            match plan.redo_stress {
                RedoStress::Lite => "LITE: 2 columns, 256 bytes a row".to_owned(),
                RedoStress::Heavy => "HEAVY: 19 columns, 2432 bytes a row".to_owned(),
            },
        ),
    ];
    rows.extend(shape(plan));
    rows
}

/// What is off unless asked for.
fn shape(plan: &Plan) -> Vec<(&'static str, String)> {
    let mut rows = vec![("hot spot", hot_spot(plan))];
    rows.push((
        "hot schema",
        match plan.hot_schema_frequency {
            0 => "off".to_owned(),
            n => format!("one operation in {n} goes to schema 1"),
        },
    ));
    rows.push((
        "think time",
        plan.think.map_or("off".to_owned(), |think| {
            format!(
                "before one operation in {}: {} to {}",
                think.frequency,
                units::duration(think.min_ns),
                units::duration(think.max_ns)
            )
        }),
    ));
    rows.push(("schedule", schedule(plan)));
    if plan.compat == Compat::Slob253 {
        rows.push(("compatibility", "the workload rules of SLOB 2.5.3".to_owned()));
    }
    rows.push(("seed", plan.seed.to_string()));
    rows
}

/// When operations begin.
fn schedule(plan: &Plan) -> String {
    if plan.rate_per_s == 0 {
        return "closed loop".to_owned();
    }
    let rate = units::thousands(plan.rate_per_s);
    let random = plan.arrivals.is_some_and(|arrivals| arrivals.at_random);
    let how = if random { ", at random" } else { "" };
    let shared = plan.arrivals.filter(|arrivals| arrivals.shared);
    let queue = shared.map_or_else(String::new, |arrivals| match arrivals.waiting_max {
        0 => ", one queue".to_owned(),
        most => format!(", one queue of at most {most}"),
    });
    format!("{rate} operations per second in total{how}{queue}")
}

fn hot_spot(plan: &Plan) -> String {
    plan.hot_spot.map_or("off".to_owned(), |hot| {
        format!(
            "one operation in {} among {} keys from key {}",
            hot.frequency,
            units::thousands(hot.size_blocks),
            units::thousands(hot.offset_blocks + 1)
        )
    })
}

/// Settings with their origins, each with what `help` says of its name below it.
pub(crate) fn settings_table<'a>(lines: &[SettingLine], help: impl Fn(&str) -> Option<&'a str>) -> String {
    let width = |of: fn(&SettingLine) -> usize| lines.iter().map(of).max().unwrap_or(0);
    let name = width(|line| line.name.chars().count());
    let value = width(|line| line.value.chars().count()).min(40);
    let mut out = String::new();
    for line in lines {
        out.push_str(&format!("  {:<name$}  {:<value$}  {}\n", line.name, line.value, line.origin));
        if let Some(help) = help(&line.name) {
            out.push_str(&format!("      {help}\n"));
        }
    }
    out
}

/// Every effective setting as JSON: name to value, origin.
pub(crate) fn settings_json(configured: &Configured) -> Value {
    let map: Map<String, Value> = configured
        .lines()
        .into_iter()
        .map(|line| (line.name, json!({"value": line.value, "origin": line.origin})))
        .collect();
    Value::Object(map)
}

/// Everything that will be done, for programs.
pub(crate) fn json(configured: &Configured, plan: &Plan, data: &DataSet, prepare: Option<&[Line]>) -> Value {
    json!({
        "target": configured.shown(),
        "data_set": {
            "schemas_count": data.schemas,
            "scale_blocks": data.scale_blocks,
            "scan_blocks": data.scan_blocks,
            "block_bytes": data.block_bytes,
            "state": data.state,
        },
        "plan": plan,
        "commands": configured.commands.iter().map(|at| json!({
            "at_s": at.at_ns as f64 / 1e9,
            "command": at.command,
        })).collect::<Vec<_>>(),
        "prepare": prepare.map(lines_json),
        "settings": settings_json(configured),
    })
}
