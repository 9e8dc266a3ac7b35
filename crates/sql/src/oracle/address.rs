//! Where a database is and as whom to log in: `//[USER[:PASSWORD]@]CONNECT`, or SLOB's own parameters.
//!
//! CONNECT is what SQL*Plus accepts after the `@`: `//host:port/service[:server][/instance]`, `tcps://...`, an alias
//! from `tnsnames.ora`, or a whole descriptor. The driver parses it, so every form it knows works here.

use super::services::assign;
use crate::password::Password;
use crate::url::decoded;
use assay_measure::config::{Settings, Value};
use assay_run::engine::EngineError;
use assay_run::plan::Plan;
use std::time::Duration;

/// Shortest time limit for an answer.
const SHORTEST: Duration = Duration::from_secs(1);
pub(super) const FORM: &str = "oracle://USER@//HOST:PORT/SERVICE";

/// Address and login of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Door {
    pub(super) user: String,
    pub(super) password: Password,
    /// The connect string for the driver.
    pub(super) connect: String,
    /// AS SYSDBA.
    pub(super) sysdba: bool,
    /// Directory with ewallet.pem, and the password of its key.
    pub(super) wallet: Option<(String, Option<Password>)>,
}

/// The logins of a command, with its time limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The owner of the data set.
    pub(super) data: Door,
    /// The user who reads statistics and cancels statements, if not the owner.
    pub(super) admin: Option<Door>,
    /// SQLNET_SERVICE_BASE.
    base: String,
    /// SQLNET_SERVICE_MAX.
    max: Option<u64>,
    /// How long an answer may take.
    pub(super) answer: Duration,
    /// How long a statement over a whole table may take.
    pub(super) long: Duration,
}

impl Address {
    /// Parses what follows `oracle:`, together with the settings.
    ///
    /// # Errors
    /// `Usage`: what is missing or contradictory, without repeating what may be a password.
    pub(super) fn new(location: &str, settings: &Settings) -> Result<Self, EngineError> {
        Self::parse(location, settings).map_err(|why| EngineError::Usage(format!("target oracle: {why}")))
    }

    fn parse(location: &str, settings: &Settings) -> Result<Self, String> {
        let text = location.strip_prefix("//").unwrap_or(location);
        let (who, connect) = text.split_once('@').ok_or_else(|| format!("the URL names no user: write {FORM}"))?;
        let (user, given) = who.split_once([':', '/']).unwrap_or((who, ""));
        let (user, given) = (decoded(user, "user")?, decoded(given, "password")?);
        if user.is_empty() {
            return Err(format!("the URL names no user: write {FORM}"));
        }
        let service = settings.text("ADMIN_SQLNET_SERVICE");
        let base = settings.text("SQLNET_SERVICE_BASE").to_owned();
        let max = settings.whole("SQLNET_SERVICE_MAX");
        if max.is_some() && base.is_empty() {
            return Err("SQLNET_SERVICE_MAX needs SQLNET_SERVICE_BASE".to_owned());
        }
        let connect = match (connect, service) {
            ("", "") => {
                return Err(format!(
                    "neither the URL nor ADMIN_SQLNET_SERVICE says where the database is: write {FORM}"
                ));
            }
            ("", service) => service,
            (connect, _) => connect,
        };
        let wallet = wallet(settings);
        let admin = admin(settings, connect, service, wallet.clone())?;
        let stated = [given.as_str(), secret(settings, "ORACLE_PASSWORD")];
        let same = admin.as_ref().filter(|admin| admin.user.eq_ignore_ascii_case(&user));
        let password = stated
            .into_iter()
            .find(|text| !text.is_empty())
            .map(|text| Password::new(text.to_owned()))
            .or_else(|| same.map(|admin| admin.password.clone()))
            .ok_or_else(|| {
                format!(
                    "the password of user {user} is missing: give it in ASSAY_ORACLE_PASSWORD or in a file of settings"
                )
            })?;
        let seconds = |name: &str| Duration::from_nanos(settings.ns(name)).max(SHORTEST);
        let answer = seconds("ORACLE_ANSWER_TIMEOUT");
        let data = Door { user, password, connect: connect.to_owned(), sysdba: false, wallet };
        refuse_own_schemas(&data.user)?;
        Ok(Self { data, admin, base, max, answer, long: seconds("ORACLE_STATEMENT_TIMEOUT").max(answer) })
    }

