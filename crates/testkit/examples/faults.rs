//! Runs the fault harness: the whole native engine on a simulated disk, by seed. `cargo xtask faults` starts it.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the project's own tests, never a library")]

#[path = "../tests/faults/harness/mod.rs"]
mod harness;

use harness::command;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = tempfile::tempdir()
        .map_err(|error| error.to_string())
        .and_then(|dir| command(dir.path(), &words, &mut |line| println!("{line}")));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::from(2)
        }
    }
}
