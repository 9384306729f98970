//! Builds that a deltabench uses stay while another one removes what it does not need.

use super::super::*;
use super::world::World;
use std::fs::{File, TryLockError};

/// The stamp of a build, opened as another process would: its locks are not ours.
fn stamp(found: &Installation) -> File {
    let tree = found.bin_dir.parent().unwrap();
    File::open(tree.join("deltabench-build.json")).unwrap()
}

fn is_held(found: &Installation) -> bool {
    matches!(stamp(found).try_lock(), Err(TryLockError::WouldBlock))
}

#[test]
fn a_build_that_another_deltabench_uses_is_not_removed() {
    let world = World::new();
    let found = world.resolve(&world.packed("fast")).unwrap();
    let other = stamp(&found);
    other.lock_shared().unwrap();
    assert!(!forget_build(&world.cache, &found).unwrap());
    assert!(found.bin_dir.join("postgres").exists());
    other.unlock().unwrap();
    assert!(is_held(&found), "this process may still measure it");
    assert!(forget_build(&world.cache, &found).unwrap());
    assert_eq!(world.names_in("built"), [""; 0]);
}

#[test]
fn whoever_gets_a_build_keeps_others_from_removing_it() {
    let world = World::new();
    let target = world.packed("fast");
    let built = world.resolve(&target).unwrap();
    assert!(is_held(&built));
    assert!(forget_build(&world.cache, &built).unwrap());
    let again = world.resolve(&target).unwrap();
    assert!(again == built && is_held(&again));
}

#[test]
fn a_build_that_an_earlier_process_got_is_held_again() {
    let world = World::new();
    let built = world.resolve(&world.packed("fast")).unwrap();
    // As if the process that got it had ended.
    let stamped = built
        .bin_dir
        .parent()
        .unwrap()
        .join("deltabench-build.json");
    held::alone(&stamped, || Ok(())).unwrap();
    assert!(!is_held(&built));
    hold_build(&built).unwrap();
    assert!(is_held(&built));
    assert!(forget_build(&world.cache, &built).unwrap());
    hold_build(&built).unwrap();
}

#[test]
fn a_build_that_is_removed_at_that_moment_is_not_held() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("stamp");
    std::fs::write(&path, "").unwrap();
    let other = File::open(&path).unwrap();
    other.lock().unwrap();
    std::thread::scope(|scope| {
        let holding = scope.spawn(|| held::hold(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        other.unlock().unwrap();
        assert!(!holding.join().unwrap());
    });
}
