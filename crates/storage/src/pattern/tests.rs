//! Every rule of the pattern: what real fio 3.33 does for the same options (its `write_iolog` files), where the rule is
//! fio's; closed forms and properties where it is a distribution.

use super::super::spec::BlockSizes;
use super::super::spec::{JobFileOptions, Mode};
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const K: u64 = 1024;

fn options(mode: Mode, set: impl FnOnce(&mut JobOptions)) -> JobOptions {
    let mut options = JobOptions::default();
    options.pattern.mode = mode;
    set(&mut options);
    options
}

fn blocks(min: u64, max: u64) -> BlockSizes {
    BlockSizes { min: min as u32, max: max as u32, split: Vec::new() }
}

fn region_of(start: u64, bytes: u64) -> Region {
    Region { file: 0, start, bytes }
}

fn files(count: u16, bytes: u64) -> Vec<Region> {
    (0..count).map(|file| Region { file, start: 0, bytes }).collect()
}

fn rest(pattern: &mut Pattern) -> Vec<Io> {
    std::iter::from_fn(|| match pattern.next() {
        Next::Io(io) => Some(io),
        Next::Done => None,
    })
    .collect()
}

fn all(options: &JobOptions, regions: &[Region]) -> Vec<Io> {
    rest(&mut Pattern::new(options, regions, 0, 1).unwrap())
}

#[test]
fn trims_go_where_writes_of_their_sizes_would_go() {
    for (trims, writes) in [(Mode::Trim, Mode::Write), (Mode::RandTrim, Mode::RandWrite)] {
        let sizes = |options: &mut JobOptions| {
            options.pattern.blocks = [blocks(K, K), blocks(4 * K, 4 * K), blocks(8 * K, 16 * K)];
        };
        let trims = all(&options(trims, sizes), &[region_of(0, 256 * K)]);
        let as_writes = options(writes, |options| {
            sizes(options);
            options.pattern.blocks[1] = options.pattern.blocks[2].clone();
        });
        let writes = all(&as_writes, &[region_of(0, 256 * K)]);
        assert!(trims.iter().all(|io| io.way == Way::Trim));
        let places = |ios: &[Io]| -> Vec<(u64, u32)> { ios.iter().map(|io| (io.offset, io.len)).collect() };
        assert_eq!(places(&trims), places(&writes));
    }
}

/// Offsets in KiB.
fn offsets(options: &JobOptions, bytes: u64) -> Vec<u64> {
    let ios = all(options, &[region_of(0, bytes)]);
    ios.iter().map(|io| io.offset / K).collect()
}

#[test]
fn sequential_io_drops_the_tail_and_wraps() {
    let plain = options(Mode::Read, |_| {});
    assert_eq!(offsets(&plain, 10 * K), [0, 4]);
    let amount = |bytes| {
        options(Mode::Read, |o| {
            o.pattern.io_size = Some(Amount::Bytes(bytes));
        })
    };
    // A thirteenth block, since twelve are less than 50 KiB.
    let wrapped = offsets(&amount(50 * K), 32 * K);
    assert_eq!(wrapped, [0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16]);
    assert_eq!(offsets(&amount(0), 8 * K), [0, 4]);
    let hole = |bytes| options(Mode::Read, |o| o.pattern.mode_argument = Some(bytes));
    assert_eq!(offsets(&hole(4096), 32 * K), [0, 8, 16, 24, 0, 8, 16, 24]);
    let back = offsets(&hole(-8192), 64 * K);
    assert_eq!(back, [0, 56, 52, 48, 44, 40, 36, 32, 28, 24, 20, 16, 12, 8, 4, 0]);
    let back = offsets(&hole(-16384), 40 * K);
    assert_eq!(back, [0, 24, 12, 0, 24, 12, 0, 24, 12, 0]);
    let shifted = all(&plain, &[region_of(18 * K, 8 * K)]);
    assert_eq!(shifted.iter().map(|io| io.offset).collect::<Vec<_>>(), [18 * K, 22 * K]);
}