    /// The user who reads statistics.
    pub(super) fn admin(&self) -> &Door {
        self.admin.as_ref().unwrap_or(&self.data)
    }

    /// The login of each session of a run, in order, and a warning if services carry different loads.
    pub(super) fn sessions(&self, plan: &Plan) -> (Vec<Door>, Option<String>) {
        if self.base.is_empty() {
            return (vec![self.data.clone(); plan.sessions()], None);
        }
        let (services, uneven) = assign(&self.base, self.max, plan.schemas, plan.threads_per_schema);
        let to = |service| Door { connect: service, ..self.data.clone() };
        (services.into_iter().map(to).collect(), uneven)
    }

    /// How sessions are assigned to services, for the report.
    pub(super) fn services(&self) -> String {
        match (self.base.as_str(), self.max) {
            ("", _) => format!("all sessions to {}", self.data.connect),
            (base, None) => format!("all sessions to {base}"),
            (base, Some(max)) => format!("{base}1 to {base}{max}, in rotation"),
        }
    }
}

fn secret<'a>(settings: &'a Settings, name: &str) -> &'a str {
    match &settings.get(name).value {
        Value::Secret(text) => text,
        _ => "",
    }
}

fn wallet(settings: &Settings) -> Option<(String, Option<Password>)> {
    let directory = settings.text("ORACLE_WALLET");
    let password = secret(settings, "ORACLE_WALLET_PASSWORD");
    let password = (!password.is_empty()).then(|| Password::new(password.to_owned()));
    (!directory.is_empty()).then(|| (directory.to_owned(), password))
}

/// DBA_PRIV_USER at ADMIN_SQLNET_SERVICE; `SYS`, or a user with `as sysdba`, logs in with that role.
fn admin(
    settings: &Settings,
    connect: &str,
    service: &str,
    wallet: Option<(String, Option<Password>)>,
) -> Result<Option<Door>, String> {
    let said = settings.text("DBA_PRIV_USER");
    if said.is_empty() {
        return match secret(settings, "SYSDBA_PASSWD") {
            "" => Ok(None),
            _ => Err("SYSDBA_PASSWD is given without DBA_PRIV_USER, the user it belongs to".to_owned()),
        };
    }
    let lower = said.to_ascii_lowercase();
    let (user, sysdba) = match lower.strip_suffix(" as sysdba") {
        Some(user) => (said[..user.len()].trim(), true),
        None => (said, lower == "sys"),
    };
    if user.contains('/') {
        return Err("DBA_PRIV_USER is only a name; the password belongs in SYSDBA_PASSWD".to_owned());
    }
    let password = secret(settings, "SYSDBA_PASSWD");
    if password.is_empty() {
        return Err(format!("DBA_PRIV_USER={user} needs SYSDBA_PASSWD, in a file or in ASSAY_SYSDBA_PASSWD"));
    }
    Ok(Some(Door {
        user: user.to_owned(),
        password: Password::new(password.to_owned()),
        connect: if service.is_empty() { connect } else { service }.to_owned(),
        sysdba,
        wallet,
    }))
}

