//! Targets that are SQL servers: what any of them needs, and a folder for each.
//!
//! `slob` is the life of SLOB's data set on any of them, `orders` what order entry needs. `claim` says what a data set is claimed for, `marked` what one says of itself and `wanted` what a load decides, `blocking` drives
//! sessions that wait for each answer and `pipelined` those that ask and answer in two steps, `many` waits for several at once, [`temp`] makes and keeps throw-away servers, `place` says where a server is, [`patience`] how long its answers may
//! take and `patient` where that is waited for, `reach`, `tls` and `stream` are the way to it, `input` is what it has sent, `certificate` what
//! its certificate says, `turns` when a session may connect, `slices` how a loop in the server is timed, `looks` how often
//! it is asked what it does, `published` how exact its counters are at a mark; `watch` ends statements that nobody waits for any more, `procs` reads what
//! the kernel charged a server on this host with and `here` what is told of one, `counted` is what a session did, `checked` what a check found,
//! `threads` load side by side, `lost` is what is said of sessions that cannot go on.
#![forbid(unsafe_code)]

mod blocking;
mod certificate;
mod checked;
mod claim;
mod counted;
mod here;
mod input;
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
mod slices;
mod slob;
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
