//! The life of a data set on real servers, the oldest way of the server and the newest: 15 and 18.

use crate::place::Place;
use crate::postgres::Postgres;
use crate::postgres::claim::{self, Purpose};
use crate::postgres::layout::Names;
use crate::postgres::own;
use crate::postgres::testing::{self, Server, Unseen};
use crate::postgres::wire::{Connection, Rows};
use crate::testing::until;
use assay_run::engine::{DataSet, EngineError, Line, LineValue, Presence, Progress, Target};
use assay_run::stop::Stop;
use assay_testkit::conformance::{Ground, claims_suite, life};
use std::collections::BTreeSet;

/// A database of one server, and what is done with the data set in it.
struct Site {
    location: String,
    said: Vec<(&'static str, String)>,
}

impl Site {
    fn new(server: &Server, name: &str, said: &[(&'static str, &str)]) -> Self {
        let said = said.iter().map(|(name, value)| (*name, (*value).to_owned()));
        Self { location: server.database(name), said: said.collect() }
    }

    fn with(&self, name: &'static str, value: &str) -> Self {
        let mut said = self.said.clone();
        said.retain(|(other, _)| *other != name);
        said.push((name, value.to_owned()));
        Self { location: self.location.clone(), said }
    }

    /// As another role.
    fn of(&self, role: &str) -> Self {
        Self { location: self.location.replacen("//postgres@", &format!("//{role}@"), 1), said: self.said.clone() }
    }

    fn settings(&self) -> assay_measure::config::Settings {
        let said: Vec<(&str, &str)> = self.said.iter().map(|(name, value)| (*name, value.as_str())).collect();
        testing::settings(&said)
    }

    fn prepare(&self, schemas: u32) -> Result<Vec<Line>, EngineError> {
        self.prepare_watched(schemas, &Stop::new(), &Unseen)
    }

    fn prepare_watched(&self, schemas: u32, stop: &Stop, progress: &dyn Progress) -> Result<Vec<Line>, EngineError> {
        let settings = self.settings();
        life::load(&Postgres::SLOB, &self.location, &settings, schemas, stop, progress)
    }

    fn plan(&self, schemas: u32) -> Result<Vec<Line>, EngineError> {
        life::plan(&Postgres::SLOB, &self.location, &self.settings(), schemas)
    }

    fn check(&self) -> Result<Vec<Line>, EngineError> {
        life::check(&Postgres::SLOB, &self.location, &self.settings())
    }

    fn destroy(&self) -> Result<Vec<Line>, EngineError> {
        life::destroy(&Postgres::SLOB, &self.location, &self.settings())
    }

    fn found(&self) -> Option<DataSet> {
        match Postgres::SLOB.inspect(&self.location, &self.settings()).unwrap() {
            Presence::Present(data) => Some(data),
            Presence::Absent { .. } => None,
        }
    }

    fn connect(&self) -> Connection {
        let place = Place::new(&self.location).unwrap();
        Connection::open(&own::options(&place).unwrap()).unwrap()
    }

    fn query(&self, sql: &str) -> Rows {
        let mut connection = self.connect();
        let rows = connection.query(sql);
        connection.close();
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The values of all rows, in their order.
    fn values(&self, sql: &str) -> Vec<String> {
        let rows = self.query(sql).rows;
        rows.into_iter().flatten().map(Option::unwrap_or_default).collect()
    }
}

fn number(lines: &[Line], key: &str) -> f64 {
    let line = lines.iter().find(|line| line.key == key);
    match line.map(|line| &line.value) {
        Some(LineValue::Count(n)) => *n as f64,
        Some(LineValue::Decimal(n)) => *n,
        other => panic!("{key} is {other:?}"),
    }
}

fn refusal<T>(done: Result<T, EngineError>) -> String {
    match done {
        Ok(_) => panic!("it was done"),
        Err(error) => error.to_string(),
    }
}

/// Servers 15 and 18, those that are there.
fn servers() -> Vec<&'static Server> {
    [15, 18].into_iter().filter_map(testing::server).collect()
}

#[test]
fn slob_30_a_scale_is_that_many_rows_and_pages() {
    for server in servers() {
        for (text, rows) in [("1500", 1500.0), ("10M", 1280.0)] {
            let site = Site::new(server, "slob_30", &[("SCALE", text), ("SCAN_TABLE_SZ", "200")]);
            let lines = site.prepare(2).unwrap();
            assert_eq!(number(&lines, "loaded_rows"), 2.0 * rows);
            assert_eq!(number(&lines, "max_key"), rows);
            let counted = site.values("select count(*), max(custid) from assay.cf1_2");
            assert_eq!(counted, [rows.to_string(), rows.to_string()]);
            assert_eq!(site.values("select count(c2) from assay.cf2_2"), ["200"]);
            assert_eq!(number(&lines, "table_pages_max"), rows);
            let data = site.found().unwrap();
            assert_eq!((data.schemas, data.scale_blocks, data.scan_blocks), (2, rows as u64, 200));
        }
    }
}

#[test]
fn slob_32_any_degree_gives_each_key_once_in_an_order_of_its_own() {
    for server in servers() {
        for degree in ["1", "7"] {
            let site = Site::new(
                server,
                "slob_32",
                &[("SCALE", "10007"), ("LOAD_PARALLEL_DEGREE", degree), ("SCAN_TABLE_SZ", "0")],
            );
            let lines = site.prepare(3).unwrap();
            assert!(number(&lines, "rank_correlation").abs() < 0.05);
            let keys = |n: u32| site.values(&format!("select custid from assay.cf1_{n} order by ctid"));
            let orders: Vec<Vec<String>> = (1..=3).map(keys).collect();
            for order in &orders {
                let each: BTreeSet<u64> = order.iter().map(|key| key.parse().unwrap()).collect();
                assert_eq!(each, (1..=10_007).collect());
                assert_eq!(order.len(), 10_007);
            }
            assert!(orders[0] != orders[1] && orders[1] != orders[2]);
        }
    }
}

#[test]
fn slob_33_one_row_a_page_nothing_out_of_line_and_nothing_to_write_after_the_load() {
    for server in servers() {
        for obfuscate in ["FALSE", "TRUE"] {
            let site = Site::new(server, "slob_33", &[("SCALE", "2000"), ("OBFUSCATE_COLUMNS", obfuscate)]);
            let lines = site.prepare(1).unwrap();
            assert_eq!(number(&lines, "table_pages_min"), 2000.0);
            assert_eq!(number(&lines, "sampled_pages"), 2000.0);
            assert_eq!(number(&lines, "toast_bytes"), 0.0);
            let mut connection = site.connect();
            // The whole table, by itself: the load's own check has looked with the same eyes.
            let plan =
                connection.query("explain (analyze, buffers, format text) select count(c2) from assay.cf1_1").unwrap();
            let plan = plan.rows.into_iter().flatten().flatten();
            // Planning reads catalogs, which the load has changed.
            let plan: Vec<String> = plan.take_while(|line| line != "Planning:").collect();
            assert!(plan.iter().any(|line| line.contains("Buffers: shared")), "{plan:?}");
            assert!(!plan.iter().any(|line| line.contains("dirtied")), "{plan:?}");
            connection.close();
        }
    }
}

#[test]
fn slob_43_obfuscated_columns_differ_from_row_to_row_and_constant_ones_do_not() {
    for server in servers() {
        let distinct = |obfuscate: &str| {
            let site = Site::new(
                server,
                "slob_43",
                &[("SCALE", "1000"), ("OBFUSCATE_COLUMNS", obfuscate), ("SCAN_TABLE_SZ", "50")],
            );
            site.prepare(2).unwrap();
            site.values(
                "select count(distinct c2), count(distinct c20) from (select c2, c20 from assay.cf1_1 \
                 union all select c2, c20 from assay.cf1_2 union all select c2, c20 from assay.cf2_1) as rows",
            )
        };
        assert_eq!(distinct("TRUE"), ["2050", "2050"]);
        assert_eq!(distinct("FALSE"), ["1", "1"]);
    }
}

#[test]
fn slob_21_updates_keep_rows_where_they_are() {
    for version in [15, 18] {
        // Alone: an old version may go when no transaction of the whole server is older than its end.
        let Some(server) = testing::own(version, "fsync=off") else {
            continue;
        };
        let site = Site::new(&server, "slob_21", &[("SCALE", "1000")]);
        site.prepare(1).unwrap();
        let pages = "select pg_relation_size('assay.cf1_1') / 8192, pg_relation_size('assay.i_cf1_1') / 8192";
        let before = site.values(pages);
        let mut connection = site.connect();
        for round in 0..100 {
            for first in (1..=901).step_by(100) {
                let changed = connection.query(&format!(
                    "update assay.cf1_1 set c19 = lpad('{round}', 128, 'A'), c20 = lpad('{round}', 128, 'B') \
                     where custid between {first} and {}",
                    first + 99
                ));
                assert_eq!(changed.unwrap().tag, "UPDATE 100");
            }
        }
        connection.close();
        let after = site.values(pages);
        let (was, is): (f64, f64) = (before[0].parse().unwrap(), after[0].parse().unwrap());
        assert!(is <= was * 1.01, "{was} pages became {is}");
        assert_eq!(before[1], after[1], "index pages");
        let lines = site.check().unwrap();
        assert_eq!(number(&lines, "checked_rows"), 1000.0);
    }
}

#[test]
fn a_data_set_grows_and_goes_and_leaves_nothing() {
    for server in servers() {
        let site = Site::new(server, "grows", &[("SCALE", "1000"), ("PG_SCHEMA", "a\"b 'c'")]);
        assert_eq!(site.found(), None);
        site.prepare(1).unwrap();
        let more = site.prepare(3).unwrap();
        assert_eq!(number(&more, "loaded_schemas"), 2.0);
        assert_eq!(site.found().unwrap().schemas, 3);
        assert_eq!(number(&site.check().unwrap(), "checked_schemas"), 3.0);
        let refused = refusal(site.with("SCALE", "2000").plan(4));
        assert!(refused.contains("SCALE=2000 but it has 1000"), "{refused}");
        site.destroy().unwrap();
        assert_eq!(site.found(), None);
        let left = site.values("select count(*) from pg_namespace where nspname like 'a%b%'");
        assert_eq!(left, ["0"]);
    }
}

#[test]
fn what_is_not_ours_is_neither_filled_nor_removed() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let site = Site::new(server, "foreign", &[("SCALE", "1000")]);
    site.query("create schema assay; create table assay.mine (x int)");
    for refused in [refusal(site.plan(1)), refusal(site.prepare(1)), refusal(site.check()), refusal(site.destroy())] {
        assert!(refused.contains("schema assay") && refused.contains("contains mine"), "{refused}");
    }
    site.query("drop table assay.mine");
    // An empty schema that somebody made for us stays when we go.
    site.prepare(1).unwrap();
    site.query("create table assay.mine (x int)");
    let refused = refusal(site.prepare(2));
    assert!(refused.contains("mine"), "{refused}");
    site.query("create view public.on_ours as select custid from assay.cf1_1");
    let refused = refusal(site.destroy());
    assert!(refused.contains("on_ours"), "{refused}");
    site.query("drop view public.on_ours");
    site.destroy().unwrap();
    let left = "select relname from pg_class where relnamespace = 'assay'::regnamespace";
    assert_eq!(site.values(left), ["mine"]);
}

#[test]
fn a_data_set_in_use_is_not_removed_and_its_user_is_named() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let site = Site::new(server, "in_use", &[("SCALE", "1000")]);
    site.prepare(1).unwrap();
    let mut user = site.connect();
    user.query("begin; select count(*) from assay.cf1_1").unwrap();
    let refused = refusal(site.destroy());
    assert!(refused.contains(&format!("process {}", user.backend_pid())), "{refused}");
    user.close();
    site.destroy().unwrap();
}

#[test]
fn every_pair_of_commands_goes_together_or_is_refused_on_every_server() {
    for server in servers() {
        let site = Site::new(server, "pairs", &[("SCALE", "1000"), ("SCAN_TABLE_SZ", "16"), ("SEED", "7")]);
        let violations = claims_suite(Ground {
            target: &Postgres::SLOB,
            location: &site.location,
            settings: &site.settings(),
            runs_share: true,
        });
        assert!(violations.is_empty(), "{}: {violations:#?}", server.version);
    }
}

#[test]
fn a_table_that_grew_is_told_of_with_the_command_that_lays_it_anew() {
    for server in servers() {
        let site = Site::new(server, "grown", &[("SCALE", "1000"), ("SCAN_TABLE_SZ", "16"), ("SEED", "7")]);
        site.prepare(1).unwrap();
        let update = |keys: &str| format!("update assay.cf1_1 set c20 = c19 where custid between {keys}");
        // Versions that somebody may still want to see stay: the third of a row finds no room.
        let grow = |keys: &str| {
            let mut watcher = site.connect();
            let seen = "begin isolation level repeatable read; select count(*) from pg_class";
            watcher.query(seen).unwrap();
            for _ in 0..3 {
                site.query(&update(keys));
            }
            watcher
        };
        // Its process lives on for a moment after the connection, and what it sees would with it.
        let gone = |mut watcher: Connection| {
            watcher.query("rollback").unwrap();
            watcher.close();
        };
        // Among them the range whose pages are counted.
        let watcher = grow("901 and 1000");
        // While somebody may still want to see them, the index leads to the versions before too.
        let lines = site.check().unwrap();
        gone(watcher);
        let told = lines.iter().find(|line| line.key == "grown").unwrap();
        let cure = "VACUUM (FULL, FREEZE, ANALYZE) \"assay\".\"cf1_1\"";
        assert!(format!("{:?}", told.value).contains("1000 were loaded"), "{told:?}");
        let plan = assay_run::plan::Plan::plain(1, 1, 1000);
        let opened = Postgres::SLOB.open(&site.location, &plan, &site.settings(), &Stop::new(), &Unseen);
        let engine = opened.unwrap();
        let remarks = engine.remarks();
        engine.close().unwrap();
        assert_eq!(remarks.warnings.len(), 1, "{remarks:?}");
        assert!(remarks.warnings[0].contains(cure), "{remarks:?}");
        gone(grow("1 and 500"));
        let refused = refusal(site.check());
        assert!(refused.contains("row versions") && refused.contains(cure), "{refused}");
        // A vacuum keeps the versions that a snapshot still sees, that of the server's own autovacuum among them: it is
        // over within seconds.
        until("the vacuum to find them dead", || {
            site.query(cure);
            site.check().is_ok()
        });
        let lines = site.check().unwrap();
        assert!(lines.iter().all(|line| line.key != "grown"), "{lines:?}");
    }
}

#[test]
fn the_holder_of_a_claim_is_named_with_its_command_and_since_when() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let site = Site::new(server, "holder", &[("SCALE", "1000")]);
    site.prepare(1).unwrap();
    let names = Names::new(&site.settings()).unwrap();
    let place = Place::new(&site.location).unwrap();
    let options = own::options(&place).unwrap();
    let holder = claim::take(&options, &names, Purpose::Run).unwrap();
    let refused = refusal(site.destroy());
    let pid = holder.backend_pid();
    for word in ["in use by assay run since 20", &format!("server process {pid}, role postgres")] {
        assert!(refused.contains(word), "{refused}");
    }
    holder.close();
    site.check().unwrap();
}

