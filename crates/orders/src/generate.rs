//! Generates the rows of the data set. Each row is a function of (seed, table, number), whichever thread generates it
//! and in whatever order.
//!
//! `B(a, b)` of the published rules is a bell curve over a..b, centred, with a standard deviation of a ninth of the
//! width. By default each bell-shaped column of a row is drawn separately. Published sample rows show one draw for all
//! of them, which [`Generator::legacy`] reproduces.

use crate::lines::Lines;
use crate::model::{TABLES, Table};
use crate::names::{HOBBIES, Lists, PROVIDERS};
use assay_measure::prng::{SplitMix64, scramble};
use std::ops::Range;

/// Version of the rules; increases with every change to the content of rows.
pub const VERSION: u32 = 1;

/// Number of products, of product descriptions and of warehouses: the same at every scale.
pub const FIXED: u64 = 1000;
/// Number of warehouses that stock a product.
const WAREHOUSES_HELD: Range<u64> = 800..1000;
/// Number of lines of a loaded order.
const LINES_HELD: Range<u64> = 1..10;
/// Upper bound for the lines of an order: an item's number is order x this + line.
const LINES_ROOM: u64 = 16;

/// Days from 1970-01-01 to 1 January of a year, and to other dates of the rules.
mod day {
    pub(super) const Y1950: u64 = 7_305;
    /// 1950-01-01 is this many days before 1970-01-01.
    pub(super) const Y2000: u64 = 10_957;
    pub(super) const BORN_LAST: u64 = 11_082;
    pub(super) const Y2007: u64 = 13_514;
    pub(super) const Y2012: u64 = 15_340;
    pub(super) const ORDERED_LAST: u64 = 15_461;
    pub(super) const SENT_LAST: u64 = 15_463;
    pub(super) const SINCE_LAST: u64 = 15_464;
    pub(super) const MADE_LAST: u64 = 15_466;
    pub(super) const LOGGED_LAST: u64 = 15_469;
    pub(super) const EXPIRES: u64 = 15_918;
    pub(super) const EXPIRES_LAST: u64 = 17_744;
}

/// Values of the credit limits. The original also has 100000, which its own rule forbids.
const CREDIT: [i64; 11] = [1000, 2000, 3000, 4000, 5000, 5500, 6000, 6500, 10_000, 20_000, 50_000];
const CLASSES: [&str; 10] = [
    "Prime",
    "Prime",
    "Business",
    "Regular",
    "Occasional",
    "Occasional",
    "Occasional",
    "Occasional",
    "Occasional",
    "Occasional",
];
const STREETS: [&str; 6] = [" gardens", " road", " road", " road", " street", " close"];
const CARDS: [&str; 8] =
    ["Visa(Debit)", "Visa(Debit)", "Visa(Credit)", "American Express", "Paypal", "Cheque", "Voucher", "MasterCard"];
const DELIVERY: [&str; 7] = ["Standard", "Standard", "Standard", "Standard", "Express", "Next_Day", "Collection"];
const PAPERS: [&str; 11] =
    ["None", "None", "None", "None", "None", "None", "Plain", "Stripes", "Birthday", "Flowers", "Gold"];
const CONDITIONS: [&str; 15] =
    ["New", "New", "New", "New", "New", "New", "New", "New", "New", "New", "New", "New", "New", "Used", "Return"];
const STATUSES: [&str; 4] = ["orderable", "planned", "under development", "obsolete"];

/// Random values of one row.
struct Draw<'a> {
    random: SplitMix64,
    /// The shared bell-curve draw of the row, if all bell-shaped columns use one.
    bell: Option<i64>,
    lists: &'a Lists,
}

/// One standard deviation of the bell curve in fixed-point units.
const BELL_ONE: i64 = 1 << 16;

