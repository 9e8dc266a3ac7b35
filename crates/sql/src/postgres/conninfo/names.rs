//! Every parameter that libpq knows, its environment variable, and how assay treats it.

use Use::{Honoured, Moot, Only};

/// How assay treats a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Honoured.
    Honoured,
    /// Accepted with any value but without effect: it tunes a feature that assay does not use.
    Moot,
    /// Only these values can be honoured; with the remedy for others.
    Only(&'static [&'static str], &'static str),
}

/// A parameter of libpq.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// Its environment variable, if it has one.
    pub(super) variable: &'static [&'static str],
    pub(super) does: Use,
}

/// Lines of the table: `name = environment variable, use`.
macro_rules! parameters {
    ($($name:literal $(= $variable:literal)?, $does:expr;)*) => {
        &[$(Parameter { name: $name, variable: &[$($variable)?], does: $does }),*]
    };
}

const NO_OAUTH: &str = "assay does not support OAuth; use scram-sha-256 or a client certificate";
const NO_SCRAM_KEYS: &str = "give the password instead";

/// The table. Source: the libpq chapter of the manuals for 13 to 18.
pub(super) const PARAMETERS: &[Parameter] = parameters! {
    "host" = "PGHOST", Honoured;
    "hostaddr" = "PGHOSTADDR", Honoured;
    "port" = "PGPORT", Honoured;
    "dbname" = "PGDATABASE", Honoured;
    "user" = "PGUSER", Honoured;
    "password" = "PGPASSWORD", Honoured;
    "passfile" = "PGPASSFILE", Honoured;
    "service" = "PGSERVICE", Honoured;
    "servicefile" = "PGSERVICEFILE", Honoured;
    "options" = "PGOPTIONS", Honoured;
    "application_name" = "PGAPPNAME", Honoured;
    "fallback_application_name", Honoured;
    "connect_timeout" = "PGCONNECT_TIMEOUT", Honoured;
    "target_session_attrs" = "PGTARGETSESSIONATTRS", Honoured;
    "keepalives", Honoured;
    "keepalives_idle", Honoured;
    "keepalives_interval", Honoured;
    "keepalives_count", Honoured;
    "tcp_user_timeout", Honoured;
    "channel_binding" = "PGCHANNELBINDING", Honoured;
    "require_auth" = "PGREQUIREAUTH", Honoured;
    "requirepeer" = "PGREQUIREPEER", Honoured;
    "sslmode" = "PGSSLMODE", Honoured;
    "requiressl" = "PGREQUIRESSL", Honoured;
    "sslnegotiation" = "PGSSLNEGOTIATION", Honoured;
    "sslrootcert" = "PGSSLROOTCERT", Honoured;
    "sslcert" = "PGSSLCERT", Honoured;
    "sslkey" = "PGSSLKEY", Honoured;
    "sslcrl" = "PGSSLCRL", Honoured;
    "sslcertmode" = "PGSSLCERTMODE", Honoured;
    "sslsni" = "PGSSLSNI", Honoured;
    "ssl_min_protocol_version" = "PGSSLMINPROTOCOLVERSION", Honoured;
    "ssl_max_protocol_version" = "PGSSLMAXPROTOCOLVERSION", Honoured;
    "min_protocol_version" = "PGMINPROTOCOLVERSION", Honoured;
    "max_protocol_version" = "PGMAXPROTOCOLVERSION", Honoured;
    "sslcompression" = "PGSSLCOMPRESSION", Only(&["0"], "TLS compression is unsafe, and TLS 1.3 has removed it");
    "sslcrldir" = "PGSSLCRLDIR", Only(&[], "put the revocation lists into one file and name it with sslcrl");
    "sslpassword", Only(&[], "decrypt the key (openssl pkey -in KEY -out PLAIN) and name that file with sslkey");
    "sslkeylogfile", Only(&[], "assay does not write session keys to files");
    "gssencmode" = "PGGSSENCMODE", Only(&["disable", "prefer"], "assay does not support GSSAPI; use TLS (sslmode)");
    "krbsrvname" = "PGKRBSRVNAME", Moot;
    "gsslib" = "PGGSSLIB", Moot;
    "gssdelegation" = "PGGSSDELEGATION", Only(&["0"], "assay does not support GSSAPI");
    "client_encoding", Only(&["auto", "UTF8", "utf8", "UTF-8", "utf-8"], "assay always uses UTF8");
    "load_balance_hosts" = "PGLOADBALANCEHOSTS", Only(&["disable"], "every session of a run connects to the same \
     server");
    "replication", Only(&["false", "off", "no", "0"], "the sessions of assay are ordinary sessions");
    "scram_client_key", Only(&[], NO_SCRAM_KEYS);
    "scram_server_key", Only(&[], NO_SCRAM_KEYS);
    "oauth_issuer", Only(&[], NO_OAUTH);
    "oauth_client_id", Only(&[], NO_OAUTH);
    "oauth_client_secret", Only(&[], NO_OAUTH);
    "oauth_scope", Only(&[], NO_OAUTH);
};

/// Variables that set session parameters, and the parameters' names.
pub(super) const SESSION_VARIABLES: &[(&str, &str)] = &[("PGTZ", "TimeZone"), ("PGGEQO", "geqo")];

/// Checks that a parameter exists and that assay can honour its value.
pub(super) fn judge(name: &str, value: &str) -> Result<(), String> {
    let Some(parameter) = PARAMETERS.iter().find(|known| known.name == name) else {
        return Err(format!("connection parameter {name:?} is unknown: libpq has no parameter with this name"));
    };
    match parameter.does {
        Use::Only(values, way_out) if !values.contains(&value) => {
            Err(format!("connection parameter {name} is not supported with this value: {way_out}"))
        }
        _ => Ok(()),
    }
}
