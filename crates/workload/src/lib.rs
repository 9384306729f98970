//! What to send: definitions to executable plans; seeded generators.

pub mod executable;
