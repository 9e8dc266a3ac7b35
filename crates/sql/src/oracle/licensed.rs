//! Snapshots of the server's own repositories around a run: AWR, which requires a licence, and Statspack, which does
//! not. assay uses either only if the user names it.

use super::server::{Instance, container};
use super::session::{Bind, OraError, Session, told};
use super::sql;
use assay_measure::config::Settings;
use assay_measure::snapshot::Fact;
use assay_run::engine::EngineError;

/// Which repository, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repository {
    Awr,
    Statspack,
}

/// The snapshots of a run.
pub(super) struct Snapshots {
    repository: Option<Repository>,
    /// Snapshot numbers, or why there is none.
    taken: Vec<Result<String, String>>,
    ash: Option<String>,
}

impl Snapshots {
    /// Takes the first snapshot if DATABASE_STATISTICS_TYPE requests it.
    ///
    /// # Errors
    /// `Usage`: AWR without LICENSED_DIAGNOSTICS, or a value for another database; `Unusable`: switched off, not installed, denied.
    pub(super) fn begin(
        settings: &Settings,
        session: &mut dyn Session,
        instance: &Instance,
    ) -> Result<Self, EngineError> {
        let repository = match settings.text("DATABASE_STATISTICS_TYPE") {
            "awr" => Some(awr(settings, session, instance)?),
            "statspack" => Some(statspack(session)?),
            "auto" | "native" => None,
            other => {
                return Err(EngineError::Usage(format!(
                    "DATABASE_STATISTICS_TYPE={other} is not a repository of Oracle: give auto, native (V$ views), \
                     statspack or awr"
                )));
            }
        };
        let mut snapshots = Self { repository, taken: Vec::new(), ash: None };
        if let Some(repository) = repository {
            let first = take(session, repository).map_err(told("taking a snapshot of the repository"))?;
            snapshots.taken.push(Ok(first));
        }
        Ok(snapshots)
    }

    /// Whether a snapshot must be taken at the end.
    pub(super) fn is_wanted(&self) -> bool {
        self.repository.is_some()
    }

    /// Takes the last snapshot.
    pub(super) fn end(&mut self, session: &mut dyn Session) {
        let Some(repository) = self.repository else {
            return;
        };
        self.taken.push(take(session, repository).map_err(|error| error.to_string()));
        if repository == Repository::Awr {
            let rows = session.rows(sql::ASH, &[]);
            self.ash = rows.ok().map(|rows| {
                let each = rows.into_iter().map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" "));
                each.collect::<Vec<_>>().join(", ")
            });
        }
    }

    /// Facts for the report.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let Some(repository) = self.repository else {
            let why = "not used; DATABASE_STATISTICS_TYPE=statspack or awr (licensed) takes snapshots";
            return vec![Fact::new("repository", why.to_owned())];
        };
        let (name, script) = match repository {
            Repository::Awr => ("AWR", "awrrpt.sql"),
            Repository::Statspack => ("Statspack", "spreport.sql"),
        };
        let number = |at: usize| match self.taken.get(at) {
            Some(Ok(number)) => number.clone(),
            Some(Err(why)) => format!("n/a ({why})"),
            None => "n/a (not taken yet)".to_owned(),
        };
        let mut facts = vec![Fact::new(
            "repository",
            format!(
                "{name} snapshots {} to {}, around connecting, warm-up and drain; its report: {script}, then assay import",
                number(0),
                number(1)
            ),
        )];
        if let Some(ash) = &self.ash {
            facts.push(Fact::new("ash_samples", ash.clone()));
        }
        facts
    }
}

fn awr(settings: &Settings, session: &mut dyn Session, instance: &Instance) -> Result<Repository, EngineError> {
    if !settings.bool("LICENSED_DIAGNOSTICS") {
        return Err(EngineError::Usage(
            "DATABASE_STATISTICS_TYPE=awr uses the Diagnostics Pack, which needs a licence: set \
             LICENSED_DIAGNOSTICS=TRUE if you have it, or DATABASE_STATISTICS_TYPE=native (V$ views) or statspack, \
             which need none"
                .to_owned(),
        ));
    }
    let access = instance.text("control_management_pack_access");
    if !access.contains("DIAGNOSTIC") {
        return Err(EngineError::Unusable(format!(
            "control_management_pack_access is {}: this database does not permit the use of AWR",
            if access.is_empty() { "n/a (V$PARAMETER is denied)" } else { access }
        )));
    }
    if settings.text("AWR_SRC") != "AWR_ROOT" {
        return Ok(Repository::Awr);
    }
    let container = container(session)?;
    if container != "CDB$ROOT" {
        return Err(EngineError::Usage(format!(
            "AWR_SRC=AWR_ROOT, but ADMIN_SQLNET_SERVICE leads to container {container}: name the service of the root there, \
             and the pluggable database in the URL"
        )));
    }
    Ok(Repository::Awr)
}

fn statspack(session: &mut dyn Session) -> Result<Repository, EngineError> {
    let there = session.number(sql::STATSPACK_IS, &[]).map_err(told("looking for Statspack"))?;
    match there {
        0 => Err(EngineError::Unusable(
            "DATABASE_STATISTICS_TYPE=statspack, but there is no package PERFSTAT.STATSPACK that this user may \
             execute: install it (spcreate.sql) and grant it, or set DATABASE_STATISTICS_TYPE=native (V$ views)"
                .to_owned(),
        )),
        _ => Ok(Repository::Statspack),
    }
}

fn take(session: &mut dyn Session, repository: Repository) -> Result<String, OraError> {
    let sql = match repository {
        Repository::Awr => sql::AWR_SNAPSHOT,
        Repository::Statspack => sql::STATSPACK_SNAPSHOT,
    };
    let none: [Bind<'_>; 0] = [];
    Ok(session.call(sql, &none, 1)?.concat())
}
