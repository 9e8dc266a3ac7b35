//! Every parameter libpq knows, its environment variable, and what becomes of it here.

/// What becomes of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Honoured.
    Honoured,
    /// Without meaning here, whatever its value: it tunes something we do not speak.
    Moot,
    /// Only these values can be honoured; the way out for others.
    Only(&'static [&'static str], &'static str),
}

/// A parameter of libpq.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) variable: Option<&'static str>,
    pub(super) does: Use,
}

const fn yes(name: &'static str, variable: &'static str) -> Parameter {
    Parameter {
        name,
        variable: Some(variable),
        does: Use::Honoured,
    }
}

const fn here(name: &'static str) -> Parameter {
    Parameter {
        name,
        variable: None,
        does: Use::Honoured,
    }
}

const fn only(
    name: &'static str,
    variable: Option<&'static str>,
    values: &'static [&'static str],
    way_out: &'static str,
) -> Parameter {
    Parameter {
        name,
        variable,
        does: Use::Only(values, way_out),
    }
}

const fn moot(name: &'static str, variable: &'static str) -> Parameter {
    Parameter {
        name,
        variable: Some(variable),
        does: Use::Moot,
    }
}

const NO_OAUTH: &str = "OAuth is not spoken here; use scram-sha-256 or a client certificate";
const NO_SCRAM_KEYS: &str = "give the password instead";

/// The table. Source: the libpq chapter of the manuals of 13 to 18.
pub(super) const PARAMETERS: &[Parameter] = &[
    yes("host", "PGHOST"),
    yes("hostaddr", "PGHOSTADDR"),
    yes("port", "PGPORT"),
    yes("dbname", "PGDATABASE"),
    yes("user", "PGUSER"),
    yes("password", "PGPASSWORD"),
    yes("passfile", "PGPASSFILE"),
    yes("service", "PGSERVICE"),
    yes("servicefile", "PGSERVICEFILE"),
    yes("options", "PGOPTIONS"),
    yes("application_name", "PGAPPNAME"),
    here("fallback_application_name"),
    yes("connect_timeout", "PGCONNECT_TIMEOUT"),
    yes("target_session_attrs", "PGTARGETSESSIONATTRS"),
    here("keepalives"),
    here("keepalives_idle"),
    here("keepalives_interval"),
    here("keepalives_count"),
    here("tcp_user_timeout"),
    yes("channel_binding", "PGCHANNELBINDING"),
    yes("require_auth", "PGREQUIREAUTH"),
    yes("requirepeer", "PGREQUIREPEER"),
    yes("sslmode", "PGSSLMODE"),
    yes("requiressl", "PGREQUIRESSL"),
    yes("sslnegotiation", "PGSSLNEGOTIATION"),
    yes("sslrootcert", "PGSSLROOTCERT"),
    yes("sslcert", "PGSSLCERT"),
    yes("sslkey", "PGSSLKEY"),
    yes("sslcrl", "PGSSLCRL"),
    yes("sslcertmode", "PGSSLCERTMODE"),
    yes("sslsni", "PGSSLSNI"),
    yes("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    yes("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    yes("min_protocol_version", "PGMINPROTOCOLVERSION"),
    yes("max_protocol_version", "PGMAXPROTOCOLVERSION"),
    only(
        "sslcompression",
        Some("PGSSLCOMPRESSION"),
        &["0"],
        "TLS compression is unsafe and gone from TLS 1.3",
    ),
    only(
        "sslcrldir",
        Some("PGSSLCRLDIR"),
        &[],
        "put the revocation lists into one file and name it with sslcrl",
    ),
    only(
        "sslpassword",
        None,
        &[],
        "decrypt the key (openssl pkey -in KEY -out PLAIN) and name that file with sslkey",
    ),
    only(
        "sslkeylogfile",
        None,
        &[],
        "session keys are not written to files here",
    ),
    only(
        "gssencmode",
        Some("PGGSSENCMODE"),
        &["disable", "prefer"],
        "GSSAPI is not spoken here; use TLS (sslmode)",
    ),
    moot("krbsrvname", "PGKRBSRVNAME"),
    moot("gsslib", "PGGSSLIB"),
    only(
        "gssdelegation",
        Some("PGGSSDELEGATION"),
        &["0"],
        "GSSAPI is not spoken here",
    ),
    only(
        "client_encoding",
        None,
        &["auto", "UTF8", "utf8", "UTF-8", "utf-8"],
        "UTF8 is what is spoken here",
    ),
    only(
        "load_balance_hosts",
        Some("PGLOADBALANCEHOSTS"),
        &["disable"],
        "every session of a run goes to the same server",
    ),
    only(
        "replication",
        None,
        &["false", "off", "no", "0"],
        "sessions here are ordinary ones",
    ),
    only("scram_client_key", None, &[], NO_SCRAM_KEYS),
    only("scram_server_key", None, &[], NO_SCRAM_KEYS),
    only("oauth_issuer", None, &[], NO_OAUTH),
    only("oauth_client_id", None, &[], NO_OAUTH),
    only("oauth_client_secret", None, &[], NO_OAUTH),
    only("oauth_scope", None, &[], NO_OAUTH),
];

/// Variables that set parameters of the session, and their names there.
pub(super) const SESSION_VARIABLES: &[(&str, &str)] = &[("PGTZ", "TimeZone"), ("PGGEQO", "geqo")];

/// Whether a name exists and a value of it can be honoured.
pub(super) fn judge(name: &str, value: &str) -> Result<(), String> {
    let Some(parameter) = PARAMETERS.iter().find(|known| known.name == name) else {
        return Err(format!(
            "connection parameter {name:?} is unknown: libpq has none of this name"
        ));
    };
    match parameter.does {
        Use::Only(values, way_out) if !values.contains(&value) => Err(format!(
            "connection parameter {name} is not supported with this value: {way_out}"
        )),
        _ => Ok(()),
    }
}
