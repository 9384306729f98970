//! The Insert Benchmark in a report: absolute throughput, relative throughput, background inserts, response
//! times and the metrics line, as published reports lay them out, with the verdicts.

mod csv;
mod figures;
mod json;
mod tables;
mod words;

pub use csv::check_steps;
pub use figures::figures;
