//! Making a data set: plan, load, marker.
//!
//! [`mod@plan`] decides and refuses before anything is created, [`load`] creates and loads with one connection a SLOB
//! schema at a time, [`batch`] makes the rows. The caller is the target's `prepare`.

mod batch;
mod load;
mod plan;
#[cfg(test)]
mod tests;

pub(super) use load::{drop_schemas, in_transaction, run};
pub(super) use plan::{LoadPlan, imagined};
