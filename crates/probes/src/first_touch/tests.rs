use super::estimate::Verdict;
use super::info::FirstTouchInfo;
use super::layout::{Extent, Layout, Spot};
use super::record::{KIND, build};
use super::sample::Reads;
use super::*;
use assay_measure::kind::Kind as _;
use assay_measure::record::Figure;
use assay_testkit::conformance::probe_suite;
use assay_testkit::rules::{Case, just_fire};
use std::collections::HashSet;

const GIB: u64 = 1 << 30;

/// A device of 64 GiB whose blocks are delayed at their first touch.
struct Device {
    chance: Stream,
    touched: HashSet<u64>,
    /// Bytes that one touch warms.
    extent_bytes: u64,
    /// Where cold parts begin and end, bytes.
    cold: Vec<[u64; 2]>,
    /// Median latencies, us: of a cold read, of a warm one, and of one that a cache answers.
    us: [f64; 3],
    /// Reads that noise makes slow begin with this chance and go on with the other.
    noise: [f64; 2],
    is_noisy: bool,
}

impl Device {
    fn quiet(seed: u64) -> Self {
        Self {
            chance: Stream::new(seed, 1, Purpose::Sample),
            touched: HashSet::new(),
            extent_bytes: 512 << 10,
            cold: Vec::new(),
            us: [8200.0, 400.0, 400.0],
            noise: [0.0, 0.0],
            is_noisy: false,
        }
    }

    fn noisy(seed: u64) -> Self {
        Self { noise: [0.03, 0.5], ..Self::quiet(seed) }
    }

    fn cold(self, cold: &[[u64; 2]]) -> Self {
        Self { cold: cold.to_vec(), ..self }
    }
}

impl Reads for Device {
    fn read(&mut self, spot: Spot) -> Result<Option<Ns>, EngineError> {
        let normal = (0..12).map(|_| self.chance.uniform_f64()).sum::<f64>() - 6.0;
        let is_first = self.touched.insert(spot.at / self.extent_bytes);
        let is_cold = self.cold.iter().any(|[begin, end]| (*begin..*end).contains(&spot.at));
        // Bit 63: the block itself, for the cache.
        let is_cached = !self.touched.insert(1 << 63 | spot.at);
        let at = if is_first && is_cold { 0 } else { 1 + usize::from(is_cached) };
        self.is_noisy = self.chance.uniform_f64() < self.noise[usize::from(self.is_noisy)];
        let stall = if self.is_noisy { 2000.0 + 8000.0 * self.chance.uniform_f64() } else { 0.0 };
        Ok(Some(((self.us[at] * (0.25 * normal).exp() + stall) * 1e3) as Ns))
    }

    fn is_cached(&self, _: Spot) -> bool {
        false
    }
}

fn layout() -> Layout {
    Layout::of(vec![Extent { file: 0, at: 0, blocks: 64 * GIB / BLOCK_BYTES }])
}

fn touches(mut device: Device, seed: u64, most: usize) -> Vec<Touch> {
    let mut chance = Stream::new(seed, 0, Purpose::Sample);
    let layout = layout();
    Sample { layout: &layout, most }.take(&mut device, &mut chance, &mut |_| true).unwrap()
}

fn estimate(device: Device, seed: u64) -> Estimate {
    Estimate::of(&touches(device, seed, 1024), layout().regions())
}

#[test]
fn the_cold_share_lies_in_its_interval_in_95_of_100_devices() {
    let mut inside = 0;
    let mut chance = Stream::new(1, 2, Purpose::Sample);
    for seed in 0..200 {
        // Two parts, together 2 to 90 % of it.
        let share = 0.02 + 0.88 * chance.uniform_f64();
        let cold = (share * 64.0 * GIB as f64) as u64;
        let first = (chance.uniform_f64() * cold as f64) as u64;
        let begin = (chance.uniform_f64() * (64 * GIB - cold) as f64) as u64;
        let second = [first + begin, cold + begin];
        let estimate = estimate(Device::noisy(seed).cold(&[[0, first], second]), seed);
        let [_, low, high] = estimate.share;
        inside += u32::from((low..=high).contains(&share));
        // One read in twenty is slow by noise here: less than that may be lost in it.
        assert!(estimate.is_cold() || share < 0.1, "{share}: {estimate:?}");
    }
    assert!(inside >= 190, "{inside} of 200");
}

#[test]
fn no_warm_device_is_called_cold_however_noisy_and_whatever_a_cache_below_it_answers() {
    for seed in 0..200 {
        let noisy = estimate(Device::noisy(seed), seed);
        assert_eq!(noisy.verdict, Verdict::NoneFound, "{seed}");
        assert!(noisy.hydrated().is_empty());
        // A disk of 0.3 ms with a tail, and a cache that answers in 0.02 ms without one.
        let mut cached = Device { us: [0.0, 300.0, 20.0], ..Device::quiet(seed) };
        cached.noise = [0.02, 0.0];
        assert_eq!(estimate(cached, seed).verdict, Verdict::NoneFound, "{seed}");
    }
}

