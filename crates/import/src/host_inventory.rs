//! Notes about a platform beside a run: `lscpu`, `sysctl`, `init.ora`, `show parameter`, `slob.conf`, a table in a box.
//! Facts of the host go among the host's, parameters among the settings; nothing here is a measurement.

use super::draft::{Draft, Reading};
use super::number;
use super::rows::setting;
use super::text::{At, Line, Text};
use super::{Confidence, ImportError};
use assay_measure::facts;
use assay_measure::plain::slug;
use assay_measure::snapshot::Fact;
use assay_slob::params::is_known;

/// What `lscpu` prints, and our facts.
const OF_LSCPU: [(&str, &str); 9] = [
    ("Architecture", "architecture"),
    ("CPU(s)", facts::CPUS.name),
    ("On-line CPU(s) list", "cpus_online"),
    ("Thread(s) per core", "cpu_threads_per_core"),
    ("Core(s) per socket", "cpu_cores_per_socket"),
    ("Socket(s)", "cpu_sockets"),
    ("NUMA node(s)", "numa_nodes"),
    ("Model name", facts::CPU_MODEL.name),
    ("Hypervisor vendor", facts::VIRTUALISATION.name),
];
/// Parameters of a database that make a list of lines `name=value` one of an `init.ora`.
const OF_DATABASE: [&str; 8] = [
    "db_block_size",
    "db_cache_size",
    "sga_target",
    "sga_max_size",
    "pga_aggregate_target",
    "processes",
    "filesystemio_options",
    "db_name",
];
/// Words that stand for what must not be kept.
const SECRET: [&str; 3] = ["password", "passwd", "secret"];

/// What a line says.
enum Said<'a> {
    /// A fact of the host.
    Host(&'static str, &'a str),
    /// A parameter: name and value.
    Setting(String, &'a str),
}

/// A line `CPU(s):   16`.
fn lscpu(line: &str) -> Option<Said<'_>> {
    let (label, value) = line.split_once(':')?;
    let (_, fact) = OF_LSCPU.iter().find(|(known, _)| *known == label.trim())?;
    Some(Said::Host(fact, value.trim()))
}

/// A line `vm.nr_hugepages = 8192`.
fn sysctl(line: &str) -> Option<Said<'_>> {
    let (name, value) = line.split_once(" = ")?;
    let (name, roots) = (name.trim(), ["vm.", "kernel.", "net.", "fs."]);
    let is_name = roots.iter().any(|root| name.starts_with(root)) && !name.contains(' ');
    is_name.then(|| Said::Setting(name.to_owned(), value.trim()))
}

/// A line `*.db_cache_size=2147483648`, `UPDATE_PCT=25`.
fn assignment(line: &str) -> Option<Said<'_>> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim().rsplit('.').next().unwrap_or_default().trim_start_matches("export ");
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_known = OF_DATABASE.contains(&name.to_ascii_lowercase().as_str()) || is_known(name);
    (is_name && (is_known || line.starts_with("*.")))
        .then(|| Said::Setting(name.to_owned(), value.trim().trim_matches(['"', '\''])))
}

/// A line of `show parameter`: `db_cache_size   big integer   2G`.
fn parameter(line: &str) -> Option<Said<'_>> {
    const TYPES: [&str; 4] = ["big integer", "integer", "string", "boolean"];
    let (name, rest) = line.trim().split_once(' ')?;
    let rest = rest.trim_start();
    let found = TYPES.iter().find(|kind| rest.starts_with(**kind))?;
    let value = rest[found.len()..].trim();
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (is_name && !value.is_empty()).then(|| Said::Setting(name.to_owned(), value))
}

/// A row of a box: `| Memory | 512 GB |`.
fn boxed(line: &str) -> Option<Said<'_>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let (name, value) = inner.split_once('|')?;
    let (name, value) = (slug(name.trim()), value.trim());
    let is_fact = !name.is_empty() && !value.is_empty() && !value.contains('|');
    is_fact.then_some(Said::Setting(name, value))
}

