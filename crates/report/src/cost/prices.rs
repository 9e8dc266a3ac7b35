//! A price file as read: the user's own prices of the platforms runs were made on, with their date and source.
//!
//! serde reads it and refuses what it does not know; every mistake is reported with its line, and with the line of the example that is right.

use super::EXAMPLE;
use assay_measure::config::nearest;
use assay_measure::units::{fixed, shorten};
use jiff::civil::Date;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use toml::Spanned;

/// What is wrong with a price file: the first mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {text}")]
pub struct PriceError {
    /// Path as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub text: String,
}

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
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Path as given.
    #[serde(skip)]
    pub file: String,
    /// When the prices were read.
    #[serde(deserialize_with = "day")]
    pub date: Day,
    /// Three capital letters, as in ISO 4217.
    #[serde(deserialize_with = "currency")]
    pub currency: String,
    /// Where they were read, in the user's words.
    #[serde(deserialize_with = "words")]
    pub source: String,
    /// Hours that a month is billed with: 30 days, as cloud calculators have it, unless the file says otherwise.
    #[serde(default = "month_hours", deserialize_with = "hours")]
    pub hours_per_month: f64,
    /// Months that purchases and licences are spread over: the usual time to write equipment off, and the term that price-performance
    /// is quoted for, unless the file says otherwise.
    #[serde(default = "term_months", deserialize_with = "months")]
    pub months: f64,
    /// Platforms in the order of the file.
    #[serde(rename = "platform", deserialize_with = "several")]
    pub platforms: Vec<Platform>,
}

/// One platform and its costs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "PlatformTable")]
pub struct Platform {
    /// Where the file names it, a byte.
    at: usize,
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
    /// Where the file names it, a byte.
    at: usize,
    /// One of [`KINDS`].
    pub kind: &'static str,
    /// How it becomes money.
    pub nature: Nature,
    /// Unique in its platform.
    pub name: String,
    /// Key, unit (`money` is the file's currency) and value of each factor, in the order of the formula; without a value that of the file holds.
    pub factors: Vec<(&'static str, &'static str, Option<f64>)>,
    /// When this price was read, if not when the others were.
    pub date: Option<Day>,
    /// Where this price was read, if not where the others were.
    pub source: Option<String>,
}

/// How a price becomes money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// The product of all factors is due each month.
    Running,
    /// Price times quantity is due once and spread over the months of the last factor.
    Purchase,
    /// List price x cores x core factor less the discount is due once and spread over the months; support is due each year.
    Licence,
}

