//! pgio 1.0 as the peer: its own scripts, unchanged, on the same server.

use super::super::Options;
use super::super::process;
use super::server::{Cluster, DATABASE, Reading};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where pgio is: its directory, its release archive, or a git repository that holds either.
pub(super) const VARIABLE: &str = "ASSAY_PGIO";
/// The release archive, as it is named in its repository.
const ARCHIVE: &str = "pgio-2019.09.21-v_1.0.tar.gz";

/// The plans its statement can have: as the planner chooses, and by the index alone, as ours is performed.
const PLANS: [&str; 2] = ["", "-c enable_bitmapscan=off"];

/// A copy of pgio in a directory of ours.
pub(super) struct Pgio {
    dir: PathBuf,
    /// PGOPTIONS of its sessions.
    plan: &'static str,
}

/// What a load took.
pub(super) struct Loaded {
    /// The dense table that all others are copied from, s.
    pub(super) base_s: f64,
    /// The tables of the schemas with their indexes, s.
    pub(super) group_s: f64,
}

/// What a run did.
pub(super) struct Ran {
    /// Between two quiet points around it.
    pub(super) delta: Reading,
    /// Selects of all sessions.
    pub(super) selects: f64,
    /// pgio's own result line.
    pub(super) line: String,
}

impl Pgio {
    /// Copies it below `parent`; none if the environment does not say where it is.
    pub(super) fn find(parent: &Path) -> Result<Option<Self>> {
        let Some(place) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let place = PathBuf::from(place);
        let dir = parent.join("pgio-peer");
        std::fs::create_dir_all(&dir)?;
        let archive = if place.is_file() {
            place.clone()
        } else if place.join(ARCHIVE).is_file() {
            place.join(ARCHIVE)
        } else if place.join("runit.sh").is_file() {
            let mut copy = Command::new("cp");
            copy.arg("-r").arg(&place).arg(dir.join("pgio"));
            process::run(&mut copy, None)?;
            return Self::checked(dir);
        } else {
            let archive = dir.join(ARCHIVE);
            let mut git = Command::new("git");
            git.arg("-C").arg(&place).args(["cat-file", "blob"]);
            let output = git.arg(format!("HEAD:{ARCHIVE}")).output()?;
            if !output.status.success() {
                bail!("{VARIABLE}={}: no pgio there", place.display());
            }
            std::fs::write(&archive, output.stdout)?;
            archive
        };
        let mut unpack = Command::new("tar");
        unpack.arg("xzf").arg(&archive).arg("-C").arg(&dir);
        process::run(&mut unpack, None)?;
        Self::checked(dir)
    }

    fn checked(dir: PathBuf) -> Result<Option<Self>> {
        let dir = dir.join("pgio");
        for name in ["runit.sh", "setup.sh", "sql/pgio.sql"] {
            if !dir.join(name).is_file() {
                bail!("{VARIABLE}: this pgio has no {name}");
            }
        }
        Ok(Some(Self { dir, plan: PLANS[0] }))
    }

    /// Writes pgio.conf.
    pub(super) fn configure(&self, case: &Case) -> Result<()> {
        let text = format!(
            "UPDATE_PCT=0\nRUN_TIME={}\nNUM_SCHEMAS={}\nNUM_THREADS={}\nWORK_UNIT={}\nUPDATE_WORK_UNIT=8\nSCALE={}\n\
             DBNAME={DATABASE}\nCONNECT_STRING={DATABASE}\nCREATE_BASE_TABLE=TRUE\n",
            case.run_s, case.schemas, case.threads, case.work_unit, case.scale
        );
        std::fs::write(self.dir.join("pgio.conf"), text)?;
        Ok(())
    }

    /// `setup.sh`, timed by the lines it prints: its drops of 8192 names and its final sleep do not count.
    pub(super) fn load(&self, cluster: &Cluster) -> Result<Loaded> {
        let mut command = cluster.client("bash");
        command
            .arg("./setup.sh")
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (mut info, mut base, mut group, mut end) = (None, None, None, None);
        let stdout = child.stdout.take().context("its output")?;
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            let now = Some(Instant::now());
            if line.starts_with("Batching info") {
                info = now;
            } else if line.starts_with("Base table loading") {
                base = now;
            } else if line.starts_with("Waiting for batch") && group.is_none() {
                group = now;
            } else if line.contains("loading phase complete") {
                end = now;
            }
        }
        let status = child.wait()?;
        let between = |from: Option<Instant>, to: Option<Instant>| Some((to? - from?).as_secs_f64());
        let (Some(base_s), Some(group_s)) = (between(info, base), between(group, end)) else {
            bail!("pgio's setup.sh ended ({status}) without its usual lines");
        };
        Ok(Loaded { base_s, group_s })
    }

    /// Lets it have the plan that serves it best, by a short run of each.
    pub(super) fn choose_plan(&mut self, cluster: &Cluster, case: &Case) -> Result<&'static str> {
        self.configure(&Case { run_s: case.run_s.div_ceil(3), ..*case })?;
        let mut best = (0.0, self.plan);
        for plan in PLANS {
            self.plan = plan;
            let selects = self.run(cluster)?.selects;
            if selects > best.0 {
                best = (selects, plan);
            }
        }
        self.plan = best.1;
        self.configure(case)?;
        Ok(self.plan)
    }

    /// `runit.sh`, between two quiet points.
    pub(super) fn run(&self, cluster: &Cluster) -> Result<Ran> {
        let before = cluster.reading()?;
        let mut command = cluster.client("bash");
        command.arg("./runit.sh").env("PGOPTIONS", self.plan).current_dir(&self.dir);
        let (text, _) = process::run(&mut command, None)?;
        let after = cluster.reading()?;
        let line = text.lines().find(|line| line.starts_with("DBNAME:"));
        let line = line.context("no result line of pgio")?.trim().to_owned();
        let detail = std::fs::read_to_string(self.dir.join("pgio_session_detail.out"))?;
        let selects = selects(&detail);
        if selects == 0.0 {
            bail!("pgio did nothing: {line}");
        }
        Ok(Ran { delta: after.since(&before), selects, line })
    }
}

/// The third column of the session table: `mypid | loop_iterations | sql_selects | ...`.
fn selects(detail: &str) -> f64 {
    let rows = detail.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        (columns.len() == 8).then(|| columns[2].parse::<f64>().ok())?
    });
    rows.sum()
}

/// Size and load of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// Seconds of the loop of each session.
    pub(super) run_s: u64,
    /// Tables.
    pub(super) schemas: u32,
    /// Sessions a table; tables loaded at once.
    pub(super) threads: u32,
    /// Blocks an operation, as the user asks for them.
    pub(super) work_unit: u32,
    /// Blocks a table.
    pub(super) scale: u64,
}

impl Case {
    /// Two schemas with one session each.
    pub(super) fn of(options: &Options) -> Self {
        Self { run_s: options.size(6, 2), schemas: 2, threads: 1, work_unit: 64, scale: options.size(16_384, 2_048) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selects_of_all_sessions_are_summed() {
        let detail = "\n mypid | loop_iterations | sql_selects | a | b | c | d | e\n-------+----\n\n  \
                      12 |  100 |  99 | 1 | 0.1 | 0 | 6336 | 8\n  13 |  50 |  50 | 0 | 0.1 | 0 | 3200 | 0\n";
        assert_eq!(selects(detail), 149.0);
        assert_eq!(selects("nothing"), 0.0);
    }
}
