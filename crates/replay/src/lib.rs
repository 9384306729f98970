//! What would these servers do with my statements?
mod dump;
mod said;
mod session;
