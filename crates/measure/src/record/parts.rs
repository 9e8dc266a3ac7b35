//! What only one kind of test records, opaque to all other code.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What one kind of test keeps in a record, under its own name.
pub trait Part: Serialize + DeserializeOwned {
    /// Its key in `parts`.
    const NAME: &'static str;
}

/// Parts by name, as JSON: only a kind knows the shape of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Parts(BTreeMap<String, Value>);

impl Parts {
    /// The part of this type; `None` if the record has none, or none of this shape.
    #[must_use]
    pub fn get<P: Part>(&self) -> Option<P> {
        self.read().ok().flatten()
    }

    /// The part of this type, if there is one.
    ///
    /// # Errors
    /// When the value under its name has another shape: the record was edited.
    pub fn read<P: Part>(&self) -> Result<Option<P>, serde_json::Error> {
        self.0.get(P::NAME).map(P::deserialize).transpose()
    }

    /// Whether the part of this type is there, in its shape.
    ///
    /// # Errors
    /// When it is not: without it, all its figures would be shown as they are by default.
    pub fn require<P: Part>(&self) -> Result<(), serde_json::Error> {
        let missing = || serde_json::Error::custom(format!("this record of {0} has no part \"{0}\"", P::NAME));
        self.read::<P>()?.map(drop).ok_or_else(missing)
    }

    /// Stores a part, replacing an earlier one.
    ///
    /// # Panics
    /// When a part cannot be written as JSON, which no part of ours is: their maps have strings for keys.
    pub fn put<P: Part>(&mut self, part: &P) {
        let value = serde_json::to_value(part).expect("a part is plain data");
        self.0.insert(P::NAME.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Serialize, Deserialize)]
    struct Lines {
        count: u64,
    }

    impl Part for Lines {
        const NAME: &'static str = "lines";
    }

    #[test]
    fn a_part_that_is_missing_or_of_another_shape_is_not_taken_for_zeros() {
        let mut parts = Parts::default();
        let error = parts.require::<Lines>().unwrap_err().to_string();
        assert_eq!(error, "this record of lines has no part \"lines\"");
        parts.0.insert("lines".to_owned(), Value::from("edited"));
        assert!(parts.require::<Lines>().is_err());
        parts.put(&Lines { count: 3 });
        assert!(parts.require::<Lines>().is_ok());
    }
}
