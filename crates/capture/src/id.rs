//! Names of statements.

use sha2::{Digest, Sha256};

/// 16 hexadecimal digits of a fingerprint and of what else tells statements apart. The same in every capture.
pub(crate) fn id(fingerprint: &[u8; 32], apart: &[&str]) -> String {
    let mut hash = Sha256::new();
    hash.update(fingerprint);
    for part in apart {
        hash.update(part);
        hash.update([0]);
    }
    let digest = hash.finalize();
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
