//! Every target and every workload, one line each: adding one touches its folder and this list. `assay_probes` lists its probes itself.

use assay_measure::config::{ParamDef, RUN_PARAMS, Scheme};
use assay_measure::kind::Kind;
use assay_measure::rule::Rule;
use assay_native::Native;
use assay_native::crash;
use assay_orders::kind::Orders;
use assay_run::engine::Target;
use assay_run::load_test;
use assay_run::null::Null;
use assay_run::probe::ProbeSpec;
use assay_slob::params::PARAMS;
use assay_slob::{SLOB, Slob};
use assay_sql::mariadb::Mariadb;
use assay_sql::mariadb::orders::MariadbOrders;
use assay_sql::oracle::Oracle;
use assay_sql::oracle::orders::OracleOrders;
use assay_sql::postgres::Postgres;
use assay_sql::postgres::orders::PostgresOrders;
use assay_sql::sqlite::Sqlite;
use assay_sql::sqlite::orders::SqliteOrders;
use assay_sweep::Sweep;

/// The targets, in the order of their help.
pub(crate) static TARGETS: &[&dyn Target] =
    &[&Native, Postgres::TARGET, Mariadb::TARGET, Oracle::TARGET, Sqlite::TARGET, &Null(&Slob)];

/// The workloads, each with its data sets by the server that they lie on.
pub(crate) static WORKLOADS: &[(&str, &[&dyn Target])] = &[
    (assay_slob::NAME, TARGETS),
    (
        assay_orders::workload::NAME,
        &[PostgresOrders::TARGET, MariadbOrders::TARGET, OracleOrders::TARGET, SqliteOrders::TARGET],
    ),
];

/// The probes, in the order of their help.
pub(crate) fn probes() -> impl Iterator<Item = &'static ProbeSpec> {
    assay_probes::PROBES.iter().chain([&assay_storage::SPEC])
}

/// The kinds of records: of workloads, of loads, of recovery, of sweeps, of platforms and fits, of hosts beside each other, and what the probes
/// bring, which come last and so are asked first.
pub(crate) fn kinds() -> Vec<&'static dyn Kind> {
    let above: [&dyn Kind; 9] = [
        &Orders,
        &load_test::KIND,
        &crash::KIND,
        &Sweep,
        assay_platform::record::KIND,
        assay_platform::passport::record::KIND,
        assay_platform::fit::record::KIND,
        assay_platform::hosts::KIND,
        &assay_control::fleet::pairs::KIND,
    ];
    let of_probes = probes().map(|probe| probe.kind);
    [&[&SLOB as &dyn Kind], assay_awr::KINDS, &above].concat().into_iter().chain(of_probes).collect()
}

/// The rules of all kinds, of prices and of a standstill, each once, by number. What is paid for caps figures like what is set on
/// a device, so R12 is two rules.
#[must_use]
pub(crate) fn rules() -> Vec<Rule> {
    let of_kinds = kinds().into_iter().flat_map(|kind| kind.rules());
    let mut all: Vec<Rule> = of_kinds.chain(assay_report::cost::RULES).chain([assay_run::standstill::RULE]).collect();
    let number = |rule: &Rule| {
        let digits = rule.id.trim_start_matches(char::is_alphabetic);
        (rule.id.len() - digits.len(), rule.id.split(digits).next(), digits.parse::<u32>().ok())
    };
    all.sort_by(|a, b| number(a).cmp(&number(b)));
    all.dedup_by_key(|rule| (rule.id, rule.title));
    all
}

/// The tables of parameters: of the SLOB workload, of every run, of each target.
pub(crate) fn params() -> Vec<&'static [ParamDef]> {
    let of_targets = WORKLOADS.iter().flat_map(|(_, targets)| *targets).map(|target| target.params());
    [PARAMS, RUN_PARAMS].into_iter().chain(of_targets).collect()
}

/// Makes the program's kinds and parameters known to whoever reads a record.
pub(crate) fn install() {
    assay_measure::config::install(params());
    assay_report::kinds::install(kinds());
}

/// The probe of this name, which is also its command.
#[must_use]
pub(crate) fn probe(name: &str) -> Option<&'static ProbeSpec> {
    probes().find(|probe| probe.name == name)
}

/// The target of this name, which is also its URL scheme.
#[must_use]
pub(crate) fn find(name: &str) -> Option<&'static dyn Target> {
    TARGETS.iter().copied().find(|target| target.name() == name)
}

