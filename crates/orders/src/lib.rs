//! Order entry: the widely used OLTP benchmark (Swingbench's SOE), rebuilt from its published behaviour.
//!
//! [`model`] describes the data set and [`generate`] makes its rows. [`mix`] and [`program`] define the transactions,
//! [`workload`] the next transaction of a session, and [`work`] how a load is divided. [`ledger`] and [`checks`] verify
//! the data set after a run; [`kind`] and [`results`] define the records. A database server supplies its own SQL and
//! performs the transactions: see `crates/sql`. Nothing here does I/O or prints.
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
