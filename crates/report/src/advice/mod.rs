//! Rules over several records. Its kind finds what a single record shows.

mod several;

#[cfg(test)]
mod tests;

pub use several::several;
