//! What targets that hold a data set share: the content of a row, the lines of a plan, the room left on a file system.

pub mod lines;
pub mod room;
pub mod rows;
