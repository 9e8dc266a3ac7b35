//! How many completions a thread waits for.

/// Three quarters of the recent burst size, at most half of what is in flight.
///
/// Waiting for one completion takes a system call per completion even if they come in bursts; waiting for many delays
/// those that are ready. On a device that completes in bursts, most of the usual burst is ready at once. On a device
/// that completes evenly, exactly as many arrive as were waited for, so the next wait is for three quarters of that,
/// and soon for one: the wait itself delays nothing. `docs/design/io-loop.md` and `docs/design/native-engine.md` have
/// the measurements.
#[derive(Clone, Copy, Debug)]
pub struct Bursts {
    /// Running mean of the burst size, in units of 1/256.
    mean: i32,
}

impl Default for Bursts {
    /// Of a device that completes evenly.
    fn default() -> Self {
        Self { mean: 256 }
    }
}

impl Bursts {
    /// Records the size of a burst.
    #[inline]
    pub fn came(&mut self, n: u32) {
        self.mean += ((n as i32) * 256 - self.mean) / 16;
    }

    /// Number of completions to wait for, with so many requests in flight.
    #[inline]
    #[must_use]
    pub fn wanted(&self, in_flight: u32) -> u32 {
        ((self.mean * 3 / 1024) as u32).clamp(1, (in_flight / 2).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_a_burst_is_waited_for_and_never_more_than_half_of_what_is_in_flight() {
        let mut bursts = Bursts::default();
        assert_eq!(bursts.wanted(32), 1);
        (0..200).for_each(|_| bursts.came(16));
        assert_eq!((bursts.wanted(32), bursts.wanted(4)), (11, 2));
        (0..200).for_each(|_| bursts.came(32));
        assert_eq!(bursts.wanted(32), 16);
        // An even device: exactly as many completions arrive as are waited for.
        (0..200).for_each(|_| bursts.came(bursts.wanted(32)));
        assert_eq!((bursts.wanted(32), bursts.wanted(1)), (1, 1), "{bursts:?}");
    }
}
