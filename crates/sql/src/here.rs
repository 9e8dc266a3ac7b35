//! Facts about a server that may run on this host: where it runs, the devices that hold its files, and what the kernel
//! charged to it.

use crate::procs::{Io, Sum};
use assay_measure::counter_catalog::{
    BACKGROUND_CPU, DB_CPU, SERVER_DEVICE_READ_BYTES, SERVER_DIRTIED_BYTES, SERVER_OTHER_CPU, SERVER_READ_CALL_BYTES,
    SERVER_READ_CALLS, SERVER_RUN_DELAY, Stat,
};
use assay_measure::facts::SERVER_HOST;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use std::path::Path;

/// Key of the counters read from `/proc`.
pub(crate) const SOURCE: &str = "proc";

/// Counters of a server that can be read only on its own host.
pub(crate) const CHARGED: [Stat; 8] = [
    SERVER_DEVICE_READ_BYTES,
    SERVER_DIRTIED_BYTES,
    SERVER_READ_CALL_BYTES,
    SERVER_READ_CALLS,
    DB_CPU,
    SERVER_RUN_DELAY,
    BACKGROUND_CPU,
    SERVER_OTHER_CPU,
];

/// Whether the server runs on this host: the evidence, or why not.
pub(crate) fn server_host(found: Result<&str, &str>) -> Fact {
    SERVER_HOST.fact(match found {
        Ok(evidence) => format!("same host: {evidence}"),
        Err(why) => format!("n/a (unknowable: {why})"),
    })
}

/// The device and file system under a directory, or why they are unknown.
pub(crate) fn device_facts(directory: Result<&Path, &str>) -> Vec<Fact> {
    let facts = match directory {
        Ok(path) => assay_block::device_facts(path).lines(),
        Err(why) => ["disk", "fs_type"].map(|name| (name, format!("n/a ({why})"))).into(),
    };
    let facts = facts.into_iter();
    facts.map(|(name, value)| Fact::new(&format!("device_{name}"), value)).collect()
}

/// Marks all these counters as unreadable from this host.
pub(crate) fn unseen(into: &mut StatSet) {
    for stat in CHARGED {
        into.put(stat, Reading::Na("unknowable".to_owned()), SOURCE);
    }
}

impl Sum {
    /// A figure of the server's I/O.
    pub(crate) fn io(&self, value: fn(&Io) -> u64) -> Reading {
        match &self.io {
            Ok(io) => Reading::Count(value(io)),
            Err(reason) => Reading::Na(reason.clone()),
        }
    }

    /// Puts all counters; `ours` and `others` say why the CPU time of our sessions, or of all others, cannot be told apart.
    pub(crate) fn put(&self, into: &mut StatSet, ours: Option<&String>, others: Option<&String>) {
        let cpu = |ns: u64, unknown: Option<&String>| match (self.has_cpu, unknown) {
            (false, _) => Reading::Na("absent: /proc/<pid>/schedstat".to_owned()),
            (true, Some(why)) => Reading::Na(why.clone()),
            (true, None) => Reading::Count(ns),
        };
        let readings = [
            self.io(|io| io.device_bytes),
            self.io(|io| io.dirtied_bytes),
            self.io(|io| io.call_bytes),
            self.io(|io| io.calls),
            cpu(self.ours.used_ns, ours),
            cpu(self.ours.delay_ns, ours),
            cpu(self.background.used_ns, others),
            cpu(self.other.used_ns, others),
        ];
        for (stat, reading) in CHARGED.into_iter().zip(readings) {
            into.put(stat, reading, SOURCE);
        }
    }
}
