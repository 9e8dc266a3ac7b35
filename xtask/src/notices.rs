//! The licences of the foreign crates that are in the program, which their authors want handed on with it.

use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each text once, above it the crates that it came with, from what `cargo metadata` says.
///
/// # Errors
/// When that is no JSON, or a crate's files cannot be read.
pub(crate) fn of(metadata: &str) -> Result<String> {
    let metadata: Value = serde_json::from_str(metadata)?;
    let linked = linked(&metadata);
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        if package["source"].is_null() || !linked.contains(&&package["id"]) {
            continue;
        }
        let of = |key: &str| package[key].as_str().unwrap_or_default();
        let whose = format!("{} {} ({})", of("name"), of("version"), of("license"));
        let place = Path::new(of("manifest_path")).with_file_name("");
        for text in texts_of(&place)? {
            texts.entry(text).or_default().push(whose.clone());
        }
    }
    let line = "-".repeat(80);
    let one = |(text, whose): (&String, &Vec<String>)| format!("{}\n\n{text}\n\n{line}\n\n", whose.join("\n"));
    Ok(texts.iter().map(one).collect())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The ids of the packages that the program needs to run, and of what our own build scripts use: they put what it hands out into
/// the program, as the plotting script. What tests is not in it.
fn linked(metadata: &Value) -> Vec<&Value> {
    let nodes = list(&metadata["resolve"]["nodes"]);
    let mut packages = list(&metadata["packages"]).iter();
    let program = packages.find(|package| package["name"] == "assay");
    let mut left: Vec<&Value> = program.map(|package| &package["id"]).into_iter().collect();
    let mut linked = Vec::new();
    while let Some(id) = left.pop() {
        if linked.contains(&id) {
            continue;
        }
        linked.push(id);
        let node = nodes.iter().find(|node| node["id"] == *id);
        let needs = node.map_or(&[][..], |node| list(&node["deps"]));
        let of_kind =
            |need: &Value, is: fn(&Value) -> bool| list(&need["dep_kinds"]).iter().any(|one| is(&one["kind"]));
        left.extend(needs.iter().filter(|need| of_kind(need, Value::is_null)).map(|need| &need["pkg"]));
        let is_ours = list(&metadata["packages"]).iter().any(|p| p["id"] == *id && p["source"].is_null());
        linked.extend(
            needs.iter().filter(|need| is_ours && of_kind(need, |kind| kind == "build")).map(|need| &need["pkg"]),
        );
    }
    linked
}

/// The texts that lie beside a crate's manifest.
fn texts_of(place: &Path) -> Result<Vec<String>> {
    let is_text = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().to_uppercase();
        let begins = ["LICEN", "UNLICEN", "COPYING", "NOTICE"];
        path.is_file() && begins.iter().any(|begin| name.starts_with(begin))
    };
    let mut texts = Vec::new();
    let entries: std::io::Result<Vec<PathBuf>> = fs::read_dir(place)?.map(|entry| Ok(entry?.path())).collect();
    let mut files = entries?;
    files.sort();
    for path in files.iter().filter(is_text) {
        texts.push(fs::read_to_string(path)?.trim().to_owned());
    }
    if texts.is_empty() {
        texts.push("The crate comes without a text of its licence.".to_owned());
    }
    Ok(texts)
}
