//! Short scripted runs, cut after every write and with every subset of what was un-synced.

use super::base::{Base, Setup};
use super::dice::Dice;
use super::inspect::Inspector;
use super::model::{Model, Promise, Table};
use super::run::{End, Finish, Machine, Trace};
use super::seed::open_once;
use assay_measure::clock::Clock;
use assay_native::control_file::ControlFile;
use assay_native::engine::stepped::CommitMode;
use assay_testkit::sim::{Cut, SimDisk};

/// Scripted workloads.
pub(crate) const WORKLOADS: u64 = 50;
/// Units that are tried in every combination; of more, every so many that were written one after another.
const FREE_UNITS: usize = 8;

/// What an exhaustive search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Searched {
    /// Workloads.
    pub(crate) workloads: u64,
    /// Instants at which the power went.
    pub(crate) instants: u64,
    /// Data sets that were recovered and judged.
    pub(crate) cuts: u64,
    /// Most un-synced sectors at any instant.
    pub(crate) most_units: u64,
}

impl Searched {
    /// Adds another's counts.
    pub(super) fn add(&mut self, other: &Self) {
        self.workloads += other.workloads;
        self.instants += other.instants;
        self.cuts += other.cuts;
        self.most_units = self.most_units.max(other.most_units);
    }
}

/// Workload `number`: up to three operations.
fn script(number: u64, dice: &mut Dice) -> (Setup, Finish) {
    let shared = number.is_multiple_of(2);
    let sessions = dice.between(1, 2);
    let setup = Setup {
        sessions,
        drivers: dice.between(1, sessions) as usize,
        writers: 1,
        shared,
        commit_every: if shared { 1 } else { dice.between(1, 2) },
        heavy: number % 5 == 4,
        commit: if number % 7 == 6 { CommitMode::Sync } else { CommitMode::Group },
        full_checksums: false,
        batched: false,
        cache_frames: 24,
        no_cache: number % 11 == 10,
        operations: 1 + number % 3,
        most_rows: dice.between(1, 3),
    };
    let finish = if number.is_multiple_of(3) { Finish::Close } else { Finish::Cut };
    (setup, finish)
}

/// Which units are kept, for every cut of `units` un-synced ones.
fn cuts(units: usize, sector_bytes: usize) -> impl Iterator<Item = Cut> {
    let free = units.min(FREE_UNITS);
    let last = units - free;
    // With few units there are no others to keep or lose.
    let windows = (0..=last).flat_map(move |first| {
        let both = if last == 0 { &[false][..] } else { &[false, true] };
        both.iter().map(move |others| (first, *others))
    });
    windows.flat_map(move |(first, others)| {
        (0..1_u32 << free).map(move |kept| Cut::Exactly { sector_bytes, first, kept: kept as u8, others })
    })
}

/// Searches one workload.
///
/// # Errors
/// The cut that went wrong, and how.
pub(super) fn search(
    bases: &[(&Base, &Inspector<'_>)],
    number: u64,
    searched: &mut Searched,
    trace: &mut Trace,
) -> Result<(), String> {
    searched.workloads += 1;
    let (base, inspector) = bases[(number / 2) as usize % bases.len()];
    // Sectors of 512 bytes for every fourth workload: eight times the sectors, with only so many subsets of them.
    let sector_bytes = if number % 4 == 3 { 512 } else { 4096 };
    let mut dice = Dice::new(number, 3);
    let (setup, finish) = script(number, &mut dice);
    for instant in 0.. {
        let disk = SimDisk::new(&base.image, number);
        disk.cut_at_step(instant);
        let mut model = Model::new(Table::new());
        let end = {
            let _mounted = disk.mount();
            let machine = Machine {
                base,
                disk: &disk,
                setup: &setup,
                finish,
                dice: Dice::new(number, 4),
                model: &mut model,
                next_stamp: &mut 0,
                clock: Clock::simulated(),
                trace,
                errors: Vec::new(),
                bug: None,
            };
            machine.run().map_err(|why| format!("instant {instant}: {why}"))?.0
        };
        if let End::Stopped(why) = &end {
            return Err(format!("instant {instant}: the engine stopped: {why}"));
        }
        let units = disk.units(sector_bytes);
        searched.instants += 1;
        searched.most_units = searched.most_units.max(units as u64);
        for cut in cuts(units, sector_bytes) {
            searched.cuts += 1;
            let fork = disk.fork();
            judge(base, inspector, &fork, cut, &model)
                .map_err(|why| format!("instant {instant}, {units} sectors, {cut:?}: {why}"))?;
        }
        if disk.steps() < instant {
            // The power never went by itself: the whole run was seen.
            return Ok(());
        }
    }
    Ok(())
}

fn judge(base: &Base, inspector: &Inspector<'_>, disk: &SimDisk, cut: Cut, model: &Model) -> Result<(), String> {
    let _mounted = disk.mount();
    disk.power_cut(cut);
    open_once(base, &mut Dice::new(0, 5), None).map_err(|error| format!("recovery: {error}"))?;
    let control = ControlFile::read(&base.dir).map_err(|error| error.to_string())?;
    let log_end = control.map_or(0, |control| control.checkpoint_lsn);
    let found = inspector.look(&disk.image(), log_end, Some((&base.image, &Table::new())));
    if let Some(bad) = found.bad.first() {
        return Err(format!("{} bad blocks: {bad}", found.bad.len()));
    }
    model.judge(&found.table, Promise::Durable, &|_| false)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_of_few_units_is_tried_once() {
        for units in 0..=FREE_UNITS {
            let all: Vec<Cut> = cuts(units, 4096).collect();
            assert_eq!(all.len(), 1 << units);
            assert!(all.iter().enumerate().all(|(i, cut)| !all[..i].contains(cut)));
        }
        assert_eq!(cuts(FREE_UNITS + 2, 512).count(), 6 << FREE_UNITS);
    }
}
