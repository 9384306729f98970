//! pgbench's script language: scripts to a [`Program`], and a [`Player`] that says what one client does next.
//!
//! It follows pgbench of PostgreSQL 18. What pgbench would find out only when a script runs is found when it
//! is read, where that is possible, and refused with file and line.
//!
//! What it refuses to do: talk to a server, read a clock, print, or run programs. `debug()` gives its value
//! and prints nothing, because a client that prints is not the one to measure.
//!
//! Source: the manual's page on pgbench, and the behaviour of pgbench 18, of which the tests hold results.

mod builtin;
mod expression;
mod function;
mod hash;
mod parser;
mod player;
mod program;
mod random;
mod scan;
mod script;
mod sql;
pub mod tables;
#[cfg(test)]
mod tests;
mod value;
mod variable;

pub use builtin::{builtin, builtin_name, builtin_names};
pub use player::{Action, Player, ScriptError};
pub use program::{Program, ProgramScript};
pub use script::is_variable_name;
pub use sql::{Capture, SqlStatement};