#[test]
fn a_few_slow_first_reads_are_not_coldness_and_bound_it() {
    let mut touches = touches(Device::quiet(5), 5, 1024);
    for touch in &mut touches[..18] {
        touch.read.as_mut().unwrap().first_ns = 8_200_000;
    }
    let estimate = |touches: &[Touch]| Estimate::of(touches, layout().regions());
    let of = estimate(&touches);
    assert_eq!((of.verdict, of.seen.as_cold), (Verdict::NoneFound, 18));
    assert!((0.017..0.03).contains(&of.share[2]), "{:?}", of.share);
    touches[18].read.as_mut().unwrap().first_ns = 8_200_000;
    assert!(estimate(&touches).is_cold());
}

#[test]
fn a_device_that_is_cold_as_a_whole_is_told_from_a_cache_by_the_blocks_beside() {
    let whole = estimate(Device::noisy(3).cold(&[[0, 64 * GIB]]), 3);
    assert!(whole.is_cold() && whole.share[1] > 0.95, "{whole:?}");
    assert_eq!(whole.hydrated().len(), 64);
    // A disk of 8 ms whose cache answers what was just read.
    let disk = estimate(Device { us: [0.0, 8000.0, 200.0], ..Device::quiet(3) }, 3);
    assert!(matches!(disk.verdict, Verdict::Unknown(why) if why.contains("cache")));
}

#[test]
fn too_much_noise_and_too_few_blocks_are_no_verdict() {
    let busy = estimate(Device { noise: [0.3, 0.6], ..Device::quiet(4) }.cold(&[[0, 32 * GIB]]), 4);
    assert!(matches!(busy.verdict, Verdict::Unknown(why) if why.contains("too busy")));
    let few = Estimate::of(&touches(Device::quiet(4), 4, 31), 64);
    assert!(matches!(few.verdict, Verdict::Unknown(why) if why.contains("only 31 blocks")));
}

#[test]
fn the_same_seed_reads_the_same_blocks_and_none_is_first_read_twice() {
    struct Noted(Vec<Spot>);
    impl Reads for Noted {
        fn read(&mut self, spot: Spot) -> Result<Option<Ns>, EngineError> {
            self.0.push(spot);
            Ok(Some(1))
        }

        fn is_cached(&self, _: Spot) -> bool {
            false
        }
    }
    let layout = layout();
    let read = |seed: u64| {
        let mut noted = Noted(Vec::new());
        let mut chance = Stream::new(seed, 0, Purpose::Sample);
        Sample { layout: &layout, most: 16_384 }.take(&mut noted, &mut chance, &mut |_| true).unwrap();
        noted.0
    };
    let spots = read(7);
    assert_eq!(spots, read(7));
    assert_ne!(spots[..3], read(8)[..3]);
    let slots: HashSet<u64> = spots.chunks(3).map(|three| three[0].at >> 22).collect();
    assert_eq!((spots.len(), slots.len()), (3 * 16_384, 16_384), "every slot once");
}

/// Below the build directory: the system's temporary directory may be memory.
fn directory() -> tempfile::TempDir {
    let executable = std::env::current_exe().unwrap();
    tempfile::tempdir_in(executable.parent().unwrap()).unwrap()
}

