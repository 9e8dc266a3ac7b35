//! The life cycle of SLOB's data set, the same on every server. Each server implements [`Dialect`].

mod check;
mod job;
mod load;
mod target;

pub(crate) use check::Checked;
pub(crate) use job::{Job, Jobs};
pub(crate) use load::summed_up;
pub(crate) use target::{Dialect, SlobOn};
