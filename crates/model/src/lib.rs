//! What are we talking about: the nouns of deltabench.
//!
//! Targets, installations, plans, slices and findings as plain data. Nothing here reads a file, opens a
//! socket or asks the clock; the crates that do speak to each other in these types. Types that are written to
//! disk carry their own format version ([`plan::PLAN_FORMAT`]).

pub mod bisection;
pub mod cell;
mod conditions;
pub mod counter;
pub mod counts;
pub mod endpoint;
pub mod exit;
pub mod explanation;
pub mod fact;
pub mod figures;
pub mod finding;
pub mod id;
pub mod installation;
pub mod invalidation;
pub mod json;
pub mod metric;
pub mod occasion;
mod part;
pub mod plan;
pub mod problem;
pub mod profile;
mod rebased;
pub mod record;
pub mod replayed;
pub mod sampled;
pub mod slice;
pub mod table;
pub mod target;
pub mod threads;
pub mod timing;
pub mod units;
pub mod work;
