//! The price file: strict TOML; the first mistake is reported with its line, its key and the remedy.

use super::prices::{Day, Default, Item, KINDS, Kind, Platform, Prices};
use assay_measure::config::nearest;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a price file: the first mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {text}")]
pub struct PriceError {
    /// Path as given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The key at fault; empty where the text is no TOML.
    pub key: String,
    /// What is wrong and what to do.
    pub text: String,
}

type Result<T> = std::result::Result<T, PriceError>;
type Value<'a> = Spanned<DeValue<'a>>;

/// Billed hours of a month: 30 days, as cloud calculators have it.
const HOURS_PER_MONTH: f64 = 720.0;
/// Usual time to write equipment off, and the term that price-performance is quoted for.
const MONTHS: f64 = 36.0;
/// No price, quantity or term is larger; what is was mistyped.
const LARGEST: f64 = 1e15;

/// Reads a price file. `file` is only named.
///
/// # Errors
/// The first mistake, with its line.
pub fn parse(file: &str, text: &str) -> Result<Prices> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let reader = Reader { file, text };
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or_default();
        let message = error.message().replace('\n', ", ");
        reader.error(at, "", format!("not TOML: {message}"))
    })?;
    reader.prices(document.get_ref())
}

struct Reader<'t> {
    file: &'t str,
    text: &'t str,
}

/// One table and where it stands.
struct Table<'r, 'a> {
    reader: &'r Reader<'r>,
    /// How errors name it: `platform "cloud A"`, or the file.
    what: String,
    span: Range<usize>,
    entries: &'r DeTable<'a>,
}

