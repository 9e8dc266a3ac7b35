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
