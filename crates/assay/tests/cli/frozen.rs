//! Records of schema `assay/1` are read for good: real ones of every kind, made by the version that wrote them last, and
//! every face the program shows of them. A face that changes on purpose is written anew (`INSTA_UPDATE=always`) and
//! looked at as a difference.

use crate::common::Place;
use std::path::{Path, PathBuf};

/// Faces of one record by the names of `--format`.
const FACES: &[&str] =
    &["text", "html", "brief", "csv", "csv-summary", "openmetrics", "openmetrics-series", "summary", "pgio"];

fn frozen() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/frozen")
}

/// Puts the frozen runs whose names begin so into a place of their own; their names in order.
fn copied(place: &Place, beginning: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(frozen())
        .expect("the frozen records")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("a plain name"))
        .filter(|name| name.starts_with(beginning))
        .filter(|name| {
            let holds = |file| frozen().join(name).join(file).exists();
            holds("record.json") || holds("sweep.json")
        })
        .collect();
    names.sort();
    for name in &names {
        copy(&frozen().join(name), &place.path(name));
    }
    names
}

/// The records of a run, or of a sweep and its steps.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a run directory");
    for entry in std::fs::read_dir(from).expect("a frozen run") {
        let from = entry.expect("an entry").path();
        let to = to.join(from.file_name().expect("a name"));
        if from.is_dir() {
            copy(&from, &to);
        } else if from.extension().is_some_and(|ending| ending == "json") {
            std::fs::copy(&from, to).expect("copied");
        }
    }
}

/// A short name of a long text whose every byte counts (FNV-1a, 64 bits).
fn digest(text: &str) -> String {
    let fold = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// What a page shows, a line a block and a bar between cells; the data of a drawing by its digest.
fn visible(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some((text, after)) = rest.split_once('<') {
        out.push_str(text);
        let (tag, behind) = after.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '\n', '/']).next().unwrap_or_default();
        rest = behind;
        match name {
            "script" | "style" => {
                let end = format!("</{name}>");
                let (inside, behind) = rest.split_once(&end).expect("an end");
                rest = behind;
                if tag.contains("json") {
                    out.push_str(&format!("\n[drawing {}]\n", digest(inside)));
                }
            }
            "td" | "th" => out.push_str(" | "),
            "a" | "span" | "strong" | "b" | "code" | "time" => {}
            _ => out.push('\n'),
        }
    }
    out.push_str(rest);
    let lines = out.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// A line for each family of an exposition, or for a table: its name, how many values, and a digest of all of them.
fn condensed(text: &str) -> String {
    let mut families: Vec<(&str, usize, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("# HELP")) {
        let word = line.strip_prefix("# TYPE ").unwrap_or(line);
        // A family begins with its type, a table with its heading.
        if families.is_empty() || line != word {
            let name = word.split(' ').next().unwrap_or_default();
            families.push((name, 0, String::new()));
        }
        if let Some((_, n, all)) = families.last_mut() {
            *n += 1;
            all.push_str(line);
            all.push('\n');
        }
    }
    let row = |(name, n, all): &(&str, usize, String)| format!("{name}: {n} lines {}", digest(all));
    families.iter().map(row).collect::<Vec<_>>().join("\n")
}

fn face(place: &Place, run: &str, format: &str) -> String {
    let file = format!("{run}.{format}");
    let mut words = vec!["report", run, "--format", format, "-o", &file];
    if format == "html" {
        words.extend(["--assets", "shared"]);
    }
    let ran = place.assay(&words);
    if ran.code != 0 {
        return format!("exit {}: {}", ran.code, ran.err);
    }
    let text = place.read(&file);
    match format {
        "html" => visible(&text),
        "csv" | "openmetrics" | "openmetrics-series" => condensed(&text),
        _ => text,
    }
}

fn check(name: &str, face: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(frozen().join(name));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(face, text));
}

/// Every face of every frozen run whose name begins so.
fn faces_of(beginning: &str) {
    let place = Place::new();
    let names = copied(&place, beginning);
    assert!(!names.is_empty(), "{beginning}: nothing is frozen");
    for name in &names {
        for format in FACES {
            check(name, format, &face(&place, name, format));
        }
    }
}

#[test]
fn runs_on_native_look_as_frozen() {
    faces_of("native-");
}

#[test]
fn runs_on_postgres_look_as_frozen() {
    faces_of("postgres-");
}

#[test]
fn storage_probes_look_as_frozen() {
    faces_of("io-");
}

#[test]
fn sync_looks_as_frozen() {
    faces_of("sync");
}

#[test]
fn recovery_looks_as_frozen() {
    faces_of("recovery");
}

#[test]
fn a_sweep_looks_as_frozen() {
    faces_of("sweep");
}

#[test]
fn imports_look_as_frozen() {
    faces_of("import-");
}

#[test]
fn comparisons_look_as_frozen() {
    let place = Place::new();
    copied(&place, "");
    for (name, runs) in [
        ("updates", ["native-updates", "native-updates-2"].as_slice()),
        ("servers", &["postgres-15", "postgres-18"]),
        ("probes", &["io-groups", "io-steady"]),
        ("kinds", &["io-steady", "sync"]),
        ("imports", &["import-awr-11_2-txt", "import-awr-19c-txt"]),
    ] {
        for format in ["text", "json", "html"] {
            let file = format!("{name}.{format}");
            let words = ["compare"].iter().chain(runs);
            let options = ["--format", format, "-o", &file];
            let words: Vec<&str> = words.copied().chain(options).collect();
            let ran = place.assay(&words);
            let text = match ran.code {
                0 if format == "html" => visible(&place.read(&file)),
                // Half a megabyte each, and no figure that the page does not show.
                0 if format == "json" => digest(&place.read(&file)),
                0 => place.read(&file),
                code => format!("exit {code}: {}{}", ran.out, ran.err),
            };
            check("compare", &file, &text);
        }
    }
}

#[test]
fn lists_costs_and_trends_look_as_frozen() {
    let place = Place::new();
    let names = copied(&place, "");
    let listed = place.assay(&["runs", "list", "--dir", "."]);
    check("runs", "list", &(listed.out + &listed.err));
    let metrics = ["ops_per_s", "reads_per_s", "read_us_p99", "tx_per_s"];
    for metric in metrics {
        let words = ["runs", "trend", metric, "--dir", "."];
        let ran = place.assay(&words);
        check("runs", metric, &(ran.out + &ran.err));
    }
    let example = place.assay(&["cost", "--example"]);
    place.write("prices.toml", &example.out);
    for platform in ["cloud A", "our own server"] {
        let mut all = String::new();
        for name in &names {
            let prices = ["--prices", "prices.toml", "--platform", platform];
            let words: Vec<&str> = ["cost", name].into_iter().chain(prices).collect();
            let ran = place.assay(&words);
            all.push_str(&format!("== {name}\n{}{}", ran.out, ran.err));
        }
        check("cost", &platform.replace(' ', "-"), &all);
    }
}
