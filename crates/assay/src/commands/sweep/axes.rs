//! What a sweep varies: the command line's lists, all of whose values are combined.

use crate::affinity;
use crate::cli::SweepArgs;
use crate::configure::{Said, said};
use crate::exit::Failure;
use crate::registry;
use assay_measure::config::ParamKind;
use assay_measure::record::Figure;
use assay_measure::units;
use assay_sweep::SweepAxis;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// More steps than this are a slip.
const STEPS_MAX: usize = 1000;

/// The loads of every curve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sessions {
    /// These, in this order.
    List(Vec<u64>),
    /// As the curve asks for, up to a bound.
    Auto(u64),
}

/// Everything that varies, and the goal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axes {
    pub(super) sessions: Sessions,
    /// Empty: not confined.
    pub(super) cpus: Vec<usize>,
    /// Parameters with more than one value, in the order given.
    pub(super) over: Vec<(String, Vec<String>)>,
    /// `--set` with one value each.
    pub(super) set: Vec<String>,
    /// us.
    pub(super) goal_us: Option<f64>,
}

/// One combination of everything but the sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) over: BTreeMap<String, String>,
    pub(super) cpus: Option<usize>,
}

impl Axes {
    /// Reads the lists; every mistake of theirs is told at once.
    pub(super) fn read(args: &SweepArgs) -> Result<Self, Failure> {
        let mut mistakes = Vec::new();
        let mut keep = |result: Result<(), String>| mistakes.extend(result.err());
        let mut axes = Self {
            sessions: Sessions::Auto(args.max_sessions),
            cpus: Vec::new(),
            over: Vec::new(),
            set: Vec::new(),
            goal_us: None,
        };
        keep(axes.read_sessions(&args.sessions));
        keep(axes.read_cpus(args.cpus.as_deref()));
        keep(axes.read_set(&args.settings.set));
        keep(axes.read_goal(args.p99.as_deref()));
        keep(axes.bounded());
        if mistakes.is_empty() { Ok(axes) } else { Err(Failure { code: crate::exit::Code::Usage, lines: mistakes }) }
    }

