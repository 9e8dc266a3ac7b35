//! The names of a clone's files.

use super::super::spec::{GivenOption, StorageJob};
use std::path::{Path, PathBuf};

/// Format of generated names if neither `filename` nor `filename_format` is given.
const FORMAT: &str = "$jobname.$jobnum.$filenum";

/// Paths of the files of clone `clone` of a job, in order.
///
/// All clones share named files, which are in the first directory. Generated names are private to a clone, and the
/// clones use the directories in turn.
pub(super) fn of_clone(globals: &[GivenOption], job: &StorageJob, clone: u32) -> Vec<PathBuf> {
    let files = &job.options.files;
    if !files.names.is_empty() {
        let count = match given_count(globals, job) {
            Some(count) if count < files.names.len() => count.max(1),
            _ => files.names.len(),
        };
        let directory = files.directories.first();
        return files.names[..count]
            .iter()
            .map(|name| match directory {
                Some(directory) => directory.join(name.strip_prefix("/").unwrap_or(name)),
                None => name.clone(),
            })
            .collect();
    }
    let turn = clone as usize % files.directories.len().max(1);
    let directory = files.directories.get(turn).map_or(Path::new(""), |d| d);
    (0..files.count.max(1)).map(|file| directory.join(made_up(job, clone, file))).collect()
}

/// `nrfiles` if it was given: its default must not shorten a list of names.
fn given_count(globals: &[GivenOption], job: &StorageJob) -> Option<usize> {
    globals.iter().chain(&job.given).any(|(name, _)| name == "nrfiles").then_some(job.options.files.count as usize)
}

fn made_up(job: &StorageJob, clone: u32, file: u32) -> String {
    let format = job.options.files.name_format.as_deref();
    let mut rest = format.unwrap_or(FORMAT);
    let mut name = String::new();
    while let Some(at) = rest.find('$') {
        name.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = [
            ("$jobname", job.name.clone()),
            ("$jobnum", clone.to_string()),
            ("$filenum", file.to_string()),
            // Only clients of a server have one; assay has no client mode.
            ("$clientuid", String::new()),
        ];
        let found = known.iter().find(|(key, _)| rest.starts_with(key));
        let (key, value) = found.map_or(("$", "$"), |(key, value)| (*key, value.as_str()));
        name.push_str(value);
        rest = &rest[key.len()..];
    }
    name.push_str(rest);
    // A job's name may contain slashes, which create directories; a leading slash would leave the directory that was
    // given.
    name.trim_start_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, change: impl FnOnce(&mut StorageJob)) -> StorageJob {
        let mut job = StorageJob { name: name.to_owned(), ..StorageJob::default() };
        change(&mut job);
        job
    }

    fn names(job: &StorageJob, clone: u32) -> Vec<String> {
        of_clone(&[], job, clone).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn made_up_names_are_private_to_a_clone_and_take_the_directories_in_turn() {
        let job = job("a", |job| {
            job.options.files.count = 2;
            job.options.files.directories = vec!["/x".into(), "y".into()];
        });
        assert_eq!(names(&job, 0), ["/x/a.0.0", "/x/a.0.1"]);
        assert_eq!(names(&job, 1), ["y/a.1.0", "y/a.1.1"]);
        assert_eq!(names(&job, 2), ["/x/a.2.0", "/x/a.2.1"]);
    }

    #[test]
    fn a_format_knows_its_words_and_leaves_others_alone() {
        let format = "$jobname-$jobnum-$filenum-$clientuid.$foo$";
        let job = job("a/b", |job| {
            job.options.files.name_format = Some(format.to_owned());
        });
        assert_eq!(names(&job, 3), ["a/b-3-0-.$foo$"]);
    }

    #[test]
    fn named_files_are_shared_and_a_smaller_nrfiles_takes_the_first() {
        let mut job = job("a", |job| {
            job.options.files.names = vec!["f".into(), "/g".into()];
        });
        assert_eq!(names(&job, 0), ["f", "/g"]);
        assert_eq!(names(&job, 1), ["f", "/g"]);
        job.options.files.directories = vec!["/d".into(), "/e".into()];
        assert_eq!(names(&job, 1), ["/d/f", "/d/g"]);
        job.given = vec![("nrfiles".to_owned(), Some("1".to_owned()))];
        assert_eq!(names(&job, 1), ["/d/f"]);
        job.options.files.count = 3;
        assert_eq!(names(&job, 1), ["/d/f", "/d/g"]);
    }
}
