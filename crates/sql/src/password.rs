//! A password for any server. Nothing prints it.

use std::fmt;

/// A password: never printed, never serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Keeps a password.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The plain text, to be sent to the server only.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
