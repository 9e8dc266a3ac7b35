//! What tests of order entry on several servers share.

use super::{Talk, books};
use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_measure::config::Settings;
use assay_measure::snapshot::RunData;
use assay_orders::checks::{BROKEN, Checked, HOLDS, Words};
use assay_orders::generate::Generator;
use assay_orders::mix::ALL;
use assay_orders::part::FromEngine;
use assay_run::engine::{EngineError, Line, LineValue, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::{Options, Unobserved, execute};
use assay_testkit::conformance::life::Unwatched;

/// How long a run lasts that has no WORK_LOOP.
pub(crate) const RUN_TIME_NS: Ns = NS_PER_S;

/// A run, and what the engine says of it. `act` comes between the claim of the data set, which bears nothing strange, and the
/// first transaction.
pub(crate) fn ran(
    target: &dyn Target,
    place: &str,
    settings: &Settings,
    run_time_ns: Ns,
    act: impl FnOnce(),
) -> (RunData, FromEngine) {
    let work_loop = settings.int("WORK_LOOP");
    let mut plan = Plan {
        seed: 3,
        run_time_ns: if work_loop > 0 { 0 } else { run_time_ns },
        work_loop,
        rate_per_s: settings.int("RATE"),
        ..Plan::plain(1, 1, 1000)
    };
    target.shape(settings, &mut plan).unwrap();
    let (clock, stop) = (Clock::real(), Stop::new());
    let engine = target.open(place, &plan, settings, &stop, &Unwatched).unwrap();
    act();
    let options = Options { host: false, calibrate: false, ..Options::default() };
    let data = execute(&plan, &*engine, &clock, &stop, &mut Unobserved, options).unwrap();
    let part = serde_json::from_value(data.part.clone().expect("the engine's part")).unwrap();
    (data, part)
}

/// The checks of this verdict.
pub(crate) fn verdicts(checks: &[Checked], verdict: &str) -> Vec<String> {
    let of = checks.iter().filter(|one| one.verdict == verdict);
    of.map(|one| one.id.clone()).collect()
}

/// A server to test on.
pub(crate) struct Bench {
    pub(crate) target: &'static dyn Target,
    /// Of a small data set, with these beside.
    pub(crate) settings: fn(&[(&str, &str)]) -> Settings,
    pub(crate) connect: fn(&str) -> Box<dyn Talk>,
}

impl Bench {
    pub(crate) fn prepare(&self, place: &str, given: &[(&str, &str)]) -> Result<Vec<Line>, EngineError> {
        let settings = (self.settings)(given);
        let stop = Stop::new();
        self.target.prepare(place, &settings, 1, &stop, &Unwatched)
    }

    pub(crate) fn check(&self, place: &str, given: &[(&str, &str)]) -> Result<Vec<Line>, EngineError> {
        let settings = (self.settings)(given);
        self.target.check(place, &settings, &Stop::new(), &Unwatched)
    }

    /// A run before which statements are executed that the data set may bear during the claim alone.
    pub(crate) fn run(&self, place: &str, given: &[(&str, &str)], sql: &[&str]) -> (RunData, FromEngine) {
        let act = || self.tell(place, sql);
        ran(self.target, place, &(self.settings)(given), RUN_TIME_NS, act)
    }

    fn tell(&self, place: &str, sql: &[&str]) {
        for sql in sql {
            (self.connect)(place).tell(sql, "testing").unwrap();
        }
    }

    /// All rows of this scale are loaded and sound, and a second load is refused.
    pub(crate) fn loads(&self, place: &str, scale_milli: u64) {
        let summary = self.prepare(place, &[]).unwrap();
        let rows = summary.iter().find(|line| line.key == "loaded_rows");
        let planned = Generator::new(7, scale_milli, false).rows_in_all();
        assert_eq!(rows.unwrap().value, LineValue::Count(planned));
        let again = self.prepare(place, &[]).unwrap_err().to_string();
        let refused = format!("already has a data set of scale 0.00{scale_milli}");
        assert!(again.contains(&refused), "{again}");
        assert_eq!(self.check(place, &[]).unwrap().len(), 18);
    }

    /// A run of all transactions in one form.
    pub(crate) fn performs_every_transaction(&self, place: &str, form: &str) {
        let given = [("ORDERS_MIX", "classic"), ("ORDERS_FORM", form), ("SESSIONS", "4"), ("WORK_LOOP", "250")];
        let (data, part) = self.run(place, &given, &[]);
        let driver = &data.drained.driver;
        assert_eq!(driver.ops.len(), ALL.len(), "{form}");
        assert_eq!(driver.ops_ended(), 1000, "{form}: {:?}", driver.errors);
        assert_eq!(part.ledger.commits, 1000, "{form}: {:?}", driver.errors);
        let acked = &part.ledger.acked;
        let least = [("OP", 100), ("NCR", 30), ("BO", 10), ("PO", 5), ("logon", 50)];
        for (entry, least) in least {
            assert!(acked[entry] > least, "{form}: {acked:?}");
        }
        holds(&part);
    }

    /// `refuse` has the server refuse each order: its logon before it stays only if it was committed. `allow` takes it back.
    pub(crate) fn commits_logons_where_asked(&self, place: &str, form: &str, refuse: &[&str], allow: &str) {
        let logons = || {
            let rows = (self.connect)(place).ask("select count(*) from assay_orders.logon", "");
            let count = rows.unwrap().into_iter().flatten().flatten().next();
            count.unwrap().parse::<u64>().unwrap()
        };
        for commit in ["FALSE", "TRUE"] {
            let before = logons();
            let given = [
                ("ORDERS_DISABLE", "NCR,UCD,BP,PO,BO"),
                ("ORDERS_FORM", form),
                ("SESSIONS", "1"),
                ("WORK_LOOP", "20"),
                ("COMMIT_LOGON", commit),
            ];
            let (_, part) = self.run(place, &given, refuse);
            let stayed = logons() - before;
            assert_eq!(stayed > 0, commit == "TRUE", "{form}: {stayed}");
            let in_doubt = part.ledger.in_doubt.get("logon").copied();
            assert_eq!(in_doubt.unwrap_or(0), stayed);
            holds(&part);
            self.tell(place, &[allow]);
        }
    }

    /// What a stranger made is found and neither looked at nor removed.
    pub(crate) fn leaves_alone(&self, place: &str, stranger: &str) {
        let settings = (self.settings)(&[]);
        for error in
            [self.target.destroy(place, &settings).unwrap_err(), self.target.inspect(place, &settings).unwrap_err()]
        {
            let told = format!("contains objects that assay did not make: {stranger}");
            assert!(error.to_string().contains(&told), "{error}");
        }
    }
}

/// Every check does.
pub(crate) fn holds(part: &FromEngine) {
    let sound = verdicts(&part.checks, HOLDS);
    assert_eq!(sound.len(), 17, "{:?} {}", part.checks, part.unchecked);
}

/// Each fault is injected, caught by its checks, and taken back; `connection` is in the data set.
pub(crate) fn catches(
    connection: &mut dyn Talk,
    words: &dyn Words,
    faults: impl IntoIterator<Item = (&'static str, String, &'static [&'static str])>,
) {
    for (what, sql, caught) in faults {
        connection.tell("begin", what).unwrap();
        connection.tell(&sql, what).unwrap();
        let checked = books::check(connection, words).unwrap();
        connection.tell("rollback", what).unwrap();
        let broken = verdicts(&checked, BROKEN);
        for id in caught {
            assert!(broken.iter().any(|broken| broken == id), "{what}: {broken:?} without {id}");
        }
    }
    let sound = books::check(connection, words).unwrap();
    assert_eq!(verdicts(&sound, HOLDS).len(), 17, "{sound:?}");
    // A run that was killed did not close its books: what rests on them cannot be told.
    let killed = |connection: &mut dyn Talk, by: &str| {
        let sql = format!("update soe_ledger set acked = acked {by} 1 where k = 'open_runs'");
        connection.tell(&sql, "killing").unwrap();
    };
    killed(connection, "+");
    let checked = books::check(connection, words).unwrap();
    assert_eq!(verdicts(&checked, "n/a"), ["C7", "C8", "C10", "C17"]);
    killed(connection, "-");
}