#[test]
fn who_is_about_to_leave_a_data_set_is_waited_for() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let site = Site::new(server, "leaving", &[("SCALE", "1000")]);
    site.prepare(1).unwrap();
    let names = Names::new(&site.settings()).unwrap();
    let place = Place::new(&site.location).unwrap();
    let options = own::options(&place).unwrap();
    let leaving = claim::take(&options, &names, Purpose::Prepare).unwrap();
    let asked = format!(
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> {} \
         and query like 'select pg_try_advisory_lock%'",
        leaving.backend_pid()
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("who wants the claim", || site.values(&asked) != ["0"]);
            leaving.close();
        });
        site.destroy().unwrap();
    });
}

/// Asks to stop as soon as some bytes are loaded.
struct StopsAt<'a>(&'a Stop, u64);

impl Progress for StopsAt<'_> {
    fn update(&self, phase: &str, done_bytes: u64, _total_bytes: u64) {
        if phase == "load" && done_bytes >= self.1 {
            self.0.request();
        }
    }
}

#[test]
fn it_lives_as_every_data_set_does() {
    for server in servers() {
        let site = Site::new(server, "lives", &[("SCALE", "2000"), ("LOAD_PARALLEL_DEGREE", "1")]);
        let violations = life::life_suite(&Postgres::SLOB, &site.location, &site.settings());
        assert_eq!(violations, Vec::<String>::new());
    }
}