/// Begins the URL of a server started for one command: `temp:postgres`, `temp:postgres:16`.
pub(crate) const TEMPORARY: &str = "temp";

/// What the URL of a temporary server can be.
#[must_use]
pub(crate) fn temporary_forms() -> String {
    let names = TARGETS.iter().flat_map(|target| target.temporary());
    let forms: Vec<String> = names.map(|name| format!("{TEMPORARY}:{name}[:VERSION]")).collect();
    forms.join(", ")
}

/// What help says of the targets of a workload.
pub(crate) fn help_of(workload: &str) -> String {
    let forms: Vec<&str> = bearing(workload).map(Target::form).collect();
    format!("What to test: {}; or a server only for this command: {}", forms.join(", "), temporary_forms())
}

/// What the URL of a target begins with and how it is written; `temporary` is how that of a temporary server is.
#[must_use]
pub(crate) fn schemes(temporary: &str) -> Vec<Scheme<'_>> {
    let of = |name, form| Scheme { name, form };
    let targets = TARGETS.iter().map(|one| of(one.name(), one.form()));
    targets.chain([of(TEMPORARY, temporary)]).collect()
}

/// The targets that bear a workload.
pub(crate) fn bearing(workload: &str) -> impl Iterator<Item = &'static dyn Target> + use<'_> {
    let of_it = WORKLOADS.iter().filter(move |(name, _)| *name == workload);
    of_it.flat_map(|(_, targets)| *targets).copied()
}

/// The target of a URL that bears a workload.
pub(crate) fn locate_for(workload: &str, url: &str) -> Option<(&'static dyn Target, String)> {
    let (target, place) = locate(url)?;
    let found = bearing(workload).find(|other| other.name() == target.name())?;
    Some((found, place))
}

/// The target of a URL and its place there. `temp:NAME[...]` is of the target that starts such servers, and a place whole.
#[must_use]
pub(crate) fn locate(url: &str) -> Option<(&'static dyn Target, String)> {
    let (scheme, rest) = url.split_once(':')?;
    if scheme != TEMPORARY {
        return find(scheme).map(|target| (target, rest.to_owned()));
    }
    let name = rest.split(':').next().unwrap_or_default();
    let mut targets = TARGETS.iter().copied();
    let target = targets.find(|target| target.temporary().contains(&name))?;
    Some((target, url.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_server_is_a_place_of_its_target() {
        let place = |url| locate(url).map(|(target, place)| (target.name(), place));
        assert_eq!(place("temp:postgres"), Some(("postgres", "temp:postgres".to_owned())));
        assert_eq!(place("temp:postgres:16"), Some(("postgres", "temp:postgres:16".to_owned())));
        assert_eq!(place("native:a:b"), Some(("native", "a:b".to_owned())));
        for of_mysql in ["temp:mariadb", "temp:mysql:9.7"] {
            assert_eq!(place(of_mysql), Some(("mysql", of_mysql.to_owned())));
        }
        assert_eq!(place("temp:native"), None);
        assert_eq!(place("temp:"), None);
    }

    #[test]
    fn names_are_unique_schemes_and_every_target_is_found_by_its_own() {
        for target in TARGETS {
            let name = target.name();
            assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{name}");
            assert_eq!(TARGETS.iter().filter(|t| t.name() == name).count(), 1, "{name}");
            assert_eq!(find(name).map(Target::name), Some(name));
        }
        assert!(find("absent").is_none());
    }

    #[test]
    fn a_parameter_of_one_name_has_one_effect_wherever_it_is() {
        install();
        for def in params().into_iter().flatten() {
            let known = assay_measure::config::known_params();
            let found = known.iter().find(|known| known.name == def.name).expect("it is known");
            assert_eq!((found.effect, found.idle_with), (def.effect, def.idle_with), "{}", def.name);
            let is_known = |name: &str| known.iter().any(|known| known.name == name);
            assert!(def.idle_with.is_none_or(|(other, _)| is_known(other)), "{}", def.name);
        }
    }

    #[test]
    fn every_default_of_every_target_is_a_legal_value() {
        use assay_measure::config::{Tables, resolve};
        for target in TARGETS {
            let tables = Tables {
                target: target.name(),
                params: target.params(),
                workload: &assay_slob::SETTINGS,
                concerns: &[],
                others: &[],
            };
            let problems = resolve(&tables, &[]).problems;
            assert!(problems.is_empty(), "{}: {problems:?}", target.name());
        }
    }
}
