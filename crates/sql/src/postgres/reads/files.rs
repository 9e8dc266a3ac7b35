//! The files of a data set: data directory, tablespaces, every segment of our relations; and how much of them is in the
//! kernel's page cache.

use crate::postgres::layout::literal;
use crate::postgres::wire::{Connection, PgError};
use assay_run::owned;
use rustix::fs::Advice;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A relation of the data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    /// Path of the first segment, relative to the data directory.
    pub(super) path: String,
    /// Bytes of its main fork.
    pub(super) bytes: u64,
}

/// What the server reports about its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Setting `data_directory`; hidden from most roles.
    pub(super) data_directory: Option<PathBuf>,
    /// Directories of our relations' tablespaces, except the built-in ones.
    pub(super) tablespaces: Vec<PathBuf>,
    /// Tables and their indexes in the schema of the data set.
    pub(super) relations: Vec<Relation>,
}

impl Asked {
    /// Queries over `connection` the relations of PostgreSQL schema `schema`.
    pub(super) fn ask(connection: &mut Connection, schema: &str) -> Result<Self, PgError> {
        let schema = literal(schema);
        let ours = format!(
            "from pg_class c join pg_namespace n on n.oid = c.relnamespace \
             where n.nspname = {schema} and c.relkind in ('r', 'i')"
        );
        let column = |connection: &mut Connection, sql: &str| -> Result<Vec<String>, PgError> {
            let rows = connection.query(sql)?.rows;
            Ok(rows.into_iter().filter_map(|row| row.into_iter().next()?).collect())
        };
        let setting = "select setting from pg_settings where name = 'data_directory'";
        let directory = column(connection, setting)?.pop();
        // Tablespace 0 is the database's default, which may be any; the two built-in tablespaces have an empty location.
        let tablespaces = column(
            connection,
            &format!(
                "select distinct pg_tablespace_location(case c.reltablespace when 0 then d.dattablespace else \
                 c.reltablespace end) {} and d.datname = current_database()",
                ours.replace("where", "cross join pg_database d where")
            ),
        )?;
        let relations = connection
            .query(&format!("select pg_relation_filepath(c.oid), pg_relation_size(c.oid) {ours} order by 1"))?
            .rows;
        Ok(Self {
            data_directory: directory.map(PathBuf::from),
            tablespaces: tablespaces.into_iter().filter(|location| !location.is_empty()).map(PathBuf::from).collect(),
            relations: relations
                .into_iter()
                .filter_map(|mut row| {
                    let bytes = row.pop()??.parse().ok()?;
                    Some(Relation { path: row.pop()??, bytes })
                })
                .collect(),
        })
    }
}

/// The data directory as this process can reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataDirectory {
    /// Path reported by the server or shown by its process.
    pub(super) path: PathBuf,
    /// How it was found.
    pub(super) source: &'static str,
    /// Prefix of the server's absolute paths: `/`, or the root of its mount namespace.
    root: PathBuf,
    /// A path to the data directory from here.
    reach: PathBuf,
}

/// Finds the data directory of the server whose postmaster is process `postmaster`.
pub(super) fn data_directory(proc: &Path, postmaster: i32, told: Option<&Path>) -> Option<DataDirectory> {
    let own = proc.join(postmaster.to_string());
    // The postmaster and its children work in the data directory; reading the link needs root or the server's user.
    let cwd = fs::read_link(own.join("cwd")).ok();
    let option = || {
        let arguments = fs::read(own.join("cmdline")).ok()?;
        let arguments: Vec<&str> =
            arguments.split(|byte| *byte == 0).filter_map(|a| std::str::from_utf8(a).ok()).collect();
        let at = arguments.iter().position(|argument| *argument == "-D")?;
        arguments.get(at + 1).map(PathBuf::from)
    };
    let (path, source) = match (told, &cwd) {
        (Some(told), _) => (told.to_path_buf(), "setting data_directory"),
        (None, Some(cwd)) => (cwd.clone(), "working directory of the postmaster"),
        (None, None) => (option()?, "option -D of the postmaster"),
    };
    let through = own.join("cwd");
    if crate::procs::is_other_file(&through, &path) {
        // The same path is another file here: the server has its own mount namespace.
        return Some(DataDirectory { path, source, root: own.join("root"), reach: through });
    }
    Some(DataDirectory { root: PathBuf::from("/"), reach: path.clone(), path, source })
}

impl DataDirectory {
    /// A path of the server, as seen from here.
    pub(super) fn outside(&self, path: &Path) -> PathBuf {
        match path.strip_prefix("/") {
            Ok(inner) if self.root != Path::new("/") => self.root.join(inner),
            _ => path.to_path_buf(),
        }
    }

    /// A path relative to the data directory, with tablespace links resolved as the server sees them.
    fn inside(&self, relative: &str) -> PathBuf {
        let mut parts = relative.splitn(3, '/');
        if let (Some("pg_tblspc"), Some(number), Some(rest)) = (parts.next(), parts.next(), parts.next())
            && let Ok(target) = fs::read_link(self.reach.join("pg_tblspc").join(number))
        {
            return self.outside(&target).join(rest);
        }
        self.reach.join(relative)
    }

