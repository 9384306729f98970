//! Order entry, derived from the published specification of TPC-C: its tables and rows, its transactions and
//! the conditions that must hold. Figures of it are not comparable with results of TPC-C.
//!
//! Source: TPC Benchmark C, standard specification, revision 5.11, 2010; clauses are named where they apply.

pub mod consistency;
pub mod rows;
pub mod scripts;
pub mod tables;
