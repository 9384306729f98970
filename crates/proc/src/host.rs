//! The machine and this start of it.

use crate::file::word_in;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Name of this machine as the kernel has it.
pub fn host_name() -> Option<String> {
    word_in(Path::new("/proc/sys/kernel/hostname"))
}

/// This start of this kernel, by which two sides can tell that they are on one machine.
///
/// Source: random(4), `/proc/sys/kernel/random/boot_id`.
pub fn boot_id() -> Option<String> {
    word_in(Path::new("/proc/sys/kernel/random/boot_id"))
}

/// A random identifier of 36 characters, another one at each call.
///
/// Source: random(4), `/proc/sys/kernel/random/uuid`.
pub fn random_uuid() -> Option<String> {
    word_in(Path::new("/proc/sys/kernel/random/uuid"))
}

/// The user that we run as.
pub fn our_user() -> Option<u32> {
    let own = std::fs::metadata("/proc/self").ok()?;
    Some(own.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_and_one_start() {
        assert!(host_name().is_some());
        assert!(boot_id().is_some_and(|id| id.len() == 36));
        assert_eq!(boot_id(), boot_id());
        assert!(random_uuid().is_some_and(|id| id.len() == 36));
        assert_ne!(random_uuid(), random_uuid());
    }
}