/// Refuses a user whose schema contains the server's own tables.
fn refuse_own_schemas(user: &str) -> Result<(), String> {
    const OWN: [&str; 4] = ["sys", "system", "sysman", "dbsnmp"];
    if OWN.contains(&user.to_ascii_lowercase().as_str()) {
        Err(format!(
            "user {user} owns the server's own tables: make a user for the test (CREATE USER slob ...) and name it in \
             the URL; {user} can be DBA_PRIV_USER"
        ))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::tests::settings;

    fn read(url: &str, said: &[(&str, &str)]) -> Result<Address, String> {
        Address::parse(url, &settings(said)).inspect_err(|why| assert!(!why.contains("Kq9"), "{why}"))
    }

    #[test]
    fn an_address_has_a_user_a_password_and_any_connect_string_of_the_field() {
        for connect in [
            "//db.example:1521/orcl",
            "db.example/orclpdb1:dedicated/node2",
            "tcps://adb.example:1522/x_high.adb",
            "RAC_ALIAS",
            "(DESCRIPTION=(ADDRESS=(PROTOCOL=tcp)(HOST=h)(PORT=1521))(CONNECT_DATA=(SERVICE_NAME=s)))",
        ] {
            let address = read(&format!("//slob:p%40ss@{connect}"), &[]).unwrap();
            assert_eq!(address.data.connect, connect);
            assert_eq!((address.data.user.as_str(), address.data.password.reveal()), ("slob", "p@ss"));
            assert!(!format!("{address:?}").contains("p@ss"));
        }
        let sqlplus = read("slob/Kq9@//h/s", &[]).unwrap();
        assert_eq!(sqlplus.data.password.reveal(), "Kq9");
        let stored = read("//slob@//h/s", &[("ORACLE_PASSWORD", "stored")]).unwrap();
        assert_eq!(stored.data.password.reveal(), "stored");
    }

    #[test]
    fn the_words_of_slob_say_who_looks_and_where_sessions_go() {
        let said = [
            ("DBA_PRIV_USER", "system"),
            ("SYSDBA_PASSWD", "Kq9"),
            ("ADMIN_SQLNET_SERVICE", "slob_admin"),
            ("SQLNET_SERVICE_BASE", "rac"),
            ("SQLNET_SERVICE_MAX", "3"),
        ];
        let address = read("//slob:x@", &said).unwrap();
        assert_eq!(address.data.connect, "slob_admin");
        let admin = address.admin();
        assert_eq!((admin.user.as_str(), admin.connect.as_str(), admin.sysdba), ("system", "slob_admin", false));
        // slob_39, on the sessions of a plan.
        let (doors, uneven) = address.sessions(&Plan::plain(6, 2, 1000));
        let to: Vec<&str> = doors.iter().map(|door| door.connect.as_str()).collect();
        assert_eq!(
            to,
            ["rac1", "rac1", "rac2", "rac2", "rac3", "rac3", "rac1", "rac1", "rac2", "rac2", "rac3", "rac3"]
        );
        assert!(uneven.is_none() && doors.iter().all(|door| door.user == "slob"));
        assert_eq!(address.services(), "rac1 to rac3, in rotation");
        assert!(address.sessions(&Plan::plain(4, 1, 1000)).1.is_some());
        let sys = read("//slob:x@//h/s", &[("DBA_PRIV_USER", "SYS"), ("SYSDBA_PASSWD", "y")]).unwrap();
        assert!(sys.admin().sysdba && sys.admin().connect == "//h/s");
        let named = [("DBA_PRIV_USER", "c##adm AS SYSDBA"), ("SYSDBA_PASSWD", "y")];
        let named = read("//slob:x@//h/s", &named).unwrap();
        assert_eq!((named.admin().user.as_str(), named.admin().sysdba), ("c##adm", true));
    }

    #[test]
    fn what_is_missing_or_wrong_is_said_without_a_password() {
        for (url, said, wanted) in [
            ("//h:1521/s", &[][..], "no user"),
            ("//:Kq9@//h/s", &[], "no user"),
            ("//slob@//h/s", &[], "the password of user slob is missing"),
            ("//slob:Kq9@", &[], "where the database is"),
            ("//slob:Kq9%zz@//h/s", &[], "hexadecimal"),
            ("//system:Kq9@//h/s", &[], "owns the server's own tables"),
            ("//slob:Kq9@//h/s", &[("SQLNET_SERVICE_MAX", "2")], "needs SQLNET_SERVICE_BASE"),
            ("//slob:Kq9@//h/s", &[("SYSDBA_PASSWD", "Kq9")], "without DBA_PRIV_USER"),
            ("//slob:Kq9@//h/s", &[("DBA_PRIV_USER", "system")], "needs SYSDBA_PASSWD"),
            ("//slob:Kq9@//h/s", &[("DBA_PRIV_USER", "system/Kq9")], "only a name"),
        ] {
            let why = read(url, said).expect_err(url);
            assert!(why.contains(wanted), "{url}: {why}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_of_a_url_makes_it_panic(text in "[a-z/:@%0-9.()=\u{e9} ]{0,40}") {
            let _ = Address::parse(&text, &settings(&[]));
        }
    }
}
