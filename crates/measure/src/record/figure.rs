//! The leaves of a record: a number or a verdict, or the reason why there is none.

use crate::figures::figures;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A number, or why there is none. Reasons: awr-statistics 1.4 (`unsupported`, `disabled`,
/// `denied`, `absent`, `reset`, `unknowable`), or a few words of the operator's.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// A whole number, exact.
    Count(u64),
    /// A decimal, unrounded and finite.
    Decimal(f64),
    /// There is none.
    Na(String),
}

impl Default for Figure {
    fn default() -> Self {
        Self::na("absent")
    }
}

impl Figure {
    /// No figure, for this reason.
    #[must_use]
    pub fn na(reason: &str) -> Self {
        Self::Na(reason.to_owned())
    }

    /// A decimal; what is not finite is n/a, since JSON has no word for it.
    #[must_use]
    pub fn decimal(value: f64) -> Self {
        if value.is_finite() { Self::Decimal(value) } else { Self::na("unknowable") }
    }

    /// What may not be known, and why it is not.
    #[must_use]
    pub fn known(value: Option<impl Into<Self>>, why: &str) -> Self {
        value.map_or_else(|| Self::na(why), Into::into)
    }

    /// The number, if there is one.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Decimal(value) => Some(*value),
            Self::Na(_) => None,
        }
    }

    /// The reason, if there is no number.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Na(reason) => Some(reason),
            _ => None,
        }
    }

    /// This figure divided by `denominator`. A zero denominator gives n/a with
    /// `zero_reason`; n/a on either side stays n/a.
    #[must_use]
    pub fn per(&self, denominator: f64, zero_reason: &str) -> Self {
        match self.value() {
            None => self.clone(),
            Some(_) if denominator == 0.0 => Self::na(zero_reason),
            Some(value) => Self::decimal(value / denominator),
        }
    }

    /// This figure times a constant (a change of unit); a factor of 1 keeps it exact.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        match self.value() {
            Some(value) if factor != 1.0 => Self::decimal(value * factor),
            _ => self.clone(),
        }
    }

    /// The sum; n/a if either side is.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Count(left), Self::Count(right)) => Self::Count(left.saturating_add(*right)),
            (Self::Na(_), _) => self.clone(),
            (_, Self::Na(_)) => other.clone(),
            _ => Self::decimal(self.value().unwrap_or(0.0) + other.value().unwrap_or(0.0)),
        }
    }
}

impl From<u64> for Figure {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Figure {
    fn from(value: f64) -> Self {
        Self::decimal(value)
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Decimal(value) => serializer.serialize_f64(*value),
            Self::Na(reason) => serialize_na(serializer, reason),
        }
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FigureVisitor)
    }
}

struct FigureVisitor;

impl<'de> Visitor<'de> for FigureVisitor {
    type Value = Figure;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number or {\"na\": \"reason\"}")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Figure, E> {
        Ok(Figure::Count(count))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Figure, E> {
        Ok(u64::try_from(value).map_or(Figure::Decimal(value as f64), Figure::Count))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Figure, E> {
        Ok(Figure::decimal(value))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Figure, A::Error> {
        na_reason(map).map(Figure::Na)
    }
}

/// A named percentage.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PercentRow {
    /// The report's label, e.g. `Buffer Hit %`.
    pub name: String,
    /// 0..100.
    pub value_pct: Figure,
}

/// Whether an identity holds: yes, no, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// Evaluated and it holds.
    Holds,
    /// Evaluated and it does not.
    Violated,
    /// Not evaluated, with the reason.
    Na(String),
}

impl Default for Truth {
    fn default() -> Self {
        Self::Na("absent".to_owned())
    }
}

impl Serialize for Truth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Holds => serializer.serialize_bool(true),
            Self::Violated => serializer.serialize_bool(false),
            Self::Na(reason) => serialize_na(serializer, reason),
        }
    }
}

impl<'de> Deserialize<'de> for Truth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TruthVisitor)
    }
}

struct TruthVisitor;

impl<'de> Visitor<'de> for TruthVisitor {
    type Value = Truth;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("true, false or {\"na\": \"reason\"}")
    }

    fn visit_bool<E>(self, holds: bool) -> Result<Truth, E> {
        Ok(if holds { Truth::Holds } else { Truth::Violated })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Truth, A::Error> {
        na_reason(map).map(Truth::Na)
    }
}

fn serialize_na<S: Serializer>(serializer: S, reason: &str) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap;
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("na", reason)?;
    map.end()
}

fn na_reason<'de, A: MapAccess<'de>>(mut map: A) -> Result<String, A::Error> {
    let mut reason = None;
    while let Some(key) = map.next_key::<String>()? {
        if key == "na" {
            reason = Some(map.next_value::<String>()?);
        } else {
            map.next_value::<IgnoredAny>()?;
        }
    }
    reason.ok_or_else(|| A::Error::missing_field("na"))
}
