//! The two servers that speak this protocol, and their differences.

/// The server's product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    MariaDb,
    MySql,
}

use Product::{MariaDb, MySql};

impl Product {
    /// The product by `select version()`: only MariaDB puts its name there.
    pub(super) fn of(version: &str) -> Self {
        if version.contains("MariaDB") { MariaDb } else { MySql }
    }

    /// The product by the name after `temp:`.
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

    /// Supported versions, whose status names and statements assay knows: the first and the last.
    pub(super) const fn known(self) -> [(u32, u32); 2] {
        match self {
            MariaDb => [(10, 6), (11, 8)],
            MySql => [(8, 0), (9, 7)],
        }
    }

    /// Table with `name` and `variable_value` of the server's status.
    pub(super) const fn status(self) -> &'static str {
        match self {
            MariaDb => "information_schema.global_status",
            MySql => "performance_schema.global_status",
        }
    }

    /// Table of the server's sessions: `id`, `tid` (the operating system's thread), `command`, `state`.
    pub(super) const fn sessions(self) -> &'static str {
        match self {
            MariaDb => "information_schema.processlist",
            MySql => {
                "(select processlist_id as id, thread_os_id as tid, processlist_command as command, \
                 processlist_state as state from performance_schema.threads where processlist_id is not null) as sessions"
            }
        }
    }

    /// Table options that store rows as written, without compression or encryption.
    pub(super) const fn plain_rows(self) -> &'static str {
        match self {
            MariaDb => "page_compressed=0 encrypted=default",
            MySql => "compression='none'",
        }
    }

    /// `optimizer_switch` for a session that reads a range row by row through its index, or in batches of many index entries.
    pub(super) const fn batches(self, batched: bool) -> &'static str {
        match (self, batched) {
            (MariaDb, true) => "mrr=on,mrr_sort_keys=off,mrr_cost_based=off",
            (MySql, true) => "mrr=on,mrr_cost_based=off",
            (_, false) => "mrr=off",
        }
    }

    /// Whether numbers such as an order's come from the server's sequences. MySQL has none: there a session reserves
    /// numbers in a one-row table with a sequence's name and column, and so knows them beforehand.
    pub(super) const fn has_sequences(self) -> bool {
        matches!(self, MariaDb)
    }

    /// Whether a database can have a comment; MySQL's cannot.
    pub(super) const fn comments_databases(self) -> bool {
        matches!(self, MariaDb)
    }

    /// Positions of columns `type` and `key` in `explain format=traditional`.
    pub(super) const fn plan_columns(self) -> [usize; 2] {
        // id, select_type, table, (partitions,) type, possible_keys, key, ...
        match self {
            MariaDb => [3, 5],
            MySql => [4, 6],
        }
    }
}
