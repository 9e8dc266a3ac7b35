//! Everything random about a transaction, drawn before it starts. A retry, another target and the other form (functions
//! or single statements) therefore do the same.

use crate::mix::Tx;
use crate::names::Lists;
use assay_measure::prng::SplitMix64;
use std::ops::Range;

/// Maximum number of products viewed or categories searched.
pub const LOOKS_MAX: usize = 24;
/// Maximum number of products bought.
pub const BUYS_MAX: usize = 8;

/// Id ranges of the loaded rows; runs do not visit rows that runs added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// First and last customer.
    pub customers: (u64, u64),
}

/// The inputs of a transaction, including some that it does not use; see the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs<'a> {
    /// The transaction.
    pub tx: Tx,
    /// A customer.
    pub customer: i64,
    /// Whether the logon is recorded (one in three).
    pub logon: bool,
    /// Number of products viewed or categories searched.
    pub looks: usize,
    /// Products viewed.
    pub products: [i32; LOOKS_MAX],
    /// Categories searched.
    pub categories: [i32; LOOKS_MAX],
    /// The warehouse of each category searched.
    pub warehouses: [i32; LOOKS_MAX],
    /// The warehouse of the order, the work list or the query.
    pub warehouse: i32,
    /// Maximum number of products bought.
    pub buys: usize,
    /// The warehouse whose stock is looked up and taken for each product.
    pub stocks: [i32; BUYS_MAX],
    /// Delivery cost.
    pub cost: i32,
    /// Status of a new order.
    pub status: i32,
    /// Choose an order and a line, modulo the number found.
    pub picks: [u32; 2],
    /// A sales representative.
    pub sales_rep: i32,
    /// First name.
    pub first: &'a str,
    /// Last name.
    pub last: &'a str,
    /// Town, county, country.
    pub place: [&'a str; 3],
    /// Territory.
    pub territory: &'a str,
    /// Language.
    pub language: [u8; 2],
    /// House number.
    pub house: i32,
    /// Credit limit.
    pub credit: i32,
    /// Account manager.
    pub manager: i32,
    /// Days since birth.
    pub age_days: i32,
    /// Card number.
    pub card: i64,
    /// Days until the card expires.
    pub expires_days: i32,
    /// Security code of the card.
    pub security: i32,
}

fn below(random: &mut SplitMix64, range: Range<u64>) -> u64 {
    let width = u128::from(range.end - range.start);
    range.start + ((u128::from(random.next_u64()) * width) >> 64) as u64
}

impl<'a> Inputs<'a> {
    /// Draws the inputs from the number of an operation.
    #[must_use]
    pub fn draw(tx: Tx, number: u64, bounds: Bounds, lists: &'a Lists) -> Self {
        let mut random = SplitMix64(number);
        let mut r = |range: Range<u64>| below(&mut random, range);
        let (first, last) = bounds.customers;
        // The last customer is drawn only if there is no other.
        let customer = r(first..last.max(first + 1)) as i64;
        let logon = r(0..3) == 0;
        let looks = r(1..24) as usize;
        let mut list = |range: Range<u64>| [(); LOOKS_MAX].map(|()| r(range.clone()) as i32);
        let (products, categories, warehouses) = (list(1..1000), list(1..199), list(1..1000));
        let statuses = match tx {
            Tx::ProcessOrders => 5..10,
            _ => 0..4,
        };
        let pick = |list: &'a [String], at: u64| list[at as usize].as_str();
        let of = |list: &[String]| 0..list.len() as u64;
        Self {
            tx,
            customer,
            logon,
            looks,
            products,
            categories,
            warehouses,
            warehouse: r(1..1000) as i32,
            buys: r(2..8) as usize,
            stocks: [(); BUYS_MAX].map(|()| r(1..1000) as i32),
            cost: r(1..5) as i32,
            status: r(statuses) as i32,
            picks: [r(0..1 << 31) as u32, r(0..1 << 31) as u32],
            sales_rep: r(1..1000) as i32,
            first: pick(&lists.first, r(of(&lists.first))),
            last: pick(&lists.last, r(of(&lists.last))),
            place: [
                pick(&lists.towns, r(of(&lists.towns))),
                pick(&lists.counties, r(of(&lists.counties))),
                pick(&lists.countries, r(of(&lists.countries))),
            ],
            territory: pick(&lists.territories, r(of(&lists.territories))),
            language: [b'A' + r(0..26) as u8, b'A' + r(0..26) as u8],
            house: r(1..200) as i32,
            credit: r(100..5000) as i32,
            manager: r(145..171) as i32,
            age_days: r(20 * 365..60 * 365) as i32,
            card: r(1_111_111_111..1_410_065_407) as i64,
            expires_days: r(365..1460) as i32,
            security: r(1111..9999) as i32,
        }
    }

    /// The language as text.
    #[must_use]
    pub fn language(&self) -> &str {
        std::str::from_utf8(&self.language).unwrap_or_default()
    }
}
