//! The devices below a block device down to the bottom, and the other devices on the same bytes.
//!
//! One range of bytes can have many devices whose names are unrelated: two loop devices of one image, a loop device on
//! another, a partition and its disk. So this module walks every device down (a partition to its disk, a loop device to
//! its file or device, device mapper, md, multipath and bcache to their parts). Devices that meet there count as one.
//!
//! Only the creator of a device mapper or md device decides which part of its parts it uses, so two such devices never
//! count as the same bytes. The kernel lets nobody else claim the devices below them.

use super::uses::{Identity, Loop, Uses};
use crate::facts::{Roots, names_in, number_pair};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Sector size in sysfs.
const SECTOR_BYTES: u64 = 512;
/// More layers than any real stack has.
const DEPTH: u32 = 32;

pub(super) type Number = (u32, u32);

/// A range of bytes with nothing known below.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Extent {
    of: Bottom,
    bytes: Range<u64>,
    /// The topmost device above that maps parts of other devices (device mapper, md).
    dealt_by: Option<Number>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bottom {
    File(Identity),
    Device(Number),
}

impl Extent {
    fn meets(&self, other: &Self) -> bool {
        let dealt_apart = self.dealt_by.is_some() && other.dealt_by.is_some() && self.dealt_by != other.dealt_by;
        self.of == other.of && self.bytes.start < other.bytes.end && other.bytes.start < self.bytes.end && !dealt_apart
    }
}

/// A device and everything below it.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) number: Number,
    /// "loop0"
    pub(super) name: String,
    /// Whether other devices are made of it.
    pub(super) is_held: bool,
    /// The disk, if this is a partition.
    disk: Option<Number>,
    extents: Vec<Extent>,
    /// Every device on the way down.
    below: BTreeSet<Number>,
}

/// How another device on the same bytes is related to this one, closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kinship {
    Itself,
    Partition,
    Disk,
    /// Further down.
    Below,
    /// On the same bytes by another route.
    Beside,
}

impl Walked {
    /// Walks a device down to the bottom.
    ///
    /// # Errors
    /// The reason in words if it cannot be walked.
    pub(super) fn down(roots: &Roots, uses: &Uses, number: Number) -> Result<Self, String> {
        let dir = roots.device_dir(number).ok_or("sysfs does not know it")?;
        let mut walk = Walk { roots, uses, below: BTreeSet::new() };
        let extents = walk.down(&dir, number, 0..size_bytes(&dir), 0)?;
        walk.below.remove(&number);
        let is_held = !names_in(&dir.join("holders")).is_empty();
        Ok(Self { number, name: name_of(&dir), is_held, disk: disk_of(&dir), extents, below: walk.below })
    }

    /// How `other` is related to this device, if it is on the same bytes.
    pub(super) fn kinship(&self, other: &Self) -> Option<Kinship> {
        let meets = |one: &Extent| other.extents.iter().any(|two| one.meets(two));
        if self.number == other.number {
            return Some(Kinship::Itself);
        }
        if self.below.contains(&other.number) {
            return Some(if self.disk == Some(other.number) { Kinship::Disk } else { Kinship::Below });
        }
        self.extents
            .iter()
            .any(meets)
            .then(|| if other.disk == Some(self.number) { Kinship::Partition } else { Kinship::Beside })
    }

    /// Whether it is this device or one below it.
    pub(super) fn contains(&self, number: Number) -> bool {
        self.number == number || self.below.contains(&number)
    }

    /// The files at the bottom.
    pub(super) fn files(&self) -> Vec<Identity> {
        let file = |extent: &Extent| match extent.of {
            Bottom::File(file) => Some(file),
            Bottom::Device(_) => None,
        };
        self.extents.iter().filter_map(file).collect()
    }
}

/// Every block device of this host that can be walked.
pub(super) fn all(roots: &Roots, uses: &Uses) -> Vec<Walked> {
    let numbers = names_in(&roots.sys.join("dev/block")).into_iter();
    numbers.filter_map(|number| Walked::down(roots, uses, number_pair(&number)?).ok()).collect()
}

struct Walk<'a> {
    roots: &'a Roots,
    uses: &'a Uses,
    below: BTreeSet<Number>,
}

impl Walk<'_> {
    fn down(&mut self, dir: &Path, number: Number, bytes: Range<u64>, depth: u32) -> Result<Vec<Extent>, String> {
        let name = name_of(dir);
        if depth == DEPTH {
            return Err(format!("{name} has more than {DEPTH} layers below"));
        }
        self.below.insert(number);
        if let Some(disk) = disk_of(dir) {
            let start = number_at(&dir.join("start")).unwrap_or(0) * SECTOR_BYTES;
            return self.below(disk, shifted(&bytes, start), depth);
        }
        let uses = self.uses;
        if let Some(used) = uses.loops.iter().find(|used| used.name == name) {
            let start = number_at(&dir.join("loop/offset")).unwrap_or(0);
            return self.content(used, shifted(&bytes, start), depth);
        }
        if name.starts_with("nbd") && number_at(&dir.join("pid")).is_some() {
            return Err(format!("{name} is served through a socket, and assay cannot see the storage behind it"));
        }
        let mut extents = Vec::new();
        for part in names_in(&dir.join("slaves")) {
            let part = std::fs::canonicalize(dir.join("slaves").join(&part)).map_err(|_| format!("{part} is gone"))?;
            let below = number_in(&part).ok_or_else(|| format!("{} has no number", name_of(&part)))?;
            extents.extend(self.down(&part, below, 0..size_bytes(&part), depth + 1)?);
        }
        if extents.is_empty() {
            return Ok(vec![Extent { of: Bottom::Device(number), bytes, dealt_by: None }]);
        }
        extents.iter_mut().for_each(|extent| extent.dealt_by = Some(number));
        Ok(extents)
    }

    fn below(&mut self, number: Number, bytes: Range<u64>, depth: u32) -> Result<Vec<Extent>, String> {
        let dir = self.roots.device_dir(number);
        let dir = dir.ok_or_else(|| format!("sysfs does not know device {}:{}", number.0, number.1))?;
        self.down(&dir, number, bytes, depth + 1)
    }

    fn content(&mut self, used: &Loop, bytes: Range<u64>, depth: u32) -> Result<Vec<Extent>, String> {
        if let Some(device) = used.device {
            return self.below(device, bytes, depth);
        }
        if used.files.is_empty() {
            return Err(format!("the backing file of {} is not visible from here", used.name));
        }
        let extent = |file: &Identity| Extent { of: Bottom::File(*file), bytes: bytes.clone(), dealt_by: None };
        Ok(used.files.iter().map(extent).collect())
    }
}

fn shifted(bytes: &Range<u64>, by: u64) -> Range<u64> {
    bytes.start.saturating_add(by)..bytes.end.saturating_add(by)
}

/// The disk that contains this partition.
fn disk_of(dir: &Path) -> Option<Number> {
    dir.join("partition").exists().then(|| number_in(dir.parent()?)).flatten()
}

fn name_of(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Size of a device in bytes. A device of unknown size counts as unbounded.
fn size_bytes(dir: &Path) -> u64 {
    number_at(&dir.join("size")).map_or(u64::MAX, |sectors| sectors.saturating_mul(SECTOR_BYTES))
}

fn number_at(path: &PathBuf) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

pub(super) fn number_in(dir: &Path) -> Option<Number> {
    number_pair(&std::fs::read_to_string(dir.join("dev")).ok()?)
}
