//! Whether a rate under load is that of a token bucket. Pure arithmetic over counts of equal slices of time.
//!
//! A bucket holds `size` tokens and gains `rate` of them per second; each operation takes one. Under load it gives what the device can do
//! until it is empty, then its rate; left alone it fills again. So a fall alone is no bucket: the burst must be back after a pause, by as
//! much as the rate refills in that time.

use assay_measure::statistics::{batch_means, half_width, mean, median};
use assay_measure::steady::{Fit, SplitSides, Sums, segments};

/// Fewest slices of a phase, and of a level that lasts.
pub(super) const LEVEL_SLICES: usize = 10;
/// Smallest fall that counts: a fifth.
pub(super) const FALL_RATIO: f64 = 0.2;
/// Rise or fall over a level, of its mean, up to which it is one.
const SLOPE_RATIO: f64 = 0.1;
/// Difference of means over its standard error from which a split counts.
const LEVEL_T: f64 = 6.0;
/// Part of the refill that a pause must bring back.
const RETURNED_RATIO: f64 = 0.5;
/// A limit counts over slices of its own: what is done in the first few slices is no burst. Decided here.
const SETTLING: usize = 3;
/// Slices that are counted together before it is judged whether a level is still.
const TOGETHER: usize = 10;
/// A still level stays within this part of its median, nine times in ten.
pub(super) const STILL_RATIO: f64 = 0.01;
/// Two levels at different depths that are this close are one.
pub(super) const SAME_RATIO: f64 = 0.02;

/// What was done under load, a pause after which the load was higher, and what was done then.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Load {
    /// How long a slice is, s.
    pub(super) slice_s: f64,
    /// Operations that ended in each slice, before the pause and after it.
    pub(super) done: [Vec<f64>; 2],
    /// How long nothing was asked between the two, s.
    pub(super) pause_s: f64,
}

/// What a full bucket gives beyond its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Burst {
    /// Operations per second while it lasts.
    pub(super) per_s: f64,
    /// How long it lasted, s.
    pub(super) lasted_s: f64,
    /// Operations beyond the rate: the tokens that were in the bucket.
    pub(super) size: f64,
    /// Time without load that fills it again, s.
    pub(super) refill_s: f64,
}

/// What the rates look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// A burst that ended at a level, and was back after the pause.
    Bucket(Burst),
    /// One rate at both depths, as even as a limit keeps it.
    Level,
    /// It fell to a level and did not come back after the pause.
    Fell,
    /// None of these: no cap within the time measured.
    Open,
}

/// A fitted load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fitted {
    /// Operations per second of the last level before the pause: what is sustained.
    pub(super) rate_per_s: f64,
    /// Half its 95 % interval.
    pub(super) half_width: Option<f64>,
    /// `None` where the time is too short to judge.
    pub(super) shape: Option<Shape>,
}

impl Load {
    /// `None` where there is too little to judge.
    pub(super) fn fit(&self) -> Option<Fitted> {
        let [first, second] = &self.done;
        if first.len() < 2 * LEVEL_SLICES {
            return None;
        }
        let begins = last_fall(first);
        // The slice of the change has some of both.
        let from = begins.map_or(SETTLING, |at| (at + 1).min(first.len() - LEVEL_SLICES));
        let level = &first[from..];
        let rate = mean(level);
        let per_s = |count: f64| count / self.slice_s;
        Some(Fitted {
            rate_per_s: per_s(rate),
            half_width: half_width(&batch_means(level)).map(per_s),
            shape: self.shape(begins, level, rate, second),
        })
    }

    fn shape(&self, begins: Option<usize>, level: &[f64], rate: f64, second: &[f64]) -> Option<Shape> {
        if self.done.iter().any(|done| done.len() < SETTLING + 2 * TOGETHER) {
            return None;
        }
        let is_level = Fit::of(level).is_some_and(|fit| {
            fit.mean > 0.0 && (fit.slope * (level.len() - 1) as f64).abs() <= SLOPE_RATIO * fit.mean
        });
        Some(if is_level { self.of_level(begins, level, rate, second) } else { Shape::Open })
    }

