//! Rules over several records. What one record says alone, its kind has found.

mod several;

#[cfg(test)]
mod tests;

pub use several::several;
