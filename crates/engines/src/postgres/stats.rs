//! What the server counts, by version.
