//! The stories of `docs/examples` print what their pages show. `ASSAY_EXAMPLES=write` writes the outputs anew.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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
fn the_story_of_a_bad_box_prints_what_its_page_shows() {
    retell("bad-box");
}

#[test]
fn the_story_of_a_database_that_moves_prints_what_its_page_shows() {
    retell("moving");
}

#[test]
fn the_story_of_two_clouds_prints_what_its_page_shows() {
    retell("two-clouds");
}

/// Runs the commands of a story in a directory of its own, quicker by `shorter`, where what they print is this machine's: it is
/// read for the words that belong to the file. A command that ends in `&` serves until the story ends. `false` where a server's
/// programs are not installed.
fn runs_as_its_page_says(
    name: &str,
    shorter: &[(&str, &str)],
    wanted: impl Fn(&str) -> &'static [&'static str],
) -> bool {
    let story = story(name);
    let scratch = tempfile::Builder::new().prefix("assay-test-").tempdir_in("/var/tmp").expect("a temporary directory");
    if let Ok(prices) = fs::read(story.join("prices.toml")) {
        fs::write(scratch.path().join("prices.toml"), prices).expect("copied");
    }
    let commands = fs::read_to_string(story.join("commands.txt")).expect("commands.txt");
    let mut servers = Servers(Vec::new());
    for line in commands.lines().filter(|line| !line.is_empty()) {
        let (command, file) = line.split_once(" > ").unwrap_or((line, ""));
        let quick = shorter.iter().fold(command.to_owned(), |command, (long, short)| command.replace(long, short));
        let served = quick.strip_suffix(" &");
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command.args(&words(served.unwrap_or(&quick))[1..]).current_dir(scratch.path());
        if served.is_some() {
            servers.start(&mut command);
            continue;
        }
        let output = command.output().expect("assay starts");
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("temp:") && said.contains("has no programs") || said.contains("no server programs") {
            assert!(std::env::var_os("ASSAY_REQUIRE_MARIADB").is_none(), "{line}: {said}");
            return false;
        }
        assert!(output.status.success(), "{line}: {said}");
        let printed = String::from_utf8_lossy(&output.stdout);
        for wanted in wanted(file) {
            assert!(printed.to_lowercase().contains(&wanted.to_lowercase()), "{line}: no {wanted} in {printed}");
        }
    }
    true
}

/// The other ends of a story's tests, which end with it.
struct Servers(Vec<Child>);

impl Servers {
    /// Starts one and waits until it says that it serves.
    fn start(&mut self, command: &mut Command) {
        let mut server = command.stderr(Stdio::piped()).spawn().expect("assay starts");
        let mut lines = BufReader::new(server.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let serves = lines.any(|line| line.contains("listen") || line.contains("serv"));
        self.0.push(server);
        assert!(serves, "the server ended before it served");
        // Its other lines are taken, so that it never waits for a reader.
        std::thread::spawn(move || lines.count());
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.0 {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

#[test]
fn the_story_of_three_engines_runs_as_its_page_says() {
    let shorter = [("--time 20s --warmup 2s", "--time 2s --warmup 0s"), ("SCALE=8192", "SCALE=1000")];
    runs_as_its_page_says("three-engines", &shorter, |file| match file {
        "" => &[],
        "cost.txt" => &["native", "postgres", "mariadb", "EUR"],
        _ => &["differ on purpose: engine native"],
    });
}

#[test]
fn the_story_of_six_tools_runs_as_its_page_says() {
    let shorter = [
        ("--time 10s --warmup 2s", "--time 1s --warmup 0s"),
        ("--time 10s", "--time 1s"),
        ("--timeout 10s", "--timeout 1s"),
        ("--runtime=10", "--runtime=1"),
        ("--size=512m", "--size=16m"),
        ("SCALE=32768", "SCALE=1000"),
        ("--vm-bytes 256M", "--vm-bytes 16M"),
    ];
    runs_as_its_page_says("six-tools", &shorter, |file| match file {
        "io.txt" => &["read: IOPS=", "clat percentiles"],
        "cpu.txt" => &["metrc:", " cpu "],
        "memory.txt" => &["metrc:", " vm "],
        "slob.txt" => &["Tested            4 sessions on native did the slob workload"],
        "orders.txt" => &["order entry", "Trust"],
        "net.txt" => &["bit/s", "Limited by"],
        "redo.txt" => &["Rate", "Limited by"],
        _ => &[],
    });
}

#[test]
fn the_story_of_two_boxes_runs_as_its_page_says() {
    let shorter = [
        ("--time 10s --warmup 2s", "--time 1s --warmup 0s"),
        ("--time 5s --warmup 1s", "--time 1s --warmup 0s"),
        ("--sessions 1,2,4,8,16", "--sessions 1,2"),
        ("SCALE=32768", "SCALE=1000"),
    ];
    // A box of one CPU has no second size.
    if std::thread::available_parallelism().map_or(1, std::num::NonZero::get) < 2 {
        return;
    }
    runs_as_its_page_says("two-boxes", &shorter, |file| match file {
        "one.txt" | "two.txt" => &["under rising load", "Knee"],
        "compare.txt" => &["cpus"],
        "cost.txt" => &["EUR", "one CPU", "two CPUs"],
        _ => &[],
    });
}
