//! What the run directory keeps: the command line and job files as given, the record, both reports.

use super::NAME;
use crate::exit::Failure;
use crate::record;
use crate::rundir::{FIO_JSON, RunDir, job_file};
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_measure::snapshot::{RunData, SettingLine};
use assay_run::host;
use assay_storage::readings::StorageReadings;
use assay_storage::record::fio;
use assay_storage::spec::{self, Invocation};

/// The invocation as it came.
pub(super) struct Given {
    /// The command line, quoted for a shell.
    command: String,
    /// Job files and includes in the order of reading.
    files: Vec<String>,
    settings: Vec<SettingLine>,
    label: Option<String>,
}

impl Given {
    pub(super) fn new(words: &[String], invocation: &Invocation, files: Vec<String>) -> Self {
        let quoted: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
        let global = invocation.global_options.iter().map(|given| ("global", "global", given));
        let own = invocation.jobs.iter().flat_map(|job| {
            let each = job.given.iter();
            each.map(|given| (job.name.as_str(), job.origin.as_str(), given))
        });
        Self {
            command: format!("assay {NAME} {}\n", quoted.join(" ")),
            files,
            label: invocation.output.label.clone(),
            settings: global.chain(own).map(|(job, origin, given)| setting(job, origin, given)).collect(),
        }
    }

    /// `config/given` and the job files beside it.
    pub(super) fn write(&self, dir: Option<&RunDir>) -> Result<(), Failure> {
        let Some(dir) = dir else {
            return Ok(());
        };
        dir.write("config/given", &self.command)?;
        for (index, text) in self.files.iter().enumerate() {
            dir.write(&job_file(index + 1), text)?;
        }
        Ok(())
    }
}

fn setting(job: &str, origin: &str, (name, value): &spec::Given) -> SettingLine {
    SettingLine { name: format!("{job}.{name}"), value: value.clone().unwrap_or_default(), origin: origin.to_owned() }
}

/// What the record says beside the measurements.
pub(super) fn labels(given: &Given, id: String, started: String) -> RunData {
    RunData {
        run_id: id,
        label: given.label.clone(),
        workload: NAME.to_owned(),
        engine: "probe".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        settings: given.settings.clone(),
        host: host::facts(),
        ..RunData::default()
    }
}

/// The record, its text, and fio's JSON with every bin.
pub(super) fn write(dir: &RunDir, readings: &StorageReadings, record: &Record) -> Result<(), Failure> {
    record::write(dir, record)?;
    dir.write(FIO_JSON, &fio::json(readings, true, None))
}
