//! No secret is ever shown, however it is spelt.

use super::*;
use proptest::prelude::*;

const PASSWORD: &str = "Kq9#hunter2";

#[test]
fn slob_42_no_secret_is_ever_shown() {
    let good = format!(
        "SYSDBA_PASSWD='{PASSWORD}'\n#SYSDBA_PASSWD={PASSWORD}\nMYSQL_ROOT_PWD = \"{PASSWORD}\" # {PASSWORD}\n\
         TARGET=native://me:{PASSWORD}@host/db\nADMIN_SQLNET_SERVICE=''\n"
    );
    let bad = [
        format!("SYSDBA_PASSWD=\u{201c}{PASSWORD}\"\n"),
        format!("SYSDBA_PASSWD=\"{PASSWORD}\n"),
        format!("SYSDBA_PASSWD=a {PASSWORD}\n"),
        format!("SYSDBA_PASWD={PASSWORD}\n"),
        format!("SYSDBA_PASSWD={PASSWORD}$x\n"),
        format!("SYSDBA_PASSWD: {PASSWORD}\nUPDATE_PCT=1\nSCAN_PCT=1\n"),
    ];
    let resolved = resolve_text(&good);
    assert_eq!(errors(&resolved), Vec::<String>::new());
    let redacted = redact("slob.conf", good.as_bytes(), &|name| is_secret(&TABLES, name));
    assert!(redacted.contains("SYSDBA_PASSWD=***\n"), "{redacted}");
    let lines = format!("{:?}", setting_lines(&resolved.settings));
    for shown in [redacted, lines, slob_conf(&resolved.settings)] {
        assert!(!shown.contains(PASSWORD), "{shown}");
    }
    for text in bad {
        let resolved = resolve_text(&text);
        assert!(resolved.has_errors(), "{text}");
        assert!(!format!("{:?}", resolved.problems).contains(PASSWORD), "{:?}", resolved.problems);
    }
    let toml = format!("sysdba_passwd = '{PASSWORD}'\n# sysdba_passwd = '{PASSWORD}'\nlabel = \"a\"\n");
    let redacted = redact("a.toml", toml.as_bytes(), &|name| is_secret(&TABLES, name));
    assert!(!redacted.contains(PASSWORD) && redacted.contains("label = \"a\""), "{redacted}");
    let argv = resolve(&TABLES, &layers("", &[], &[("SYSDBA_PASSWD", PASSWORD)]));
    assert_eq!(errors(&argv).len(), 1);
    assert!(!errors(&argv)[0].contains(PASSWORD));
}

#[test]
fn slob_42_passwords_of_every_spelling_of_a_connection_are_masked() {
    for (given, shown) in [
        ("postgres://u:pw@h/d", "postgres://u:***@h/d"),
        ("postgres://u:my pw@h/d", "postgres://u:***@h/d"),
        ("from postgres://u:pw@h/d to mysql://u:my pw@h/d", "from postgres://u:***@h/d to mysql://u:***@h/d"),
        ("postgres://u:1,pw@h/d", "postgres://u:***@h/d"),
        ("postgres://a:1,b:2/d?options=a@b", "postgres://a:1,b:2/d?options=a@b"),
        ("postgres://u@h/d?password=my pw&sslmode=require", "postgres://u@h/d?password=***&sslmode=require"),
        ("postgres://u@h/d?password=pw&sslmode=require", "postgres://u@h/d?password=***&sslmode=require"),
        ("postgres://u@h/d?sslpassword=pw", "postgres://u@h/d?sslpassword=***"),
        ("postgres:host=h password=pw dbname=d", "postgres:host=h password=*** dbname=d"),
        ("postgres:password = 'p w\\' x' dbname=d", "postgres:password = *** dbname=d"),
        ("postgres:password=p\\ w dbname=d", "postgres:password=*** dbname=d"),
        ("postgres:host=h password='open", "postgres:host=h password=***"),
        ("postgres://h/password", "postgres://h/password"),
        ("postgres://u/pw@h:5432/d", "postgres://u/***@h:5432/d"),
        ("postgres://u/p:w@h/d?sslmode=prefer", "postgres://u/***@h/d?sslmode=prefer"),
        ("mysql://u/p@w/x?y@h", "mysql://u/***@h"),
        ("oracle://u/pw@//h:1521/s", "oracle://u/***@//h:1521/s"),
        ("postgres://h/d?options=a@b", "postgres://h/d?options=a@b"),
        ("postgres://u/pw@h/d?options=a@b", "postgres://u/***@h/d?options=a@b"),
    ] {
        assert_eq!(mask_url_password(given), shown);
    }
}

