//! The MariaDB target's own parameters; the workload's are in `assay_measure::config`.

use assay_measure::config::Effect::{Platform, Work};
use assay_measure::config::ParamDef;
use assay_measure::config::ParamKind::{Choice, Int, Seconds, Text};
use assay_measure::params;

/// Every parameter of the MariaDB target.
pub(super) const PARAMS: &[ParamDef] = params! {
    "READ_MODE", Choice(&["single", "batched"]), "single", "single: one page at a time, by the index; batched: rows in \
     the order of their pages (MRR)" => Work("prefetch");
    "DRIVER_THREADS", Int(0, 1024), "0", "threads that drive the sessions of LOOP=client; 0: one per session, \
     at most one per CPU" => Platform;
    "COMMIT_MODE", Choice(&["default", "sync", "write", "none"]), "default", "of a throw-away server: sync, each commit is \
     durable; write, written at each commit and \
     synced once a second; none, both once a \
     second (innodb_flush_log_at_trx_commit 1, 2, \
     0); default: the server's setting. assay \
     changes no other server" => Work("durability");
    "MYSQL_DEFAULTS_FILE", Text, "", "file of options (groups client and assay) that says what the URL does not; default: \
     /etc/my.cnf, /etc/mysql/my.cnf, ~/.my.cnf";
    "MYSQL_LOAD", Choice(&["auto", "local", "insert"]), "auto", "how assay loads rows: local, LOAD DATA LOCAL from \
        memory; insert, multi-row inserts; auto: local where the server allows it";
    "MYSQL_ANSWER_TIMEOUT", Seconds, "60", "seconds (at least 1) to wait for an answer before assay asks the server \
     for a sign of life on another connection, and gives it up without one; it gives up a session of a run at once";
    "MYSQL_GRACE", Seconds, "60", "seconds (at least 1) that a timed run waits after its end for operations in \
     progress: after two thirds assay cancels them; at the end it gives them up, and the run is invalid";
    "CHECK", Choice(&["full", "sampled"]), "full", "what `assay check` reads: every row, or the index and the first \
     rows of each table";
    "MYSQL_SET", Text, "", "settings of a temp:mariadb or temp:mysql server, NAME=VALUE, separated by semicolons" => Platform;
    "MYSQL_BIN", Text, "", "directories of mariadbd and mariadb-install-db for temp:mariadb, of mysqld for temp:mysql, separated by colons; \
     default: where packages install them";
    "MYSQL_DIR", Text, "", "where assay makes the private directory of a temp:mariadb or temp:mysql server; default: TMPDIR, else \
     /var/tmp";
};
