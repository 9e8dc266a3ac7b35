//! From layers of assignments to effective settings, with every problem in one pass.

use super::layer::{ENVIRONMENT_PREFIX, Given, Layer};
use super::nearest::nearest;
use super::rules;
use super::run::RUN_PARAMS;
use super::settings::{Concern, Effective, Origin, ParamDef, ParamKind, Problem, Resolved, Value, place_of};
use super::value::{self, Parsed};
use std::collections::BTreeMap;

/// The parameters known for one target.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    /// URL scheme of the target: `native`, `null`, ...
    pub target: &'a str,
    /// Its parameters; one of the same name replaces the workload's.
    pub params: &'static [ParamDef],
    /// What the workload adds to those of every run.
    pub workload: &'static WorkloadParams,
    /// To which of the targets it belongs that only some parameters concern.
    pub concerns: &'a [Concern],
    /// Other targets' parameters, by scheme: known, but without effect here.
    pub others: &'a [(&'a str, &'static [ParamDef])],
}

/// What a workload adds to the settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadParams {
    /// Its name, which is also that of its TOML table.
    pub name: &'static str,
    /// Its parameters.
    pub params: &'static [ParamDef],
    /// What follows from its settings, and what contradicts them; called after the rules of every run.
    pub rules: fn(&mut Resolved),
}

/// Resolves layers, lowest precedence first (file, environment, command line).
#[must_use]
pub fn resolve(tables: &Tables<'_>, layers: &[Layer]) -> Resolved {
    let mut resolver = Resolver { tables, resolved: Resolved::default(), chosen: BTreeMap::new() };
    for layer in layers {
        resolver.resolved.problems.extend(layer.problems.iter().cloned());
        resolver.layer(layer);
    }
    resolver.defaults();
    let mut resolved = resolver.resolved;
    rules::apply(&mut resolved);
    (tables.workload.rules)(&mut resolved);
    foreign_to(tables, &mut resolved);
    resolved.problems.sort_by_key(line_of);
    resolved
}

/// Whether `name` (any case, aliases included) holds a secret, by its table or by its look.
#[must_use]
pub fn is_secret(tables: &Tables<'_>, name: &str) -> bool {
    let upper = name.to_uppercase();
    super::secrets::looks_secret(&upper)
        || all_params(tables)
            .any(|def| def.kind == ParamKind::Secret && (def.name == upper || def.aliases.contains(&upper.as_str())))
}

/// Every definition in force: the target's own, then those of every run and of the workload that it does not replace.
pub fn all_params(tables: &Tables<'_>) -> impl Iterator<Item = &'static ParamDef> + use<> {
    let own = tables.params;
    let beneath = RUN_PARAMS.iter().chain(tables.workload.params);
    own.iter().chain(beneath.filter(move |def| !own.iter().any(|other| other.name == def.name)))
}

struct Resolver<'a> {
    tables: &'a Tables<'a>,
    resolved: Resolved,
    chosen: BTreeMap<&'static str, Effective>,
}

