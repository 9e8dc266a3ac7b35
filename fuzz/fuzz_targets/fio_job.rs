//! Any text as words and as a job file: never a panic, every error with its place, and what is
//! taken is taken again when it is shown as a command line.
//!
//! The input's lines up to `---` are words; the rest is what any job file and standard input hold.
#![no_main]

use assay_storage::language::{self, World};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (words, file) = text.split_once("\n---\n").unwrap_or(("job.fio", &text));
    let words: Vec<String> = words.lines().map(str::to_owned).collect();
    let world = World {
        env: &|name| (name != "NONE").then(|| name.to_lowercase()),
        cpus: 2,
        page_bytes: 4096,
        memory_mib: 1024,
        read_file: &|_| Ok(file.to_owned()),
        stdin: &|| Ok(file.to_owned()),
    };
    let _ = language::help_asked(&words);
    match language::parse(&words, &world) {
        Ok(invocation) => {
            assert!(!invocation.jobs.is_empty());
            let _ = language::command_line(&invocation);
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                let origin = &error.origin;
                assert!(
                    origin == "command line" || origin.starts_with("job file ") && origin.contains(", line "),
                    "{error}"
                );
            }
        }
    }
});