#[test]
fn an_interrupted_load_is_resumed_where_it_was() {
    for server in servers() {
        let site = Site::new(server, "resumed", &[("SCALE", "20000"), ("LOAD_PARALLEL_DEGREE", "1"), ("SEED", "7")]);
        let stop = Stop::new();
        let stopped = site.prepare_watched(4, &stop, &StopsAt(&stop, 1));
        assert!(matches!(stopped, Err(EngineError::Interrupted)), "{stopped:?}");
        assert_eq!(site.found(), None);
        let states = site.values("select state from assay.assay_schemas order by n");
        assert_eq!(states, ["loading"; 4]);
        // Nothing of a schema is there that is not whole.
        for rows in site.values("select relname from pg_class where relname like 'cf1%' and relkind = 'r'") {
            assert_eq!(site.values(&format!("select count(*) from assay.{rows}")), ["20000"]);
        }
        site.prepare(4).unwrap();
        assert_eq!(site.found().unwrap().schemas, 4);
        site.check().unwrap();
    }
}

#[test]
fn a_load_that_never_came_to_anything_is_begun_anew_with_other_settings() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let site = Site::new(server, "anew", &[("SCALE", "20000"), ("LOAD_PARALLEL_DEGREE", "1")]);
    let stop = Stop::new();
    let stopped = site.prepare_watched(2, &stop, &StopsAt(&stop, 1));
    assert!(matches!(stopped, Err(EngineError::Interrupted)), "{stopped:?}");
    let other = site.with("SCALE", "1000");
    other.prepare(1).unwrap();
    let data = other.found().unwrap();
    assert_eq!((data.schemas, data.scale_blocks), (1, 1000));
    assert_eq!(other.values("select count(*) from assay.assay_schemas"), ["1"]);
}

