//! `fleet run -- platform`: the tests of a platform on all hosts, each at the same time.

use super::{Asked, OUTPUT, Refused};
use crate::cli::PlatformArgs;
use assay_control::fleet::controller::{Gathered, HostResult};
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_platform::hosts::{self, Given};

/// The kind of its records.
pub(super) const NAME: &str = hosts::NAME;

pub(super) fn of(asked: PlatformArgs) -> (Asked, Refused) {
    let refused = vec![
        ("-o", asked.record.output.is_some(), OUTPUT),
        ("--dry-run", asked.record.dry_run, "`assay platform --dry-run` shows the plan of one host"),
        ("--peer", asked.peer.is_some(), "`assay fleet run -- net` and `-- ping` measure all pairs of hosts"),
        (
            "--goals",
            asked.goals.is_some(),
            "the file lies on this host alone: leave it out, and limits are those that assay brings",
        ),
    ];
    (Asked::Platform(asked), refused)
}

/// The record of all of them; `data` is their runs as one.
pub(super) fn record(data: &RunData, gathered: &Gathered) -> Record {
    let given = |host| {
        let HostResult { hello, data, lost, gate_ns, .. }: &HostResult = host;
        let part = data.as_ref().and_then(|data| data.part.as_ref());
        let why = if lost.is_empty() { "nothing is kept of it" } else { lost };
        Given { name: &hello.name, part: part.ok_or(why), gate_ns: *gate_ns }
    };
    hosts::build(data, &gathered.hosts.iter().map(given).collect::<Vec<_>>())
}
