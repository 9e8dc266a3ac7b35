//! Order entry: the OLTP benchmark of the field (Swingbench's SOE), rebuilt from its published behaviour.
//!
//! [`model`] is what the data set is made of, [`generate`] its rows, [`mix`] and [`program`] the transactions, [`workload`]
//! what a session does next, [`work`] how a load is cut, [`ledger`] and [`checks`] what holds after a run, [`kind`] and
//! [`results`] the records. A database server brings its own words for these, and performs them: `crates/sql`. Nothing
//! here does I/O or prints.
#![forbid(unsafe_code)]

pub mod checks;
pub mod generate;
pub mod inputs;
pub mod kind;
pub mod ledger;
pub mod lines;
mod live;
pub mod mix;
pub mod model;
pub mod names;
pub mod params;
pub mod part;
pub mod program;
pub mod results;
pub mod work;
pub mod workload;

#[cfg(test)]
mod tests;