fn said(line: &Line) -> Option<Said<'_>> {
    let text = line.text.trim();
    if text.starts_with('#') {
        return None;
    }
    lscpu(text)
        .or_else(|| sysctl(text))
        .or_else(|| assignment(text))
        .or_else(|| parameter(text))
        .or_else(|| boxed(text))
}

/// Whether it is all that `lscpu` prints, most of which nobody needs here: flags, weaknesses of the CPU.
fn is_lscpu(text: &Text) -> bool {
    let opens = |label: &str| text.head().iter().any(|line| line.text.starts_with(label));
    opens("Architecture: ") && opens("CPU(s): ")
}

pub(super) fn looks_like(text: &Text) -> Confidence {
    const FEW: usize = 3;
    let facts = text.head().iter().filter(|line| said(line).is_some());
    let filled = text.head().iter().filter(|line| !line.text.is_empty()).count();
    let facts = facts.count();
    let is_mostly_facts = 3 * facts >= filled || is_lscpu(text);
    Confidence::of(
        52,
        &[
            ("several lines of lscpu, sysctl, init.ora, show parameter or slob.conf", facts >= FEW),
            ("facts in a third of its lines", is_mostly_facts),
        ],
    )
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "card of a platform");
    for text in texts {
        for line in &text.lines {
            match said(line) {
                Some(Said::Host(fact, value)) => host(line.at, fact, value, draft),
                Some(Said::Setting(name, _)) if is_secret(&name) => {
                    draft.note(line.at, format!("the value of {name} was left out"));
                }
                Some(Said::Setting(name, value)) => setting(draft, &name, value),
                None => {}
            }
        }
    }
    if draft.record.host.facts.is_empty() && draft.len() == 0 {
        // A card without a fact of the host has parameters, which are settings: one fact says so.
        let count = draft.record.plan.settings.len();
        draft.record.host.facts.push(Fact::new("parameters_count", count));
    }
    Ok(())
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|word| name.contains(word)) || name.ends_with("_sqlnet_service")
}

fn host(at: At, fact: &'static str, value: &str, draft: &mut Draft) {
    let known = draft.record.host.facts.iter().any(|known| known.name == fact);
    if known || value.is_empty() {
        return;
    }
    draft.record.host.facts.push(Fact::new(fact, value));
    if let Some(printed) = number::count(value) {
        draft.alone(Reading::new(at, format!("card_{fact}_count"), printed).layer("host"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, record_of, survives, told};

    const SAMPLES: [&str; 2] = ["card-lscpu.txt", "card-parameters.txt"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            let record = imported(name);
            let facts = format!("{:?}\n{:?}", record.host.facts, record.plan.settings);
            insta::assert_snapshot!(name.replace('.', "_"), format!("{}{facts}", told(&record)));
        }
    }

    #[test]
    fn all_that_lscpu_prints_is_a_card() {
        let mut text = "Architecture:                x86_64\nCPU op-mode(s):              32-bit, 64-bit\n\
                        Byte Order:                  Little Endian\nCPU(s):                      24\n\
                        Model name:                  A CPU of ours\nSocket(s):                   2\n\
                        Flags:                       fpu vme\n"
            .to_owned();
        for n in 0..40 {
            text.push_str(&format!("Vulnerability {n}:            Not affected\n"));
        }
        let record = record_of("lscpu.txt", &text);
        let facts: Vec<_> = record.host.facts.iter().map(|fact| fact.value.as_str()).collect();
        assert_eq!(facts, ["x86_64", "24", "A CPU of ours", "2"]);
    }

    #[test]
    fn secrets_are_left_out() {
        let record = record_of("slob.conf", "UPDATE_PCT=25\nWORK_UNIT=64\nSCALE=80M\nDBA_PRIV_USER_PASSWORD=tiger\n");
        let whole = serde_json::to_string(&record).expect("a record");
        assert!(!whole.contains("tiger"), "{whole}");
        assert!(record.plan.settings.iter().any(|line| line.name == "UPDATE_PCT" && line.value == "25"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
