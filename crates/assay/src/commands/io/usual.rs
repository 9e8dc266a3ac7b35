//! `assay io DIR`: a directory instead of a job file stands for the usual jobs in it.

use crate::ui;
use assay_engines::storage;
use std::path::Path;

/// Of the scratch file: beyond most small caches, quickly laid out.
const SIZE: &str = "1g";
/// Of each of the two jobs, s.
const RUNTIME_S: u32 = 20;

/// Where the first word is a directory: random reads of database blocks in a scratch file there, one at a
/// time and then many, and the file removed. The other words (`--output-format`, `-o`, ...) stay.
pub(super) fn expanded(words: &[String]) -> Vec<String> {
    let Some((first, rest)) = words.split_first() else {
        return Vec::new();
    };
    if first.starts_with('-') || !Path::new(first).is_dir() {
        return words.to_vec();
    }
    let name = Path::new(first).join(format!("assay-io-{}.scratch", std::process::id()));
    // A colon would end the name.
    let name = name.to_string_lossy().replace(':', "\\:");
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
        let (engine, why) = storage::usual_engine();
        all.push(format!("--ioengine={}", engine.name()));
        if let Some(why) = why {
            ui::say(&format!("notice: {why}"));
            // So the reports say it too.
            all.push(format!("--description={why}"));
        }
    }
    all.extend(rest.iter().cloned());
    for depth in ["1", "32"] {
        all.push(format!("--name=randread-depth-{depth}"));
        all.push(format!("--iodepth={depth}"));
        all.push("--stonewall".to_owned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_two_jobs_and_other_words_stay() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let place = dir.path().to_string_lossy().into_owned();
        let words = expanded(&[place.clone(), "--runtime=1".to_owned()]);
        assert!(words[0].starts_with(&format!("--filename={place}/")));
        assert!(words.iter().any(|word| word == "--runtime=1"));
        assert_eq!(
            words
                .iter()
                .filter(|word| word.starts_with("--name="))
                .count(),
            2
        );
        for kept in [&["job.fio"][..], &["--name=a", place.as_str()], &[]] {
            let kept: Vec<String> = kept.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(expanded(&kept), kept);
        }
    }
}