/// Kinds of prices: for each the table of a platform, how it becomes money, and its factors. One without a default must be in the file, unless
/// the default is the file's (`file`).
macro_rules! kinds {
    ($($kind:ident $nature:ident { $($factor:ident $number:literal $unit:literal $(= $default:expr)?;)* })*) => {
        /// Every kind of price there is.
        pub const KINDS: &[&str] = &[$(stringify!($kind)),*];

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct PlatformTable {
            name: Spanned<Words>,
            #[serde(rename = "match", default, deserialize_with = "several")]
            matches: Vec<Words>,
            #[serde(default, deserialize_with = "amount")]
            provisioned_iops: Option<f64>,
            #[serde(default, deserialize_with = "amount")]
            provisioned_mbps: Option<f64>,
            #[serde(default, deserialize_with = "amount")]
            stated_monthly: Option<f64>,
            $(#[serde(default, deserialize_with = "several")] $kind: Vec<$kind::Table>,)*
        }

        impl From<PlatformTable> for Platform {
            fn from(table: PlatformTable) -> Self {
                let mut items = Vec::new();
                $(items.extend(table.$kind.into_iter().map(Item::from));)*
                items.sort_by_key(|item: &Item| item.at);
                Self {
                    at: table.name.span().start,
                    name: table.name.into_inner().0,
                    matches: table.matches.into_iter().map(|words| words.0).collect(),
                    provisioned_iops: table.provisioned_iops,
                    provisioned_mbps: table.provisioned_mbps,
                    stated_monthly: table.stated_monthly,
                    items,
                }
            }
        }

        $(mod $kind {
            use super::*;

            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            pub(super) struct Table {
                name: Spanned<Words>,
                #[serde(default, deserialize_with = "day")]
                date: Option<Day>,
                source: Option<Words>,
                $(#[serde(deserialize_with = $number $(, default = $default)?)] $factor: Option<f64>,)*
            }

            impl From<Table> for Item {
                fn from(table: Table) -> Self {
                    Self {
                        at: table.name.span().start,
                        kind: stringify!($kind),
                        nature: Nature::$nature,
                        name: table.name.into_inner().0,
                        factors: vec![$((stringify!($factor), $unit, table.$factor)),*],
                        date: table.date,
                        source: table.source.map(|words| words.0),
                    }
                }
            }
        })*
    };
}

kinds! {
    hourly Running { price "amount" "money"; quantity "amount" "" = "one"; hours_per_month "hours" "h" = "of_file"; }
    monthly Running { price "amount" "money"; quantity "amount" "" = "one"; }
    per_gb_month Running { price "amount" "money"; gb "amount" "GB"; }
    per_provisioned_iops_month Running { price "amount" "money"; iops "amount" "IOPS"; }
    per_mbps Running { price "amount" "money"; mbps "amount" "MB/s"; }
    power Running { price "amount" "money"; quantity "amount" "" = "one"; }
    egress Running { price "amount" "money"; quantity "amount" "" = "one"; }
    one_off Purchase { price "amount" "money"; quantity "amount" "" = "one"; months "months" "months" = "of_file"; }
    core_licence Licence {
        list_price "amount" "money";
        cores "amount" "cores";
        core_factor "amount" "" = "one";
        discount_pct "percent" "%" = "zero";
        support_pct_per_year "percent" "% a year" = "zero";
        months "months" "months" = "of_file";
    }
}

/// A line of text that says something.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Words(String);

impl TryFrom<String> for Words {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            Err("not one line of text")
        } else {
            Ok(Self(text.trim().to_owned()))
        }
    }
}

fn words<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Words::deserialize(from).map(|words| words.0)
}

fn currency<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let code = words(from)?;
    if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        Ok(code)
    } else {
        Err(D::Error::custom("not three capital letters"))
    }
}

/// A date of TOML, or one in quotes.
fn day<'de, D: Deserializer<'de>, T: From<Day>>(from: D) -> Result<T, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "not a date")]
    enum Written {
        Date(toml::value::Datetime),
        Text(String),
    }
    let text = match Written::deserialize(from)? {
        Written::Date(date) => date.to_string(),
        Written::Text(text) => text,
    };
    Day::read(&text).map(T::from).ok_or_else(|| D::Error::custom("not a date"))
}

fn number<'de, D: Deserializer<'de>, T: From<f64>>(from: D, least: f64, most: f64) -> Result<T, D::Error> {
    let value = f64::deserialize(from)?;
    if (least..=most).contains(&value) {
        Ok(value.abs().into())
    } else {
        Err(D::Error::custom(format_args!(
            "out of range; give a number from {} to {}",
            fixed(least, 0),
            fixed(most, 0)
        )))
    }
}

/// No price or quantity is larger; what is was mistyped.
fn amount<'de, D: Deserializer<'de>, T: From<f64>>(from: D) -> Result<T, D::Error> {
    number(from, 0.0, 1e15)
}

fn percent<'de, D: Deserializer<'de>, T: From<f64>>(from: D) -> Result<T, D::Error> {
    number(from, 0.0, 100.0)
}

fn hours<'de, D: Deserializer<'de>, T: From<f64>>(from: D) -> Result<T, D::Error> {
    number(from, 0.0, 744.0)
}

/// Costs are spread over at least one.
fn months<'de, D: Deserializer<'de>, T: From<f64>>(from: D) -> Result<T, D::Error> {
    number(from, 1.0, 600.0)
}