#[test]
fn damage_is_found_and_named() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let damage = |sql: &str, word: &str| {
        let site = Site::new(server, "damaged", &[("SCALE", "1000")]);
        site.prepare(2).unwrap();
        site.query(sql);
        let found = refusal(site.check());
        assert!(found.contains(word), "after {sql}: {found}");
    };
    damage("delete from assay.cf1_2 where custid = 500", "SLOB schema 2: cf1_2 has 999 rows");
    damage("update assay.cf1_1 set custid = 7 where custid = 8", "duplicate or missing");
    damage("drop index assay.i_cf1_1", "index i_cf1_1 is missing");
    damage("update assay.cf1_1 set c5 = 'short' where custid = 3", "columns that are not");
    damage("alter table assay.cf1_1 alter c7 set storage extended", "18 of 19 columns");
    damage("drop table assay.cf2_2", "table cf2_2 does not exist");
    damage("update assay.assay_data_set set seed = '5'", "checksum");
    damage("update assay.assay_data_set set format = 2", "format 2, but this version of assay knows formats up to 1");
    damage(
        "create table t as select * from assay.cf1_1 order by custid; truncate assay.cf1_1; \
            alter table assay.cf1_1 reset (fillfactor); insert into assay.cf1_1 select * from t",
        "pages",
    );
}

