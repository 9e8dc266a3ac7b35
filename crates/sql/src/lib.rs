//! Targets that are SQL servers: a folder for each.
#![forbid(unsafe_code)]

pub mod postgres;