#[test]
fn number_ios_and_loops_bound_the_amount() {
    let numbered = |n| options(Mode::Read, |o| o.pattern.number_ios = Some(n));
    assert_eq!(offsets(&numbered(3), 32 * K), [0, 4, 8]);
    // It does not lengthen a job.
    assert_eq!(offsets(&numbered(12), 16 * K), [0, 4, 8, 12]);
    let twice = options(Mode::RandRead, |o| o.pattern.loops = 2);
    let found = offsets(&twice, 32 * K);
    assert_eq!(found.len(), 16);
    for half in found.chunks(8) {
        assert_eq!(half.iter().copied().collect::<BTreeSet<_>>().len(), 8);
    }
    assert_ne!(found[..8], found[8..]);
    let pattern = Pattern::new(&twice, &[region_of(0, 34 * K)], 0, 1).unwrap();
    assert_eq!(pattern.amount_bytes(), 64 * K);
}

#[test]
fn rewinding_begins_anew_with_another_order() {
    let random = options(Mode::RandRead, |_| {});
    let mut pattern = Pattern::new(&random, &[region_of(0, 64 * K)], 0, 1).unwrap();
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        let pass = rest(&mut pattern);
        assert_eq!(pass.len(), 16);
        assert_eq!(pass.iter().collect::<BTreeSet<_>>().len(), 16);
        assert_eq!(pattern.next(), Next::Done);
        seen.insert(pass);
        pattern.rewind();
    }
    assert_eq!(seen.len(), 20);
    // Also in the middle, and the sequential position goes back.
    let mut pattern = Pattern::new(&options(Mode::Write, |_| {}), &[region_of(0, 64 * K)], 0, 1).unwrap();
    pattern.next();
    pattern.next();
    pattern.rewind();
    assert_eq!(rest(&mut pattern)[0].offset, 0);
}

#[test]
fn io_08_directions_and_lengths_keep_their_shares() {
    for percent in [1, 30, 50, 70, 99] {
        let mixed = options(Mode::RandRw, |o| {
            o.pattern.read_percent = percent;
            o.pattern.no_map = true;
            o.pattern.number_ios = Some(20_000);
            o.pattern.io_size = Some(Amount::Bytes(1 << 40));
        });
        let ios = all(&mixed, &[region_of(0, 1 << 30)]);
        let reads = ios.iter().filter(|io| io.way == Way::Read).count() as f64;
        let share = 100.0 * reads / ios.len() as f64;
        assert!((share - f64::from(percent)).abs() < 0.5, "{share}");
    }
    let split = |no_map| {
        options(Mode::RandRead, |o| {
            o.pattern.blocks[0] =
                BlockSizes { min: 4096, max: 16384, split: vec![(4096, 60), (8192, 30), (16384, 10)] };
            o.pattern.no_map = no_map;
            o.pattern.number_ios = Some(20_000);
        })
    };
    for no_map in [true, false] {
        let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
        let ios = all(&split(no_map), &[region_of(0, 1 << 30)]);
        assert_eq!(ios.len(), 20_000);
        for io in &ios {
            *counts.entry(io.len).or_default() += 100.0 / ios.len() as f64;
        }
        for (len, share) in [(4096, 60.0), (8192, 30.0), (16384, 10.0)] {
            assert!((counts[&len] - share).abs() < 1.0, "{counts:?}");
        }
    }
}

#[test]
fn io_09_every_block_is_touched_exactly_once() {
    for mode in [Mode::RandRead, Mode::RandWrite, Mode::RandRw] {
        for generator in [RandomGenerator::Tausworthe, RandomGenerator::Lfsr] {
            let once = options(mode, |o| o.pattern.generator = generator);
            let bytes = 4097 * 4096 + 100;
            let found = offsets(&once, bytes);
            assert_eq!(found.len(), 4097);
            let blocks: BTreeSet<u64> = found.iter().copied().collect();
            assert!(blocks.into_iter().eq((0..4097).map(|i| i * 4)));
            // Random it is: neighbours in time are not neighbours in space.
            let near = found.windows(2).filter(|w| w[0].abs_diff(w[1]) <= 4).count();
            // The map hands out the next free block, so runs grow towards the end of a pass.
            assert!(near < 1400, "{near} of 4096");
        }
    }
}

