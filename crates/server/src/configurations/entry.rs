//! One setting as a server lists it.

/// Type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    /// A whole number, of units if it has some.
    Integer,
    /// A number with a fraction, of units if it has some.
    Real,
    /// One of a few words, which the server does not list.
    Enum,
    /// Anything else.
    Text,
}

/// One setting as the server lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Name, as the server spells it.
    pub name: String,
    /// When it may be changed: `postmaster`, `sighup`, `user`, ...
    pub context: String,
    pub kind: Kind,
    /// Least value, in the setting's own unit, which is not listed.
    pub minimum: Option<f64>,
    /// Largest value, in the same unit.
    pub maximum: Option<f64>,
}