fn month_hours() -> f64 {
    720.0
}

fn term_months() -> f64 {
    36.0
}

fn one() -> Option<f64> {
    Some(1.0)
}

fn zero() -> Option<f64> {
    Some(0.0)
}

fn of_file() -> Option<f64> {
    None
}

/// A list, or one alone: `[[platform]]` several times or `[platform]` once, a text or a list of texts.
fn several<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Several<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Several<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("one or a list of them")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }

        fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Vec<T>, A::Error> {
            T::deserialize(MapAccessDeserializer::new(table)).map(|one| vec![one])
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
            T::deserialize(text.into_deserializer()).map(|one| vec![one])
        }
    }

    from.deserialize_any(Several(PhantomData))
}

/// Reads a price file. `file` is only named.
///
/// # Errors
/// The first mistake, with its line.
pub fn parse(file: &str, text: &str) -> Result<Prices, PriceError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let wrong = |at: usize, why: &dyn Fn(&str) -> String| {
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let said = if at == 0 { "the file" } else { text[start..].lines().next().unwrap_or_default().trim() };
        let line = 1 + before.matches('\n').count();
        PriceError { file: file.to_owned(), line, text: format!("{}: {}", shorten(said, 60), why(said)) }
    };
    let refused = |error: &toml::de::Error, explained: fn(&str, &str) -> String| {
        let message = shorten(error.message(), 400).replace('\n', ", ");
        wrong(error.span().unwrap_or_default().start, &|said| explained(&message, said))
    };
    let document = toml::Deserializer::parse(text)
        .map_err(|error| refused(&error, |message, _| format!("not TOML: {message}")))?;
    let mut prices = Prices::deserialize(document).map_err(|error| refused(&error, explained))?;
    prices.file = file.to_owned();
    if prices.platforms.is_empty() {
        return Err(wrong(0, &|said| explained("missing field `platform`", said)));
    }
    let platforms = prices.platforms.iter().map(|platform| (platform.at, platform.name.as_str()));
    let mut doubles = vec![double(platforms)];
    for platform in &prices.platforms {
        if platform.items.is_empty() {
            let kinds = KINDS.join(", ");
            let why = format!("has no price; give it [[platform.hourly]] with name and price, or another of {kinds}");
            return Err(wrong(platform.at, &|_| why.clone()));
        }
        doubles.push(double(platform.items.iter().map(|item| (item.at, item.name.as_str()))));
    }
    match doubles.into_iter().flatten().next() {
        Some(at) => {
            Err(wrong(at, &|_| "used twice; give each platform, and each price of a platform, its own name".to_owned()))
        }
        None => Ok(prices),
    }
}

/// Where a name stands for the second time.
fn double<'p>(mut names: impl Iterator<Item = (usize, &'p str)>) -> Option<usize> {
    let mut known = HashSet::new();
    names.find(|(_, name)| !known.insert(*name)).map(|(at, _)| at)
}

/// serde's message about a line, with the way out: the key that was meant, or the line of the example that has the key at fault.
fn explained(message: &str, said: &str) -> String {
    if let Some(names) = message.strip_prefix("unknown field `") {
        let mut names = names.split('`').step_by(2);
        let unknown = names.next().unwrap_or_default();
        let near = nearest(unknown, names);
        return near.map_or(message.to_owned(), |near| format!("unknown field `{unknown}`; did you mean {near}?"));
    }
    let missing = message.strip_prefix("missing field `").and_then(|name| name.split('`').next());
    let key = missing.or_else(|| said.split(' ').next()).unwrap_or_default();
    let is_right =
        |line: &&str| line.trim_start_matches('[').strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', ']']));
    let message = message.replace("expected f64", "expected a number");
    match EXAMPLE.lines().map(|line| line.trim_start_matches([' ', '#'])).find(is_right) {
        Some(line) => format!("{message}; e.g. {}", line.split_whitespace().collect::<Vec<_>>().join(" ")),
        None => message,
    }
}