#[test]
fn a_role_without_rights_is_told_which_it_needs() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let site = Site::new(server, "rights", &[("SCALE", "1000")]);
    site.query("drop role if exists slob_weak");
    site.query("create role slob_weak login");
    let weak = site.of("slob_weak");
    let refused = refusal(weak.plan(1));
    assert!(refused.contains("GRANT CREATE ON DATABASE \"rights\" TO \"slob_weak\""), "{refused}");
    site.query("create schema assay authorization slob_weak");
    let lines = weak.prepare(1).unwrap();
    let checkpoint = lines.iter().find(|line| line.key == "checkpoint_s").unwrap();
    assert!(matches!(&checkpoint.value, LineValue::Text(text) if text.starts_with("n/a (")), "{checkpoint:?}");
    weak.check().unwrap();
    weak.destroy().unwrap();
    site.query("drop schema assay");
    site.query("drop role slob_weak");
}

#[test]
fn settings_that_do_not_fit_the_server_are_refused() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let site = Site::new(server, "unfit", &[("SCALE", "1000")]);
    let refused = |name, value, word: &str| {
        let text = refusal(site.with(name, value).plan(1));
        assert!(text.contains(word), "{name}={value}: {text}");
    };
    refused("BLOCK_SZ", "16384", "pages of 8192 bytes");
    refused("TABLESPACE", "nowhere", "no tablespace nowhere");
    refused("PG_SCHEMA", "public", "all users");
    refused("SCALE", "900T", "use more schemas");
    site.query("alter database unfit set default_transaction_read_only = on");
    refused("SCALE", "1000", "read-only");
}

