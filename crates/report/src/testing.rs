//! What tests share.

/// The fuzzer's list of kinds.
#[path = "../../../fuzz/kinds.rs"]
mod every;

pub(crate) use every::all as kinds;