impl Resolver<'_> {
    fn problem(&mut self, error: bool, place: &str, text: String) {
        self.resolved.problems.push(Problem { error, place: place.to_owned(), text });
    }

    fn layer(&mut self, layer: &Layer) {
        // The last of a repeated name counts within its layer; an empty value is none.
        let mut last: BTreeMap<&'static str, (Option<Effective>, String)> = BTreeMap::new();
        for given in &layer.given {
            if given.scope.as_deref().is_some_and(|scope| self.skips_scope(scope, given)) {
                continue;
            }
            let Some((def, text)) = self.definition(given) else {
                continue;
            };
            if let Some((_, place)) = last.get(def.name)
                && *place != given.place
            {
                let text = format!("{} was already set at {place}; this value is used", def.name);
                self.problem(false, &given.place, text);
            }
            let effective = self.read(def, &text, given);
            last.insert(def.name, (effective, given.place.clone()));
        }
        for (name, (effective, _)) in last {
            match effective {
                Some(effective) => {
                    self.chosen.insert(name, effective);
                }
                None if layer.last(name).is_some_and(|g| g.origin == Origin::CommandLine) => {
                    self.chosen.remove(name);
                }
                None => {}
            }
        }
    }

    /// Whether a TOML table is another target's; an unknown one is a problem.
    fn skips_scope(&mut self, scope: &str, given: &Given) -> bool {
        if [self.tables.target, self.tables.workload.name, "run"].contains(&scope) {
            return false;
        }
        let others = self.tables.others.iter().map(|(name, _)| *name);
        if !others.clone().any(|name| name == scope) {
            let hint = nearest(scope, others.chain([self.tables.target, self.tables.workload.name]))
                .map(|name| format!("; did you mean [{name}]?"))
                .unwrap_or_default();
            self.problem(true, &given.place, format!("{} is in the unknown table [{scope}]{hint}", given.name));
        }
        true
    }

    /// The definition of a name and the text to read, or a problem.
    fn definition(&mut self, given: &Given) -> Option<(&'static ParamDef, String)> {
        let tables = *self.tables;
        let name = given.name.as_str();
        if let Some(def) = find(&tables, |def| def.name == name) {
            return Some((def, other_spelling(name, &given.text)));
        }
        if let Some(def) = find(&tables, |def| def.aliases.contains(&name)) {
            let text = other_spelling(name, &given.text);
            let shown =
                if text == given.text || def.kind == ParamKind::Secret { String::new() } else { format!("={text}") };
            // The workload's names changed over SLOB's versions; a target's are named as its database names them.
            let own = tables.params.iter().any(|own| own.name == def.name);
            let what = if own { "another name" } else { "an old spelling" };
            let notice = format!("{name} is {what} of {}{shown}", def.name);
            self.problem(false, &given.place, notice);
            return Some((def, text));
        }
        let elsewhere = tables
            .others
            .iter()
            .find(|(_, params)| params.iter().any(|def| def.name == name || def.aliases.contains(&name)))
            .map(|(target, _)| *target);
        if let Some(target) = elsewhere {
            let text = format!("{name} applies only to the {target} target and has no effect on {}", tables.target);
            self.problem(false, &given.place, text);
            return None;
        }
        self.unknown(given);
        None
    }

    fn unknown(&mut self, given: &Given) {
        let names: Vec<&str> = all_params(self.tables)
            .chain(self.tables.others.iter().flat_map(|(_, params)| params.iter()))
            .flat_map(|def| std::iter::once(def.name).chain(def.aliases.iter().copied()))
            .collect();
        let hint = nearest(&given.name, names);
        if given.origin == Origin::Environment && hint.is_none() {
            let text = format!("{ENVIRONMENT_PREFIX}{} names no parameter and is ignored", given.name);
            self.problem(false, &given.place, text);
            return;
        }
        let hint = hint.map_or_else(
            || "`assay config show --all` lists all names".to_owned(),
            |name| format!("did you mean {name}?"),
        );
        self.problem(true, &given.place, format!("unknown parameter {}; {hint}", given.name));
    }

    /// The typed value; `None` if empty or broken.
    fn read(&mut self, def: &'static ParamDef, text: &str, given: &Given) -> Option<Effective> {
        if def.kind == ParamKind::Secret && given.origin == Origin::CommandLine {
            let text = format!(
                "{0} is a secret and the process list would show it; put it in a file or in {ENVIRONMENT_PREFIX}{0}",
                def.name
            );
            self.problem(true, &given.place, text);
            self.resolved.broken.insert(def.name);
            return None;
        }
        match value::parse(def, text) {
            Ok(parsed) => {
                if let Some(notice) = parsed.notice.clone() {
                    self.problem(false, &given.place, notice);
                }
                (parsed.value != Value::Unset).then(|| effective(*def, parsed, given.origin.clone()))
            }
            Err(text) => {
                self.problem(true, &given.place, text);
                self.resolved.broken.insert(def.name);
                None
            }
        }
    }

    fn defaults(&mut self) {
        for def in all_params(self.tables) {
            let effective = self.chosen.remove(def.name).unwrap_or_else(|| {
                let parsed = value::parse(def, def.default).expect("defaults are tested to be legal values");
                effective(*def, parsed, Origin::Default)
            });
            self.resolved.settings.set(effective);
        }
    }
}

fn find(tables: &Tables<'_>, wanted: impl Fn(&ParamDef) -> bool) -> Option<&'static ParamDef> {
    all_params(tables).find(|def| wanted(def))
}

fn effective(def: ParamDef, parsed: Parsed, origin: Origin) -> Effective {
    Effective { def, value: parsed.value, text: parsed.text, origin }
}

/// Some other spellings have other values or units too.
fn other_spelling(name: &str, text: &str) -> String {
    match (name, text.to_ascii_uppercase().as_str()) {
        ("UNIQUE_INDEX", "UNIQUE") => "TRUE".to_owned(),
        ("DIRECT_IO", "TRUE") => "setall".to_owned(),
        ("DIRECT_IO", "FALSE") => "asynch".to_owned(),
        // Oracle gives these in bytes, with or without K M G T; ours are mebibytes.
        ("LOG_BUFFER" | "DB_CACHE_SIZE", digits) => match digits.parse::<u64>() {
            Ok(bytes) => kibibytes(bytes),
            Err(_) => text.to_owned(),
        },
        _ => text.to_owned(),
    }
}

/// Bytes as kibibytes, exactly: a tenth binary digit is a tenth decimal one.
fn kibibytes(bytes: u64) -> String {
    let fraction = format!("{:010}", u128::from(bytes % 1024) * 10_u128.pow(10) / 1024);
    match fraction.trim_end_matches('0') {
        "" => format!("{}K", bytes / 1024),
        fraction => format!("{}.{fraction}K", bytes / 1024),
    }
}

/// One notice for all settings that the target ignores.
fn foreign_to(tables: &Tables<'_>, resolved: &mut Resolved) {
    let mut by_kind: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut place = BTreeMap::new();
    for def in all_params(tables) {
        let setting = resolved.settings.get(def.name);
        let foreign = def.concerns.filter(|concern| !tables.concerns.contains(concern));
        if let Some(Concern(called)) = foreign.filter(|_| setting.origin != Origin::Default) {
            by_kind.entry(called).or_default().push(def.name);
            place.entry(called).or_insert_with(|| place_of(&setting.origin));
        }
    }
    for (kind, names) in by_kind {
        let (verb, does) = if names.len() == 1 { ("concerns", "does") } else { ("concern", "do") };
        resolved.problems.push(Problem {
            error: false,
            place: place.remove(kind).unwrap_or_default(),
            text: format!("{} {verb} {kind} only and {does} nothing on the {} target", names.join(", "), tables.target),
        });
    }
}

fn line_of(problem: &Problem) -> usize {
    problem.place.rsplit_once(':').and_then(|(_, line)| line.parse().ok()).unwrap_or(0)
}
