//! What will run: every option resolved, nothing optional left to decide.

use crate::work::{Assignment, Op};
use assay_measure::clock::{NS_PER_S, Ns};
use serde::{Deserialize, Serialize};

/// Sessions of one run on one host: a stamp keeps 20 bits for the session.
pub const SESSIONS_MAX: u64 = 1 << 20;

/// Historical rules on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// The exact rules.
    None,
    /// SLOB 2.5.3's: w-1 rows, its mix, counter rules and hot window.
    Slob253,
}

/// How update positions are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// Exactly UPDATE_PCT of every 100 operations, at random positions.
    Exact,
    /// Independent draws.
    Bernoulli,
    /// SLOB 2.5.3's quota window.
    Slob253,
}

/// What happens at the ends of the key range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// Ranges lie inside; keys near the ends are visited a little less.
    Clamp,
    /// Ranges wrap: in a range outside the hot window a key above SCALE means the
    /// key less SCALE. Every key is visited equally.
    Wrap,
}

/// The hot window, in keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotSpot {
    /// First key of the window is `offset_blocks + 1`.
    pub offset_blocks: u64,
    /// Keys in it.
    pub size_blocks: u64,
    /// One operation in this many.
    pub frequency: u64,
}

/// Think time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// One operation in this many.
    pub frequency: u64,
    /// Shortest pause, ns.
    pub min_ns: Ns,
    /// Longest pause, ns.
    pub max_ns: Ns,
}

/// How operations arrive under a rate, where they are not evenly spaced for each session in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    /// At random (a Poisson process); otherwise evenly spaced.
    pub at_random: bool,
    /// In one queue, from which any session takes them; otherwise each session's source says when its own are due.
    pub shared: bool,
    /// In one queue: the most that may wait; further arrivals are dropped and counted. 0: no limit.
    pub waiting_max: u64,
}

/// Columns changed by an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedoStress {
    /// c2 and c20: 256 bytes a row.
    Lite,
    /// c2 to c20: 2,432 bytes a row.
    Heavy,
}

/// What one host of a fleet has of a run: sessions that follow each other in number, as many as on any other host or one
/// more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Which host, from 0.
    pub host: u32,
    /// Hosts of the run.
    pub hosts: u32,
    /// Sessions of the hosts before this one.
    pub before: u32,
    /// Sessions of all hosts.
    pub sessions: u32,
}

impl Share {
    /// The share of a host, and how many sessions it has.
    ///
    /// # Errors
    /// Some host would have no session.
    pub fn of(host: u32, hosts: u32, sessions: u32) -> Result<(Self, u32), String> {
        if sessions < hosts {
            return Err(format!(
                "{sessions} sessions cannot be divided among {hosts} hosts: each needs one; the settings are those of the whole \
                 fleet, so raise THREADS_PER_SCHEMA or SESSIONS"
            ));
        }
        let (each, more) = (sessions / hosts, sessions % hosts);
        let before = host * each + host.min(more);
        Ok((Self { host, hosts, before, sessions }, each + u32::from(host < more)))
    }
}

