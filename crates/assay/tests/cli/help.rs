//! What the command line says of itself: scripts and people rely on it.

use crate::common::{Place, Started, with};
use std::process::{Command, Stdio};

#[test]
fn help_texts_are_as_reviewed() {
    let place = Place::new();
    for args in [
        &["--help"][..],
        &["run", "-h"],
        &["sweep", "-h"],
        &["compare", "-h"],
        &["prepare", "-h"],
        &["io", "-h"],
        &["recovery", "-h"],
        &["import", "-h"],
        &["report", "-h"],
        &["cost", "-h"],
        &["runs", "-h"],
        &["config", "show", "-h"],
    ]
    .map(<[_]>::to_vec)
    .into_iter()
    .chain(assay_probes::PROBES.iter().map(|probe| vec![probe.name, "-h"]))
    {
        let done = place.assay(&args).code(0);
        assert_eq!(done.err, "");
        let name = args.join("_").replace('-', "");
        insta::assert_snapshot!(name, done.out);
    }
}

#[test]
fn mistakes_go_to_stderr_with_exit_2_and_help_to_stdout() {
    let place = Place::new();
    for args in [&[][..], &["rnu"], &["run", "--nope"], &["report"], &["report", "x", "--format", "html"]] {
        let done = place.assay(args).code(2);
        assert_eq!(done.out, "", "{args:?}");
        assert!(!done.err.is_empty(), "{args:?}");
    }
    let version = place.assay(&["--version"]).code(0);
    assert_eq!(version.out, format!("assay {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_of_a_command_is_also_a_word() {
    let place = Place::new();
    for command in ["run", "sync", "compare"] {
        let by_word = place.assay(&["help", command]).code(0).out;
        assert_eq!(by_word, place.assay(&[command, "--help"]).code(0).out);
    }
}

#[test]
fn quiet_says_nothing_of_a_run_that_is_good() {
    let place = Place::new();
    let run = ["run", "--target", "null:", "--sessions", "3", "--set", "WORK_LOOP=100"];
    let done = place.assay(&with(&run, &["-q", "-o", "kept"])).code(0);
    let is_notice = |line: &str| line.starts_with("notice");
    assert!(done.err.lines().all(is_notice), "{}", done.err);
    let record: serde_json::Value = serde_json::from_str(&place.read("kept/record.json")).expect("JSON");
    assert_eq!(record["run"]["sessions"], 3);
    let refused = place.assay(&["-q", "run", "--target", "nowhere"]).code(2);
    assert!(refused.err.starts_with("error"), "{}", refused.err);
}

#[test]
fn slips_are_told_with_what_was_meant() {
    let place = Place::new();
    place.write("slob.conf", "UPDATE_PCT=25\nRUN_TIME=300\nSCALE=10000\n");
    let told = place.assay(&["import", "slob.conf"]).code(2);
    assert!(told.err.contains("assay run -c slob.conf"), "{}", told.err);
    let told = place.assay(&["runs", "list", "--kind", "storgae"]).code(2);
    assert!(told.err.contains("there is no such kind") && told.err.contains("storage"));
    place.assay(&["runs", "list", "--kind", "storage"]).code(0);
    let both = ["run", "--target", "null:", "--sessions", "3", "-t", "2"];
    assert!(place.assay(&both).code(2).err.contains("--threads"));
}

#[test]
fn completions_name_the_commands_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = place.assay(&["completions", shell]).code(0);
        for command in ["prepare", "destroy", "io", "runs", "report"] {
            assert!(done.out.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn the_manual_has_a_page_for_each_command_and_takes_the_place_of_no_foreign_file() {
    let place = Place::new();
    place.assay(&["man", "pages"]).code(0);
    let program = place.read("pages/assay.1");
    for title in ["EXIT STATUS", "ENVIRONMENT", "FILES"] {
        assert!(program.contains(title), "{title}");
    }
    // Every command that the help lists has a page of its own, and so has what stands below it.
    let help = place.assay(&["--help"]).code(0).out;
    let commands = help.split("Commands:\n").nth(1).expect("commands");
    let commands = commands.split("\n\n").next().expect("an end").lines();
    let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    for name in names.chain(["runs-list", "config-show"]) {
        let page = place.read(&format!("pages/assay-{name}.1"));
        assert!(page.contains("EXIT STATUS"), "{name}");
        assert!(!page.contains("recovery\\-load"), "{name} names a hidden command");
    }
    assert!(place.read("pages/assay-io.1").contains("JOBFILE"));
    // Its own pages are written anew; with a foreign file among them nothing is.
    place.write("pages/assay-run.1", "mine\n");
    let refused = place.assay(&["man", "pages"]).code(2);
    assert!(refused.err.contains("assay-run.1"), "{}", refused.err);
    assert_eq!(place.read("pages/assay-run.1"), "mine\n");
    place.assay(&["man", "again"]).code(0);
    place.assay(&["man", "again"]).code(0);
    lint(&place);
}

/// groff, where it is installed, finds nothing wrong with any page.
fn lint(place: &Place) {
    for page in std::fs::read_dir(place.path("again")).expect("pages") {
        let page = page.expect("an entry").path();
        let groff = Command::new("groff").args(["-ww", "-man", "-Tutf8"]).arg(&page).output();
        let Ok(done) = groff else { return };
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && said.is_empty(), "{}: {said}", page.display());
    }
}

#[test]
fn no_color_and_pipes_show_no_escapes() {
    let place = Place::new();
    let mut command = place.command(&["run", "--nope"]);
    command.env("NO_COLOR", "1");
    let done = Started::new(command.stdout(Stdio::piped())).ended().code(2);
    assert!(!done.err.contains('\u{1b}'), "{}", done.err);
}
