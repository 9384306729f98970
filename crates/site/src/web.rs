//! The same pages, served read only on this machine.
