//! A price file as read: the user's own prices of the platforms runs were made on, with their date and source.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A day of the calendar, as prices and runs are dated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Day {
    /// Four digits.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl Day {
    /// The day that a text begins with, written `2026-11-21`; RFC 3339 times begin so.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let text = text.get(..10).filter(|text| text.contains('-'))?;
        let day: Date = text.parse().ok()?;
        Some(Self {
            year: u16::try_from(day.year()).ok().filter(|year| *year > 0)?,
            month: day.month().unsigned_abs(),
            day: day.day().unsigned_abs(),
        })
    }

    /// Whether `later` is more than this many months away.
    #[must_use]
    pub fn is_older_than(self, months: u32, later: Self) -> bool {
        let index = |day: Self| u32::from(day.year) * 12 + u32::from(day.month);
        (index(self) + months, self.day) < (index(later), later.day)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

impl TryFrom<String> for Day {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let day = Self::read(&text).filter(|_| text.len() == 10);
        day.ok_or_else(|| format!("\"{text}\" is not a date such as 2026-11-21"))
    }
}

/// A whole price file.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    /// Path as given.
    pub file: String,
    /// When the prices were read.
    pub date: Day,
    /// Three capital letters, as in ISO 4217.
    pub currency: String,
    /// Where they were read, in the user's words.
    pub source: String,
    /// Hours that a month is billed with, 720 unless the file says otherwise.
    pub hours_per_month: f64,
    /// Months that purchases and licences are spread over, 36 unless the file says otherwise.
    pub months: f64,
    /// Platforms in the order of the file.
    pub platforms: Vec<Platform>,
}

/// One platform and its costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Platform {
    /// Unique in the file.
    pub name: String,
    /// Labels and host names of the runs that were made on it.
    pub matches: Vec<String>,
    /// I/Os per second paid for; else the sum of its `per_provisioned_iops_month` items.
    pub provisioned_iops: Option<f64>,
    /// Bytes per second paid for, 10^6; else the sum of its `per_mbps` items.
    pub provisioned_mbps: Option<f64>,
    /// The monthly total without licences that was computed elsewhere from the same inputs.
    pub stated_monthly: Option<f64>,
    /// In the order of the file.
    pub items: Vec<Item>,
}

/// One price and what it is multiplied by.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What kind of price.
    pub kind: &'static Kind,
    /// Unique in its platform.
    pub name: String,
    /// One value for each field of the kind, in its order.
    pub values: Vec<f64>,
    /// When this price was read, if not when the others were.
    pub date: Option<Day>,
    /// Where this price was read, if not where the others were.
    pub source: Option<String>,
}

/// How a price becomes money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// The product of all fields is due each month.
    Running,
    /// Price times quantity is due once and spread over the months of the last field.
    Purchase,
    /// List price x cores x core factor less the discount is due once and spread over the months; support is due each year.
    Licence,
}

/// A kind of price: the name of its table in the file and its fields.
#[derive(Debug, PartialEq)]
pub struct Kind {
    /// `hourly`, `per_gb_month`, ...
    pub key: &'static str,
    /// How a price of this kind becomes money.
    pub nature: Nature,
    /// Its fields in the order of the formula.
    pub fields: &'static [Field],
}

/// A number of an item.
#[derive(Debug, PartialEq)]
pub struct Field {
    /// Its key in the file.
    pub key: &'static str,
    /// Its unit; `money` is the file's currency.
    pub unit: &'static str,
    /// Its default.
    pub default: Default,
}

/// The default of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// The file has to say.
    Required,
    /// This number.
    Value(f64),
    /// `hours_per_month` of the file.
    Hours,
    /// `months` of the file.
    Months,
}

const fn field(key: &'static str, unit: &'static str, default: Default) -> Field {
    Field { key, unit, default }
}

const PRICE: Field = field("price", "money", Default::Required);
const QUANTITY: Field = field("quantity", "", Default::Value(1.0));
const MONTHS: Field = field("months", "months", Default::Months);

/// Every kind there is.
pub const KINDS: [Kind; 9] = [
    Kind {
        key: "hourly",
        nature: Nature::Running,
        fields: &[PRICE, QUANTITY, field("hours_per_month", "h", Default::Hours)],
    },
    Kind { key: "monthly", nature: Nature::Running, fields: &[PRICE, QUANTITY] },
    Kind { key: "per_gb_month", nature: Nature::Running, fields: &[PRICE, field("gb", "GB", Default::Required)] },
    Kind {
        key: "per_provisioned_iops_month",
        nature: Nature::Running,
        fields: &[PRICE, field("iops", "IOPS", Default::Required)],
    },
    Kind { key: "per_mbps", nature: Nature::Running, fields: &[PRICE, field("mbps", "MB/s", Default::Required)] },
    Kind { key: "power", nature: Nature::Running, fields: &[PRICE, QUANTITY] },
    Kind { key: "egress", nature: Nature::Running, fields: &[PRICE, QUANTITY] },
    Kind { key: "one_off", nature: Nature::Purchase, fields: &[PRICE, QUANTITY, MONTHS] },
    Kind {
        key: "core_licence",
        nature: Nature::Licence,
        fields: &[
            field("list_price", "money", Default::Required),
            field("cores", "cores", Default::Required),
            field("core_factor", "", Default::Value(1.0)),
            field("discount_pct", "%", Default::Value(0.0)),
            field("support_pct_per_year", "% a year", Default::Value(0.0)),
            MONTHS,
        ],
    },
];
