//! A box for a database: a plan over the probes, what the kernel tells of the box, and what follows from both.
//!
//! Measures nothing itself: a caller runs the tests of the [`plan`] through the contract of a probe and hands their records to
//! [`record::build`]. What is said of the box is read from the metrics of those records alone, so any probe can be a test.
#![forbid(unsafe_code)]

mod class;
mod facts;
mod findings;
mod finished;
pub mod fit;
pub mod goals;
pub mod hosts;
mod info;
pub mod needs;
mod page;
pub mod passport;
pub mod plan;
pub mod record;
mod settings;

#[cfg(test)]
mod tests;

pub use findings::MOST_BUSY_PCT;
