//! Faces of the storage probe: fio's reports from raw readings, word for word where scripts and
//! plotters read them.

pub mod fio;

#[cfg(test)]
pub(crate) mod fixture;
