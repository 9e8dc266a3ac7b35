//! What the command line says of itself: scripts and people rely on it.

use crate::common::{Place, Started};
use std::process::Stdio;

#[test]
fn help_texts_are_as_reviewed() {
    let place = Place::new();
    for args in [
        &["--help"][..],
        &["run", "-h"],
        &["sweep", "-h"],
        &["compare", "-h"],
        &["prepare", "-h"],
        &["sync", "-h"],
        &["cpu", "-h"],
        &["io", "-h"],
        &["recovery", "-h"],
        &["import", "-h"],
        &["report", "-h"],
        &["cost", "-h"],
        &["runs", "-h"],
        &["config", "show", "-h"],
    ] {
        let done = place.assay(args).code(0);
        assert_eq!(done.err, "");
        let name = args.join("_").replace('-', "");
        insta::assert_snapshot!(name, done.out);
    }
}

#[test]
fn mistakes_go_to_stderr_with_exit_2_and_help_to_stdout() {
    let place = Place::new();
    for args in [
        &[][..],
        &["rnu"],
        &["run", "--nope"],
        &["report"],
        &["report", "x", "--format", "html"],
    ] {
        let done = place.assay(args).code(2);
        assert_eq!(done.out, "", "{args:?}");
        assert!(!done.err.is_empty(), "{args:?}");
    }
    let version = place.assay(&["--version"]).code(0);
    assert_eq!(
        version.out,
        format!("assay {}\n", env!("CARGO_PKG_VERSION"))
    );
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
fn no_color_and_pipes_show_no_escapes() {
    let place = Place::new();
    let mut command = place.command(&["run", "--nope"]);
    command.env("NO_COLOR", "1");
    let done = Started::new(command.stdout(Stdio::piped())).ended().code(2);
    assert!(!done.err.contains('\u{1b}'), "{}", done.err);
}
