//! SQL servers as targets: what they share, and a folder for each server.
//!
//! `slob` manages SLOB's data set and `orders` that of order entry. `claim` locks a data set, `marked` describes its
//! marker, `wanted` plans a load, `checked` collects what a check finds, and `threads` runs loaders side by side.
//! `session` is a session of the SLOB method, `pipelined` drives the sessions of a thread in two steps, `many` waits for
//! several of them at once, `slices` times a loop inside the server, and `running` is what a run holds besides. [`temp`] starts and keeps
//! throw-away servers, and `place` says where a server is. [`patience`] bounds the time an answer may take, and
//! `patient` enforces that on sockets. `reach`, `tls` and `stream` connect to a server, `input` buffers what it sends,
//! `certificate` reads its certificate, and `turns` limits the connect rate. `looks` decides how often to query session
//! activity, `published` says how exact the server's counters are at a mark, `watch` cancels abandoned statements,
//! `procs` reads what the kernel charged a server on this host, `here` reports it, `counted` holds a session's
//! counters, and `lost` formats errors of sessions that cannot continue.
#![forbid(unsafe_code)]

mod certificate;
mod checked;
mod claim;
mod counted;
mod here;
mod input;
mod kept;
mod looks;
mod lost;
mod many;
pub mod mariadb;
mod marked;
pub mod oracle;
mod orders;
mod password;
pub mod patience;
mod patient;
mod pipelined;
mod place;
pub mod postgres;
mod procs;
mod published;
mod reach;
mod running;
mod session;
mod slices;
mod slob;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(not(feature = "sqlite"))]
#[path = "sqlite/absent.rs"]
pub mod sqlite;
mod statistics;
mod stream;
pub mod temp;
#[cfg(test)]
mod testing;
mod threads;
mod tls;
mod turns;
mod url;
mod wanted;
mod watch;
mod watched;

pub use tls::server_identity;
