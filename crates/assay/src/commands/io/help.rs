//! Questions that are answered without a job: help, versions, what an option means.

use crate::exit::Failure;
use assay_storage::language;

const INTRODUCTION: &str = "\
Measures the bare storage with fio's options, job files and reports

Usage: assay io [JOBFILE...] [OPTIONS] [--name=JOB [JOB OPTIONS]]...
       assay io DIR [OPTIONS]      8 KiB random reads there, at depth 1 and 32; assay removes its scratch file

assay takes fio's command lines and job files as they are: options before the first --name apply to every job,
a JOBFILE of `-` is standard input. An option of fio that assay does not have is an error.

  assay io --name=redo --filename=redo.dat --size=1g --rw=write --bs=4k --fdatasync=1 --time_based --runtime=30
  assay io --name=data --filename=/u01/file --rw=randread --bs=8k --direct=1 --ioengine=io_uring --iodepth=32 \\
           --time_based --runtime=60 --readonly

The report is on standard output, or in --output=FILE, which must be new or empty; progress and notes are on
standard error. The run directory, ./assay-runs/TIME-io-ID, keeps record.json, report.txt, fio.json and the jobs.
";

const CLOSE: &str = "
Safety: reading never writes, and assay never extends a file that it did not make. A job that writes to an
existing file or device that is not assay's own needs --destroy with its exact path. assay refuses a device that
is mounted, swap or part of something else in any case. --parse-only prints what a run would touch, and stops.

Exit codes: 0 good, 1 bug, 2 usage, 3 target or host unusable, 4 I/O errors or a missed rate, 6 output not
written, 130 interrupted. fio's own are 0 and 1.
";

/// The answer, if the words ask one of these questions.
pub(super) fn asked(words: &[String]) -> Result<Option<String>, Failure> {
    let is = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    if is(&["--version", "-version", "-v"]) {
        return Ok(Some(format!("assay-{}\n", env!("CARGO_PKG_VERSION"))));
    }
    let Some(answer) = language::help_asked(words) else {
        return Ok(None);
    };
    let answer = answer.map_err(Failure::usage)?;
    if is(&["--help", "-help", "-h", "--h"]) {
        return Ok(Some(whole(&answer)));
    }
    Ok(Some(answer))
}

/// What `--help` says, for the page of the manual.
pub(in crate::commands) fn manual() -> String {
    let options = language::help_asked(&["--help".to_owned()]);
    whole(&options.and_then(Result::ok).unwrap_or_default())
}

/// Ours around what the language says of its options.
fn whole(answer: &str) -> String {
    let options = answer.find("Options:").map_or("", |at| &answer[at..]);
    format!("{INTRODUCTION}\n{options}{CLOSE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(words: &[&str]) -> Option<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        asked(&words).expect("answered")
    }

    #[test]
    fn questions_are_answered_wherever_they_stand() {
        assert!(ask(&["--name=a", "--help"]).is_some_and(|text| text.contains("--destroy")));
        assert!(ask(&["--version"]).is_some_and(|text| text.starts_with("assay-")));
        assert!(ask(&["--cmdhelp=bs"]).is_some_and(|text| text.contains("blocksize")));
        assert!(ask(&["--enghelp"]).is_some_and(|text| text.contains("io_uring")));
        assert_eq!(ask(&["--name=--help"]), None);
    }
}