    /// Of a load that ended at a level.
    fn of_level(&self, begins: Option<usize>, level: &[f64], rate: f64, second: &[f64]) -> Shape {
        // Where the bucket was empty when the load began, only the second burst shows it.
        let again = last_fall(second).filter(|at| {
            let level = mean(&second[(at + 1).min(second.len() - 1)..]);
            (level - rate).abs() <= FALL_RATIO * rate
        });
        let refill = rate * self.pause_s / self.slice_s;
        let (before, after) = (begins.map_or(0.0, |at| beyond(&self.done[0], at, rate)), most_beyond(second, rate));
        let bursts = [begins.map(|at| (at, &self.done[0])), again.map(|at| (at, &self.done[1]))];
        let longest = bursts.into_iter().flatten().max_by_key(|(at, _)| *at);
        let Some((at, slices)) = longest else {
            return if is_one_level(level, second, rate) { Shape::Level } else { Shape::Open };
        };
        let due = if begins.is_some() { before.min(refill) } else { after.min(refill) };
        if after < RETURNED_RATIO * due || due <= 0.0 {
            return Shape::Fell;
        }
        // No bucket fills faster than its rate; a burst larger than that after an idle start is something else.
        if begins.is_none() && after > refill * (1.0 + FALL_RATIO) {
            return Shape::Open;
        }
        let size = if begins.is_some() { before } else { after };
        // The last of them may have some of both.
        let per_slice = mean(&slices[..at - 1]);
        Shape::Bucket(Burst {
            per_s: per_slice / self.slice_s,
            lasted_s: size / (per_slice - rate) * self.slice_s,
            size,
            refill_s: size / rate * self.slice_s,
        })
    }
}

/// The last change from one level to one that is lower by a fifth.
fn last_fall(done: &[f64]) -> Option<usize> {
    let sums = Sums::new(done);
    let score = |sides: &SplitSides| {
        let ((left, right), (a, b)) = (sides.counts, sides.means);
        let within = sides.squares / (left + right - 2.0);
        let error = (within * (1.0 / left + 1.0 / right)).sqrt();
        if a - b >= FALL_RATIO * a { (a - b) / error.max(1e-3 * a) } else { 0.0 }
    };
    // A burst may be over within a slice or two; what follows has to last.
    let mut split = |from: usize, to: usize| {
        let best = sums.best_split((from, to), 1, score)?;
        (best.1 >= LEVEL_T && to - best.0 >= LEVEL_SLICES).then_some(best)
    };
    segments((0, done.len()), &mut split).last().map(|(at, _)| *at).filter(|at| *at > SETTLING)
}

/// Operations beyond the rate up to a change, the slice of the change included.
fn beyond(done: &[f64], at: usize, rate: f64) -> f64 {
    done[..(at + 1).min(done.len())].iter().map(|count| count - rate).sum()
}

/// The most that the operations since the begin were ever beyond the rate.
fn most_beyond(done: &[f64], rate: f64) -> f64 {
    let mut sum = 0.0;
    let sums = done.iter().map(|count| {
        sum += count - rate;
        sum
    });
    sums.fold(0.0, f64::max)
}

