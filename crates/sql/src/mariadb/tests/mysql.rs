//! The same on a real MySQL. Debian's stable releases have no package of it: `test.sh` unpacks the one of its development
//! branch, with the libraries it needs, into a tree of its own (`MYSQLD_TREE`), in which the server runs as nobody.

use super::*;
use assay_run::engine::Slice;
use assay_testkit::port::free_port;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Nobody, everywhere.
const NOBODY: u32 = 65534;
/// A host whose CPUs are busy takes long to make a server's files.
const PATIENCE: Duration = Duration::from_secs(120);

/// The process, and its directory inside the tree.
struct Confined {
    child: Child,
    _directory: tempfile::TempDir,
}

impl Running for Confined {
    fn end(self: Box<Self>) -> Result<Vec<Line>, EngineError> {
        Ok(Vec::new())
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// `mysqld` in its tree; `place` is its directory there.
fn mysqld(root: &Path, place: &str, options: &[&str]) -> Command {
    let mut command = Command::new("chroot");
    command
        .arg(format!("--userspec={NOBODY}:{NOBODY}"))
        .arg(root)
        .args(["/usr/sbin/mysqld", "--no-defaults"])
        .args(options)
        .arg(format!("--datadir={place}/data"))
        .arg(format!("--tmpdir={place}"))
        .args(["--secure-file-priv=NULL", "--mysqlx=OFF"])
        .stdin(Stdio::null());
    command
}

/// The files of a server of such pages as it is made, which takes ten times as long as to copy them: they stay for all tests.
fn made(root: &Path, page_bytes: &str, page: &str) -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one_makes = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let whole = root.join(format!("made-{page_bytes}"));
    if !whole.exists() {
        let directory = tempfile::Builder::new().prefix("assay-made-").tempdir_in(root.join("tmp")).unwrap();
        chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let place = format!("/tmp/{}", directory.path().file_name().unwrap().display());
        let done = mysqld(root, &place, &["--initialize-insecure", page]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        // Another program of tests may have been quicker.
        let _ = fs::rename(directory.path().join("data"), &whole);
    }
    whole
}

/// Copies a directory of the server's, with its owner.
fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").args([from, to]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    // Two servers made of one are not the same to each other.
    fs::remove_file(to.join("auto.cnf")).unwrap();
}

/// A server and its port.
pub(in crate::mariadb) struct MySql {
    pub(in crate::mariadb) server: Server,
    port: u16,
    /// The public half of the key that passwords are encrypted for.
    key: PathBuf,
}

impl MySql {
    fn start(root: &Path, page_bytes: &str, pool: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("assay-test-").tempdir_in(root.join("tmp")).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let place = format!("/tmp/{}", directory.path().file_name().unwrap().display());
        let page = format!("--innodb-page-size={page_bytes}");
        copy(&made(root, page_bytes, &page), &directory.path().join("data"));
        let log = fs::File::create(directory.path().join("log")).unwrap();
        let (socket, port) = (directory.path().join("sock"), free_port());
        let options = [
            &page,
            &format!("--port={port}"),
            &format!("--socket={place}/sock"),
            &format!("--pid-file={place}/pid"),
            "--bind-address=127.0.0.1",
            &format!("--innodb-buffer-pool-size={pool}"),
            "--innodb-flush-log-at-trx-commit=0",
        ];
        let key = directory.path().join("data/public_key.pem");
        let child = mysqld(root, &place, &options).stdout(log.try_clone().unwrap()).stderr(log).spawn();
        let running = Confined { child: child.unwrap(), _directory: directory };
        let path = socket.display().to_string();
        let url = format!("//root@/assay?socket={}", crate::url::encoded(&path));
        let server =
            Server { location: format!("started:{url}"), lines: Vec::new(), _running: Mutex::new(Box::new(running)) };
        let begun = Instant::now();
        let address = Address::parse(&server.url("mysql"), Options::default()).unwrap();
        while Connection::open(&address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "MySQL does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        Self { server, port, key }
    }

    /// The one of the tests that run now, with pages of 8 KiB: the last of them ends it.
    pub(in crate::mariadb) fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<MySql>> = Mutex::new(Weak::new());
        let root = tree()?;
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let running = shared.upgrade();
        let running = running.unwrap_or_else(|| Arc::new(Self::start(&root, "8192", "256M")));
        *shared = Arc::downgrade(&running);
        Some(running)
    }
}

/// Where its programs are; `None`, said aloud, where they are not.
fn tree() -> Option<PathBuf> {
    let root = std::env::var_os("MYSQLD_TREE");
    if root.is_none() {
        let required = std::env::var_os("ASSAY_REQUIRE_MYSQL");
        assert!(required.is_none(), "MYSQLD_TREE is not set");
        said_aloud("a test on MySQL: MYSQLD_TREE names no tree of its programs");
    }
    root.map(PathBuf::from)
}

#[test]
fn on_mysql_the_engine_keeps_the_contract() {
    let Some(mysql) = MySql::shared() else { return };
    for (run_loop, read_mode) in [("client", "single"), ("client", "batched"), ("server", "single")] {
        // The suite writes what it wrote before, and a row that stays as it is does not count as changed.
        let url = mysql.server.database(&format!("contract_{run_loop}_{read_mode}"));
        load(&url, &settings(SMALL), 2).unwrap();
        let mut said = SMALL.to_vec();
        said.extend([("LOOP", run_loop), ("READ_MODE", read_mode)]);
        let asked = settings(&said);
        let violations = conformance::suite(&mut |plan| Subject {
            engine: Mariadb::SLOB
                .open(&url, plan, &asked, &Stop::new(), &Unwatched)
                .unwrap_or_else(|error| panic!("{error}")),
            clock: Clock::real(),
        });
        let modes = format!("LOOP={run_loop} READ_MODE={read_mode}");
        assert_eq!(violations, Vec::<String>::new(), "{modes}");
        life::check(&Mariadb::SLOB, &url, &settings(SMALL)).unwrap();
    }
}

#[test]
fn on_mysql_a_loop_in_the_server_does_the_same_operations_and_leaves_no_procedure() {
    let Some(mysql) = MySql::shared() else { return };
    let url = mysql.server.database("loops");
    load(&url, &settings(SMALL), 2).unwrap();
    a_loop_in_the_server_does_the_same(&url);
    let mut connection = Connection::open(&address(&url)).unwrap();
    let mut procedures = || {
        let names =
            connection.rows("select routine_name from information_schema.routines where routine_schema = 'loops'");
        names.unwrap().concat()
    };
    assert_eq!(procedures(), []);
    // What a killed run leaves is no stranger's, and one that another made is.
    let made = "comment 'data set of assay' begin end";
    mysql.server.run(&format!("create procedure loops.assay_loop_7_1() {made}"));
    mysql.server.run("create procedure loops.assay_loop_x() begin end");
    let checked = Mariadb::SLOB.check(&url, &settings(SMALL), &Stop::new(), &Unwatched);
    let foreign = checked.unwrap().pop().unwrap();
    assert_eq!(foreign.value, LineValue::Text("assay_loop_x()".to_owned()));
    Mariadb::SLOB.destroy(&url, &settings(SMALL)).unwrap();
    assert_eq!(procedures(), [Some("assay_loop_x".to_owned())]);
}

/// A procedure that is gone fails before it begins: nothing of the slice before counts again, and the server's reason is kept.
#[test]
fn on_mysql_a_slice_that_cannot_begin_keeps_the_reason_and_the_session() {
    let Some(mysql) = MySql::shared() else { return };
    let url = mysql.server.database("unbegun");
    load(&url, &settings(SMALL), 1).unwrap();
    let plan = plan(8192, 1, 1000, 10);
    let said = settings(&[SMALL, &[("LOOP", "server")]].concat());
    for slices_before in [0, 1] {
        let engine = Mariadb::SLOB.open(&url, &plan, &said, &Stop::new(), &Unwatched).unwrap();
        let mut driver = engine.driver(&Assignment { thread: 0, threads: 1, sessions: vec![(1, 1)] }).unwrap();
        let ops = [Op::Select { schema: 1, first_key: 1, width: plan.select_width() }; 2];
        let mut perform = || driver.perform(Slice { tag: 0, ops: &ops, until_ns: u64::MAX }).unwrap().outcomes;
        for _ in 0..slices_before {
            assert!(perform().iter().all(|outcome| outcome.result.is_ok()));
        }
        let mut connection = Connection::open(&address(&url)).unwrap();
        let named = "select routine_name from information_schema.routines where routine_schema = 'unbegun'";
        for name in connection.rows(named).unwrap().concat().into_iter().flatten() {
            connection.run(&format!("drop procedure {name}")).unwrap();
        }
        let outcomes = perform();
        let [only] = outcomes.as_slice() else { panic!("{outcomes:?}") };
        let error = only.result.as_ref().unwrap_err();
        assert!(error.text.contains("does not exist"), "{error:?}");
        // The session goes on.
        driver.finish().unwrap();
        drop(driver);
        engine.close().unwrap();
    }
}

/// KILL QUERY ends a slice as it ends an operation: what was done until then counts, and the session goes on.
#[test]
fn on_mysql_a_slice_that_is_cancelled_fails_its_operation_alone() {
    let Some(mysql) = MySql::shared() else { return };
    let url = mysql.server.database("killed");
    load(&url, &settings(SMALL), 1).unwrap();
    let mut held = Connection::open(&address(&url)).unwrap();
    held.run("begin").unwrap();
    held.run("select count(*) from cf1_1 for update").unwrap();
    let asked = "select processlist_id from performance_schema.threads where processlist_db = 'killed' \
                 and processlist_command = 'Query' and processlist_info like 'update%'";
    let killing = std::thread::spawn(move || {
        let begun = Instant::now();
        let id = loop {
            match held.number(asked).unwrap() {
                0 => assert!(begun.elapsed() < PATIENCE, "nothing waits for the lock"),
                id => break id,
            }
        };
        held.run(&format!("kill query {id}")).unwrap();
        held.run("rollback").unwrap();
    });
    let updates = Plan { update_pct: 100, ..plan(8192, 1, 1000, 20) };
    let options = RunOptions { calibrate: false, errors_tolerated: 1, ..RunOptions::default() };
    let data = run_with(&url, &updates, &[("LOOP", "server")], options);
    killing.join().unwrap();
    let driver = &data.drained.driver;
    assert_eq!(driver.errors.get("cancelled"), Some(&1), "{driver:?} {:?}", data.warnings);
    assert_eq!(counted(&data, counter_catalog::USER_COMMITS), 19);
}

#[test]
fn on_mysql_a_data_set_lives_from_nothing_to_nothing_and_is_claimed() {
    let Some(mysql) = MySql::shared() else { return };
    let url = mysql.server.database("life");
    let violations = life::life_suite(&Mariadb::SLOB, &url, &settings(SMALL));
    assert_eq!(violations, Vec::<String>::new());
    let url = mysql.server.database("claims");
    let violations =
        claims_suite(Ground { target: &Mariadb::SLOB, location: &url, settings: &settings(SMALL), runs_share: true });
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn on_mysql_slob_34_a_row_is_a_page_and_a_range_reads_one_for_each_key() {
    let Some(root) = tree() else { return };
    // The pool holds a seventh of the pages that are read.
    let mysql = MySql::start(&root, "16384", "18M");
    let url = mysql.server.database("pages");
    a_range_reads_a_page_for_each_key(&url);
    let url = mysql.server.database("single_rows");
    load(&url, &settings(SMALL), 1).unwrap();
    let plan = Plan { update_pct: 50, work_unit: 1, update_work_unit: 1, ..plan(16384, 1, 1000, 100) };
    let data = run(&url, &plan, &[]);
    assert_eq!(counted(&data, counter_catalog::ROWS_CHANGED), 50);
    // By its binary log, which is on unless somebody said otherwise.
    assert_eq!(counted(&data, counter_catalog::SERVER_WRITE_TRANSACTIONS), 50);
    assert!(counted(&data, counter_catalog::REDO_SIZE) > 50 * 256);
}

/// `caching_sha2_password`: over TLS the password itself, without TLS encrypted for a key that was named, or not at all; then
/// from the server's cache.
#[test]
fn on_mysql_a_password_logs_in_with_and_without_tls_and_a_wrong_one_does_not() {
    let Some(mysql) = MySql::shared() else { return };
    mysql.server.database("people");
    for sql in [
        "drop user if exists app",
        "create user app identified with caching_sha2_password by 'x y%'",
        "grant all on people.* to app",
    ] {
        mysql.server.run(sql);
    }
    let login = |password: &str, mode: &str| {
        let port = mysql.port;
        let url = format!("//app:{password}@127.0.0.1:{port}/people?ssl-mode={mode}");
        let address = Address::parse(&url, Options::default()).unwrap();
        Connection::open(&address).map(|mut connection| connection.value("select current_user()").unwrap())
    };
    let key = crate::url::encoded(&mysql.key.display().to_string());
    let by_key = format!("disabled&server-public-key-path={key}");
    for mode in [&by_key, "required", "preferred"] {
        mysql.server.run("flush privileges");
        let text = told_by(login("x%20y%25", "disabled"));
        assert!(text.contains("server-public-key-path"), "{mode}: {text}");
        for mode in [mode, "disabled"] {
            assert_eq!(login("x%20y%25", mode).unwrap(), "app@%", "{mode}");
        }
    }
    for mode in [&by_key, "preferred", "disabled"] {
        let text = told_by(login("wrong", mode));
        let wanted = if mode == "disabled" { "server-public-key-path" } else { "refuses user app" };
        assert!(text.contains(wanted), "{mode}: {text}");
    }
    let text = told_by(login("wrong", "preferred"));
    assert!(text.contains("refuses user app"), "{text}");
    // Who may see no threads of the server works all the same, and is told why they are not told.
    let url = format!("//app:x%20y%25@127.0.0.1:{}/people", mysql.port);
    load(&url, &settings(SMALL), 1).unwrap();
    let data = run(&url, &plan(8192, 1, 1000, 20), &[]);
    assert!(counted(&data, counter_catalog::SESSION_LOGICAL_READS) > 20);
    let host = data.engine_facts.iter().find(|fact| fact.name == "server_host");
    assert!(host.unwrap().value.contains("does not report the thread"), "{host:?}");
}