#[test]
fn without_a_map_blocks_repeat_uniformly() {
    let free = options(Mode::RandRead, |o| {
        o.pattern.no_map = true;
        o.pattern.io_size = Some(Amount::Bytes(100_000 * 4096));
    });
    let mut counts = [0.0_f64; 100];
    for io in all(&free, &[region_of(8192, 100 * 4096 + 4095)]) {
        assert_eq!((io.offset - 8192) % 4096, 0);
        counts[((io.offset - 8192) / 4096) as usize] += 1.0;
    }
    let chi_square: f64 = counts.iter().map(|n| (n - 1000.0).powi(2) / 1000.0).sum();
    // 99 degrees of freedom: above 148 once in a thousand.
    assert!(chi_square < 148.0, "{chi_square}");
    let aligned = options(Mode::RandRead, |o| o.pattern.align[0] = Some(512));
    let ios = all(&aligned, &[region_of(0, 64 * K)]);
    assert_eq!(ios.len(), 16);
    assert!(ios.iter().all(|io| io.offset % 512 == 0 && io.offset + 4096 <= 64 * K));
    assert!(ios.iter().any(|io| io.offset % 4096 != 0));
}

#[test]
fn mixed_sequential_directions_have_positions_of_their_own() {
    let ios = all(&options(Mode::ReadWrite, |_| {}), &[region_of(0, 64 * K)]);
    assert_eq!(ios.len(), 16);
    for way in [Way::Read, Way::Write] {
        let of: Vec<u64> = ios.iter().filter(|io| io.way == way).map(|io| io.offset).collect();
        assert!(of.iter().copied().eq((0..of.len() as u64).map(|i| i * 4096)), "{of:?}");
    }
    // Different block sizes: each is aligned to its own.
    let uneven = options(Mode::RandRw, |o| o.pattern.blocks[1] = blocks(8192, 8192));
    let ios = all(&uneven, &[region_of(0, 640 * K)]);
    for io in &ios {
        let size = if io.way == Way::Read { 4096 } else { 8192 };
        assert_eq!((u64::from(io.len), io.offset % size), (size, 0));
    }
    assert_eq!(ios.iter().collect::<BTreeSet<_>>().len(), ios.len());
    assert_eq!(ios.iter().map(|io| u64::from(io.len)).sum::<u64>().div_ceil(4096), 160);
}

#[test]
fn bursts_and_partly_random_jobs_go_on_where_they_were() {
    for no_map in [false, true] {
        let bursts = options(Mode::RandRead, |o| {
            o.pattern.mode_argument = Some(4);
            o.pattern.no_map = no_map;
        });
        let found = offsets(&bursts, 4096 * K);
        assert_eq!(found.len(), 1024);
        for burst in found.chunks(4) {
            let wraps = burst.windows(2).filter(|w| w[1] != w[0] + 4).count();
            assert!(wraps == 0 || burst.contains(&0), "{burst:?}");
        }
    }
    let half = options(Mode::RandRead, |o| {
        o.pattern.random_percent[0] = 50;
        o.pattern.no_map = true;
    });
    let found = offsets(&half, 40_960 * K);
    let on = found.windows(2).filter(|w| w[1] == w[0] + 4).count() as f64;
    assert!((on / found.len() as f64 - 0.5).abs() < 0.02, "{on}");
}