#[test]
fn it_passes_the_suite() {
    let dir = directory();
    std::fs::write(dir.path().join("data"), vec![7; 8 << 20]).unwrap();
    let violations = probe_suite(&SPEC, dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn holes_are_told_and_not_read_and_what_cannot_be_read_is_refused_or_unknown() {
    let dir = directory();
    let path = dir.path().join("sparse");
    let file = std::fs::File::create(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; 4 << 20], 64 << 20).unwrap();
    file.set_len(256 << 20).unwrap();
    let object = Object::find(&path).unwrap();
    assert_eq!((object.layout.bytes(), object.hole_bytes), (4 << 20, 252 << 20));
    file.set_len(64 << 20).unwrap();
    let refused = Object::find(&path).unwrap_err().to_string();
    assert!(refused.contains("0 B of data") && refused.contains("64 MiB of holes"), "{refused}");
    let mut request = Request::at(&dir.path().join("absent"), Duration::from_secs(1));
    assert!(aim(&request).is_err());
    request.words.push(UNREADABLE.name.to_owned());
    struct Silent;
    impl Steps for Silent {
        fn step(&self, _: usize, _: usize, _: &str) {}
    }
    let measured = aim(&request).unwrap().measure(&Stop::new(), &Silent).unwrap();
    let record = measured.record(&RunData::default()).unwrap();
    assert_eq!(ids(&record), ["FT2"]);
    assert!(record.advice[0].text.contains("No such file"), "{:?}", record.advice);
}

#[test]
fn rates_of_hydration_are_sizes_per_second() {
    assert_eq!(rate("100MiB/s"), Ok(100 << 20));
    assert_eq!(rate("1G"), Ok(GIB));
    assert!(rate("1k").unwrap_err().contains("64 KiB/s or more"));
    assert!(rate("fast").is_err());
}

fn readings(cold_bytes: u64) -> FirstTouchReadings {
    let layout = layout();
    FirstTouchReadings {
        path: "/dev/vdb".to_owned(),
        kind: "a block device".to_owned(),
        is_direct: true,
        data_bytes: layout.bytes(),
        regions: (0..layout.regions()).map(|region| layout.region_bytes(region)).collect(),
        touches: touches(Device::quiet(2).cold(&[[0, cold_bytes]]), 2, 2048),
        speeds: [
            Some(Streamed { bytes: 50 << 20, elapsed_s: 1.0 }),
            Some(Streamed { bytes: 400 << 20, elapsed_s: 1.0 }),
        ],
        ..FirstTouchReadings::default()
    }
}

fn built(readings: &FirstTouchReadings) -> Record {
    build(&RunData::default(), readings)
}

fn ids(record: &Record) -> Vec<&str> {
    record.advice.iter().map(|advice| advice.id.as_str()).collect()
}

#[test]
fn the_answer_leads_with_how_much_is_cold_and_what_a_read_costs() {
    let mut cold = readings(16 * GIB);
    cold.hydration = Some((100 << 20, 16 * GIB, Streamed { bytes: 4 * GIB, elapsed_s: 41.0 }));
    let record = built(&cold);
    let info: FirstTouchInfo = record.parts.get().unwrap();
    let headline = KIND.headline(&record);
    assert!(headline.verdict.starts_with("16 GiB of 64 GiB are cold (95 %: 15."), "{}", headline.verdict);
    assert!(headline.verdict.contains("first read 8."), "{}", headline.verdict);
    assert_eq!(info.to_hydrate_bytes.value(), Some(16.0 * GIB as f64));
    assert!((info.hydrate_together_s.value().unwrap() - 16.0 * 1024.0 / 400.0).abs() < 0.1);
    let cold_regions = info.regions.iter().filter(|row| row.verdict == "cold").count();
    assert_eq!((cold_regions, info.regions[16].verdict.as_str()), (16, "warm"));
    let hydrated = &headline.rows.last().unwrap().otherwise;
    assert_eq!(hydrated, "4 GiB of 16 GiB in 41 s, 25 %: stopped; the same command goes on");
    assert_eq!(headline.limit.evidence, record.advice[0].text, "the finding is not told twice");
    cold.hydration = Some((100 << 20, 16 * GIB, Streamed { bytes: 16 * GIB, elapsed_s: 164.0 }));
    let verdict = KIND.headline(&built(&cold)).verdict;
    assert!(verdict.starts_with("16 GiB of 64 GiB were cold and have been read since (95 %"), "{verdict}");
    let warm = KIND.headline(&built(&readings(0)));
    assert!(warm.verdict.starts_with("nothing cold found: at most 123 MiB of 64 GiB (95 %)"), "{}", warm.verdict);
    let mut cached = readings(0);
    cached.touches.iter_mut().for_each(|touch| touch.read = None);
    let verdict = KIND.headline(&built(&cached)).verdict;
    assert!(verdict.ends_with("(95 %); this host had every block in its page cache"), "{verdict}");
}

#[test]
fn where_it_cannot_be_told_the_bytes_are_no_figure() {
    let memory = built(&FirstTouchReadings { is_memory: true, ..readings(16 * GIB) });
    let info: FirstTouchInfo = memory.parts.get().unwrap();
    assert_eq!(info.cold_bytes, Figure::na("the file lies in memory (tmpfs)"));
    assert!(info.regions.iter().all(|row| row.verdict.is_empty()));
    assert!(KIND.headline(&memory).verdict.starts_with("cannot tell"));
}

/// Rule by rule.
const CASES: &[Case] = &[
    ("FT1", |fires| {
        let mut warm = readings(0);
        for touch in &mut warm.touches[..if fires { 19 } else { 18 }] {
            touch.read.as_mut().unwrap().first_ns = 8_200_000;
        }
        built(&warm)
    }),
    ("FT2", |fires| {
        let mut some = readings(0);
        some.touches.truncate(if fires { 31 } else { 32 });
        built(&some)
    }),
    ("FT3", |fires| built(&FirstTouchReadings { left_out: (u64::from(fires), 1), ..readings(0) })),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    just_fire(&KIND.rules(), CASES);
}
