//! The tests of a fit.
