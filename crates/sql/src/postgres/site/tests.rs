//! A role without privileges plants code in its own data set, and a superuser works on it: on real servers.

use crate::place::Place;
use crate::postgres::Postgres;
use crate::postgres::own;
use crate::postgres::testing::{self, Server, Unseen, settings};
use crate::postgres::wire::{Connection, PgError, Rows};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::snapshot::Verdict;
use assay_run::engine::{Engine, EngineError, Presence, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::{Options, Unobserved, execute};

/// What is planted, how it goes again, and what a refusal names.
const PLANTS: &[(&str, &str, &str)] = &[
    (
        "create trigger spy before update on assay.cf1_1 for each row execute function lair.fired()",
        "drop trigger spy on assay.cf1_1",
        "trigger spy on table assay.cf1_1 of role mallory",
    ),
    (
        "create trigger spy after insert or delete on assay.assay_schemas for each statement execute function lair.fired()",
        "drop trigger spy on assay.assay_schemas",
        "trigger spy on table assay.assay_schemas of role mallory",
    ),
    (
        "create rule spy as on update to assay.cf1_1 do also select lair.evil()",
        "drop rule spy on assay.cf1_1",
        "rule spy on table assay.cf1_1 of role mallory",
    ),
    (
        "alter table assay.assay_data_set rename to kept; \
         create view assay.assay_data_set as select * from assay.kept where lair.evil()",
        "drop view assay.assay_data_set; alter table assay.kept rename to assay_data_set",
        "view assay.assay_data_set of role mallory",
    ),
    (
        "alter table assay.cf1_1 rename to kept; create view assay.cf1_1 as select * from assay.kept where lair.evil()",
        "drop view assay.cf1_1; alter table assay.kept rename to cf1_1",
        "view assay.cf1_1 of role mallory",
    ),
    (
        "create function assay.same(name, text) returns bool language sql as 'select lair.evil()'; \
         create operator assay.= (leftarg = name, rightarg = text, function = assay.same)",
        "drop operator assay.= (name, text); drop function assay.same(name, text)",
        "operator assay.=(name,text) of role mallory",
    ),
    (
        "create function assay.count(text) returns bigint language sql as 'select lair.evil()::int::bigint'",
        "drop function assay.count(text)",
        "function assay.count(text) of role mallory",
    ),
    (
        "alter table assay.assay_schemas alter column state set default lair.evil()::text",
        "alter table assay.assay_schemas alter column state drop default",
        "default value for column state of table assay.assay_schemas of role mallory",
    ),
    (
        "create policy spy on assay.assay_schemas using (lair.evil()); \
         alter table assay.assay_schemas enable row level security, force row level security",
        "drop policy spy on assay.assay_schemas; \
         alter table assay.assay_schemas disable row level security, no force row level security",
        "policy spy on table assay.assay_schemas of role mallory",
    ),
    (
        "create table lair.child () inherits (assay.cf1_1)",
        "drop table lair.child",
        "table lair.child that inherits from table assay.cf1_1 of role mallory",
    ),
    ("create index spy on assay.cf1_1 (lair.sure(custid))", "drop index assay.spy", "index assay.spy of role mallory"),
    (
        "alter table assay.cf1_1 add constraint spy check (lair.evil()) not valid",
        "alter table assay.cf1_1 drop constraint spy",
        "constraint spy on table assay.cf1_1 of role mallory",
    ),
    (
        "alter table assay.assay_schemas alter column state type lair.checked",
        "alter table assay.assay_schemas alter column state type text",
        "column state of table assay.assay_schemas of role mallory",
    ),
];

/// Planted code counts its calls, which no rollback takes back, and makes its author what its caller is.
const LAIR: &str = "create schema lair; create sequence lair.ran; \
    create function lair.evil() returns bool language plpgsql as $$ begin \
      perform pg_catalog.nextval('lair.ran'); \
      begin execute 'reset role'; execute 'alter role mallory superuser'; exception when others then null; end; \
      return true; end $$; \
    create function lair.fired() returns trigger language plpgsql as $$ begin perform lair.evil(); return new; end $$; \
    create function lair.sure(bigint) returns bigint language plpgsql immutable as $$ begin perform lair.evil(); return 1; end $$; \
    create domain lair.checked as text check (lair.evil())";

/// A database in which role mallory owns a data set of one schema.
struct Den {
    theirs: String,
    ours: String,
    settings: Settings,
}

impl Den {
    fn new(server: &Server, database: &str) -> Self {
        let ours = server.database(database);
        let den = Self {
            theirs: ours.replacen("//postgres@", "//mallory@", 1),
            ours,
            settings: settings(&[("SCALE", "1000"), ("SCAN_TABLE_SZ", "16"), ("SEED", "7")]),
        };
        // Tests share the server and begin together: who comes second finds the role there.
        let role = "do $$ begin create role mallory login; exception when duplicate_object or unique_violation then null; end $$";
        den.ask(&den.ours, role).unwrap();
        den.ask(&den.ours, &format!("grant create on database \"{database}\" to mallory")).unwrap();
        let done = Postgres::SLOB.prepare(&den.theirs, &den.settings, 1, &Stop::new(), &Unseen);
        done.unwrap();
        den.ask(&den.theirs, LAIR).unwrap();
        den
    }

    fn ask(&self, location: &str, sql: &str) -> Result<Rows, PgError> {
        let place = Place::new(location).unwrap();
        let mut connection = Connection::open(&own::options(&place).unwrap()).unwrap();
        let rows = connection.query(sql);
        connection.close();
        rows
    }

    fn planted(&self, sql: &str) {
        self.ask(&self.theirs, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        self.ask(&self.theirs, "select setval('lair.ran', 1, false)").unwrap();
    }

    fn plan(&self) -> Plan {
        Plan { update_pct: 50, scan_pct: 10, scan_blocks: 16, work_loop: 20, run_time_ns: 0, ..Plan::plain(1, 1, 1000) }
    }

    fn open(&self, more: &[(&str, &str)]) -> Result<Box<dyn Engine>, EngineError> {
        let mut said = vec![("SCALE", "1000"), ("SCAN_TABLE_SZ", "16")];
        said.extend(more);
        Postgres::SLOB.open(&self.ours, &self.plan(), &settings(&said), &Stop::new(), &Unseen)
    }

    /// What a superuser is told by every command.
    fn told(&self) -> [(&'static str, Result<(), EngineError>); 6] {
        let (at, settings, stop) = (&self.ours, &self.settings, &Stop::new());
        [
            ("inspect", Postgres::SLOB.inspect(at, settings).map(drop)),
            ("run", self.open(&[]).map(drop)),
            ("check", Postgres::SLOB.check(at, settings, stop, &Unseen).map(drop)),
            ("prepare", Postgres::SLOB.prepare(at, settings, 2, stop, &Unseen).map(drop)),
            ("plan_destroy", Postgres::SLOB.plan_destroy(at, settings).map(drop)),
            ("destroy", Postgres::SLOB.destroy(at, settings).map(drop)),
        ]
    }

    /// Whether anything planted was executed, or its author is more than before.
    fn fired(&self) -> bool {
        let asked = "select is_called or (select rolsuper from pg_roles where rolname = 'mallory') from lair.ran";
        self.ask(&self.ours, asked).unwrap().rows[0][0].as_deref() != Some("f")
    }
}

#[test]
fn what_a_role_planted_in_its_data_set_is_named_and_never_executed_by_a_superuser() {
    for server in testing::servers() {
        let den = Den::new(server, "planted");
        for (plant, remove, named) in PLANTS {
            den.planted(plant);
            for (command, told) in den.told() {
                let text = told.as_ref().map_or_else(ToString::to_string, |()| "done".to_owned());
                assert!(text.contains(named), "{command} after {plant}: {text}");
                assert!(matches!(told, Err(EngineError::Unusable(_))), "{told:?}");
                assert!(!den.fired(), "{command} executed {plant}");
            }
            den.planted(remove);
        }
        for (command, told) in den.told() {
            assert!(told.is_ok(), "{command} of a clean data set: {told:?}");
        }
        let left = Postgres::SLOB.inspect(&den.ours, &den.settings).unwrap();
        assert!(matches!(left, Presence::Absent { .. }), "{left:?}");
        assert!(!den.fired());
    }
}

#[test]
fn a_superuser_acts_as_the_role_the_data_set_belongs_to_and_its_tables_stay_as_they_were_examined() {
    for server in testing::servers() {
        let den = Den::new(server, "acted");
        for run_loop in ["client", "server"] {
            let engine = den.open(&[("LOOP", run_loop)]).unwrap();
            let late = "set lock_timeout = '200ms'; \
                create trigger spy before update on assay.cf1_1 for each row execute function lair.fired()";
            let refused = den.ask(&den.theirs, late).unwrap_err();
            assert_eq!(refused.code(), Some("55P03"), "{refused}");
            let options = Options { calibrate: false, ..Options::default() };
            let (clock, stop, plan) = (Clock::real(), Stop::new(), den.plan());
            let data = execute(&plan, &*engine, &clock, &stop, &mut Unobserved, options).unwrap();
            assert_eq!(data.verdict, Verdict::Complete, "{:?}", data.warnings);
            let mut facts = data.engine_facts.iter();
            let owner = facts.find(|fact| fact.name == "data_set_owner").unwrap();
            assert_eq!(owner.value, "mallory (sessions act as this role)");
        }
        let stop = Stop::new();
        Postgres::SLOB.prepare(&den.ours, &den.settings, 2, &stop, &Unseen).unwrap();
        let strangers = "select count(*) from pg_class where relnamespace = 'assay'::regnamespace \
            and relowner <> 'mallory'::regrole";
        let counted = den.ask(&den.ours, strangers).unwrap().rows;
        assert_eq!(counted[0][0].as_deref(), Some("0"));
        Postgres::SLOB.destroy(&den.ours, &den.settings).unwrap();
    }
}

#[test]
fn what_a_superuser_lays_in_a_role_s_empty_schema_is_that_role_s() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let den = Den::new(server, "empty");
    let (stop, settings) = (Stop::new(), settings(&[("SCALE", "1000"), ("PG_SCHEMA", "given")]));
    den.ask(&den.theirs, "create schema given").unwrap();
    Postgres::SLOB.prepare(&den.ours, &settings, 2, &stop, &Unseen).unwrap();
    let strangers = "select count(*) filter (where relowner = 'mallory'::regrole), count(*) from pg_class \
        where relnamespace = 'given'::regnamespace";
    let counted = den.ask(&den.ours, strangers).unwrap().rows;
    assert_eq!(counted[0][0], counted[0][1]);
    Postgres::SLOB.check(&den.theirs, &settings, &stop, &Unseen).unwrap();
    Postgres::SLOB.destroy(&den.ours, &settings).unwrap();
}

#[test]
fn tables_of_another_role_in_a_data_set_are_refused() {
    let Some(server) = testing::server(15) else {
        return;
    };
    let den = Den::new(server, "mixed");
    den.ask(&den.ours, "alter table assay.cf2_1 owner to postgres").unwrap();
    for (command, told) in den.told() {
        let text = told.map_or_else(|error| error.to_string(), |()| "done".to_owned());
        assert!(text.contains("table assay.cf2_1 of role postgres"), "{command}: {text}");
    }
}