impl Draw<'_> {
    /// R(a, b): uniform, `b` excluded.
    #[inline]
    fn range(&mut self, range: Range<u64>) -> u64 {
        let width = u128::from(range.end - range.start);
        range.start + ((u128::from(self.random.next_u64()) * width) >> 64) as u64
    }

    /// True with a probability of `hits` / `of`.
    fn odds(&mut self, hits: u64, of: u64) -> bool {
        self.range(0..of) < hits
    }

    /// A bell curve around 0, in standard deviations x [`BELL_ONE`]: the sum of four uniform numbers.
    fn standard(&mut self) -> i64 {
        if let Some(bell) = self.bell {
            return bell;
        }
        Self::standard_of(self.random.next_u64())
    }

    fn standard_of(word: u64) -> i64 {
        let parts = (0..4).map(|at| (word >> (16 * at) & 0xFFFF) as i64);
        let centred = parts.sum::<i64>() - 2 * 0xFFFF;
        // The sum of four has a standard deviation of 1 / sqrt(3).
        centred * 1732 / 1000
    }

    /// B(a, b).
    fn bell(&mut self, range: Range<i64>) -> i64 {
        let width = range.end - range.start;
        let off = self.standard() * width / 9;
        let doubled = (range.start + range.end) * BELL_ONE + 2 * off;
        (doubled.div_euclid(2 * BELL_ONE)).clamp(range.start, range.end - 1)
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.range(0..list.len() as u64) as usize]
    }

    fn some_of<'t>(&mut self, list: &'t [String]) -> &'t str {
        &list[self.range(0..list.len() as u64) as usize]
    }

    fn bell_of<'t>(&mut self, list: &'t [String]) -> &'t str {
        &list[self.bell(0..list.len() as i64) as usize]
    }

    /// Appends a random number of characters of an alphabet.
    fn characters(&mut self, chars: Range<u64>, alphabet: &[u8], out: &mut Vec<u8>) {
        for _ in 0..self.range(chars) {
            out.push(alphabet[self.range(0..alphabet.len() as u64) as usize]);
        }
    }
}

const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &[u8] = b"0123456789";
const ANY: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Characters of product texts: the letters, with occasional blanks.
const PROSE: &[u8] = b"abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz ";

/// Row counts of the tables whose size depends on the scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Customers.
    pub customers: u64,
    /// Addresses.
    pub addresses: u64,
    /// Cards.
    pub cards: u64,
    /// Logons.
    pub logons: u64,
    /// Orders.
    pub orders: u64,
}

impl Counts {
    /// Row counts at this scale, in thousandths; 1000 is scale 1, about 2 GB.
    #[must_use]
    pub fn of(scale_milli: u64) -> Self {
        let rows = |per_scale: u64| (per_scale * scale_milli).div_ceil(1000).max(1);
        Self {
            customers: rows(1_000_000),
            addresses: rows(1_500_000),
            cards: rows(1_500_000),
            logons: rows(2_382_984),
            orders: rows(1_429_790),
        }
    }

    /// Number of units that generate a table: its rows, or the orders or products that its rows belong to.
    #[must_use]
    pub fn units(self, table: Table) -> u64 {
        match table {
            Table::Customers => self.customers,
            Table::Addresses => self.addresses,
            Table::CardDetails => self.cards,
            Table::Logon => self.logons,
            Table::Orders | Table::OrderItems => self.orders,
            Table::Warehouses | Table::ProductInformation | Table::ProductDescriptions | Table::Inventories => FIXED,
        }
    }
}

/// Generates the rows of one data set; see the module.
#[derive(Debug)]
pub struct Generator {
    seed: u64,
    counts: Counts,
    lists: Lists,
    /// Draw all bell-shaped columns of a row together, as in published rows.
    pub legacy: bool,
}

/// Purposes of additional random streams, beyond those of the tables.
const LINES_OF: u64 = 100;
const HELD_OF: u64 = 101;

impl Generator {
    /// A generator for one data set.
    #[must_use]
    pub fn new(seed: u64, scale_milli: u64, legacy: bool) -> Self {
        Self { seed, counts: Counts::of(scale_milli), lists: Lists::default(), legacy }
    }