/// A run with everything decided: what every workload asks of the loop, and what SLOB asks of its sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Schemas used, 1..=schemas.
    pub schemas: u32,
    /// Sessions per schema; with `sessions_asked` the most of any schema.
    pub threads_per_schema: u32,
    /// Sessions in all where they are not schemas x threads: session k works on schema
    /// ((k - 1) mod schemas) + 1, and no schema is without a session.
    #[serde(default)]
    pub sessions_asked: Option<u32>,
    /// Keys used: 1..=scale.
    pub scale: u64,
    /// Blocks of the scan table.
    pub scan_blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Percent of operations.
    pub update_pct: u32,
    /// Percent of selects.
    pub scan_pct: u32,
    /// Keys per select.
    pub work_unit: u32,
    /// Keys per update.
    pub update_work_unit: u32,
    /// Columns changed.
    pub redo_stress: RedoStress,
    /// Measured window, ns; 0 with `work_loop`.
    pub run_time_ns: Ns,
    /// Load before the window, ns; 0 with `work_loop`.
    pub warmup_ns: Ns,
    /// Operations per session; 0 is a timed run.
    pub work_loop: u64,
    /// Cap on a `work_loop` run.
    pub max_run_time_ns: Option<Ns>,
    /// Total operations per second; 0 is a closed loop.
    pub rate_per_s: u64,
    /// Under a rate: how operations arrive; `None`: evenly spaced, for each session in its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Keys that updates may touch: 1..=update_keys. SCALE, unless UPDATE_HOTSPOT
    /// confines updates to HOTSPOT_PCT percent of it (SLOB 2.2).
    pub update_keys: u64,
    /// Hot spot, if on.
    pub hot_spot: Option<HotSpot>,
    /// One operation in this many goes to schema 1; 0 is off.
    pub hot_schema_frequency: u64,
    /// Think time, if on.
    pub think: Option<Think>,
    /// Commit after this many updates of a session.
    pub commit_every: u64,
    /// Mix rule.
    pub mix: Mix,
    /// Edge rule.
    pub edge: Edge,
    /// Historical rules.
    pub compat: Compat,
    /// Random content of changed columns.
    pub obfuscate: bool,
    /// Master seed.
    pub seed: u64,
    /// Of a fleet's run: the share of this host. Sessions are numbered from 1 on each host; their streams, home schemas and
    /// turns are those of their number in the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Differs for every run, also at equal seeds: part of every stamp.
    pub run_stamp: u32,
}

impl Plan {
    /// A read-only closed loop over `scale` keys with every feature off, one second
    /// long and without warm-up: the plan that tests, benches and probes start from.
    #[must_use]
    pub fn plain(schemas: u32, threads_per_schema: u32, scale: u64) -> Self {
        Self {
            schemas,
            threads_per_schema,
            sessions_asked: None,
            scale,
            scan_blocks: 0,
            block_bytes: 8192,
            update_pct: 0,
            scan_pct: 0,
            work_unit: 64,
            update_work_unit: 64,
            redo_stress: RedoStress::Lite,
            run_time_ns: NS_PER_S,
            warmup_ns: 0,
            work_loop: 0,
            max_run_time_ns: None,
            rate_per_s: 0,
            arrivals: None,
            update_keys: scale,
            hot_spot: None,
            hot_schema_frequency: 0,
            think: None,
            commit_every: 1,
            mix: Mix::Exact,
            edge: Edge::Clamp,
            compat: Compat::None,
            obfuscate: false,
            seed: 1,
            share: None,
            run_stamp: 1,
        }
    }

    /// Sessions in all.
    #[must_use]
    pub fn sessions(&self) -> usize {
        match self.sessions_asked {
            Some(sessions) => sessions as usize,
            None => self.schemas as usize * self.threads_per_schema as usize,
        }
    }

    /// Leaves of the plan what `host` (from 0) of `hosts` does.
    ///
    /// # Errors
    /// Some host would have no session.
    pub fn take_share(&mut self, host: u32, hosts: u32) -> Result<(), String> {
        let (share, sessions) = Share::of(host, hosts, self.sessions() as u32)?;
        self.share = Some(share);
        self.sessions_asked = Some(sessions);
        Ok(())
    }

    /// Hosts that run it at the same time, beside this one.
    #[must_use]
    pub fn other_hosts(&self) -> u32 {
        self.share.map_or(0, |share| share.hosts - 1)
    }

    /// Sessions of all hosts.
    #[must_use]
    pub fn sessions_of_fleet(&self) -> u32 {
        self.share.map_or(self.sessions() as u32, |share| share.sessions)
    }

    /// The number in the fleet of this host's session `session` (both from 1).
    #[must_use]
    pub fn number_in_fleet(&self, session: u32) -> u32 {
        self.share.map_or(0, |share| share.before) + session
    }

