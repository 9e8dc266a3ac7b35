//! The default jobs of a directory: random reads of database blocks, first one at a time, then many at once.

use super::spec::IoEngine;
use assay_block::{LaneEngine, Lanes, LanesOptions, UringMode};
use assay_run::host::random_u32;
use std::path::{Path, PathBuf};

/// Duration of each of the two jobs, s.
const RUNTIME_S: u32 = 20;
/// The engine of the default jobs: io_uring or, if this host refuses it, libaio, then psync; and why it is not the
/// first choice.
fn engine() -> (IoEngine, Option<String>) {
    let refused = |engine| {
        let options = LanesOptions { lanes: 1, lane_bytes: 8192, files: Vec::new(), engine };
        Lanes::open(options).err().map(|error| error.to_string())
    };
    let Some(why) = refused(LaneEngine::Uring(UringMode::default())) else {
        return (IoEngine::IoUring, None);
    };
    let Some(why_too) = refused(LaneEngine::Aio) else {
        let told = format!("assay uses libaio because {why}");
        return (IoEngine::Libaio, Some(told));
    };
    let told = format!("assay uses psync, one I/O at a time, because {why}; {why_too}");
    (IoEngine::Psync, Some(told))
}

/// If the first word is a directory, expands it to the default jobs: random reads of database blocks in a scratch file
/// there, first one at a time, then many at once, and removal of the file. Keeps the other words (`--output-format`,
/// `-o`, ...). Also returns the scratch file's name, if there is one, and why the engine is not the first choice.
pub(super) fn expanded(words: &[String]) -> (Vec<String>, Option<PathBuf>, Option<String>) {
    let Some((first, rest)) =
        words.split_first().filter(|(first, _)| !first.starts_with('-') && Path::new(first).is_dir())
    else {
        return (words.to_vec(), None, None);
    };
    let file = Path::new(first).join(format!("assay-io-{:08x}.scratch", random_u32()));
    // A colon would end the file name.
    let name = file.to_string_lossy().replace(':', "\\:");
    let mut all = vec![
        format!("--filename={name}"),
        "--size=1g".to_owned(),
        "--rw=randread".to_owned(),
        "--bs=8k".to_owned(),
        "--direct=1".to_owned(),
        "--time_based".to_owned(),
        format!("--runtime={RUNTIME_S}"),
        "--unlink=1".to_owned(),
    ];
    let mut why = None;
    if !rest.iter().any(|word| word.starts_with("--ioengine")) {
        let (engine, refused) = engine();
        all.push(format!("--ioengine={}", engine.name()));
        // Puts the reason into the reports too.
        all.extend(refused.iter().map(|why| format!("--description={why}")));
        why = refused;
    }
    all.extend(rest.iter().cloned());
    let is_seeded = rest.iter().any(|word| word.contains("rand"));
    for depth in ["1", "32"] {
        all.push(format!("--name=randread-depth-{depth}"));
        all.push(format!("--iodepth={depth}"));
        all.push("--stonewall".to_owned());
        // Each job reads its own blocks: a cache in the array would make the later job faster on those of the earlier.
        all.extend((!is_seeded).then(|| format!("--randseed={depth}")));
    }
    (all, Some(file), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_two_jobs_and_other_words_stay() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let place = dir.path().to_string_lossy().into_owned();
        let (words, scratch, _) = expanded(&[place.clone(), "--runtime=1".to_owned()]);
        assert!(scratch.is_some_and(|file| file.starts_with(&place)));
        assert!(words[0].starts_with(&format!("--filename={place}/")));
        assert!(words.iter().any(|word| word == "--runtime=1"));
        assert_eq!(words.iter().filter(|word| word.starts_with("--name=")).count(), 2);
        for kept in [&["job.fio"][..], &["--name=a", place.as_str()], &[]] {
            let kept: Vec<String> = kept.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(expanded(&kept), (kept, None, None));
        }
    }
}