    /// Directory of the write-ahead log, if it is elsewhere.
    pub(super) fn log_directory(&self) -> Option<PathBuf> {
        let target = fs::read_link(self.reach.join("pg_wal")).ok()?;
        Some(self.outside(&target))
    }

    /// The data directory as a path for this host's sampler.
    pub(super) fn reach(&self) -> &Path {
        &self.reach
    }

    /// Opens every segment of `relations` for reading. Accepts only files of the server's user: the server names them,
    /// and its user controls what is there.
    ///
    /// # Errors
    /// The first file that cannot be opened, with the reason.
    pub(super) fn open(&self, relations: &[Relation]) -> std::io::Result<Segments> {
        let mut files = Vec::new();
        let uid = fs::metadata(&self.reach)?.uid();
        for relation in relations {
            let first = self.inside(&relation.path);
            for segment in 0.. {
                let path = match segment {
                    0 => first.clone(),
                    n => PathBuf::from(format!("{}.{n}", first.display())),
                };
                match owned::open_file(&path, uid) {
                    Ok(file) => files.push((file.metadata()?.len(), file)),
                    Err(error) if segment > 0 && error.kind() == std::io::ErrorKind::NotFound => {
                        break;
                    }
                    Err(error) => {
                        return Err(std::io::Error::new(error.kind(), format!("{}: {error}", path.display())));
                    }
                }
            }
        }
        Ok(Segments { files })
    }
}

/// Open files of the data set, with their sizes when they were opened.
#[derive(Debug)]
pub(super) struct Segments {
    files: Vec<(u64, File)>,
}

impl Segments {
    /// Number of files.
    pub(super) fn count(&self) -> usize {
        self.files.len()
    }

    /// Total bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|(bytes, _)| bytes).sum()
    }

    /// Writes dirty pages back, so that all of them can be dropped.
    pub(super) fn sync(&self) -> std::io::Result<()> {
        self.files.iter().try_for_each(|(_, file)| file.sync_data())
    }

    /// Asks the kernel to drop the clean pages of every file; for dirty ones it only starts writing.
    pub(super) fn forget(&self) -> std::io::Result<()> {
        for (_, file) in &self.files {
            rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }

    /// Percentage of the pages in the page cache, 0..100; asking loads none. `None` if the kernel does not say.
    pub(super) fn cached_pct(&self) -> Option<f64> {
        let mut held = 0;
        for (_, file) in &self.files {
            held += assay_block::cached_pages(file).ok()??;
        }
        let pages: u64 = self.files.iter().map(|(bytes, _)| bytes.div_ceil(4096)).sum();
        (pages > 0).then(|| 100.0 * held as f64 / pages as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data_in(directory: &Path) -> DataDirectory {
        DataDirectory {
            path: directory.to_path_buf(),
            source: "test",
            root: PathBuf::from("/"),
            reach: directory.to_path_buf(),
        }
    }

    #[test]
    fn segments_are_found_and_forgotten_pages_are_gone() {
        // A real disk: memory file systems forget nothing.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let base = dir.path().join("base/5");
        fs::create_dir_all(&base).unwrap();
        fs::write(base.join("77"), vec![1; 4 << 20]).unwrap();
        fs::write(base.join("77.1"), vec![2; 1 << 20]).unwrap();
        fs::write(base.join("77_fsm"), [3]).unwrap();
        let data = data_in(dir.path());
        let relation = Relation { path: "base/5/77".to_owned(), bytes: 5 << 20 };
        let segments = data.open(&[relation]).expect("both are there");
        assert_eq!((segments.count(), segments.bytes()), (2, 5 << 20));
        let before = segments.cached_pct().expect("our own files");
        assert!(before > 90.0, "{before}");
        segments.sync().unwrap();
        segments.forget().unwrap();
        let after = segments.cached_pct().expect("as before");
        assert!(after < 10.0, "{after}");
        // The question itself brings nothing back, now or a moment later.
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(segments.cached_pct(), Some(after));
    }

    #[test]
    fn what_is_no_file_of_the_servers_user_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let data = data_in(dir.path());
        let pipe = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("1"), pipe, mode, 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("2")).unwrap();
        for path in ["1", "2", "../../../../../../dev/zero"] {
            let relation = Relation { path: path.to_owned(), bytes: 1 };
            // Opening the pipe itself would wait for a writer for ever.
            let error = data.open(&[relation]).expect_err(path);
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let data = data_in(dir.path());
        let relation = Relation { path: "base/5/77".to_owned(), bytes: 1 };
        let error = data.open(&[relation]).expect_err("nothing is there");
        assert!(error.to_string().contains("base/5/77"), "{error}");
    }

    #[test]
    fn tablespaces_of_a_namespace_are_looked_for_under_its_root() {
        let dir = tempfile::tempdir().unwrap();
        let reach = dir.path().join("data");
        fs::create_dir_all(reach.join("pg_tblspc")).unwrap();
        std::os::unix::fs::symlink("/mnt/fast", reach.join("pg_tblspc/16400")).unwrap();
        let data = DataDirectory {
            path: PathBuf::from("/var/lib/data"),
            source: "test",
            root: dir.path().join("root"),
            reach,
        };
        assert_eq!(data.inside("pg_tblspc/16400/PG_15/5/77"), dir.path().join("root/mnt/fast/PG_15/5/77"));
    }
}
