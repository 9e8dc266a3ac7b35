//! A database's load on another box: what a report of the old one says, what follows from it, and whether this box holds it.
//!
//! [`load`] derives a load from one record (a run of ours, or an import of AWR or Statspack) and refuses what no load follows from;
//! [`offer`] finds the settings of the native target that make it; [`rise`] says which multiple comes next and whether a step held;
//! [`record`] is the kind of the record above the steps. Nothing here measures: a caller runs the steps.

mod assumptions;
mod here;
mod info;
mod instances;
pub mod load;
pub mod offer;
mod page;
pub mod record;
pub mod rise;
mod rules;
mod several;

#[cfg(test)]
mod tests;
