//! What a server counts, as rows: which statistic, since which version, by which formula over the server's own names, and
//! where those stand. One reader turns the rows of any server into a [`StatSet`].
//!
//! A formula is `NAME + NAME - NAME in UNIT`: the unit is `us`, `ms`, `cs` (hundredths of a second) or `blocks`, and
//! missing where the server counts in ours. `=NAME` is a statistic of ours that stands above. `A | B` is the first that has
//! a value. `n/a REASON` has none.

use assay_measure::counter_catalog::Stat;
use assay_measure::snapshot::{Actor, IoReading, Reading, StatSet, TimedReading, WaitClass};
use std::collections::BTreeMap;

/// `N` figures that a server counts.
#[derive(Debug)]
pub(crate) struct Counted<K: 'static, const N: usize> {
    /// What they are figures of; each of these has the same.
    of: &'static [K],
    /// First version of the server that counts so; replaces what stands above for the same.
    since: u32,
    formulas: [&'static str; N],
    /// Where the names stand, for the record; one for each `|`. Empty: the formula itself.
    source: &'static str,
}

/// A counter; an empty formula is its own name.
pub(crate) type CounterRow = Counted<Stat, 1>;
/// A wait event: its waits and their time.
pub(crate) type EventRow = Counted<(&'static str, WaitClass, Actor), 2>;
/// I/O by function and file type: requests and bytes read, requests and bytes written, waits and their time. An empty
/// formula does not apply.
pub(crate) type FunctionRow = Counted<(&'static str, &'static str), 6>;

/// A row of a table.
pub(crate) const fn row<K, const N: usize>(
    of: &'static [K],
    since: u32,
    formulas: [&'static str; N],
    source: &'static str,
) -> Counted<K, N> {
    Counted { of, since, formulas, source }
}

/// The rows by which this version counts, or else the one by which a later version does.
fn current<K: Copy + PartialEq, const N: usize>(
    rows: &'static [Counted<K, N>],
    version: u32,
) -> Vec<(K, &'static Counted<K, N>)> {
    let mut current: Vec<(K, &Counted<K, N>)> = Vec::new();
    for row in rows {
        for of in row.of {
            match current.iter_mut().find(|(known, _)| known == of) {
                Some((_, held)) if row.since <= version => *held = row,
                Some(_) => {}
                None => current.push((*of, row)),
            }
        }
    }
    current
}

/// The server's names in the formulas of this version.
pub(crate) fn names<K: Copy + PartialEq, const N: usize>(
    rows: &'static [Counted<K, N>],
    version: u32,
) -> impl Iterator<Item = &'static str> {
    let held = current(rows, version).into_iter().filter(move |(_, row)| row.since <= version);
    held.flat_map(|(_, row)| row.formulas).flat_map(names_in)
}

/// The server's names in a formula.
pub(crate) fn names_in(formula: &'static str) -> impl Iterator<Item = &'static str> {
    let counted = formula.split(" | ").filter(|formula| !formula.starts_with("n/a "));
    counted.flat_map(|formula| terms(unit(formula).0)).map(|(_, name)| name).filter(|name| !name.starts_with('='))
}

/// A formula without its unit, and the unit. A name may have an "in" of its own.
fn unit(formula: &str) -> (&str, &str) {
    match formula.rsplit_once(" in ") {
        Some((sum, unit @ ("us" | "ms" | "cs" | "blocks"))) => (sum, unit),
        _ => (formula, ""),
    }
}

/// The names of a sum; false if the name is subtracted.
fn terms(sum: &str) -> impl Iterator<Item = (bool, &str)> {
    let parts = sum.split(" + ").filter(|part| !part.is_empty());
    parts.flat_map(|part| part.split(" - ").enumerate().map(|(place, name)| (place == 0, name)))
}

/// Reads the rows of one server at one time.
pub(crate) struct Reader<'a> {
    /// Name of the product, for what a later version counts.
    pub(crate) product: &'static str,
    /// Its version.
    pub(crate) version: u32,
    /// Size of `blocks`, or why it is unknown.
    pub(crate) block_bytes: Result<u64, &'static str>,
    /// The figure of a source by its name, times a factor.
    pub(crate) value: &'a dyn Fn(&str, &str, u64) -> Reading,
    /// What was read so far.
    pub(crate) set: StatSet,
}

impl Reader<'_> {
    /// Reads the counters.
    pub(crate) fn counters(&mut self, rows: &'static [CounterRow]) {
        for (stat, row) in current(rows, self.version) {
            let formula = if row.formulas[0].is_empty() { stat.name } else { row.formulas[0] };
            let (reading, source) = if row.since > self.version {
                (Reading::Na(format!("absent: came with {} {}", self.product, row.since)), row.source)
            } else {
                self.first(formula, row.source)
            };
            self.set.put(stat, reading, source);
        }
    }

    /// Reads the wait events of this version.
    pub(crate) fn events(&mut self, rows: &'static [EventRow]) {
        for ((name, class, actor), row) in self.held(rows) {
            let [waits, time] = row.formulas;
            let (waits, source) = self.first(waits, row.source);
            let wait_ns = self.read(time, source);
            let (name, source) = (name.to_owned(), source.to_owned());
            self.set.timed.push(TimedReading { name, class, actor, waits, wait_ns, source });
        }
    }

    /// Reads I/O by function in this version, without the rows of which nothing can be read.
    pub(crate) fn functions(&mut self, rows: &'static [FunctionRow]) {
        for ((function, file_type), row) in self.held(rows) {
            let mut na = BTreeMap::new();
            let columns = ["read_requests", "read_bytes", "write_requests", "write_bytes", "waits", "wait_ns"];
            let mut at = columns.into_iter();
            let [reads, read_bytes, writes, write_bytes, waits, wait_ns] = row.formulas.map(|formula| {
                let column = at.next().unwrap_or_default();
                match self.read(formula, row.source) {
                    Reading::Count(count) => count,
                    Reading::Na(why) => {
                        na.insert(column.to_owned(), why);
                        0
                    }
                }
            });
            if na.len() == row.formulas.iter().filter(|formula| !formula.is_empty()).count() {
                continue;
            }
            self.set.io.push(IoReading {
                function: function.to_owned(),
                file_type: file_type.to_owned(),
                small_read_requests: reads,
                read_bytes,
                small_write_requests: writes,
                write_bytes,
                waits,
                wait_ns,
                na,
                ..IoReading::default()
            });
            for place in ["io".to_owned(), format!("io {function}")] {
                self.set.sources.entry(place).or_insert_with(|| row.source.to_owned());
            }
        }
    }

    /// Reads gauges by their names and formulas; one without a value is left out.
    pub(crate) fn gauges(&mut self, rows: &[(&str, &str)]) {
        for (gauge, formula) in rows {
            if let Reading::Count(value) = self.read(formula, "") {
                self.set.gauges.insert((*gauge).to_owned(), value);
            }
        }
    }

    fn held<K: Copy + PartialEq, const N: usize>(
        &self,
        rows: &'static [Counted<K, N>],
    ) -> Vec<(K, &'static Counted<K, N>)> {
        let mut held = current(rows, self.version);
        held.retain(|(_, row)| row.since <= self.version);
        held
    }

    /// The first alternative with a value, else the last, with its source.
    fn first<'r>(&self, formulas: &'r str, sources: &'r str) -> (Reading, &'r str) {
        let mut sources = sources.split(" | ");
        let mut found = (Reading::Count(0), "");
        for formula in formulas.split(" | ") {
            let source = sources.next().filter(|source| !source.is_empty()).unwrap_or(formula);
            found = (self.read(formula, source), source);
            if matches!(found.0, Reading::Count(_)) {
                break;
            }
        }
        found
    }

    /// A figure in our unit; n/a, with the first reason, if a part of it is.
    pub(crate) fn read(&self, formula: &str, source: &str) -> Reading {
        if let Some(why) = formula.strip_prefix("n/a ") {
            return Reading::Na(why.to_owned());
        }
        let (sum, unit) = unit(formula);
        let factor = match (unit, self.block_bytes) {
            ("us", _) => 1000,
            ("ms", _) => 1_000_000,
            ("cs", _) => 10_000_000,
            ("blocks", Ok(bytes)) => bytes,
            ("blocks", Err(why)) => return Reading::Na(why.to_owned()),
            _ => 1,
        };
        let mut total = 0_u64;
        for (adds, name) in terms(sum) {
            let reading = match name.strip_prefix('=').map(|ours| self.set.counters.get(ours)) {
                Some(Some(Reading::Count(ours))) => Reading::Count(ours.saturating_mul(factor)),
                Some(Some(na)) => na.clone(),
                _ => (self.value)(source, name, factor),
            };
            match reading {
                Reading::Count(count) if adds => total = total.saturating_add(count),
                Reading::Count(count) => total = total.saturating_sub(count),
                na @ Reading::Na(_) => return na,
            }
        }
        Reading::Count(total)
    }
}

