//! Creates a data set: plan, load, marker.
//!
//! [`mod@plan`] decides, and refuses before anything is created. [`load`] creates the schemas and loads each over one
//! connection; [`batch`] builds the rows. The target's `prepare` calls them.

mod batch;
mod load;
mod plan;
#[cfg(test)]
mod tests;

pub(super) use load::{AS_OURSELVES, drop_schemas, in_transaction, run};
pub(super) use plan::{LoadPlan, imagined};