impl Reader<'_> {
    fn error(&self, at: Range<usize>, key: &str, text: String) -> PriceError {
        let before = &self.text.as_bytes()[..at.start.min(self.text.len())];
        PriceError {
            file: self.file.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            key: key.to_owned(),
            text,
        }
    }

    fn prices(&self, root: &DeTable<'_>) -> Result<Prices> {
        let table = Table { reader: self, what: "the file".to_owned(), span: 0..0, entries: root };
        table.only(&["date", "currency", "source", "hours_per_month", "months", "platform"])?;
        let date = match table.day("date")? {
            Some(day) => day,
            None => {
                return Err(table.missing("date", "the day on which you read the prices: date = 2026-11-21"));
            }
        };
        let currency = table.currency()?;
        let Some((source, _)) = table.text("source")? else {
            let hint = "where you read the prices: source = \"price list of ..., region ...\"";
            return Err(table.missing("source", hint));
        };
        let hours = table.number("hours_per_month", 744.0)?;
        let months = table.number("months", 600.0)?;
        let mut prices = Prices {
            file: self.file.to_owned(),
            date,
            currency,
            source,
            hours_per_month: hours.unwrap_or(HOURS_PER_MONTH),
            months: table.at_least_one("months", months.unwrap_or(MONTHS))?,
            platforms: Vec::new(),
        };
        for value in table.tables("platform")? {
            let platform = self.platform(value, &prices)?;
            let is_double = prices.platforms.iter().any(|other| other.name == platform.name);
            if is_double {
                let text = format!("a second platform \"{}\"; give each platform its own name", platform.name);
                return Err(self.error(value.span(), "name", text));
            }
            prices.platforms.push(platform);
        }
        if prices.platforms.is_empty() {
            Err(table.missing("platform", "at least one table [[platform]] with a name and prices"))
        } else {
            Ok(prices)
        }
    }

    /// The table of a value of [`Table::tables`].
    fn table<'r, 'a>(&'r self, value: &'r Value<'a>, what: &str) -> Result<Table<'r, 'a>> {
        match value.get_ref() {
            DeValue::Table(entries) => Ok(Table { reader: self, what: what.to_owned(), span: value.span(), entries }),
            _ => {
                let text = format!("{what} is not a table; write [[{what}]] and its keys below");
                Err(self.error(value.span(), what, text))
            }
        }
    }

    fn platform(&self, value: &Value<'_>, prices: &Prices) -> Result<Platform> {
        let mut table = self.table(value, "platform")?;
        let Some((name, _)) = table.text("name")? else {
            return Err(table.missing("name", "what to call it: name = \"cloud A\""));
        };
        table.what = format!("platform \"{name}\"");
        let mut known = vec!["name", "match", "provisioned_iops", "provisioned_mbps", "stated_monthly"];
        known.extend(KINDS.iter().map(|kind| kind.key));
        table.only(&known)?;
        let mut platform = Platform {
            matches: table.texts("match")?,
            provisioned_iops: table.number("provisioned_iops", LARGEST)?,
            provisioned_mbps: table.number("provisioned_mbps", LARGEST)?,
            stated_monthly: table.number("stated_monthly", LARGEST)?,
            name,
            items: Vec::new(),
        };
        let mut placed = Vec::new();
        for kind in &KINDS {
            for value in table.tables(kind.key)? {
                let item = self.item(kind, value, prices)?;
                let is_double = placed.iter().any(|(_, other): &(usize, Item)| other.name == item.name);
                if is_double {
                    let text =
                        format!("{} has a second price \"{}\"; give each price its own name", table.what, item.name);
                    return Err(self.error(value.span(), "name", text));
                }
                placed.push((value.span().start, item));
            }
        }
        if placed.is_empty() {
            let hint = format!(
                "at least one price, e.g. [[platform.hourly]] with name and price; kinds: {}",
                KINDS.map(|kind| kind.key).join(", ")
            );
            return Err(table.missing("price", &hint));
        }
        placed.sort_by_key(|(at, _)| *at);
        platform.items = placed.into_iter().map(|(_, item)| item).collect();
        Ok(platform)
    }

    fn item(&self, kind: &'static Kind, value: &Value<'_>, prices: &Prices) -> Result<Item> {
        let mut table = self.table(value, &format!("platform.{}", kind.key))?;
        let Some((name, _)) = table.text("name")? else {
            return Err(table.missing("name", "the name of what is paid for: name = \"block storage\""));
        };
        table.what = format!("{} \"{name}\"", kind.key);
        let mut known = vec!["name", "date", "source"];
        known.extend(kind.fields.iter().map(|field| field.key));
        table.only(&known)?;
        let mut values = Vec::new();
        for field in kind.fields {
            let most = match field.key {
                "hours_per_month" => 744.0,
                "discount_pct" | "support_pct_per_year" => 100.0,
                "months" => 600.0,
                _ => LARGEST,
            };
            let value = match (table.number(field.key, most)?, field.default) {
                (Some(value), _) => value,
                (None, Default::Value(value)) => value,
                (None, Default::Hours) => prices.hours_per_month,
                (None, Default::Months) => prices.months,
                (None, Default::Required) => {
                    return Err(table.missing(field.key, &format!("a number: {} = 1.0", field.key)));
                }
            };
            values.push(match field.key {
                "months" => table.at_least_one("months", value)?,
                _ => value,
            });
        }
        Ok(Item { kind, name, values, date: table.day("date")?, source: table.text("source")?.map(|(text, _)| text) })
    }
}

