//! Sessions of a run beside each other: one that is cut off, one that waits, one that has company.

use super::*;
use crate::testing::until;

#[test]
fn a_session_that_is_cut_off_makes_the_run_invalid_and_the_data_set_stays_whole() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("cut");
    load(&url, &settings(SMALL), 1).unwrap();
    for (run_stamp, run_loop, threads) in [(1, "client", "1"), (2, "client", "2"), (3, "server", "0")] {
        let ended = std::sync::atomic::AtomicBool::new(false);
        let plan = Plan { update_pct: 50, run_stamp, ..plan(8192, 2, 1000, 1_000_000) };
        let mut said = SMALL.to_vec();
        said.extend([("LOOP", run_loop), ("DRIVER_THREADS", threads)]);
        let engine = Mariadb::SLOB
            .open(&url, &plan, &settings(&said), &Stop::new(), &Unwatched)
            .unwrap_or_else(|error| panic!("{error}"));
        let cutter = || {
            let mut connection = server.connect();
            let busy = "select max(id) from information_schema.processlist where db = 'cut' and state <> '' \
                        and command in ('Execute', 'Query') and time_ms >= 0 and info like '%cf1_1%'";
            while !ended.load(std::sync::atomic::Ordering::Acquire) {
                match connection.number(busy).unwrap() {
                    0 => std::thread::sleep(std::time::Duration::from_millis(5)),
                    // It may have ended its statement, not its session.
                    id => drop(connection.run(&format!("kill {id}"))),
                }
            }
        };
        let (clock, stop) = (Clock::real(), Stop::new());
        let options = RunOptions { calibrate: false, ..RunOptions::default() };
        let ran = std::thread::scope(|scope| {
            scope.spawn(cutter);
            let ran = execute(&plan, &*engine, &clock, &stop, &mut Unobserved, options);
            ended.store(true, std::sync::atomic::Ordering::Release);
            ran
        });
        match ran {
            Ok(data) => match data.verdict {
                Verdict::Invalid(why) => {
                    assert!(why.iter().any(|why| why.contains("connection")), "{why:?}");
                }
                other => panic!("{run_loop}: {other:?}"),
            },
            // It had not come to its first statement.
            Err(error) => assert!(error.to_string().contains("connection"), "{error}"),
        }
    }
    life::check(&Mariadb::SLOB, &url, &settings(SMALL)).unwrap();
}

#[test]
fn a_run_of_a_series_is_alone_and_one_beside_another_is_not() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("series");
    load(&url, &settings(SMALL), 1).unwrap();
    let series = Mariadb::SLOB.share(&url, &settings(SMALL)).unwrap();
    assert!(series.is_some());
    let company = |data: &RunData| {
        let other = |warning: &&String| warning.contains("Another assay");
        data.warnings.iter().filter(other).count()
    };
    let small = plan(8192, 1, 1000, 10);
    assert_eq!(company(&run(&url, &small, &[])), 0);
    let other = Mariadb::SLOB.open(&url, &small, &settings(SMALL), &Stop::new(), &Unwatched);
    assert_eq!(company(&run(&url, &small, &[])), 1);
    drop((series, other));
}

/// Ends the update that waits for a lock in the database `one_thread`.
fn kill_waiting_update(server: &Server) {
    let mut connection = server.connect();
    let waits = "select max(id) from information_schema.processlist where db = 'one_thread' and \
                 command = 'Execute' and info like 'update%'";
    let mut id = 0;
    until("the update that waits", || {
        id = connection.number(waits).unwrap();
        id > 0
    });
    connection.run(&format!("kill query {id}")).unwrap();
}

/// What a session of one thread's two does while the other waits for a lock that it holds.
#[test]
fn a_thread_goes_on_while_one_of_its_sessions_waits() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("one_thread");
    load(&url, &settings(SMALL), 1).unwrap();
    let plan = Plan { update_pct: 50, ..plan(8192, 2, 1000, 1) };
    let update =
        |first_key: u64, stamp: u64, commit: bool| Op::Update { schema: 1, first_key, width: 1, stamp, commit };
    let assigned = Assignment { thread: 0, threads: 1, sessions: vec![(1, 1), (2, 1)] };
    // Longer than this nobody waits.
    let tick = std::time::Duration::from_millis(100);
    for (round, ends) in ["commit", "kill query", "answer timeout"].into_iter().enumerate() {
        let mut said = SMALL.to_vec();
        let limit = if ends == "answer timeout" { "2" } else { "60" };
        said.extend([("DRIVER_THREADS", "1"), ("MYSQL_ANSWER_TIMEOUT", limit)]);
        let stop = Stop::new();
        let engine = Mariadb::SLOB.open(&url, &plan, &settings(&said), &stop, &Unwatched);
        let engine = engine.unwrap_or_else(|error| panic!("{error}"));
        let mut driver = engine.driver(&assigned).unwrap();
        let mut done = Vec::new();
        let reap = |driver: &mut dyn Driver, done: &mut Vec<Completion>| {
            let mut more = Vec::new();
            driver.reap(tick, &mut more).map(|()| done.append(&mut more))
        };
        let stamp = 10 * (round as u64 + 1);
        assert!(matches!(driver.submit(0, &update(5, stamp, false), 0), Submit::Queued));
        while done.is_empty() {
            reap(&mut *driver, &mut done).unwrap();
        }
        assert!(matches!(driver.submit(1, &update(5, stamp + 1, true), 0), Submit::Queued));
        reap(&mut *driver, &mut done).unwrap();
        assert_eq!(done.len(), 1, "it waits for the first");
        let text = |done: &[Completion], tag: u32| {
            let one = done.iter().rev().find(|one| one.tag == tag);
            match &one.expect("it ended").outcome.result {
                Ok(rows) => rows.to_string(),
                Err(error) => format!("{}: {}", error.class, error.text),
            }
        };
        match ends {
            "commit" => {
                assert!(matches!(driver.submit(0, &update(6, stamp, true), 0), Submit::Queued));
            }
            "kill query" => kill_waiting_update(server),
            _ => {}
        }
        let wanted = done.len() + if ends == "commit" { 2 } else { 1 };
        while done.len() < wanted {
            reap(&mut *driver, &mut done).unwrap();
        }
        match ends {
            "commit" => assert_eq!((text(&done, 0), text(&done, 1)), ("1".into(), "1".into())),
            "kill query" => assert!(text(&done, 1).starts_with("cancelled"), "{}", text(&done, 1)),
            _ => {
                assert!(text(&done, 1).contains("MYSQL_ANSWER_TIMEOUT"), "{}", text(&done, 1));
                let lost = told_by(reap(&mut *driver, &mut done));
                assert!(lost.contains("session 2 lost its connection"), "{lost}");
            }
        }
        driver.leave(0);
        drop(driver.finish());
        drop(driver);
        engine.close().unwrap();
    }
    life::check(&Mariadb::SLOB, &url, &settings(SMALL)).unwrap();
}
