//! Connection parameters against libpq's documented rules; against libpq itself in `wire::tests`.

use super::*;
use std::collections::BTreeMap;
use std::path::Path;

/// An outside made for a test.
#[derive(Default)]
pub(in crate::postgres) struct Made {
    variables: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, FileText>,
}

impl Made {
    pub(in crate::postgres) fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn file(mut self, path: &str, mode: u32, text: &str) -> Self {
        let text = text.to_owned();
        let file = FileText { text, mode, regular: true };
        self.files.insert(PathBuf::from(path), file);
        self
    }
}

impl Surroundings for Made {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn read(&self, path: &Path) -> Result<Option<FileText>, String> {
        Ok(self.files.get(path).cloned())
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    fn home(&self) -> Option<PathBuf> {
        Some(PathBuf::from("/h/dba"))
    }

    fn user(&self) -> Option<String> {
        Some("dba".to_owned())
    }
}

fn read(url: &str, from: &Made) -> ConnectOptions {
    options(url, from).unwrap_or_else(|why| panic!("{url}: {why}"))
}

fn plain(url: &str) -> ConnectOptions {
    read(url, &Made::default())
}

fn refused(url: &str) -> String {
    let why = options(url, &Made::default()).expect_err(url);
    assert_eq!(why.lines().count(), 1, "{why}");
    why
}

fn tcp(name: &str, port: u16) -> Host {
    Host::Tcp { name: name.to_owned(), address: name.parse().ok(), port }
}

fn unix(directory: &str, port: u16) -> Host {
    Host::Unix { directory: PathBuf::from(directory), port }
}

#[test]
fn nothing_given_is_the_operating_systems_user_at_the_local_socket() {
    for url in ["", "//", "///"] {
        let options = plain(url);
        assert_eq!(options.hosts, [unix("/var/run/postgresql", 5432)]);
        assert_eq!((&*options.user, &*options.dbname), ("dba", "dba"));
        assert_eq!(options.application_name, "assay");
        assert_eq!(options.tls.mode, SslMode::Prefer);
        assert_eq!(options.password, None);
    }
    let built = Made::default().file("/tmp/.s.PGSQL.5433", 0o777, "");
    assert_eq!(read("//:5433", &built).hosts, [unix("/tmp", 5433)]);
    assert_eq!(plain("sales").dbname, "sales");
}

#[test]
fn a_url_says_who_where_and_how() {
    let options = plain(
        "//us%65r:p%40ss%2F%3A@h1:5433,[::1]:5434,h3/d%20b?sslmode=require&application_name=a%26b&options=-c%20geqo%3Doff&connect_timeout=7",
    );
    assert_eq!(options.hosts, [tcp("h1", 5433), tcp("::1", 5434), tcp("h3", 5432)]);
    assert_eq!((&*options.user, &*options.dbname), ("user", "d b"));
    let password = options.password_for(2).expect("given");
    assert_eq!(password.reveal(), "p@ss/:");
    assert_eq!(options.tls.mode, SslMode::Require);
    assert_eq!(options.application_name, "a&b");
    assert_eq!(options.options.as_deref(), Some("-c geqo=off"));
    assert_eq!(options.connect_timeout, Some(Duration::from_secs(7)));
    assert_eq!(plain("//h?connect_timeout=0").connect_timeout, None);
    assert_eq!(plain("//h?ssl=true").tls.mode, SslMode::Require);
}

#[test]
fn sockets_are_named_by_directory_in_each_spelling() {
    for url in [
        "//%2Frun%2Fpg:6000/db",
        "///db?host=/run/pg&port=6000",
        "//:6000/db?host=%2Frun%2Fpg",
        "host=/run/pg port=6000 dbname=db",
    ] {
        assert_eq!(plain(url).hosts, [unix("/run/pg", 6000)], "{url}");
        assert_eq!(plain(url).dbname, "db", "{url}");
    }
}

#[test]
fn keyword_strings_take_quotes_and_escapes() {
    let options = plain(r"host=a user = 'o\'brien x' password=a\ b dbname=''");
    assert_eq!(options.user, "o'brien x");
    assert_eq!(options.password.as_ref().map(Password::reveal), Some("a b"));
    assert_eq!(options.dbname, "o'brien x");
    for bad in ["host=a user='o''brien'", "host=a user", "host=a user='x", "=a", "a b=c"] {
        refused(bad);
    }
}

#[test]
fn precedence_is_url_then_service_then_environment_then_default() {
    let outside = Made::default()
        .set("PGHOST", "env.example")
        .set("PGPORT", "1111")
        .set("PGUSER", "env")
        .set("PGDATABASE", "env")
        .set("PGPASSWORD", "env")
        .set("PGAPPNAME", "env")
        .set("PGTZ", "UTC")
        .set("PGSERVICE", "first")
        .file(
            "/h/dba/.pg_service.conf",
            0o644,
            "# services\n[other]\nhost=wrong\n[first]\nport=2222\nuser=service\nuser=second\nhost=service.example\n[last]\ndbname=wrong\n",
        );
    let options = read("//url@/", &outside);
    assert_eq!(options.user, "url");
    assert_eq!(options.hosts, [tcp("service.example", 2222)]);
    assert_eq!(options.dbname, "env");
    assert_eq!(options.application_name, "env");
    assert_eq!(options.password.as_ref().map(Password::reveal), Some("env"));
    assert_eq!(options.settings, [("TimeZone".to_owned(), "UTC".to_owned())]);
    assert_eq!(read("//?service=last", &outside).dbname, "wrong");
    let why = options_error("//?service=absent", &outside);
    assert!(why.contains("absent") && why.contains(".pg_service.conf"), "{why}");
}

fn options_error(url: &str, outside: &Made) -> String {
    options(url, outside).expect_err(url)
}

#[test]
fn the_systems_service_file_is_asked_second_and_faults_are_named_by_line() {
    let outside = Made::default()
        .set("PGSYSCONFDIR", "/sys")
        .file("/sys/pg_service.conf", 0o644, "[s]\nhost=h\n")
        .file("/mine", 0o644, "[t]\nhost=m\n[bad]\n\nhots=x\n[nest]\nservice=s\n[ldap]\nldap://x\n[line]\nword\n");
    assert_eq!(read("//?service=s", &outside).hosts, [tcp("h", 5432)]);
    assert_eq!(read("//?service=t&servicefile=/mine", &outside).hosts, [tcp("m", 5432)]);
    assert_eq!(read("//?service=s&servicefile=/mine", &outside).hosts, [tcp("h", 5432)]);
    for (service, said) in [("bad", "/mine:5"), ("nest", "/mine:7"), ("ldap", "/mine:9"), ("line", "/mine:11")] {
        let why = options_error(&format!("//?service={service}&servicefile=/mine"), &outside);
        assert!(why.contains(said), "{why}");
    }
    let why = options_error("//?service=s&servicefile=/absent", &outside);
    assert!(why.contains("/absent"), "{why}");
}

#[test]
fn a_password_file_is_matched_field_by_field() {
    let outside = Made::default().file(
        "/h/dba/.pgpass",
        0o600,
        "# comment\n\nh1:5432:db:u\\:ser:one\nh2:*:*:*:t\\:w\\\\o:rest is cut\n\\*:*:*:*:never\nlocalhost:*:db:*:local\n/run/pg:*:*:*:socket\nfe80\\:\\:1:*:*:*:six\nshort:1\n",
    );
    let password = |url: &str| {
        let options = read(url, &outside);
        options.password_for(0).map(|found| found.reveal().to_owned())
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(password("//u%3Aser@h1/db"), some("one"));
    assert_eq!(password("//u%3Aser@h1:5433/db"), None);
    assert_eq!(password("//any@h2:9/any"), some("t:w\\o"));
    assert_eq!(password("//any@h3/any"), None);
    assert_eq!(password("///db"), some("local"));
    assert_eq!(password("//localhost/db"), some("local"));
    assert_eq!(password("///db?host=/run/pg"), some("socket"));
    assert_eq!(password("//[fe80::1]/db"), some("six"));
    assert_eq!(password("//any:given@h2/any"), some("given"));
    let each = read("//u%3Aser@h1,h2/db", &outside);
    assert_eq!(each.password_for(1).map(Password::reveal), Some("t:w\\o"));
}

#[test]
fn a_password_file_that_others_can_read_is_left_aside_with_a_word() {
    for mode in [0o640, 0o604, 0o660] {
        let outside = Made::default().file("/p", mode, "*:*:*:*:x\n");
        let options = read("//h?passfile=/p", &outside);
        assert_eq!(options.password_for(0), None);
        assert!(options.warnings[0].contains("chmod 600 /p"), "{:?}", options.warnings);
    }
    let outside = Made::default().file("/p", 0o600, "*:*:*:*:x\n");
    let options = read("//h?passfile=/p", &outside);
    assert_eq!(options.password_for(0).map(Password::reveal), Some("x"));
    assert!(options.warnings.is_empty());
}

#[test]
fn what_cannot_be_honoured_is_named() {
    for (url, said) in [
        ("//h?hots=x", "hots"),
        ("//h?gssencmode=require", "GSSAPI"),
        ("//h?sslcrldir=/x", "sslcrl"),
        ("//h?sslpassword=x", "openssl pkey"),
        ("//h?client_encoding=LATIN1", "UTF8"),
        ("//h?load_balance_hosts=random", "load_balance_hosts"),
        ("//h?replication=database", "replication"),
        ("//h?sslmode=maybe", "verify-full"),
        ("//h?sslmode=verify-full", "sslrootcert"),
        ("//h?sslmode=verify-ca&sslrootcert=/absent", "/absent"),
        ("//h?sslmode=require&sslrootcert=system", "verify-full"),
        ("//h?sslnegotiation=direct", "sslmode=require"),
        ("//h?ssl_max_protocol_version=TLSv1.1", "TLS 1.2"),
        ("//h?sslcert=/c", "sslkey"),
        ("//h?target_session_attrs=best", "prefer-standby"),
        ("//h?connect_timeout=soon", "connect_timeout"),
        ("//h?require_auth=md5,!none", "require_auth"),
        ("//h?require_auth=token", "token"),
        ("//h?require_auth=creds", "creds"),
        ("//h?require_auth=!md5,none", "none"),
        ("//h?require_auth=md5,md5", "twice"),
        ("//h?require_auth=md5,", "is none of"),
        ("//h?require_auth=md5,%20none", "is none of"),
        ("//h?require_auth=!password,!md5,!gss,!sspi,!scram-sha-256,!oauth,!none", "no method is left"),
        ("//h?min_protocol_version=3.2&max_protocol_version=3.0", "max_protocol_version"),
        ("//h:0", "65535"),
        ("//h:x", "65535"),
        ("//h1,h2?port=1,2,3", "3 ports"),
        ("//h1,h2?hostaddr=1.2.3.4", "hostaddr"),
        ("//?hostaddr=here", "hostaddr"),
        ("//u:p@ss@h/", "%40"),
        ("//h/%zz", "%25"),
        ("//h/%00", "%00"),
        ("//h?name", "name=value"),
        ("//h?a=b=c", "%3D"),
        ("//::1/", "brackets"),
        ("//[::1/", "]"),
        ("//[::1]5/", "port"),
    ] {
        let why = refused(url);
        assert!(why.contains(said), "{url}: {why}");
    }
    let outside = Made::default().set("PGGSSENCMODE", "require");
    assert!(options_error("//h", &outside).contains("PGGSSENCMODE"));
}

#[test]
fn no_error_repeats_a_password() {
    for url in [
        "//u:hunter2@h:x/",
        "//u:hunter2@h@i/",
        "//u:hunter2%zz@h/",
        "//h?password=hunter2=&x=1",
        "//h?password=hunter2&sslmode=bad",
        "password=hunter2 host",
        "password='hunter2",
        "//u:hunter2@h?hots=x",
    ] {
        let why = refused(url);
        assert!(!why.contains("hunter2"), "{why}");
    }
    let shown = format!("{:?}", plain("//u:hunter2@h"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn tls_is_as_strict_as_what_is_at_hand() {
    let home = Made::default()
        .file("/h/dba/.postgresql/root.crt", 0o644, "")
        .file("/h/dba/.postgresql/postgresql.crt", 0o644, "")
        .file("/h/dba/.postgresql/postgresql.key", 0o600, "");
    let tls = read("//h?sslmode=verify-full", &home).tls;
    assert_eq!(tls.roots, Roots::File("/h/dba/.postgresql/root.crt".into()));
    assert!(tls.client.is_some());
    assert_eq!(read("//h?sslcertmode=disable", &home).tls.client, None);
    let tls = plain("//h?sslrootcert=system").tls;
    assert_eq!((tls.mode, tls.roots), (SslMode::VerifyFull, Roots::System));
    let old = Made::default().set("PGREQUIRESSL", "1");
    assert_eq!(read("//h", &old).tls.mode, SslMode::Require);
    assert_eq!(read("//h?sslmode=disable", &old).tls.mode, SslMode::Disable);
    let tls = plain("//h?ssl_min_protocol_version=TLSv1.3&sslmode=require&sslnegotiation=direct&sslsni=0").tls;
    assert_eq!((tls.versions, tls.direct, tls.hide_name), ((Some(13), None), true, true));
}

#[test]
fn accepted_ways_of_authentication_can_be_listed_or_excluded() {
    assert_eq!(plain("//h?require_auth=scram-sha-256,none").require_auth, ["scram-sha-256", "none"]);
    let rest = plain("//h?require_auth=!password,!md5").require_auth;
    assert!(!rest.iter().any(|way| way == "md5") && rest.iter().any(|way| way == "none"));
}

mod damaged {
    //! What a fuzzer does, with the seeds at hand: no input may panic.
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_location_of_any_letters_is_read_or_refused(location in "\\PC*") {
            let _ = options(&location, &Made::default());
            let _ = options(&format!("//{location}"), &Made::default());
        }

        #[test]
        fn a_location_of_its_own_signs_is_read_or_refused(location in "[/@:?&=%,a1 '\\\\\\[\\]]{0,40}") {
            let _ = options(&location, &Made::default());
            let _ = options(&format!("//{location}"), &Made::default());
        }

        #[test]
        fn files_of_any_text_are_read_or_refused(text in "([\\[\\]a:*\\\\=# \\n\\r]|\\PC){0,80}") {
            let outside = Made::default().file("/p", 0o600, &text).file("/s", 0o600, &text);
            let _ = options("//h?passfile=/p", &outside);
            let _ = options("//h?servicefile=/s&service=a", &outside);
        }

        #[test]
        fn a_password_survives_its_escapes(password in "\\PC{1,20}") {
            let escaped: String = password.chars().flat_map(|letter| match letter {
                ':' | '\\' => vec!['\\', letter],
                _ => vec![letter],
            }).collect();
            let outside = Made::default().file("/p", 0o600, &format!("*:*:*:*:{escaped}\n"));
            let options = options("//h?passfile=/p", &outside).expect("right");
            prop_assert_eq!(options.password_for(0).map(Password::reveal), Some(password.as_str()));
            let encoded: String = password.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let options = super::options(&format!("//u:{encoded}@h"), &Made::default()).expect("right");
            prop_assert_eq!(options.password_for(0).map(Password::reveal), Some(password.as_str()));
        }
    }
}
