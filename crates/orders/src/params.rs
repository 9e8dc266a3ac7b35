//! The parameters of order entry, and the options they define.

use crate::mix::{Mix, PRESET_NAMES};
use assay_measure::clock::Ns;
use assay_measure::config::ParamKind::{Bool, Choice, Int, Seconds, Text};
use assay_measure::config::{ParamDef, RUN_PARAMS, Settings};
use assay_measure::params;
use assay_run::engine::EngineError;
use serde::{Deserialize, Serialize};

/// Smallest and largest scale, in thousandths.
const SCALE_MILLI: std::ops::RangeInclusive<u64> = 1..=1_000_000;

/// Every parameter of order entry, for every server.
pub const PARAMS: &[ParamDef] = params! {
    "ORDERS_SCALE", Text, "1", "size of the data set: 1 is a million customers, about 15.9 million rows and 2 GB; \
     fractions to .001", flag ["scale"], of "orders-run orders-sweep orders-prepare";
    "ORDERS_SCHEMA", Text, "assay_orders", "schema (where a server has none: database) of the data set; assay creates it and \
     refuses one that it did not make; without effect on a target whose URL names the place";
    "ORDERS_INDEXES", Choice(&["all", "keys", "none"]), "all", "indexes of the data set: all; keys, those of primary and foreign keys alone; none", flag ["indexes"], of "orders-prepare";
    "ORDERS_PARTITIONS", Choice(&["none", "hash", "composite"]), "none", "partitions of the six tables that grow: none, or by hash; \
     composite is refused", flag ["partitions"], of "orders-prepare";
    "ORDERS_PARTITION_COUNT", Int(2, 1024), "32", "with ORDERS_PARTITIONS=hash: partitions of each of these tables";
    "ORDERS_LEGACY_CORRELATION", Bool, "FALSE", "draw all bell-shaped columns of a row together, as published rows \
        show";
    "ORDERS_MIX", Choice(PRESET_NAMES), "current", "weights of the transactions: current (2.7), classic (2.6), classic-client", flag ["mix"], of "orders-run orders-sweep";
    "ORDERS_MIX_DRAW", Choice(&["weighted", "deck"]), "weighted", "weighted: draw each transaction independently; deck: \
     draw from a shuffled deck that contains each as often as \
     its weight says, so that shares are exact";
    "ORDERS_DISABLE", Text, "", "transactions that are not done, by short names: SQ,WQ,WA", flag ["disable"], of "orders-run orders-sweep";
    "ORDERS_ENABLE", Text, "", "transactions that are done although the mix has them off", flag ["enable"], of "orders-run orders-sweep";
    "ORDERS_FORM", Choice(&["server", "client"]), "server", "where a transaction is put together: server, a function is called for it; client, each \
     statement is sent on its own", flag ["form"], of "orders-run orders-sweep";
    "THINK_INTRA_MIN", Seconds, "0", "shortest pause within a transaction, s; 0: none";
    "THINK_INTRA_MAX", Seconds, "0", "longest pause within a transaction, s; 0: none";
    "THINK_INTER_MIN", Seconds, "0", "shortest pause between two transactions, s";
    "THINK_INTER_MAX", Seconds, "0", "longest pause between two transactions, s; 0: none";
    "LOGON_GROUP", Int(1, 1 << 20), "1", "sessions that begin together";
    "LOGON_DELAY", Seconds, "0", "time between two such groups, s; it is part of the warm-up";
    "ARRIVALS", Choice(&["constant", "poisson"]), "constant", "with RATE: when transactions are due, evenly spaced or at random", flag ["arrivals"], of "orders-run orders-sweep";
    "ARRIVALS_QUEUE", Choice(&["shared", "session"]), "shared", "with RATE: shared: a transaction that is due waits for any session \
     that is free; session: for the one whose turn it is";
    "QUEUE_LIMIT", Int(0, 1_000_000), "0", "with RATE and a shared queue: transactions that wait at most; more are dropped and counted; 0: \
     no limit";
    "COMMIT_LOGON", Bool, "FALSE", "a logon that is written down is committed at once, with what its transaction did before it", flag ["commit-logon"], of "orders-run orders-sweep";
    "RETRIES", Int(0, 100), "5", "attempts after a deadlock or a serialization failure, with the same inputs", flag ["retries"], of "orders-run orders-sweep";
    "VERIFY", Bool, "TRUE", "check the consistency of the data set after the run (17 checks)";
};

/// Whether a parameter is one of order entry, of a run, or of the target, whose `own` are given.
#[must_use]
pub fn heeds(name: &str, own: &[ParamDef]) -> bool {
    own.iter().chain(RUN_PARAMS).chain(PARAMS).any(|def| def.name == name)
}

