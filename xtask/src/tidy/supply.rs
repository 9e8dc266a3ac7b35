//! The rules of `deny.toml` that need no network: licences, refused crates, registries, wildcards. `cargo deny check`
//! asks the same and more (advisories, the licences' texts), but must be compiled first.

use super::tree::{Crate, Dependency};
use super::{Tree, Violation};
use spdx::{Expression, Licensee, ParseMode};
use toml::{Table, Value};

const RULES: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";

/// Every rule of this module.
pub(crate) fn check(tree: &Tree, violations: &mut Vec<Violation>) {
    let Some(text) = tree.files.get(RULES) else {
        return;
    };
    let mut tell = |path: &str, rule, text: String| violations.push(Violation::new(path, 0, rule, text));
    let rules: Table = match text.parse() {
        Ok(rules) => rules,
        Err(error) => return tell(RULES, "licences", format!("cannot be read: {error}")),
    };
    let allowed = match allowed(&rules) {
        Ok(allowed) => allowed,
        Err(text) => return tell(RULES, "licences", text),
    };
    for found in &tree.crates {
        let Crate { name, version, .. } = found;
        let licence =
            if found.licence.is_empty() { clarified(&rules, name).unwrap_or_default() } else { &found.licence };
        if let Some(why) = unlicensed(licence, &allowed) {
            tell(LOCK, "licences", format!("`{name}` {version}: {why}"));
        }
        if refused(&rules, tree).any(|refused| refused == name) {
            let text = format!("`{name}` {version}: {RULES} refuses this crate");
            tell(LOCK, "refused-crate", text);
        }
        if let Some(place) = found.place.as_ref().filter(|_| !ours(tree, name)) {
            let text = format!("`{name}` {version} comes from {place}, not from the registry");
            tell(LOCK, "sources", text);
        }
    }
    for package in &tree.packages {
        let any = |d: &&Dependency| !d.ours && d.versions == "*";
        for dependency in package.dependencies.iter().filter(any) {
            let text = format!("any version of `{}` will do: name one", dependency.name);
            tell(&package.manifest, "wildcards", text);
        }
    }
}

fn ours(tree: &Tree, name: &str) -> bool {
    tree.packages.iter().any(|package| package.name == name)
}

fn strings<'a>(list: Option<&'a Value>, key: Option<&str>) -> Vec<&'a str> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| key.map_or(Some(item), |key| item.get(key))?.as_str()).collect()
}

fn allowed(rules: &Table) -> Result<Vec<Licensee>, String> {
    let list = rules.get("licenses").and_then(|part| part.get("allow"));
    strings(list, None)
        .into_iter()
        .map(|name| Licensee::parse(name).map_err(|error| format!("licence `{name}`: {error}")))
        .collect()
}

/// Crates that may not be there. One with `wrappers` may be there for those; `cargo deny` sees that it is theirs alone,
/// here it is refused where a package of ours asks for it.
fn refused<'a>(rules: &'a Table, tree: &'a Tree) -> impl Iterator<Item = &'a str> {
    let list = rules.get("bans").and_then(|part| part.get("deny"));
    let asked_for = |name: &str| {
        let mut all = tree.packages.iter().flat_map(|one| &one.dependencies);
        all.any(|dependency| dependency.name == name)
    };
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(move |item| {
        let name = item.get("crate")?.as_str()?;
        (item.get("wrappers").is_none() || asked_for(name)).then_some(name)
    })
}

/// What a crate's file says whose manifest names no licence; `cargo deny` sees that the file is still that one.
fn clarified<'a>(rules: &'a Table, name: &str) -> Option<&'a str> {
    let list = rules.get("licenses").and_then(|part| part.get("clarify"));
    let items = list.and_then(Value::as_array)?.iter();
    let mut of = items.filter(|item| item.get("crate").and_then(Value::as_str) == Some(name));
    of.next()?.get("expression")?.as_str()
}

fn unlicensed(licence: &str, allowed: &[Licensee]) -> Option<String> {
    if licence.is_empty() {
        return Some("its manifest names no licence".to_owned());
    }
    // Old manifests write `MIT/Apache-2.0`.
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(asks) => {
            let holds = asks.evaluate(|asked| allowed.iter().any(|one| one.satisfies(asked)));
            (!holds).then(|| format!("{RULES} does not allow its licence {licence}"))
        }
        Err(error) => Some(format!("its licence cannot be read: {error}")),
    }
}
