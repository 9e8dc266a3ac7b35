//! Datagrams: their header, and what a receiver counts of them.

/// Bytes of a header with a wide number; a narrow one has four less.
pub(crate) const HEADER_BYTES: usize = 16;
/// What a client says first on a UDP stream, and what a server answers.
pub(crate) const HELLO: [u8; 4] = *b"9876";
pub(crate) const ANSWER: [u8; 4] = *b"6789";
/// What servers before 3.10 answer.
pub(crate) const OLD_ANSWER: [u8; 4] = [0xb1, 0x68, 0xde, 0x3a];

/// Writes the header of a datagram: the sender's clock and its number.
pub(crate) fn write(into: &mut [u8], now_us: u64, number: u64, is_wide: bool) {
    into[0..4].copy_from_slice(&((now_us / 1_000_000) as u32).to_be_bytes());
    into[4..8].copy_from_slice(&((now_us % 1_000_000) as u32).to_be_bytes());
    if is_wide {
        into[8..16].copy_from_slice(&number.to_be_bytes())
    } else {
        into[8..12].copy_from_slice(&(number as u32).to_be_bytes())
    }
}

/// The sender's clock in us and the number; nothing of one that is too short.
pub(crate) fn read(from: &[u8], is_wide: bool) -> Option<(u64, u64)> {
    let word = |at: usize| Some(u32::from_be_bytes(from.get(at..at + 4)?.try_into().ok()?));
    let (seconds, micros) = (u64::from(word(0)?), u64::from(word(4)?));
    let number = if is_wide { u64::from(word(8)?) << 32 | u64::from(word(12)?) } else { u64::from(word(8)?) };
    Some((seconds * 1_000_000 + micros, number))
}

/// Datagrams behind the highest number that are told apart.
const WINDOW: u64 = 1 << 16;

/// What a stream has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) bytes: u64,
    /// Sent, or the highest number that came: what iperf3 calls the packets of a receiver.
    pub(crate) datagrams: u64,
    /// Lost as iperf3 counts: a late one takes one back, and so does one that comes twice.
    pub(crate) lost: u64,
    /// Below the highest number when they came, those that came twice among them.
    pub(crate) out_of_order: u64,
    /// Different ones.
    pub(crate) unique: u64,
    /// Those that came again.
    pub(crate) duplicates: u64,
    /// RFC 1889, us.
    pub(crate) jitter_us: f64,
}

/// What has arrived on a stream.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    pub(crate) counts: Counts,
    transit_us: Option<f64>,
    /// A bit for each of the last numbers.
    seen: Vec<u64>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self { counts: Counts::default(), transit_us: None, seen: vec![0; (WINDOW / 64) as usize] }
    }
}

impl Arrivals {
    /// One more, sent and come at these instants of two clocks.
    pub(crate) fn count(&mut self, number: u64, sent_us: u64, come_us: f64) {
        let highest = self.counts.datagrams;
        if number > highest {
            self.counts.lost += number - 1 - highest;
            self.forget(number);
            self.counts.datagrams = number;
        } else {
            self.counts.out_of_order += 1;
            self.counts.lost = self.counts.lost.saturating_sub(1);
        }
        self.tell_apart(number);
        let transit = come_us - sent_us as f64;
        if let Some(before) = self.transit_us.replace(transit) {
            let moved = (transit - before).abs();
            self.counts.jitter_us += (moved - self.counts.jitter_us) / 16.0;
        }
    }

    /// Numbers that the window has not reached yet are clean when it does.
    fn forget(&mut self, number: u64) {
        if number - self.counts.datagrams >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for new in self.counts.datagrams + 1..=number {
            let bit = new % WINDOW;
            self.seen[(bit / 64) as usize] &= !(1 << (bit % 64));
        }
    }

    fn tell_apart(&mut self, number: u64) {
        // One that is later than the window is not told from one that comes again: it is rarer.
        if self.counts.datagrams - number >= WINDOW {
            self.counts.unique += 1;
            return;
        }
        let bit = number % WINDOW;
        let word = &mut self.seen[(bit / 64) as usize];
        match *word & 1 << (bit % 64) {
            0 => self.counts.unique += 1,
            _ => self.counts.duplicates += 1,
        }
        *word |= 1 << (bit % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_from_both_widths() {
        for (is_wide, number) in [(true, 5 << 40), (false, 77)] {
            let mut bytes = [0; 16];
            write(&mut bytes, 3_000_042, number, is_wide);
            assert_eq!(read(&bytes, is_wide), Some((3_000_042, number)));
        }
        assert_eq!(read(&[0; 11], false), None);
        assert_eq!(read(&[0; 15], true), None);
    }

    #[test]
    fn net_08_loss_as_iperf3_counts_it_and_as_it_is() {
        let mut arrivals = Arrivals::default();
        for number in [1, 2, 4, 3, 6] {
            arrivals.count(number, 0, 0.0);
        }
        let counts = arrivals.counts;
        assert_eq!((counts.lost, counts.out_of_order, counts.datagrams), (1, 1, 6));
        // Of 8 that were sent, 7 and 8 are lost too.
        assert_eq!((counts.unique, 8 - counts.unique), (5, 3));
        arrivals.count(6, 0, 0.0);
        // One that comes twice hides a loss of iperf3's count, and none of ours.
        let counts = arrivals.counts;
        assert_eq!((counts.lost, counts.duplicates, counts.unique), (0, 1, 5));
    }

    #[test]
    fn a_wide_gap_leaves_no_old_marks() {
        let mut arrivals = Arrivals::default();
        for number in [1, 2, 3, 3 + WINDOW, 2 + WINDOW, 2 + 3 * WINDOW, 2 + 3 * WINDOW] {
            arrivals.count(number, 0, 0.0);
        }
        assert_eq!((arrivals.counts.unique, arrivals.counts.duplicates), (6, 1));
    }

    #[test]
    fn net_09_jitter_is_the_sixteenth_of_what_the_transit_moved() {
        let transits = [100.0, 140.0, 120.0, 120.0, 500.0, 90.0];
        let mut arrivals = Arrivals::default();
        let mut wanted = 0.0;
        for (at, transit) in transits.iter().enumerate() {
            let sent = 1000 * at as u64;
            arrivals.count(at as u64 + 1, sent, sent as f64 + transit);
            if at > 0 {
                let moved: f64 = transits[at] - transits[at - 1];
                wanted += (moved.abs() - wanted) / 16.0;
            }
        }
        assert!((arrivals.counts.jitter_us - wanted).abs() < 1e-9);
    }
}