#[test]
fn files_take_turns_as_they_are_told() {
    let serve = |mode, service| {
        let served = options(mode, |o| {
            o.files = JobFileOptions { service, ..JobFileOptions::default() };
        });
        all(&served, &files(4, 16 * K))
    };
    let order = |ios: &[Io]| ios.iter().map(|io| io.file).collect::<Vec<_>>();
    let robin = serve(Mode::Read, (FileService::RoundRobin, 1));
    assert_eq!(order(&robin), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(robin[4].offset, 4096);
    let threes = serve(Mode::Read, (FileService::RoundRobin, 3));
    assert_eq!(order(&threes), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 1, 2, 3]);
    let one_by_one = serve(Mode::Read, (FileService::Sequential, 1));
    assert_eq!(order(&one_by_one), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    for mode in [Mode::Read, Mode::RandRead] {
        let random = serve(mode, (FileService::Random, 1));
        assert_eq!(random.iter().collect::<BTreeSet<_>>().len(), 16);
        assert_ne!(order(&random), order(&robin));
    }
    // The amount goes round the files again, each from its beginning: 70 KiB in four files, 140 KiB in all.
    let again = options(Mode::Read, |o| {
        o.pattern.io_size = Some(Amount::Bytes(140 * K));
    });
    let ios = all(&again, &files(4, 70 * K / 4));
    assert_eq!(ios.len(), 35);
    assert_eq!((ios[16].file, ios[16].offset), (0, 0));
    assert_eq!((ios[34].file, ios[34].offset), (2, 0));
}

#[test]
fn lengths_of_a_sequential_job_fill_the_region() {
    let range = options(Mode::Read, |o| o.pattern.blocks[0] = blocks(K, 8 * K));
    let ios = all(&range, &[region_of(0, 64 * K)]);
    let mut at = 0;
    for io in &ios {
        assert_eq!((io.offset, io.len % 1024), (at, 0));
        at += u64::from(io.len);
    }
    assert_eq!(at, 64 * K);
    // bs_is_seq_rand: the first size for sequential I/O, the second for random.
    let by_order = |mode| {
        options(mode, |o| {
            o.pattern.blocks_by_sequence = true;
            o.pattern.blocks = [blocks(8192, 8192), blocks(4096, 4096), blocks(512, 512)];
            o.pattern.random_percent[0] = 50;
        })
    };
    let sequential = all(&by_order(Mode::Write), &[region_of(0, 64 * K)]);
    assert!(sequential.iter().all(|io| io.len == 8192));
    let mixed = all(&by_order(Mode::RandRead), &[region_of(0, 6400 * K)]);
    for length in [4096, 8192] {
        assert!(mixed.iter().filter(|io| io.len == length).count() > 300);
    }
}

#[test]
fn seeds_make_the_same_run_and_clones_differ() {
    let random = options(Mode::RandRw, |o| o.pattern.blocks[0] = blocks(4096, 16384));
    let made = |clone, seed| rest(&mut Pattern::new(&random, &[region_of(0, 4096 * K)], clone, seed).unwrap());
    assert_eq!(made(0, 7), made(0, 7));
    assert_ne!(made(0, 7), made(1, 7));
    assert_ne!(made(0, 7), made(0, 8));
}

#[test]
fn what_cannot_be_is_refused() {
    for (set, names) in [
        ((|o| o.pattern.blocks[0] = blocks(64 * K, 64 * K)) as fn(&mut JobOptions), "each file has 32768 bytes"),
        (|o| o.pattern.blocks[0] = blocks(0, 0), "block sizes from 0"),
        (|o| o.pattern.distribution = Distribution::Zipf(-1.0, None), "zipf theta -1"),
        (
            |o| {
                o.pattern.mode = Mode::RandRw;
                o.pattern.read_percent = 101;
            },
            "rwmixread 101",
        ),
    ] {
        let options = options(Mode::RandRead, set);
        let error = Pattern::new(&options, &[region_of(0, 32 * K)], 0, 1).unwrap_err();
        assert!(error.what.contains(names), "{error}");
    }
}

fn any_options() -> impl Strategy<Value = JobOptions> {
    let modes = prop_oneof![
        Just(Mode::Read),
        Just(Mode::Write),
        Just(Mode::ReadWrite),
        Just(Mode::RandRead),
        Just(Mode::RandWrite),
        Just(Mode::RandRw),
    ];
    let laws = prop_oneof![
        4 => Just(Distribution::Random),
        1 => Just(Distribution::Zipf(1.1, None)),
        1 => Just(Distribution::Pareto(0.2, Some(0.5))),
        1 => Just(Distribution::Normal(20.0, None)),
        1 => Just(Distribution::Zoned(vec![(90, 10), (10, 50)])),
    ];
    let sizes = || (1_u32..9, 1_u32..9).prop_map(|(a, b)| (a.min(b) * 512, a.max(b) * 512));
    let rest = (
        prop::option::of(-5_i64..6),
        0_u32..101,
        any::<[bool; 4]>(),
        prop::option::of(0_u64..1 << 18),
        0_u32..101,
        1_u32..4,
    );
    (modes, laws, sizes(), sizes(), rest).prop_map(|(mode, law, read, write, rest)| {
        let (argument, mix, [no_map, lfsr, by_sequence, align], io_size, percent, service) = rest;
        options(mode, |o| {
            let p = &mut o.pattern;
            p.distribution = law;
            let sizes = |(min, max)| BlockSizes {
                min,
                max,
                split: if percent > 60 { vec![(min, 30), (max, 70)] } else { Vec::new() },
            };
            p.blocks = [sizes(read), sizes(write), BlockSizes::default()];
            p.mode_argument = argument.map(|n| if mode.is_random() { n } else { n * 512 });
            p.read_percent = mix;
            p.no_map = no_map;
            p.blocks_by_sequence = by_sequence;
            p.io_size = io_size.map(Amount::Bytes);
            if lfsr {
                p.generator = RandomGenerator::Lfsr;
            }
            if align {
                p.align[0] = Some(512);
            }
            if percent < 50 {
                p.random_percent = [percent, 100 - percent, 100];
            }
            o.files.service = (
                [FileService::RoundRobin, FileService::Random, FileService::Sequential][service as usize - 1],
                service,
            );
        })
    })
}

proptest! {
    /// Whatever is asked for, an I/O lies inside its region, has a length of its direction, and the amount is met.
    #[test]
    fn every_io_lies_in_its_region(
        options in any_options(),
        spans in prop::collection::vec((0_u64..100_000, 8 * 512_u64..60_000), 1..4),
        clone in 0_u32..5,
    ) {
        let regions: Vec<Region> = spans
            .iter()
            .enumerate()
            .map(|(i, (start, bytes))| Region { file: i as u16, start: *start, bytes: *bytes })
            .collect();
        let mut pattern = Pattern::new(&options, &regions, clone, 3).unwrap();
        let amount = pattern.amount_bytes();
        for _ in 0..2 {
            let mut sum = 0;
            let mut last = 0;
            while let Next::Io(io) = pattern.next() {
                let region = regions[usize::from(io.file)];
                let (len, way) = (u64::from(io.len), io.way.index());
                prop_assert!(io.offset >= region.start);
                prop_assert!(io.offset + len <= region.start + region.bytes, "{io:?} {region:?}");
                prop_assert!(options.pattern.mode.goes(io.way));
                let sizes = &options.pattern.blocks;
                let fits = |i: usize| len <= u64::from(sizes[i].max) && len.is_multiple_of(u64::from(sizes[i].min));
                let by_order = options.pattern.blocks_by_sequence && (fits(0) || fits(1));
                prop_assert!(len > 0 && (fits(way) || by_order), "{io:?}");
                sum += len;
                last = len;
            }
            prop_assert!(sum >= amount && sum - last < amount, "{sum} of {amount}");
            pattern.rewind();
        }
    }

    /// With a map every block is touched exactly once, with whatever lengths.
    #[test]
    fn a_mapped_pass_is_a_partition(
        min in 1_u32..5,
        factor in 1_u32..5,
        bytes in 4096_u64..300_000,
        start in 0_u64..10_000,
        mode in prop_oneof![Just(Mode::RandRead), Just(Mode::RandRw)],
        lfsr in any::<bool>(),
        files in 1_u16..4,
    ) {
        let options = options(mode, |o| {
            for sizes in &mut o.pattern.blocks {
                *sizes = blocks(u64::from(min) * 512, u64::from(min * factor) * 512);
            }
            if lfsr {
                o.pattern.generator = RandomGenerator::Lfsr;
            }
        });
        let regions: Vec<Region> = (0..files).map(|file| Region { file, start, bytes }).collect();
        let least = u64::from(min) * 512;
        for clone in 0..2 {
            let mut pattern = Pattern::new(&options, &regions, clone, 9).unwrap();
            for _ in 0..2 {
                let mut touched = BTreeSet::new();
                for io in rest(&mut pattern) {
                    let at = io.offset - start;
                    prop_assert_eq!(at % least, 0);
                    for block in at / least..(at + u64::from(io.len)) / least {
                        prop_assert!(touched.insert((io.file, block)), "{:?} again", io);
                    }
                }
                prop_assert_eq!(touched.len() as u64, bytes / least * u64::from(files));
                pattern.rewind();
            }
        }
    }
}