/// Whether both phases kept one rate, each as even as a limit keeps it.
fn is_one_level(first: &[f64], second: &[f64], rate: f64) -> bool {
    let kept = |done: &[f64]| {
        let groups: Vec<f64> = done[SETTLING..].chunks_exact(TOGETHER).map(|group| group.iter().sum()).collect();
        let middle = median(&groups)?;
        // Counts are whole, and so is the edge of a slice.
        let near = |group: &&f64| (*group - middle).abs() <= (STILL_RATIO * middle).max(1.5);
        let still = groups.iter().filter(near).count();
        (groups.len() > 1 && middle > 0.0 && still * 10 >= groups.len() * 9).then_some(middle / TOGETHER as f64)
    };
    let both = kept(first).zip(kept(second));
    both.is_some_and(|(a, b)| (a - b).abs() <= SAME_RATIO * rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::prng::{Purpose, Stream};

    const SLICE_S: f64 = 0.1;

    struct Device {
        stream: Stream,
        /// What it does in a slice, and by how much of it one slice differs from another.
        per_slice: f64,
        scatter: f64,
        /// Tokens in the bucket, its size, and those that it gains in a slice.
        bucket: Option<(f64, f64, f64)>,
    }

    impl Device {
        fn of(seed: u64, per_slice: f64, scatter: f64) -> Self {
            Self { stream: Stream::new(seed, 0, Purpose::Sample), per_slice, scatter, bucket: None }
        }

        fn slices(&mut self, count: usize, speed: impl Fn(usize) -> f64) -> Vec<f64> {
            let slice = |at: usize| {
                let normal = (0..12).map(|_| self.stream.uniform_f64()).sum::<f64>() - 6.0;
                let able = (self.per_slice * speed(at) * (1.0 + self.scatter * normal)).max(0.0);
                let Some((tokens, size, gain)) = &mut self.bucket else { return able.round() };
                let done = able.min(*tokens + *gain).floor();
                *tokens = (*tokens + *gain - done).min(*size);
                done
            };
            (0..count).map(slice).collect()
        }

        fn load(&mut self, speed: impl Fn(usize) -> f64) -> Load {
            let first = self.slices(100, &speed);
            let pause = 30;
            if let Some((tokens, size, gain)) = &mut self.bucket {
                *tokens = (*tokens + f64::from(pause) * *gain).min(*size);
            }
            let second = self.slices(70, |at| speed(at + 100));
            Load { slice_s: SLICE_S, done: [first, second], pause_s: f64::from(pause) * SLICE_S }
        }
    }

    fn near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() <= 0.1 * wanted
    }

    #[test]
    fn buckets_of_random_size_and_refill_are_recovered_within_a_tenth() {
        for seed in 0..300 {
            let mut device = Device::of(seed, 0.0, 0.05);
            device.per_slice = 200.0 + 5000.0 * device.stream.uniform_f64();
            let gain = device.per_slice * (0.05 + 0.6 * device.stream.uniform_f64());
            let lasts = 5.0 + 60.0 * device.stream.uniform_f64();
            let size = lasts * (device.per_slice - gain);
            device.bucket = Some((size, size, gain));
            let able = device.per_slice;
            let fitted = device.load(|_| 1.0).fit().unwrap();
            let Some(Shape::Bucket(burst)) = fitted.shape else { panic!("{seed}: {fitted:?}") };
            assert!(near(fitted.rate_per_s, gain / SLICE_S), "{seed}: {fitted:?}, gain {gain}");
            assert!(near(burst.size, size), "{seed}: {burst:?}, size {size}");
            assert!(near(burst.per_s, able / SLICE_S), "{seed}: {burst:?}, able {able}");
            assert!(near(burst.refill_s, size / gain * SLICE_S), "{seed}: {burst:?}");
            // The device itself may empty it a little sooner or later than it does on average.
            let off = (burst.lasted_s / SLICE_S - lasts).abs();
            assert!(off <= 1.0 + 0.1 * lasts, "{seed}: {burst:?}, lasts {lasts}");
        }
    }

    #[test]
    fn a_bucket_that_begins_empty_shows_after_the_pause() {
        let mut device = Device { bucket: Some((0.0, 50_000.0, 300.0)), ..Device::of(1, 2000.0, 0.03) };
        let fitted = device.load(|_| 1.0).fit().unwrap();
        let Some(Shape::Bucket(burst)) = fitted.shape else { panic!("{fitted:?}") };
        assert!(near(fitted.rate_per_s, 3000.0) && near(burst.size, 9000.0), "{fitted:?}");
    }

    #[test]
    fn a_cap_without_a_burst_is_a_level_at_both_depths() {
        for seed in 0..100 {
            let gain = 20.0 + 10.0 * seed as f64;
            let mut device = Device { bucket: Some((0.0, gain, gain)), ..Device::of(seed, 3000.0, 0.1) };
            let fitted = device.load(|_| 1.0).fit().unwrap();
            assert_eq!(fitted.shape, Some(Shape::Level), "{seed}");
            assert!(near(fitted.rate_per_s, gain / SLICE_S), "{fitted:?}");
        }
    }

    #[test]
    fn a_device_without_a_cap_is_not_called_capped() {
        for seed in 0..400 {
            let scatter = [0.05, 0.1, 0.3, 0.6][seed as usize % 4];
            let fitted = Device::of(seed, 1000.0, scatter).load(|_| 1.0).fit().unwrap();
            assert_eq!(fitted.shape, Some(Shape::Open), "{seed} {scatter}");
            // More depth, more work: no limit keeps it.
            let deeper = Device::of(seed, 1000.0, 0.001).load(|at| if at < 100 { 1.0 } else { 1.1 });
            assert_eq!(deeper.fit().unwrap().shape, Some(Shape::Open), "{seed}");
        }
    }

    #[test]
    fn a_decline_is_no_bucket_and_neither_is_a_fall_for_good() {
        for seed in 0..100 {
            let slow = |at: usize| 1.0 - 0.005 * at as f64;
            let heated = |at: usize| 1.0 - 0.006 * (at % 100) as f64;
            let decays = |at: usize| 0.3 + 0.7 * (-(at as f64) / 40.0).exp();
            for (name, fitted) in [
                ("slow", Device::of(seed, 1000.0, 0.05).load(slow).fit()),
                ("heated", Device::of(seed, 1000.0, 0.05).load(heated).fit()),
                ("decays", Device::of(seed, 1000.0, 0.05).load(decays).fit()),
            ] {
                assert!(
                    !matches!(fitted.unwrap().shape, Some(Shape::Bucket(_) | Shape::Level)),
                    "{name} {seed}: {fitted:?}"
                );
            }
            let full = Device::of(seed, 1000.0, 0.05).load(|at| if at < 40 { 1.0 } else { 0.3 }).fit().unwrap();
            assert_eq!(full.shape, Some(Shape::Fell), "{seed}");
            assert!(near(full.rate_per_s, 3000.0), "{full:?}");
        }
    }

    #[test]
    fn a_short_time_judges_nothing() {
        assert_eq!(Load::default().fit(), None);
        let short = Load { slice_s: SLICE_S, done: [vec![5.0; 19], vec![5.0; 19]], pause_s: 1.0 };
        assert_eq!(short.fit(), None);
        let stopped = Load { slice_s: SLICE_S, done: [vec![5.0; 20], Vec::new()], ..short };
        assert_eq!(stopped.fit().unwrap().shape, None);
    }
}
