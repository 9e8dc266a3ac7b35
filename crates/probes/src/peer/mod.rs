//! Two ends of a test that talk to each other: how one finds, greets and trusts the other, and how each notices that
//! the other is gone, hangs or is not a peer at all.
//!
//! Owns the connection with its patience (`Line`), the greeting with versions and the shared secret (`hello`), JSON in
//! frames (`frame`), the listener of a server (`listen`) and the options that every such test has (`asked`). Knows no test: a service has a name and a version.

pub(crate) mod asked;
pub(crate) mod frame;
pub(crate) mod hello;
pub(crate) mod line;
pub(crate) mod listen;
pub(crate) mod secret;
#[cfg(test)]
pub(crate) mod testing;