    /// Operations per second of this host's sessions; 0 is a closed loop.
    #[must_use]
    pub fn rate_here_per_s(&self) -> f64 {
        let rate = self.rate_per_s as f64;
        match (self.share, self.arrivals) {
            (Some(share), Some(Arrivals { shared: true, .. })) => rate / f64::from(share.hosts),
            (Some(share), _) => rate * self.sessions() as f64 / f64::from(share.sessions),
            (None, _) => rate,
        }
    }

    /// Home schema of session `session` (both from 1): schema by schema in turn,
    /// so that `-s 4 -t 3` puts sessions 1, 5 and 9 on schema 1.
    #[must_use]
    pub fn home_schema(&self, session: u32) -> u32 {
        (self.number_in_fleet(session) - 1) % self.schemas + 1
    }

    /// Deals the sessions to `threads` driver threads in turn. What a session does
    /// is a function of its number alone, so the thread count changes no operation.
    #[must_use]
    pub fn assignments(&self, threads: usize) -> Vec<Assignment> {
        let threads = threads.clamp(1, self.sessions().max(1));
        let sessions = self.sessions() as u32;
        (0..threads)
            .map(|thread| Assignment {
                thread,
                threads,
                sessions: (1..=sessions)
                    .skip(thread)
                    .step_by(threads)
                    .map(|session| (session, self.home_schema(session)))
                    .collect(),
            })
            .collect()
    }

    /// Rows that a select must touch: WORK_UNIT, or one less under COMPAT=slob253.
    #[must_use]
    pub fn select_width(&self) -> u32 {
        self.width_of(self.work_unit)
    }

    /// Rows that an update must touch: UPDATE_WORK_UNIT, or one less under COMPAT=slob253.
    #[must_use]
    pub fn update_width(&self) -> u32 {
        self.width_of(self.update_work_unit)
    }

    /// Rows that `op` must touch.
    #[must_use]
    pub fn rows_expected(&self, op: &Op) -> u64 {
        match *op {
            Op::Select { width, .. } | Op::Update { width, .. } => u64::from(width),
            Op::Scan { .. } => self.scan_blocks,
            Op::Call { .. } => 0,
        }
    }

    fn width_of(&self, work_unit: u32) -> u32 {
        match self.compat {
            Compat::None => work_unit,
            Compat::Slob253 => work_unit - 1,
        }
    }

    /// Legal but surprising settings, as full sentences for the report.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.hot_schema_frequency > 0 && self.schemas == 1 {
            notices.push(
                "HOT_SCHEMA_FREQUENCY has no effect with one schema: all work goes to schema 1 anyway".to_owned(),
            );
        }
        notices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The hosts of a fleet together do what one host would: each session once, on its schema, at its part of the rate.
        #[test]
        fn shares_are_the_whole_plan(hosts in 1_u32..9, schemas in 1_u32..5, threads in 1_u32..9, is_shared: bool) {
            let arrivals = is_shared.then_some(Arrivals { at_random: true, shared: true, waiting_max: 0 });
            let whole = Plan { rate_per_s: 1000, arrivals, ..Plan::plain(schemas, threads, 1000) };
            let (mut sessions, mut rate, mut least, mut most) = (Vec::new(), 0.0, u32::MAX, 0);
            for host in 0..hosts {
                let mut plan = whole.clone();
                if let Err(why) = plan.take_share(host, hosts) {
                    prop_assert!((whole.sessions() as u32) < hosts, "{}", why);
                    return Ok(());
                }
                let own = plan.assignments(2).into_iter().flat_map(|assignment| assignment.sessions);
                sessions.extend(own.map(|(session, home)| (plan.number_in_fleet(session), home)));
                rate += plan.rate_here_per_s();
                least = least.min(plan.sessions() as u32);
                most = most.max(plan.sessions() as u32);
            }
            sessions.sort_unstable();
            let all: Vec<(u32, u32)> = (1..=whole.sessions() as u32).map(|k| (k, whole.home_schema(k))).collect();
            prop_assert_eq!(sessions, all);
            prop_assert!((rate - 1000.0).abs() < 1e-6 && most - least <= 1);
        }
    }
}
