//! What only one kind of test records, opaque to all other code.

use serde::de::DeserializeOwned;
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

    /// Stores a part, replacing an earlier one.
    ///
    /// # Panics
    /// When a part cannot be written as JSON, which no part of ours is: their maps have strings for keys.
    pub fn put<P: Part>(&mut self, part: &P) {
        let value = serde_json::to_value(part).expect("a part is plain data");
        self.0.insert(P::NAME.to_owned(), value);
    }
}
