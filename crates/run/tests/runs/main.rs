//! Whole runs through `execute`: on the simulated engine exact, on real threads by identity.

mod common;
mod endings;
mod laws;
mod open_loop;
mod real_time;
mod slices;
mod slob;