    fn read_sessions(&mut self, text: &str) -> Result<(), String> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(());
        }
        let mut list = numbers("--sessions", text)?;
        list.sort_unstable();
        self.sessions = Sessions::List(list);
        Ok(())
    }

    fn read_cpus(&mut self, text: Option<&str>) -> Result<(), String> {
        let Some(text) = text else {
            return Ok(());
        };
        let allowed = affinity::allowed().map_err(|failure| failure.lines.join("; "))?;
        let mut list = numbers("--cpus", text)?;
        list.sort_unstable();
        if let Some(most) = list.iter().find(|n| **n > allowed as u64) {
            return Err(format!("--cpus {text}: {most} CPUs requested, but this process may use {allowed}"));
        }
        self.cpus = list.into_iter().map(|n| n as usize).collect();
        Ok(())
    }

    fn read_set(&mut self, given: &[String]) -> Result<(), String> {
        for set in given {
            let (name, value) = set.split_once('=').unwrap_or((set, ""));
            let name = name.trim().to_uppercase();
            if !value.contains(',') || !takes_a_list(&name) {
                self.set.push(set.clone());
                continue;
            }
            let values: Vec<String> = value.split(',').map(|v| v.trim().to_owned()).collect();
            if values.iter().any(String::is_empty) {
                return Err(format!("--set {set}: an empty value in the list"));
            }
            if let Some(twice) = twice(&values) {
                return Err(format!("--set {set}: {twice} is in the list twice"));
            }
            if name == "SESSIONS" {
                return Err(format!("--set {set}: a sweep takes its sessions from --sessions"));
            }
            if self.over.iter().any(|(other, _)| *other == name) {
                return Err(format!("--set {set}: {name} has a list already"));
            }
            self.over.push((name, values));
        }
        Ok(())
    }

    fn read_goal(&mut self, text: Option<&str>) -> Result<(), String> {
        let Some(text) = text else {
            return Ok(());
        };
        if text.parse::<f64>().is_ok() {
            return Err(format!("--p99 {text}: add the unit: --p99 {text}ms or --p99 {text}s"));
        }
        match units::parse_duration_ns(text) {
            Ok(ns) if ns > 0 => {
                self.goal_us = Some(ns as f64 / 1e3);
                Ok(())
            }
            Ok(_) => Err(format!("--p99 {text}: the goal must be above 0; write, for example, --p99 5ms")),
            Err(error) => Err(format!("--p99 {text}: {error}; write --p99 5ms")),
        }
    }

    fn bounded(&self) -> Result<(), String> {
        let loads = match &self.sessions {
            Sessions::List(list) => list.len(),
            // About as many as an automatic curve takes.
            Sessions::Auto(_) => 10,
        };
        let steps = self.held().len().saturating_mul(loads);
        if steps > STEPS_MAX {
            return Err(format!("{steps} steps: a sweep can have at most {STEPS_MAX}; shorten the lists"));
        }
        Ok(())
    }

    /// Whether a parameter of these names varies.
    pub(super) fn vary(&self, names: &[&str]) -> bool {
        self.over.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// Every combination of what is held along a curve, the first list changing slowest.
    pub(super) fn held(&self) -> Vec<Held> {
        let mut all = vec![Held::default()];
        for (name, values) in &self.over {
            all = all
                .iter()
                .flat_map(|held| {
                    values.iter().map(move |value| {
                        let mut held = held.clone();
                        held.over.insert(name.clone(), value.clone());
                        held
                    })
                })
                .take(STEPS_MAX + 1)
                .collect();
        }
        if !self.cpus.is_empty() {
            let with = |held: &Held, cpus: usize| Held { cpus: Some(cpus), ..held.clone() };
            all = all.iter().flat_map(|held| self.cpus.iter().map(move |cpus| with(held, *cpus))).collect();
        }
        all
    }

    /// The goal for the record of the sweep, us.
    pub(super) fn goal(&self) -> Figure {
        let goal_us = self.goal_us;
        goal_us.map_or_else(|| Figure::na("not asked for"), Figure::decimal)
    }

    /// For the sweep's record.
    pub(super) fn listed(&self) -> Vec<SweepAxis> {
        let axis = |name: &str, values: Vec<String>| SweepAxis { name: name.to_owned(), values };
        let sessions = match &self.sessions {
            Sessions::List(list) => list.iter().map(u64::to_string).collect(),
            Sessions::Auto(_) => vec!["auto".to_owned()],
        };
        let mut axes = vec![axis("sessions", sessions)];
        if !self.cpus.is_empty() {
            axes.push(axis("cpus", self.cpus.iter().map(usize::to_string).collect()));
        }
        let over = self.over.iter();
        axes.extend(over.map(|(name, values)| axis(name, values.clone())));
        axes
    }
}

impl Held {
    /// The options that make a step of it with so many sessions.
    pub(super) fn options(&self, sessions: u64) -> Vec<Said> {
        let over = self.over.iter();
        over.map(|(name, value)| (format!("--set {name}"), name.clone(), value.clone()))
            .chain(said("--sessions", "SESSIONS", Some(&sessions.to_string())))
            .collect()
    }

    /// `4 sessions, cpus=1, READ_MODE=single`.
    pub(super) fn text(&self, sessions: u64) -> String {
        let mut text = match sessions {
            1 => "1 session".to_owned(),
            n => format!("{} sessions", units::thousands(n)),
        };
        if let Some(cpus) = self.cpus {
            text.push_str(&format!(", cpus={cpus}"));
        }
        for (name, value) in &self.over {
            text.push_str(&format!(", {name}={value}"));
        }
        text
    }

