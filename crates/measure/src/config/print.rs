//! Effective settings as text: for the report and as a file that reads back the same.

use super::settings::{Effective, Origin, ParamKind, Settings};
use crate::snapshot::SettingLine;

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "file {path}:{line}"),
            Self::Environment => f.write_str("env"),
            Self::CommandLine => f.write_str("cli"),
            Self::Target => f.write_str("data set"),
            Self::Implied(by) => write!(f, "from {by}"),
        }
    }
}

/// Every effective value with its origin, by name; secrets are `***`.
#[must_use]
pub fn setting_lines(settings: &Settings) -> Vec<SettingLine> {
    settings.iter().map(line).collect()
}

/// Those that the user set, or that follow from one that the user set.
#[must_use]
pub fn given_lines(settings: &Settings) -> Vec<SettingLine> {
    let is_given = |setting: &&Effective| match &setting.origin {
        Origin::Default => false,
        Origin::Implied(by) => settings.iter().all(|other| other.def.name != by || other.origin != Origin::Default),
        _ => true,
    };
    settings.iter().filter(is_given).map(line).collect()
}

fn line(setting: &Effective) -> SettingLine {
    SettingLine {
        name: setting.def.name.to_owned(),
        value: match setting.text.as_str() {
            "" => "(not set)".to_owned(),
            text => text.to_owned(),
        },
        origin: setting.origin.to_string(),
    }
}

/// A `slob.conf` with every effective value, its origin as a comment. Reads back to the same values, except secrets,
/// which are left out.
#[must_use]
pub fn slob_conf(settings: &Settings) -> String {
    let mut out = String::new();
    for setting in settings.iter() {
        let origin = setting.origin.to_string().replace(['\n', '\r'], " ");
        match assignment(setting) {
            Ok(line) => out.push_str(&format!("{line:<40} # {origin}\n")),
            Err(reason) => {
                out.push_str(&format!("# {}: {reason} ({origin})\n", setting.def.name));
            }
        }
    }
    out
}

fn assignment(setting: &Effective) -> Result<String, &'static str> {
    let name = setting.def.name;
    let text = setting.text.as_str();
    if setting.def.kind == ParamKind::Secret && !text.is_empty() {
        return Err("a secret, not shown");
    }
    if setting.def.kind == ParamKind::Text {
        if super::mask(name, settings_text(setting)) != settings_text(setting) {
            return Err("holds a password, not shown");
        }
        if text.is_empty() {
            return Ok(format!("{name}="));
        }
        let single = |c: char| matches!(c, '\'' | '\u{2018}'..='\u{201b}');
        let double = |c: char| matches!(c, '"' | '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}');
        let expands = |c: char| matches!(c, '$' | '`' | '\\');
        if !text.contains(single) {
            return Ok(format!("{name}='{text}'"));
        }
        if !text.contains(double) && !text.contains(expands) {
            return Ok(format!("{name}=\"{text}\""));
        }
        return Err("this format cannot represent a value with both kinds of quotes");
    }
    Ok(format!("{name}={text}"))
}

fn settings_text(setting: &Effective) -> &str {
    match &setting.value {
        super::settings::Value::Text(text) => text,
        _ => "",
    }
}
