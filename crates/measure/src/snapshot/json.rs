//! A reading in JSON: a number, or `{"na":"reason"}`.

use super::Reading;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

impl Serialize for Reading {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Na(reason) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("na", reason)?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Reading {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadingVisitor)
    }
}

struct ReadingVisitor;

impl<'de> Visitor<'de> for ReadingVisitor {
    type Value = Reading;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number or {\"na\": \"reason\"}")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Reading, E> {
        Ok(Reading::Count(count))
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<Reading, E> {
        let count = u64::try_from(count);
        count.map(Reading::Count).map_err(|_| E::custom("a count below 0"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Reading, A::Error> {
        let mut reason = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "na" => reason = Some(map.next_value::<String>()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        reason.map(Reading::Na).ok_or_else(|| A::Error::missing_field("na"))
    }
}