proptest! {
    #[test]
    fn a_secret_never_leaves_through_redaction(secret in "[A-Za-z0-9]{12}", tail in "[ #\"']{0,3}") {
        for text in [
            format!("SYSDBA_PASSWD={tail}{secret}\n"),
            format!("export SYSDBA_PASSWD ={tail}{secret}{tail}\n"),
            format!("SYSDBA_PASSWD : {tail}{secret}\n"),
        ] {
            let shown = redact("x.conf", text.as_bytes(), &|name| is_secret(&TABLES, name));
            prop_assert!(!shown.contains(&secret));
            let resolved = resolve(&TABLES, &[parse("x.conf", text.as_bytes())]);
            let said = format!("{:?}", resolved.problems);
            prop_assert!(!said.contains(&secret), "{}", said);
        }
    }
}

#[test]
fn what_can_carry_credentials_is_starred_wherever_it_is_shown() {
    for (name, given, shown) in [
        ("ADMIN_SQLNET_SERVICE", "sys/pw@db", "sys/***@db"),
        ("ADMIN_SQLNET_SERVICE", "sys/p/w@//h:1521/s", "sys/***@//h:1521/s"),
        ("SQLNET_SERVICE_BASE", "u/p@w@db", "u/***@db"),
        ("SQLNET_SERVICE_BASE", "//h:1521/svc", "//h:1521/svc"),
        ("SQLNET_SERVICE_BASE", "/@wallet", "/@wallet"),
        ("SQLNET_SERVICE_BASE", "orcl", "orcl"),
        ("DBA_PRIV_USER", "system/pw", "system/***"),
        ("DBA_PRIV_USER", "system", "system"),
        ("EXTERNAL_SCRIPT", "./a/b@c", "./a/b@c"),
        ("LABEL", "a/b@c", "a/b@c"),
        ("TARGET", "native:/data/a@b", "native:/data/a@b"),
        ("TARGET", "postgres:host=/tmp user=a@b", "postgres:host=/tmp user=a@b"),
        ("TARGET", "postgres:password=a&b", "postgres:password=***"),
        ("TARGET", "postgres://u:a/b@h/d", "postgres://u:***@h/d"),
        ("TARGET", "postgres://u:a?b@h/d", "postgres://u:***@h/d"),
        ("TARGET", "oracle://u/pw@//h/s", "oracle://u/***@//h/s"),
        ("TARGET", "postgres://h:5432/d?options=a@b", "postgres://h:5432/d?options=a@b"),
    ] {
        assert_eq!(mask(name, given), shown, "{name}");
    }
}

#[test]
fn a_service_with_a_password_is_starred_in_every_copy() {
    for name in ["ADMIN_SQLNET_SERVICE", "SQLNET_SERVICE_BASE", "DBA_PRIV_USER"] {
        let text = format!("{name}=\"sys/{PASSWORD}@db\"\n#{name}='sys/{PASSWORD}@db'\n");
        let resolved = resolve_text(&text);
        assert_eq!(errors(&resolved), Vec::<String>::new());
        let secret = |name: &str| is_secret(&TABLES, name);
        let toml = format!("{} = \"sys/{PASSWORD}@db\"\n", name.to_lowercase());
        for shown in [
            redact("slob.conf", text.as_bytes(), &secret),
            redact("a.toml", toml.as_bytes(), &secret),
            format!("{:?}", setting_lines(&resolved.settings)),
            slob_conf(&resolved.settings),
        ] {
            assert!(!shown.contains(PASSWORD), "{shown}");
        }
        for broken in
            [format!("{name}=x sys/{PASSWORD}@db\n"), format!("{name}: sys/{PASSWORD}@db\nSEED=1\nWORK_UNIT=1\n")]
        {
            let said = format!("{:?}", resolve_text(&broken).problems);
            assert!(!said.contains(PASSWORD), "{said}");
        }
    }
}
