//! The program as its user sees it: each test runs the binary in a directory of its own. One test program for all of
//! them, linked once; what judges the bytes of its own process (`identities`) is another.

mod beside;
mod bottlenecks;
mod common;
mod compare;
mod config;
mod cost;
mod cpu;
mod data;
mod devices;
mod examples;
mod frozen;
mod help;
mod hostile;
mod import;
mod io;
mod io_files;
mod io_foreign;
mod io_limits;
mod io_patterns;
mod io_record;
mod io_reports;
mod killed_loads;
mod native;
mod pg_moods;
mod pg_server;
mod postgres_failures;
mod postgres_frozen;
mod postgres_moods;
mod postgres_temp;
mod recovery;
mod runs;
mod shapes;
mod sweep;
mod sync;
mod write_errors;
