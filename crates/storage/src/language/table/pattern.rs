//! Options for offsets, lengths, directions and amounts.

use super::super::setters;
use super::Category::Pattern;
use super::Use::{Accepted, Works};
use super::{OptionDef, options};
use crate::language::value::Kind::{Bool, Choice, Flag, Int, Ints, Ranges, Size, Text};
use crate::spec::RandomGenerator;

pub(super) static OPTIONS: &[OptionDef] = options! {Pattern;
    "rw" = "readwrite", Text, "read", Works(setters::mode), "read, write, randread, randwrite, rw, randrw; trim, randtrim, trimwrite, randtrimwrite (devices only); `:N` changes the order of offsets";
    "rwmixread", Int(0, 100), "50", Works(|d, v| { d.options.pattern.read_percent = v.int32()?; Ok(()) }), "Percent of I/Os that read in a mixed job";
    "rwmixwrite", Int(0, 100), "50", Works(|d, v| { d.options.pattern.read_percent = 100 - v.int32()?; Ok(()) }), "Percent of I/Os that write in a mixed job; the later of the two options wins";
    "bs" = "blocksize", Ints(1, 1 << 31), "4096", Works(|d, v| { setters::merge(&mut d.blocks, v.ints()?); Ok(()) }), "Bytes of an I/O";
    "bsrange" = "blocksize_range", Ranges, "", Works(setters::block_ranges), "Range of block sizes, in steps of the smallest";
    "bssplit", Text, "", Works(setters::block_split), "Block sizes with their percentages: 4k/60:8k/40";
    "bs_is_seq_rand", Bool, "0", Works(|d, v| { d.options.pattern.blocks_by_sequence = v.on()?; Ok(()) }), "First block size for sequential I/Os, second for random I/Os";
    "ba" = "blockalign", Ints(1, 1 << 40), "", Works(|d, v| { setters::merge(&mut d.options.pattern.align, v.ints()?); Ok(()) }), "Alignment of random offsets; the smallest block";
    "io_size" = "io_limit", Size, "", Works(setters::io_size), "Bytes to move, independent of the region's size";
    "number_ios", Int(0, u64::MAX), "0", Works(|d, v| { d.options.pattern.number_ios = Some(v.int()?).filter(|n| *n > 0); Ok(()) }), "I/Os of each clone";
    "loops", Int(0, u64::MAX), "1", Works(|d, v| { d.options.pattern.loops = v.int()?.max(1); Ok(()) }), "How often to repeat the work";
    "norandommap", Flag, "", Works(|d, v| { d.options.pattern.no_map = v.on()?; Ok(()) }), "Random offsets may repeat before all have been used";
    "softrandommap", Bool, "0", Works(|d, v| { d.options.pattern.soft_map = v.on()?; Ok(()) }), "Continue without a map if there is no memory for it";
    "random_generator", Choice(&["tausworthe", "lfsr", "tausworthe64"]), "tausworthe", Works(|d, v| { d.options.pattern.generator = match v.choice()?.0 { "lfsr" => RandomGenerator::Lfsr, "tausworthe64" => RandomGenerator::Tausworthe64, _ => RandomGenerator::Tausworthe }; Ok(()) }), "One generator serves all; lfsr keeps no map";
    "random_distribution", Text, "random", Works(setters::distribution), "random, zipf:T, pareto:H, normal:D or zoned:A/B:...";
    "percentage_random", Ints(0, 100), "100", Works(setters::random_percent), "Percent of I/Os at random offsets in a random job";
    "randrepeat", Bool, "1", Works(|d, v| { d.options.pattern.repeat = v.on()?; Ok(()) }), "The same offsets in every run";
    "allrandrepeat", Bool, "0", Works(|d, v| { d.options.pattern.repeat_all = v.on()?; Ok(()) }), "The same random values of every kind in every run";
    "randseed", Int(0, u64::MAX), "", Works(|d, v| { d.options.pattern.seed = Some(v.int()?); Ok(()) }), "Seed of all random streams";
    "rw_sequencer", Choice(&["sequential"]), "sequential", Accepted("sequential is the only sequencer"), "Which offset follows a random one if rw has a count";
    "verifysort", Bool, "1", Accepted("read-back is in the order of offsets anyway"), "Verify in order of offsets";
    "verifysort_nr", Int(0, u64::MAX), "1024", Accepted("read-back is in the order of offsets anyway"), "How many blocks to sort";
};
