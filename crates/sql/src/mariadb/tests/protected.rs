//! Logins, TLS and a read-only server; sessions over TLS.

use super::*;

/// An authority `ca`, another one, and a certificate of the first for `db.example`.
fn certificates() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("assay-test-").tempdir_in("/var/tmp").unwrap();
    let script = r#"
set -e
cd "$1"
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
for ca in ca other; do openssl req -x509 $new -keyout $ca.key -out $ca.crt -days 30 -subj /CN=$ca; done
openssl req $new -keyout server.key -out server.csr -subj /CN=db.example
echo "subjectAltName=DNS:db.example,DNS:localhost" >ext
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 30 -extfile ext
chmod 644 ./*; chmod 755 .
"#;
    let made =
        std::process::Command::new("bash").args(["-c", script, "certificates"]).arg(dir.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    dir
}

/// Passes what comes to a port of this host on to the server's socket: TLS is for TCP alone.
fn port_of(server: &Server) -> u16 {
    let Host::Socket(socket) = Address::parse(&server.url("x"), Options::default()).unwrap().host else {
        panic!("a socket of its own");
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = std::os::unix::net::UnixStream::connect(&socket).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            let (mut from, mut to) = (server, client);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    port
}

/// Debian has it in the package of the service; `test.sh` takes it out of there.
fn plugins() -> Option<String> {
    let there = std::env::var("MARIADB_PLUGINS").ok().filter(|path| !path.is_empty());
    if there.is_none() {
        said_aloud("a login by ed25519: MARIADB_PLUGINS names no directory of plugins");
    }
    there
}

#[test]
fn a_read_only_server_is_refused_and_a_connection_is_protected_as_asked() {
    let made = certificates();
    let file = |name: &str| made.path().join(name).display().to_string();
    let (cert, key) = (file("server.crt"), file("server.key"));
    let plugins = plugins();
    let more = plugins.as_ref().map_or(String::new(), |path| format!("; plugin_dir={path}"));
    let set = format!("read_only=1; ssl_cert={cert}; ssl_key={key}{more}");
    let Some(server) = Server::own("8192", &set) else {
        return;
    };
    let url = server.database("replica");
    let text = told_by(load(&url, &settings(SMALL), 1));
    assert!(text.contains("read-only"), "{text}");
    let port = port_of(&server);
    let open = |user: &str, host: &str, query: &str| {
        let url = format!("//{user}@{host}:{port}/mysql?{query}");
        let address = Address::parse(&url, Options::default()).map_err(EngineError::Usage)?;
        Connection::open(&address)
    };
    let version = |query: &str| {
        let mut connection = open("root", "localhost", query).unwrap_or_else(|why| panic!("{query}: {why}"));
        let rows = connection.rows("show session status like 'Ssl_version'").unwrap();
        rows[0][1].clone().unwrap_or_default()
    };
    let (ca, other) = (format!("ssl-ca={}", file("ca.crt")), format!("ssl-ca={}", file("other.crt")));
    assert_eq!(version("ssl-mode=disabled"), "");
    for query in
        ["", "ssl-mode=required", &ca, &format!("ssl-mode=verify-ca&{ca}"), &format!("ssl-mode=verify-identity&{ca}")]
    {
        assert_eq!(version(query), "TLSv1.3", "{query}");
    }
    for (host, query) in [
        ("localhost", other.clone()),
        ("localhost", "ssl-mode=verify-identity".to_owned()),
        ("127.0.0.1", format!("ssl-mode=verify-identity&{ca}")),
    ] {
        let text = told_by(open("root", host, &query).map(|_| ()));
        assert!(text.contains("certificate"), "{query}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    if plugins.is_some() {
        server.run("install soname 'auth_ed25519'");
        server.run("create user ed@localhost identified via ed25519 using password('Kq9')");
        server.run("grant select on mysql.* to ed@localhost");
        open("ed:Kq9", "localhost", "").unwrap();
        let text = told_by(open("ed:no", "localhost", "").map(|_| ()));
        assert!(text.contains("check user and password"), "{text}");
    }
    let Some(plain) = Server::shared() else {
        return;
    };
    let port = port_of(plain);
    let open = |query: &str| {
        let url = format!("//root@localhost:{port}/mysql?{query}");
        Connection::open(&Address::parse(&url, Options::default()).unwrap())
    };
    open("").unwrap();
    let text = told_by(open("ssl-mode=required").map(|_| ()));
    assert!(text.contains("has no TLS"), "{text}");
}

/// Over TLS as well a thread has several.
#[test]
fn sessions_over_tls_do_the_same_operations() {
    let made = certificates();
    let file = |name: &str| made.path().join(name).display().to_string();
    let set = format!("ssl_cert={}; ssl_key={}", file("server.crt"), file("server.key"));
    let Some(server) = Server::own("8192", &set) else {
        return;
    };
    let plain = server.database("tls");
    load(&plain, &settings(SMALL), 2).unwrap();
    let port = port_of(&server);
    let over = |mode: &str| format!("//root@localhost:{port}/tls?ssl-mode={mode}");
    let mut came = Vec::new();
    for (run_stamp, url, threads) in [(1, plain, 1), (2, over("disabled"), 1), (3, over("required"), 1)] {
        let plan = Plan {
            // Nobody waits for another, or deadlocks with it.
            schemas: 2,
            update_pct: 40,
            scan_pct: 10,
            commit_every: 3,
            // Ranges that go past the last key.
            edge: assay_run::plan::Edge::Wrap,
            run_stamp,
            seed: 11,
            ..plan(8192, 1, 1000, 300)
        };
        let data = run(&url, &plan, &[("DRIVER_THREADS", "1")]);
        assert_eq!(data.drained.driver.threads, threads, "{url}");
        came.push(
            [
                counter_catalog::ROWS_VISITED,
                counter_catalog::ROWS_CHANGED,
                counter_catalog::TABLE_SCANS,
                counter_catalog::USER_COMMITS,
                counter_catalog::USER_ROLLBACKS,
                counter_catalog::TUPLES_UPDATED,
            ]
            .map(|stat| counted(&data, stat)),
        );
    }
    assert_eq!(came[0], came[1]);
    assert_eq!(came[0], came[2]);
    assert!(came[0][1] > 0 && came[0][3] > 0, "{came:?}");
    assert_eq!(came[0][1], came[0][5], "the server changed what was asked");
}