/// For tests of the tables: the formulas of a statistic of ours that there is not.
#[cfg(test)]
pub(crate) fn unknown<K: Copy + PartialEq, const N: usize>(rows: &'static [Counted<K, N>]) -> Vec<&'static str> {
    let formulas = rows.iter().flat_map(|row| row.formulas).flat_map(|formulas| formulas.split(" | "));
    let ours = formulas.flat_map(|formula| terms(unit(formula).0)).filter_map(|(_, name)| name.strip_prefix('='));
    ours.filter(|ours| assay_measure::counter_catalog::DICTIONARY.iter().all(|stat| stat.name != *ours)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::counter_catalog::*;

    const ROWS: &[CounterRow] = &[
        row(&[PHYSICAL_READS], 0, ["gets - hits"], "old"),
        row(&[PHYSICAL_READS], 14, ["reads"], "new"),
        row(&[PHYSICAL_READS], 17, ["n/a unknowable"], "newer"),
        row(&[PHYSICAL_WRITES], 0, ["=physical reads + two in blocks"], "old"),
        row(&[REDO_SIZE], 16, ["bytes"], "new"),
        row(&[REDO_WRITES], 0, ["none | two"], ""),
        row(&[REDO_WRITE_TIME], 0, ["two - seven in ms"], "old"),
        row(&[WRITE_CLONES], 0, [""], "old"),
    ];

    fn read(version: u32) -> StatSet {
        let value = |_: &str, name: &str, factor| match name {
            "gets" => Reading::Count(10 * factor),
            "hits" => Reading::Count(7 * factor),
            "reads" => Reading::Count(4 * factor),
            "two" => Reading::Count(2 * factor),
            "seven" => Reading::Count(7 * factor),
            "write clones created in background" => Reading::Count(21 * factor),
            _ => Reading::Na("absent".to_owned()),
        };
        let mut reader =
            Reader { product: "Base", version, block_bytes: Ok(8192), value: &value, set: StatSet::default() };
        reader.counters(ROWS);
        reader.set
    }

    #[test]
    fn a_version_reads_its_own_row_and_is_told_when_a_later_one_counts() {
        for (version, reads, source) in [
            (13, Reading::Count(3), "old"),
            (16, Reading::Count(4), "new"),
            (18, Reading::Na("unknowable".to_owned()), "newer"),
        ] {
            let set = read(version);
            assert_eq!(set.counters["physical reads"], reads, "{version}");
            assert_eq!(set.sources["physical reads"], source, "{version}");
        }
        assert_eq!(read(13).counters["redo size"], Reading::Na("absent: came with Base 16".to_owned()));
    }

    #[test]
    fn sums_have_units_alternatives_and_never_fall_below_0() {
        let set = read(13);
        // 3 reads are counted in blocks, as are the two.
        assert_eq!(set.counters["physical writes"], Reading::Count(5 * 8192));
        assert_eq!((&set.counters["redo writes"], set.sources["redo writes"].as_str()), (&Reading::Count(2), "two"));
        assert_eq!(set.counters["redo write time"], Reading::Count(0));
        assert_eq!(set.counters["write clones created in background"], Reading::Count(21));
        assert_eq!(read(18).counters["physical writes"], Reading::Na("unknowable".to_owned()));
    }

    #[test]
    fn names_are_those_of_the_version_alone() {
        let of = |version| names(ROWS, version).collect::<Vec<_>>();
        assert_eq!(of(13), ["gets", "hits", "two", "none", "two", "two", "seven"]);
        assert_eq!(of(17), ["two", "bytes", "none", "two", "two", "seven"]);
    }
}