    /// The run directory of step `step` below the sweep's.
    pub(super) fn directory(&self, step: u64, sessions: u64) -> PathBuf {
        let mut name = format!("step-{step:03}-sessions-{sessions}");
        if let Some(cpus) = self.cpus {
            name.push_str(&format!("-cpus-{cpus}"));
        }
        for (parameter, value) in &self.over {
            name.push_str(&format!("-{}-{value}", parameter.to_lowercase()));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        name.retain(plain);
        name.truncate(120);
        PathBuf::from(name)
    }
}

/// Whether a comma in the parameter's value can only part the values of a list.
fn takes_a_list(name: &str) -> bool {
    registry::params().into_iter().flatten().any(|def| {
        (def.name == name || def.aliases.contains(&name)) && !matches!(def.kind, ParamKind::Text | ParamKind::Secret)
    })
}

fn twice<T: PartialEq + Clone>(values: &[T]) -> Option<T> {
    let mut earlier = values.iter().enumerate();
    earlier.find(|(at, value)| values[..*at].contains(value)).map(|(_, value)| value.clone())
}

/// Whole numbers from 1, parted by commas, each once.
fn numbers(option: &str, text: &str) -> Result<Vec<u64>, String> {
    let list: Vec<u64> = text
        .split(',')
        .map(|number| match number.trim().parse::<u64>() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(format!(
                "{option} {text}: \"{}\" is not a whole number of 1 or more; write, for example, {option} 1,2,4",
                number.trim()
            )),
        })
        .collect::<Result<_, _>>()?;
    match twice(&list) {
        Some(n) => Err(format!("{option} {text}: {n} is in the list twice")),
        None => Ok(list),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn read(args: &[&str]) -> Result<Axes, Vec<String>> {
        let all = ["assay", "sweep"].iter().chain(args);
        let Command::Sweep(args) = Cli::try_parse_from(all).expect("parses").command else {
            panic!("another command");
        };
        Axes::read(&args).map_err(|failure| failure.lines)
    }

    #[test]
    fn a_list_is_one_where_a_value_knows_no_comma() {
        let axes = read(&[
            "--sessions",
            "4,1,2",
            "--set",
            "READ_MODE=single,batched",
            "--set",
            "cache_mb=4, 8",
            "--set",
            "LABEL=a,b",
            "--set",
            "UPDATE_PCT=5",
            "--p99",
            "5ms",
        ])
        .expect("all legal");
        assert_eq!(axes.sessions, Sessions::List(vec![1, 2, 4]));
        assert_eq!(axes.set, ["LABEL=a,b", "UPDATE_PCT=5"]);
        let names: Vec<&str> = axes.over.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["READ_MODE", "CACHE_MB"]);
        assert_eq!(axes.goal_us, Some(5000.0));
        let all: Vec<String> = axes.held().iter().map(|held| held.text(1)).collect();
        assert_eq!(
            all,
            [
                "1 session, CACHE_MB=4, READ_MODE=single",
                "1 session, CACHE_MB=8, READ_MODE=single",
                "1 session, CACHE_MB=4, READ_MODE=batched",
                "1 session, CACHE_MB=8, READ_MODE=batched",
            ]
        );
    }

    #[test]
    fn without_lists_there_is_one_automatic_curve() {
        let axes = read(&[]).expect("legal");
        assert_eq!(axes.sessions, Sessions::Auto(1024));
        assert_eq!(axes.held(), [Held::default()]);
        let directory = axes.held()[0].directory(3, 16);
        assert_eq!(directory, PathBuf::from("step-003-sessions-16"));
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        let lines = read(&["--sessions", "1,x", "--cpus", "100000", "--set", "UPDATE_PCT=5,5", "--p99", "soon"])
            .expect_err("four mistakes");
        assert_eq!(lines.len(), 4, "{lines:?}");
        for (args, part) in [
            (&["--sessions", "0"][..], "whole number of 1 or more"),
            (&["--sessions", "2,2"], "twice"),
            (&["--set", "UPDATE_PCT=5,"], "empty"),
            (&["--set", "SESSIONS=1,2"], "--sessions"),
            (&["--set", "UPDATE_PCT=1,2", "--set", "UPDATE_PCT=3,4"], "already"),
            (&["--p99", "0ms"], "the goal must be above 0"),
        ] {
            let lines = read(args).expect_err("a mistake");
            assert!(lines[0].contains(part), "{lines:?}");
        }
    }
}