impl<'a> Table<'_, 'a> {
    fn entry(&self, key: &str) -> Option<(Range<usize>, &Value<'a>)> {
        let mut entries = self.entries.iter();
        let found = entries.find(|(name, _)| name.get_ref().as_ref() == key);
        found.map(|(name, value)| (name.span(), value))
    }

    fn missing(&self, key: &str, hint: &str) -> PriceError {
        let text = format!("{} has no {key}; it needs {hint}", self.what);
        self.reader.error(self.span.clone(), key, text)
    }

    fn wrong(&self, at: Range<usize>, key: &str, what: &str) -> PriceError {
        let given = self.reader.text.get(at.clone()).unwrap_or_default();
        let given = assay_measure::units::shorten(given.lines().next().unwrap_or_default(), 40);
        let text = format!("{key} = {given} of {} {what}", self.what);
        self.reader.error(at, key, text)
    }

    /// Every key is one of these.
    fn only(&self, known: &[&str]) -> Result<()> {
        for (key, _) in self.entries {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let way_out = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("known are {}", known.join(", ")),
            };
            let text = format!("{} has an unknown key {name}; {way_out}", self.what);
            return Err(self.reader.error(key.span(), name, text));
        }
        Ok(())
    }

    /// A text that says something, and where it stands.
    fn text(&self, key: &str) -> Result<Option<(String, Range<usize>)>> {
        let Some((_, value)) = self.entry(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::String(text) if is_word(text) => Ok(Some((text.trim().to_owned(), value.span()))),
            _ => Err(self.wrong(value.span(), key, "is not one line of text in quotes; write one")),
        }
    }

    /// Three capital letters.
    fn currency(&self) -> Result<String> {
        let Some((currency, at)) = self.text("currency")? else {
            let hint = "three letters as in ISO 4217: currency = \"USD\"";
            return Err(self.missing("currency", hint));
        };
        if currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Ok(currency);
        }
        let text = format!("currency \"{currency}\" is not three capital letters as in ISO 4217, e.g. \"USD\"");
        Err(self.reader.error(at, "currency", text))
    }

    /// A text or a list of texts.
    fn texts(&self, key: &str) -> Result<Vec<String>> {
        let Some((_, value)) = self.entry(key) else {
            return Ok(Vec::new());
        };
        let what = "is not a text or a list of texts; write match = [\"label\", \"host name\"]";
        let one = |value: &Value<'_>| match value.get_ref() {
            DeValue::String(text) if is_word(text) => Ok(text.trim().to_owned()),
            _ => Err(self.wrong(value.span(), key, what)),
        };
        match value.get_ref() {
            DeValue::Array(list) => list.iter().map(one).collect(),
            _ => Ok(vec![one(value)?]),
        }
    }

    /// A number from 0 to `most`.
    fn number(&self, key: &str, most: f64) -> Result<Option<f64>> {
        let Some((_, value)) = self.entry(key) else {
            return Ok(None);
        };
        let number = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse::<f64>().ok(),
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            _ => None,
        };
        match number {
            None => Err(self.wrong(value.span(), key, "is not a number; write one without quotes, as 0.125")),
            Some(number) if number < 0.0 => {
                Err(self.wrong(value.span(), key, "is negative; a price or a quantity is 0 or more"))
            }
            Some(number) if number <= most => Ok(Some(number.abs())),
            Some(_) => {
                let most = assay_measure::units::fixed(most, 0);
                let what = format!("is out of range; it is at most {most}");
                Err(self.wrong(value.span(), key, &what))
            }
        }
    }

    fn at_least_one(&self, key: &str, value: f64) -> Result<f64> {
        match self.entry(key) {
            Some((_, given)) if value < 1.0 => {
                Err(self.wrong(given.span(), key, "is below 1; costs are spread over at least one month"))
            }
            _ => Ok(value),
        }
    }

    fn day(&self, key: &str) -> Result<Option<Day>> {
        let Some((_, value)) = self.entry(key) else {
            return Ok(None);
        };
        let text = match value.get_ref() {
            DeValue::Datetime(date) => date.to_string(),
            DeValue::String(text) => text.to_string(),
            _ => String::new(),
        };
        match Day::read(&text) {
            Some(day) => Ok(Some(day)),
            None => Err(self.wrong(value.span(), key, "is not a date; write it as 2026-11-21")),
        }
    }

    /// The tables of a kind: `[[platform]]` several times, or `[platform]` once.
    fn tables(&self, key: &str) -> Result<Vec<&Value<'a>>> {
        let Some((_, value)) = self.entry(key) else {
            return Ok(Vec::new());
        };
        match value.get_ref() {
            DeValue::Array(list) => Ok(list.iter().collect()),
            DeValue::Table(_) => Ok(vec![value]),
            _ => Err(self.wrong(value.span(), key, "is not a table; write it as a table [[...]] with its keys below")),
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}
