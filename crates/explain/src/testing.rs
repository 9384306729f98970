//! Made-up profiles for tests.

use deltabench_model::profile::{Grower, NodeId, Profile};
use proptest::prelude::*;

/// A profile of paths `a/b/c` with instructions and calls.
pub fn of(paths: &[(&str, i64, i64)]) -> Profile {
    let mut grower = Grower::new("main");
    for (path, instructions, calls) in paths {
        let names = path.split('/').filter(|name| !name.is_empty());
        let node = names.fold(NodeId::ROOT, |at, name| grower.child(at, name, "server"));
        grower.take(node, *instructions, *calls);
    }
    grower.grown()
}

/// Profiles with few names, so that functions are on many paths, vanish and are new.
pub fn trees() -> impl Strategy<Value = Profile> {
    let node = (
        any::<prop::sample::Index>(),
        0..9_usize,
        -5..900_i64,
        0..50_i64,
    );
    prop::collection::vec(node, 0..40).prop_map(|nodes| {
        let (mut grower, mut ids) = (Grower::new("main"), vec![NodeId::ROOT]);
        for (parent, name, instructions, calls) in nodes {
            let id = grower.child(ids[parent.index(ids.len())], &format!("f{name}"), "server");
            grower.take(id, instructions, calls);
            ids.push(id);
        }
        grower.grown()
    })
}
