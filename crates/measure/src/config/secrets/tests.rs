//! Passwords in connections and accounts are masked, however they are spelled.

use super::*;

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
