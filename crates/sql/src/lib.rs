//! Targets that are SQL servers: what any of them needs, and a folder for each.
//!
//! `claim` says what a data set is claimed for, `marked` what one says of itself and `wanted` what a load decides, `blocking` drives
//! sessions that wait for each answer, [`temp`] makes and keeps throw-away servers, `place` says where a server is, [`patience`] how long its answers may
//! take, `turns` when a session may connect; `watch` ends statements that nobody waits for any more, `procs` reads what
//! the kernel charged a server on this host with.
#![forbid(unsafe_code)]

mod blocking;
mod claim;
pub mod mariadb;
mod marked;
pub mod oracle;
pub mod patience;
mod place;
pub mod postgres;
mod procs;
pub mod temp;
mod turns;
mod wanted;
mod watch;
