//! The JSON form: `{"count","sum_ns","min_ns","max_ns","slots":[[slot,count],...]}`;
//! an empty histogram has no extremes.

use super::{Histogram, HistogramError};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
struct Form {
    count: u64,
    sum_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_ns: Option<u64>,
    slots: Vec<(u32, u64)>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = Form {
            count: self.count(),
            sum_ns: self.sum_ns(),
            min_ns: self.min_ns(),
            max_ns: self.max_ns(),
            slots: self.sparse(),
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = Form::deserialize(deserializer)?;
        let (min_ns, max_ns) = (form.min_ns.unwrap_or(u64::MAX), form.max_ns.unwrap_or(0));
        let histogram =
            Self::from_sparse(&form.slots, form.sum_ns, min_ns, max_ns).map_err(serde::de::Error::custom)?;
        if histogram.count() != form.count {
            let (count, slots) = (form.count, histogram.count());
            let error = HistogramError::Count { count, slots };
            return Err(serde::de::Error::custom(error));
        }
        Ok(histogram)
    }
}
