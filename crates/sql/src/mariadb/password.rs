//! A password, which nothing shows.

/// A password; never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(pub(super) String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