#[test]
fn a_plan_says_what_a_load_then_does() {
    // Of its own: what others write meanwhile would be counted with the load's log.
    let Some(server) = testing::own(15, "fsync=off") else {
        return;
    };
    let site = Site::new(&server, "planned", &[("SCALE", "3000"), ("SCAN_TABLE_SZ", "100")]);
    let plan = site.plan(2).unwrap();
    let done = site.prepare(2).unwrap();
    let tables = number(&done, "table_bytes") + number(&done, "scan_table_bytes");
    assert_eq!(number(&plan, "data_bytes"), tables);
    assert_eq!(number(&plan, "index_bytes"), number(&done, "index_pages") * 8192.0);
    let wal = number(&done, "wal_bytes") / number(&plan, "wal_bytes");
    assert!((0.8..1.5).contains(&wal), "{wal} of the log that was planned");
    let temporary = Postgres::SLOB.plan_prepare("temp:postgres", &site.settings(), 2).unwrap();
    assert_eq!(number(&temporary, "total_bytes"), number(&plan, "total_bytes"));
}

#[test]
fn a_load_that_is_not_logged_is_the_same() {
    // Else what is smaller than 2 MB (the scan table and the index here) is logged all the same.
    let set = "wal_level=minimal; max_wal_senders=0; wal_skip_threshold=0";
    let Some(server) = testing::own(15, set) else {
        return;
    };
    let site = Site::new(&server, "minimal", &[("SCALE", "3000")]);
    let plan = site.plan(1).unwrap();
    assert_eq!(number(&plan, "wal_bytes"), 0.0);
    let done = site.prepare(1).unwrap();
    assert!(number(&done, "wal_bytes") < 1e6, "{done:?}");
    site.check().unwrap();
}
