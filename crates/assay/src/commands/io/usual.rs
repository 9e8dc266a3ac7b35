//! `assay io DIR`: a directory instead of a job file stands for the usual jobs in it.

use crate::exit::{Code, Failure};
use crate::rundir;
use crate::ui;
use assay_run::left::{Kind, Mark};
use std::path::{Path, PathBuf};

/// Of the scratch file: beyond most small caches, quickly laid out.
const SIZE: &str = "1g";
/// Of each of the two jobs, s.
const RUNTIME_S: u32 = 20;

/// Where the first word is a directory: random reads of database blocks in a scratch file there, one at a
/// time and then many, and the file removed. The other words (`--output-format`, `-o`, ...) stay. With the words
/// comes the scratch file's name, if there is to be one.
pub(super) fn expanded(words: &[String]) -> (Vec<String>, Option<PathBuf>) {
    let Some((first, rest)) = words.split_first() else {
        return (Vec::new(), None);
    };
    if first.starts_with('-') || !Path::new(first).is_dir() {
        return (words.to_vec(), None);
    }
    let file = Path::new(first).join(format!("assay-io-{}.scratch", rundir::new_id()));
    // A colon would end the name.
    let name = file.to_string_lossy().replace(':', "\\:");
    let mut all = vec![
        format!("--filename={name}"),
        format!("--size={SIZE}"),
        "--rw=randread".to_owned(),
        "--bs=8k".to_owned(),
        "--direct=1".to_owned(),
        "--time_based".to_owned(),
        format!("--runtime={RUNTIME_S}"),
        "--unlink=1".to_owned(),
    ];
    if !rest.iter().any(|word| word.starts_with("--ioengine")) {
        let (engine, why) = assay_storage::usual_engine();
        all.push(format!("--ioengine={}", engine.name()));
        if let Some(why) = why {
            ui::say(&format!("notice: {why}"));
            // So the reports say it too.
            all.push(format!("--description={why}"));
        }
    }
    all.extend(rest.iter().cloned());
    let is_seeded = rest.iter().any(|word| word.contains("rand"));
    for depth in ["1", "32"] {
        all.push(format!("--name=randread-depth-{depth}"));
        all.push(format!("--iodepth={depth}"));
        all.push("--stonewall".to_owned());
        // Blocks of its own: a cache in the array would make the later job look faster on those of the earlier.
        all.extend((!is_seeded).then(|| format!("--randseed={depth}")));
    }
    (all, Some(file))
}

/// Measures with the scratch file marked for as long as it is there: a killed one leaves it, and the next one here
/// names it.
pub(super) fn marked<T>(scratch: Option<&Path>, measure: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let Some(file) = scratch else {
        return measure();
    };
    let cannot = |error: std::io::Error| {
        let why = format!("{}: cannot mark the scratch file: {error}", file.display());
        Failure::new(Code::Unusable, why)
    };
    let mark = Mark::put(file, Kind::File).map_err(cannot)?;
    let measured = measure();
    // A mark whose file could not be removed stays with it.
    if !file.exists() {
        mark.take_away().map_err(cannot)?;
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_two_jobs_and_other_words_stay() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let place = dir.path().to_string_lossy().into_owned();
        let (words, scratch) = expanded(&[place.clone(), "--runtime=1".to_owned()]);
        assert!(scratch.is_some_and(|file| file.starts_with(&place)));
        assert!(words[0].starts_with(&format!("--filename={place}/")));
        assert!(words.iter().any(|word| word == "--runtime=1"));
        assert_eq!(words.iter().filter(|word| word.starts_with("--name=")).count(), 2);
        for kept in [&["job.fio"][..], &["--name=a", place.as_str()], &[]] {
            let kept: Vec<String> = kept.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(expanded(&kept), (kept, None));
        }
    }
}
