//! The two servers that speak this protocol, and where they differ.

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    MariaDb,
    MySql,
}

use Product::{MariaDb, MySql};

impl Product {
    /// By what `select version()` says: MariaDB names itself there, MySQL does not.
    pub(super) fn of(version: &str) -> Self {
        if version.contains("MariaDB") { MariaDb } else { MySql }
    }

    /// By what follows `temp:`.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "mysql" => MySql,
            _ => MariaDb,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            MariaDb => "MariaDB",
            MySql => "MySQL",
        }
    }

    /// Versions whose status names and statements are known to us: first and last with all that lies between.
    pub(super) const fn known(self) -> [(u32, u32); 2] {
        match self {
            MariaDb => [(10, 6), (11, 8)],
            MySql => [(8, 0), (9, 7)],
        }
    }

    /// Where `name` and `variable_value` of the server's status are.
    pub(super) const fn status(self) -> &'static str {
        match self {
            MariaDb => "information_schema.global_status",
            MySql => "performance_schema.global_status",
        }
    }

    /// The server's sessions: `id`, `tid` (the thread of the system that serves it), `command`, `state`.
    pub(super) const fn sessions(self) -> &'static str {
        match self {
            MariaDb => "information_schema.processlist",
            MySql => {
                "(select processlist_id as id, thread_os_id as tid, processlist_command as command, \
                 processlist_state as state from performance_schema.threads where processlist_id is not null) as sessions"
            }
        }
    }

    /// What keeps rows as they are written: nothing is compressed or encrypted.
    pub(super) const fn plain_rows(self) -> &'static str {
        match self {
            MariaDb => "page_compressed=0 encrypted=default",
            MySql => "compression='none'",
        }
    }

    /// `optimizer_switch` for a session that reads a range by its index alone, or the rows of many index entries together.
    pub(super) const fn batches(self, batched: bool) -> &'static str {
        match (self, batched) {
            (MariaDb, true) => "mrr=on,mrr_sort_keys=off,mrr_cost_based=off",
            (MySql, true) => "mrr=on,mrr_cost_based=off",
            (_, false) => "mrr=off",
        }
    }

    /// An order's number and its like come from sequences of the server's. MySQL has none: there a session reserves numbers
    /// in a table of one row that has a sequence's name and column, and knows them beforehand.
    pub(super) const fn has_sequences(self) -> bool {
        matches!(self, MariaDb)
    }

    /// A database has a comment, which MySQL's have not.
    pub(super) const fn comments_databases(self) -> bool {
        matches!(self, MariaDb)
    }

    /// Columns `type` and `key` of an `explain format=traditional`.
    pub(super) const fn plan_columns(self) -> [usize; 2] {
        // id, select_type, table, (partitions,) type, possible_keys, key, ...
        match self {
            MariaDb => [3, 5],
            MySql => [4, 6],
        }
    }
}
