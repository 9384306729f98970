//! Short hashes: names for what has none that may be shown, and what tells two texts apart.

use sha2::{Digest, Sha256};

/// Characters of a hash that are enough to tell things of one lab apart.
pub(crate) const KEY: usize = 16;

/// A short hash of a text.
pub(crate) fn digest(text: &str) -> String {
    let hash = format!("{:x}", Sha256::digest(text));
    hash.chars().take(KEY).collect()
}
