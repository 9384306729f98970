//! What the allocator of the C library does for a block of memory, at a fixed price.
//!
//! How long it searches, and whether it joins or splits blocks, depends on where free memory lies. That
//! depends on all that a process allocated before, and so on the moments in which it reported its statistics.
//! The same operations took 0.1 to 0.7 % more or fewer instructions from one start of a server to the next
//! (17.11, `update-nonindex` and `read-only-10`), and nothing but the allocator differed. How often it is
//! called does not depend on any of this, so calls are what is counted.

use deltabench_model::profile::{Node, Profile};

/// Functions of the C library, with the instructions that each call of theirs to another function stands for.
/// What they do themselves is always the same: they look into the thread's own cache of small blocks.
///
/// Source: the mean of 8000 calls in windows of 17.11 and 18.6 with glibc 2.36: 150 to 315 for `malloc` and
/// 125 to 155 for `free`, 20 of them their own.
const PRICES: [(&str, i64); 4] = [
    ("malloc", 200),
    ("calloc", 200),
    ("realloc", 320),
    ("free", 120),
];

/// What a call of this node's function is counted as, with all below it that does not fill memory; none where
/// it is counted as it is.
pub fn price(profile: &Profile, node: &Node) -> Option<i64> {
    let parent = profile.function(profile.nodes.get(node.parent.index())?)?;
    if fills(&profile.function(node)?.name) {
        return None;
    }
    let mut prices = PRICES.iter();
    let (_, price) = prices.find(|(name, _)| *name == parent.name)?;
    Some(*price)
}

/// Whether a function of this name fills memory: `calloc` clears what it gives, `realloc` copies what was
/// there, and both are work that the caller asked for, however deep in the allocator it is called.
///
/// Source: `_int_realloc` and `__libc_realloc` in malloc.c of glibc 2.36. On x86-64 `memcpy` and `memmove`
/// are the same code.
pub fn fills(name: &str) -> bool {
    ["memset", "memcpy", "memmove"]
        .iter()
        .any(|part| name.contains(part))
}