/// The indexes of the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// Primary keys, foreign keys and secondary indexes.
    All,
    /// Primary keys and foreign keys.
    Keys,
    /// No indexes.
    None,
}

/// A pause, drawn uniformly between two durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Minimum, ns.
    pub min_ns: Ns,
    /// Maximum, ns; 0 for no pause.
    pub max_ns: Ns,
}

impl Pause {
    fn of(settings: &Settings, name: &str) -> Result<Self, EngineError> {
        let [min, max] = ["MIN", "MAX"].map(|end| settings.ns(&format!("{name}_{end}")));
        if min > max {
            return Err(EngineError::Usage(format!(
                "{name}_MIN is longer than {name}_MAX: give {name}_MAX too, or a shorter {name}_MIN"
            )));
        }
        Ok(Self { min_ns: min, max_ns: max })
    }

    /// Whether there is a pause.
    #[must_use]
    pub fn is_some(self) -> bool {
        self.max_ns > 0
    }

    /// Its duration for a random word.
    #[must_use]
    pub fn length(self, word: u64) -> Ns {
        let width = u128::from(self.max_ns - self.min_ns + 1);
        self.min_ns + ((u128::from(word) * width) >> 64) as u64
    }
}

/// The options of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The transactions and their weights.
    pub mix: Mix,
    /// Whether each session draws from a shuffled deck; otherwise each transaction is drawn independently.
    #[serde(default)]
    pub deck: bool,
    /// Whether each statement is sent separately; otherwise the session calls functions.
    pub client_side: bool,
    /// Whether a logon is committed at once, with the earlier work of its transaction.
    #[serde(default)]
    pub commit_logon: bool,
    /// Pause within a transaction.
    pub intra: Pause,
    /// Pause between two transactions.
    pub inter: Pause,
    /// Number of sessions that start together.
    pub group: u32,
    /// Delay between two groups, ns.
    pub delay_ns: Ns,
    /// Whether transactions arrive at random.
    pub poisson: bool,
    /// With a rate: whether arrivals wait for any session.
    #[serde(default)]
    pub shared: bool,
    /// Maximum number of waiting transactions; 0: no limit.
    #[serde(default)]
    pub queue_limit: u64,
    /// Number of retries after the first attempt.
    pub retries: u32,
    /// Whether to check the data set after the run.
    pub verify: bool,
}

impl Asked {
    /// Reads the options from the settings.
    ///
    /// # Errors
    /// `Usage` for contradictory settings.
    pub fn new(settings: &Settings) -> Result<Self, EngineError> {
        let mix =
            Mix::new(settings.text("ORDERS_MIX"), settings.text("ORDERS_DISABLE"), settings.text("ORDERS_ENABLE"));
        let inter = Pause::of(settings, "THINK_INTER")?;
        if inter.is_some() && settings.int("RATE") > 0 {
            return Err(EngineError::Usage(
                "RATE fixes when each transaction is due, so pauses between transactions have no effect: leave \
     THINK_INTER_MAX or RATE out"
                    .to_owned(),
            ));
        }
        let shared = settings.int("RATE") > 0 && settings.text("ARRIVALS_QUEUE") == "shared";
        let queue_limit = settings.int("QUEUE_LIMIT");
        if queue_limit > 0 && !shared {
            return Err(EngineError::Usage(
                "QUEUE_LIMIT limits the queue that all sessions share under a rate: give RATE too and leave \
     ARRIVALS_QUEUE=session out, or leave QUEUE_LIMIT out"
                    .to_owned(),
            ));
        }
        Ok(Self {
            mix: mix.map_err(EngineError::Usage)?,
            deck: settings.text("ORDERS_MIX_DRAW") == "deck",
            client_side: settings.text("ORDERS_FORM") == "client",
            commit_logon: settings.bool("COMMIT_LOGON"),
            intra: Pause::of(settings, "THINK_INTRA")?,
            inter,
            group: settings.int("LOGON_GROUP") as u32,
            delay_ns: settings.ns("LOGON_DELAY"),
            poisson: settings.text("ARRIVALS") == "poisson",
            shared,
            queue_limit,
            retries: settings.int("RETRIES") as u32,
            verify: settings.bool("VERIFY"),
        })
    }
}

/// The scale in thousandths.
///
/// # Errors
/// `Usage` for anything but a number from .001 to 1000 with at most three decimals.
pub fn scale_milli(settings: &Settings) -> Result<u64, EngineError> {
    let text = settings.text("ORDERS_SCALE");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = (digits(whole) && digits(part) && part.len() <= 3 && !(whole.is_empty() && part.is_empty()))
        .then(|| format!("{whole}{part:0<3}").parse().ok())
        .flatten();
    parsed.filter(|milli| SCALE_MILLI.contains(milli)).ok_or_else(|| {
        EngineError::Usage(format!("ORDERS_SCALE={text}: give a number from .001 to 1000 with at most three decimals"))
    })
}