    /// Row counts of the tables that grow.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn word(&self, purpose: u64, number: u64) -> u64 {
        scramble(self.seed ^ scramble(purpose << 56 ^ number))
    }

    fn draw(&self, table: Table, number: u64) -> Draw<'_> {
        let mut random = SplitMix64(self.word(table as u64 + 1, number));
        let bell = self.legacy.then(|| Draw::standard_of(random.next_u64()));
        Draw { random, bell, lists: &self.lists }
    }

    fn within(&self, purpose: u64, number: u64, range: Range<u64>) -> u64 {
        let width = u128::from(range.end - range.start);
        range.start + ((u128::from(self.word(purpose, number)) * width) >> 64) as u64
    }

    /// Number of lines of a loaded order.
    #[must_use]
    pub fn lines_of(&self, order: u64) -> u64 {
        self.within(LINES_OF, order, LINES_HELD)
    }

    /// Number of warehouses that stock a product.
    #[must_use]
    pub fn held(&self, product: u64) -> u64 {
        self.within(HELD_OF, product, WAREHOUSES_HELD)
    }

    /// Number of rows that these units, from 1, have in a table.
    #[must_use]
    pub fn rows_of(&self, table: Table, units: Range<u64>) -> u64 {
        match table {
            Table::OrderItems => units.map(|order| self.lines_of(order)).sum(),
            Table::Inventories => units.map(|product| self.held(product)).sum(),
            _ => units.end - units.start,
        }
    }

    /// Exact number of rows of a table.
    #[must_use]
    pub fn rows(&self, table: Table) -> u64 {
        self.rows_of(table, 1..self.counts.units(table) + 1)
    }

    /// Number of rows of all tables.
    #[must_use]
    pub fn rows_in_all(&self) -> u64 {
        TABLES.into_iter().map(|table| self.rows(table)).sum()
    }

    /// Writes the rows of one unit, counted from 1.
    pub fn write(&self, table: Table, unit: u64, out: &mut Lines) {
        match table {
            Table::Customers => self.customer(unit, out),
            Table::Addresses => self.address(unit, out),
            Table::CardDetails => self.card(unit, out),
            Table::Warehouses => self.warehouse(unit, out),
            Table::ProductInformation => self.product(unit, out),
            Table::ProductDescriptions => self.description(unit, out),
            Table::Inventories => self.inventory(unit, out),
            Table::Orders => self.order(unit, out),
            Table::OrderItems => self.items(unit, out),
            Table::Logon => self.logon(unit, out),
        }
    }

    /// ref(T): any row of a parent.
    fn any(&self, draw: &mut Draw<'_>, rows: u64) -> i64 {
        draw.range(1..rows + 1) as i64
    }

    fn customer(&self, id: u64, out: &mut Lines) {
        let d = &mut self.draw(Table::Customers, id);
        let lists = d.lists;
        out.int(id as i64);
        out.text(d.bell_of(&lists.first).as_bytes());
        out.text(d.bell_of(&lists.last).as_bytes());
        let mut word = Vec::with_capacity(64);
        d.characters(2..4, UPPER, &mut word);
        out.text(&word);
        out.text(d.some_of(&lists.territories).as_bytes());
        out.int(CREDIT[d.bell(0..CREDIT.len() as i64) as usize]);
        word.clear();
        for part in [d.bell_of(&lists.first), ".", d.bell_of(&lists.last), "@", d.of(&PROVIDERS), ".com"] {
            word.extend_from_slice(part.as_bytes());
        }
        out.text(&word);
        out.int(d.bell(0..1000));
        out.date(d.range(day::Y2000..day::SINCE_LAST) as i64);
        out.text(d.of(&CLASSES).as_bytes());
        out.text(d.of(&HOBBIES).as_bytes());
        out.date(d.range(0..day::Y1950 + day::BORN_LAST) as i64 - day::Y1950 as i64);
        out.text(if d.odds(3, 4) { b"Y" } else { b"N" });
        out.text(if d.odds(1, 3) { b"Y" } else { b"N" });
        out.int(self.any(d, self.counts.addresses));
        out.int(self.any(d, self.counts.cards));
        out.end();
    }

    fn address(&self, id: u64, out: &mut Lines) {
        let d = &mut self.draw(Table::Addresses, id);
        let lists = d.lists;
        out.int(id as i64);
        out.int(self.any(d, self.counts.customers));
        out.time(d.range(day::Y2000 * 86_400..day::MADE_LAST * 86_400) as i64);
        let mut word = Vec::with_capacity(64);
        if d.odds(1, 10) {
            out.null()
        } else {
            d.characters(1..4, &DIGITS[1..], &mut word);
            out.text(&word);
        }
        word.clear();
        word.extend_from_slice(d.some_of(&lists.last).as_bytes());
        word.extend_from_slice(d.of(&STREETS).as_bytes());
        out.text(&word);
        out.text(d.some_of(&lists.towns).as_bytes());
        out.text(d.some_of(&lists.counties).as_bytes());
        out.text(d.some_of(&lists.countries).as_bytes());
        for alphabet in [ANY, DIGITS] {
            word.clear();
            if d.odds(1, 2) {
                out.null()
            } else {
                d.characters(6..7, alphabet, &mut word);
                out.text(&word);
            }
        }
        out.end();
    }

    fn card(&self, id: u64, out: &mut Lines) {
        let d = &mut self.draw(Table::CardDetails, id);
        out.int(id as i64);
        out.int(self.any(d, self.counts.customers));
        out.text(d.of(&CARDS).as_bytes());
        out.int(d.range(1_111_111_111..1_410_065_407) as i64);
        out.date(d.range(day::EXPIRES..day::EXPIRES_LAST) as i64);
        out.text(if d.odds(1, 34) { b"N" } else { b"Y" });
        out.int(d.range(1111..9999) as i64);
        out.end();
    }

    fn warehouse(&self, id: u64, out: &mut Lines) {
        let d = &mut self.draw(Table::Warehouses, id);
        out.int(id as i64);
        let mut word = Vec::with_capacity(40);
        d.characters(1..36, LOWER, &mut word);
        out.text(&word);
        out.int(d.range(0..9999) as i64);
        out.end();
    }

    fn product(&self, id: u64, out: &mut Lines) {
        let d = &mut self.draw(Table::ProductInformation, id);
        out.int(id as i64);
        let mut word = Vec::with_capacity(160);
        for chars in [10..36, 40..151] {
            word.clear();
            // A text neither starts nor ends with a blank.
            word.push(b'a' + d.range(0..26) as u8);
            d.characters(chars.start - 2..chars.end - 2, PROSE, &mut word);
            word.push(b'a' + d.range(0..26) as u8);
            out.text(&word);
        }
        out.int(d.range(1..200) as i64);
        out.int(d.range(1..10) as i64);
        out.months(d.range(0..99) as i64 * 12 + 1);
        out.int(d.bell(1..1000));
        out.text(d.of(&STATUSES).as_bytes());
        out.int(d.range(1..5000) as i64);
        out.int(d.range(1..5000) as i64);
        word.clear();
        d.characters(6..33, LOWER, &mut word);
        out.text(&word);
        out.end();
    }

    fn description(&self, id: u64, out: &mut Lines) {
        let d = &mut self.draw(Table::ProductDescriptions, id);
        out.int(id as i64);
        let mut word = Vec::with_capacity(160);
        for (chars, alphabet) in [(1..4, UPPER), (10..21, LOWER), (30..151, LOWER)] {
            word.clear();
            d.characters(chars, alphabet, &mut word);
            out.text(&word);
        }
        out.end();
    }

    fn inventory(&self, product: u64, out: &mut Lines) {
        let d = &mut self.draw(Table::Inventories, product);
        for warehouse in 1..=self.held(product) {
            out.int(product as i64);
            out.int(warehouse as i64);
            out.int(d.range(0..99_999_999) as i64);
            out.end();
        }
    }

    fn order(&self, id: u64, out: &mut Lines) {
        let d = &mut self.draw(Table::Orders, id);
        out.int(id as i64);
        out.instant(d.range(day::Y2007 * 86_400..day::ORDERED_LAST * 86_400) as i64);
        match d.range(0..10) {
            0 | 1 => out.null(),
            2..=5 => out.text(b"direct"),
            _ => out.text(b"online"),
        }
        out.int(self.any(d, self.counts.customers));
        out.int(d.bell(1..10));
        out.int(d.bell(0..10_000));
        out.int(d.bell(1..1000));
        out.int(d.bell(0..1000));
        out.int(d.range(1..1000) as i64);
        out.text(d.of(&DELIVERY).as_bytes());
        out.int(d.range(1..5) as i64);
        out.text(if d.odds(1, 5) { b"ship_asap" } else { b"ship_when_ready" });
        out.int(d.range(1..10) as i64);
        out.text(d.of(&CLASSES).as_bytes());
        out.int(self.any(d, self.counts.cards));
        out.int(d.range(1..10) as i64);
        out.end();
    }

    fn items(&self, order: u64, out: &mut Lines) {
        for line in 1..=self.lines_of(order) {
            let d = &mut self.draw(Table::OrderItems, order * LINES_ROOM + line);
            out.int(order as i64);
            out.int(line as i64);
            out.int(d.bell(1..1000));
            out.int(d.bell(0..2000));
            out.int(d.bell(0..10));
            out.date(d.range(day::Y2012..day::SENT_LAST) as i64);
            if d.odds(97, 100) {
                out.null()
            } else {
                out.date(d.range(day::Y2012..day::SENT_LAST) as i64)
            }
            out.text(d.of(&PAPERS).as_bytes());
            out.text(d.of(&CONDITIONS).as_bytes());
            out.int(d.bell(1..1000));
            out.date(d.range(day::Y2000..day::Y2012 + 366) as i64);
            out.end();
        }
    }

    fn logon(&self, id: u64, out: &mut Lines) {
        let d = &mut self.draw(Table::Logon, id);
        out.int(id as i64);
        out.int(self.any(d, self.counts.customers));
        out.time(d.range(day::Y2000 * 86_400..day::LOGGED_LAST * 86_400) as i64);
        out.end();
    }
}
