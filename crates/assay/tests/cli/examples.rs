//! The stories of `docs/examples` print what their pages show. `ASSAY_EXAMPLES=write` writes the outputs anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn story(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)
}

/// Runs each line of the story's `commands.txt` in a copy of its directory: `assay ... > FILE` is compared with FILE.
fn retell(name: &str) {
    let story = story(name);
    let scratch = tempfile::tempdir().expect("a temporary directory");
    for entry in fs::read_dir(&story).expect("the story's directory") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let to = scratch.path().join(path.file_name().expect("a name"));
            fs::copy(&path, to).expect("copied");
        }
    }
    let commands = fs::read_to_string(story.join("commands.txt")).expect("commands.txt");
    let mut compared = 0;
    for line in commands.lines().filter(|line| !line.is_empty()) {
        let (command, file) = match line.split_once(" > ") {
            Some((command, file)) => (command, Some(file)),
            None => (line, None),
        };
        let words = words(command);
        let output = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(&words[1..])
            .current_dir(scratch.path())
            .output()
            .expect("assay starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
        let Some(file) = file else { continue };
        let printed = masked(&String::from_utf8_lossy(&output.stdout));
        let kept = story.join(file);
        if std::env::var_os("ASSAY_EXAMPLES").is_some_and(|value| value == "write") {
            fs::write(&kept, &printed).expect("written");
        }
        let expected = fs::read_to_string(&kept).unwrap_or_default();
        assert_eq!(printed, expected, "{line}: the story shows another output");
        compared += 1;
    }
    assert!(compared > 0, "nothing was compared");
}

/// The words of a command line; double quotes hold blanks together.
fn words(command: &str) -> Vec<String> {
    let quoted = command.split('"').enumerate();
    quoted
        .flat_map(|(i, part)| match i % 2 {
            1 => vec![part.to_owned()],
            _ => part.split_whitespace().map(str::to_owned).collect(),
        })
        .collect()
}

/// The text with `id` for every run's short id, which is new each time.
fn masked(text: &str) -> String {
    let is_id = |word: &str| word.len() == 8 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| {
            let bare = word.trim_end_matches([':', ',']);
            if is_id(bare) { word.replace(bare, "xxxxxxxx") } else { word.to_owned() }
        });
        words.collect::<Vec<_>>().join(" ")
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn the_story_of_metal_and_machine_prints_what_its_page_shows() {
    retell("vm-or-metal");
}

#[test]
fn the_story_of_two_clouds_prints_what_its_page_shows() {
    retell("two-clouds");
}

/// The commands of the story of three engines, a second each: what they print is this machine's, so it is read for what
/// the page says can be seen in it.
#[test]
fn the_story_of_three_engines_runs_as_its_page_says() {
    let story = story("three-engines");
    let scratch = tempfile::Builder::new().prefix("assay-test-").tempdir_in("/var/tmp").expect("a temporary directory");
    let prices = scratch.path().join("prices.toml");
    fs::copy(story.join("prices.toml"), prices).expect("copied");
    let commands = fs::read_to_string(story.join("commands.txt")).expect("commands.txt");
    for line in commands.lines().filter(|line| !line.is_empty()) {
        let (command, file) = line.split_once(" > ").unwrap_or((line, ""));
        let quick =
            command.replace("--time 20s --warmup 2s", "--time 2s --warmup 0s").replace("SCALE=8192", "SCALE=1000");
        let output = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(&words(&quick)[1..])
            .current_dir(scratch.path())
            .output()
            .expect("assay starts");
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("temp:") && said.contains("has no programs") || said.contains("no server programs") {
            assert!(std::env::var_os("ASSAY_REQUIRE_MARIADB").is_none(), "{line}: {said}");
            return;
        }
        assert!(output.status.success(), "{line}: {said}");
        let printed = String::from_utf8_lossy(&output.stdout);
        for wanted in match file {
            "" => &[][..],
            "cost.txt" => &["native", "postgres", "mariadb", "EUR"],
            _ => &["differ on purpose: engine native"],
        } {
            assert!(printed.to_lowercase().contains(&wanted.to_lowercase()), "{line}: no {wanted} in {printed}");
        }
    }
}
