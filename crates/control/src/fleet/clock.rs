//! The clocks of hosts: how far each is from the controller's, and how well that is known.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Request and reply pairs that a clock is judged by.
pub const PINGS: usize = 20;

/// `CLOCK_MONOTONIC`, ns: the same in all processes of a host.
#[must_use]
pub fn mono_ns() -> u64 {
    ns(ClockId::Monotonic)
}

/// The wall clock, ns since 1970.
#[must_use]
pub fn wall_ns() -> u64 {
    ns(ClockId::Realtime)
}

fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// One request and its reply.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Sent, by the controller's monotonic clock, ns.
    pub sent_ns: u64,
    /// Received, by the same clock.
    pub received_ns: u64,
    /// The wall clock of the controller when it was received.
    pub wall_ns: u64,
    /// The host's monotonic clock in between.
    pub host_mono_ns: u64,
    /// The host's wall clock in between.
    pub host_wall_ns: u64,
}

/// How far a host's clocks are ahead of the controller's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// Monotonic clocks, ns: what instants are translated by.
    pub mono_ns: i64,
    /// Wall clocks, ns: what is reported.
    pub wall_ns: i64,
    /// Both are known within so much, ns: half of the shortest round trip.
    pub bound_ns: u64,
}

impl Offset {
    /// By the exchange with the shortest round trip; `None` without one. The reply may have been written at any instant of the
    /// round trip, so the middle is wrong by at most half of it.
    #[must_use]
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let best = exchanges.iter().min_by_key(|one| one.received_ns.saturating_sub(one.sent_ns))?;
        let half = best.received_ns.saturating_sub(best.sent_ns) / 2;
        Some(Self {
            mono_ns: best.host_mono_ns.wrapping_sub(best.sent_ns + half) as i64,
            wall_ns: best.host_wall_ns.wrapping_sub(best.wall_ns.saturating_sub(half)) as i64,
            bound_ns: half,
        })
    }

    /// An instant of the controller by the host's clock.
    #[must_use]
    pub fn to_host(&self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.mono_ns)
    }

    /// An instant of the host by the controller's clock.
    #[must_use]
    pub fn from_host(&self, ns: u64) -> u64 {
        ns.saturating_sub_signed(self.mono_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_reply_says_nothing_of_a_clock() {
        assert_eq!(Offset::of(&[]), None);
    }

    proptest! {
        /// Whatever the way there and back take, the clock is within the bound.
        #[test]
        fn the_offset_is_true_within_its_bound(
            ahead in -1_000_000_000_000_i64..1_000_000_000_000,
            ways in prop::collection::vec((1_u64..50_000_000, 1_u64..50_000_000), 1..=PINGS),
        ) {
            let mut now = 10_000_000_000_000_u64;
            let wall = 1_800_000_000_000_000_000_u64;
            let exchanges: Vec<Exchange> = ways.iter().map(|&(there, back)| {
                let sent_ns = now;
                now += there + back;
                Exchange {
                    sent_ns,
                    received_ns: now,
                    wall_ns: wall + now,
                    host_mono_ns: (sent_ns + there).saturating_add_signed(ahead),
                    host_wall_ns: (wall + sent_ns + there).saturating_add_signed(ahead),
                }
            }).collect();
            let offset = Offset::of(&exchanges).expect("there are exchanges");
            let shortest = ways.iter().map(|(there, back)| there + back).min().expect("one");
            prop_assert_eq!(offset.bound_ns, shortest / 2);
            // Halves are of whole nanoseconds.
            prop_assert!(offset.mono_ns.abs_diff(ahead) <= offset.bound_ns + 1);
            prop_assert!(offset.wall_ns.abs_diff(ahead) <= offset.bound_ns + 1);
            prop_assert_eq!(offset.from_host(offset.to_host(now)), now);
        }
    }
}