/// Requested number of hash partitions per partitioned table; 0: none.
///
/// # Errors
/// `Usage` if the partitioning is not supported.
pub fn partitions(settings: &Settings) -> Result<u32, EngineError> {
    match settings.text("ORDERS_PARTITIONS") {
        "hash" => Ok(settings.int("ORDERS_PARTITION_COUNT") as u32),
        "composite" => Err(EngineError::Usage(
            "ORDERS_PARTITIONS=composite (ranges of a million order ids, cut by hash) is not supported: a run would \
     have to create ranges for its new orders; give hash or none"
                .to_owned(),
        )),
        _ => Ok(0),
    }
}

/// The requested indexes.
#[must_use]
pub fn indexes(settings: &Settings) -> Indexes {
    match settings.text("ORDERS_INDEXES") {
        "keys" => Indexes::Keys,
        "none" => Indexes::None,
        _ => Indexes::All,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use assay_measure::config::{Tables, WorkloadParams, command_line, resolve};

    pub(crate) fn settings(given: &[(&str, &str)]) -> Settings {
        let workload = &WorkloadParams { name: "", params: &[], rules: |_| () };
        let tables = Tables { target: "postgres", params: PARAMS, workload, concerns: &[], others: &[] };
        let said = given.iter().map(|(name, value)| ("--set".to_owned(), (*name).to_owned(), (*value).to_owned()));
        let resolved = resolve(&tables, &[command_line(said)]);
        assert!(!resolved.has_errors(), "{:?}", resolved.problems);
        resolved.settings
    }

    #[test]
    fn a_scale_has_at_most_three_decimals() {
        let milli = |text| scale_milli(&settings(&[("ORDERS_SCALE", text)]));
        for (text, milli_wanted) in [("1", 1000), ("0.05", 50), (".001", 1), ("12.5", 12_500), ("3.", 3000)] {
            assert_eq!(milli(text).expect("a scale"), milli_wanted, "{text}");
        }
        for text in ["0", "x", "1.2345", "-1", "1e3", ".", "2000"] {
            let error = milli(text).expect_err("no scale").to_string();
            assert!(error.contains(text) && error.contains(".001 to 1000"), "{error}");
        }
    }

    #[test]
    fn defaults_are_the_current_mix_without_pauses() {
        let asked = Asked::new(&settings(&[])).expect("it fits");
        assert_eq!((asked.mix.preset.as_str(), asked.client_side, asked.retries), ("current", false, 5));
        assert!(!asked.intra.is_some() && !asked.inter.is_some() && asked.verify);
        let contrary = settings(&[("THINK_INTER_MAX", "1"), ("RATE", "10")]);
        assert!(Asked::new(&contrary).is_err());
        for given in [&[][..], &[("RATE", "9"), ("ARRIVALS_QUEUE", "session")]] {
            let given: Vec<_> = given.iter().chain(&[("QUEUE_LIMIT", "5")]).copied().collect();
            let refused = Asked::new(&settings(&given)).expect_err("no queue");
            assert!(refused.to_string().contains("leave QUEUE_LIMIT out"));
        }
        let short = settings(&[("THINK_INTRA_MIN", "2")]);
        assert!(Asked::new(&short).expect_err("longer").to_string().contains("THINK_INTRA_MAX"));
    }

    #[test]
    fn partitions_are_by_hash_or_refused_with_the_reason() {
        let asked = |given: &[(&str, &str)]| partitions(&settings(given));
        assert_eq!(asked(&[]).expect("none"), 0);
        let hash = ("ORDERS_PARTITIONS", "hash");
        assert_eq!(asked(&[hash]).expect("hash"), 32);
        assert_eq!(asked(&[hash, ("ORDERS_PARTITION_COUNT", "4")]).expect("hash"), 4);
        let refused = asked(&[("ORDERS_PARTITIONS", "composite")]).expect_err("not built");
        assert!(refused.to_string().contains("not supported"), "{refused}");
    }

    #[test]
    fn a_pause_is_between_its_lengths() {
        let pause = Pause { min_ns: 10, max_ns: 12 };
        assert_eq!([0, u64::MAX / 2, u64::MAX].map(|word| pause.length(word)), [10, 11, 12]);
    }

    #[test]
    fn what_slob_alone_heeds_is_not_heeded() {
        assert!(!heeds("UPDATE_PCT", &[]) && !heeds("WORK_UNIT", &[]));
        assert!(heeds("RATE", &[]) && heeds("ORDERS_MIX", &[]));
    }
}
