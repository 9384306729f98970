//! Sources by the names that people use.

use super::world::World;
use deltabench_model::target::SourceName;

/// A world whose tree is of this version, from its first build on.
fn world_of(version: &str) -> World {
    let world = World::new();
    world.change("configure", "17.99", version);
    world.change(
        "Makefile",
        "PostgreSQL) 17.99",
        &format!("PostgreSQL) {version}"),
    );
    world.change(
        "Makefile",
        "echo PostgreSQL 17.99",
        &format!("echo PostgreSQL {version}"),
    );
    world
}

fn name(text: &str) -> SourceName {
    SourceName::of(text).unwrap()
}

#[test]
fn without_a_clone_or_an_archive_a_name_is_refused_with_what_to_write_once() {
    let problem = World::new().resolve("postgres:18beta1+plain").unwrap_err();
    assert_eq!(
        problem.error,
        "deltabench knows no source of postgres:18beta1"
    );
    let hint = problem.hint.unwrap();
    assert!(hint.contains("postgres_git = "), "{hint}");
    assert!(hint.contains("\"18beta1\" = "), "{hint}");
}

#[test]
fn an_archive_of_the_configuration_is_built_under_the_name_that_it_has_there() {
    let mut world = world_of("18beta1");
    world.packed("plain");
    let archive = world.path("fake-1.0.tar.gz");
    world
        .sources
        .named
        .archives
        .insert(name("18beta1"), archive.clone());
    let found = world.resolve("postgres:18beta1+plain").unwrap();
    assert_eq!(found.asked, "postgres:18beta1+plain");
    assert_eq!(found.resolved, "postgres:18beta1+plain");
    assert_eq!(
        (found.version.as_str(), found.version_num),
        ("18beta1", 180_000)
    );

    for wrong in ["18beta2", "REL_17_STABLE"] {
        world
            .sources
            .named
            .archives
            .insert(name(wrong), archive.clone());
        let problem = world
            .resolve(&format!("postgres:{wrong}+plain"))
            .unwrap_err();
        assert!(
            problem
                .error
                .contains(&format!("not the source of postgres:{wrong}"))
        );
        assert!(problem.detail.unwrap().contains("18beta1"));
    }
}

#[test]
fn a_clone_knows_tags_and_branches_and_its_fetched_branch_counts_before_an_own_one() {
    let mut world = world_of("18beta1");
    world.commit("plain");
    world.git(&["tag", "REL_18_BETA1"]);
    world.git(&["update-ref", "refs/remotes/origin/REL_18_STABLE", "HEAD"]);
    let fetched = world.git(&["rev-parse", "HEAD"]);
    world.write("src/b.c", "# b 2\n");
    world.commit("plain");
    world.git(&["branch", "REL_18_STABLE"]);
    world.sources.named.clone = Some(world.path("fake-1.0"));

    let beta = world.resolve("postgres:18beta1+plain").unwrap();
    assert_eq!(beta.resolved, "postgres:18beta1+plain");
    let branch = world.resolve("postgres:REL_18_STABLE+plain").unwrap();
    let short = &fetched[..10];
    assert_eq!(
        branch.resolved,
        format!("postgres:REL_18_STABLE@{short}+plain")
    );
    assert_eq!(branch.recipe.unwrap().source, fetched);
    let problem = world.resolve("postgres:18rc1+plain").unwrap_err();
    assert!(
        problem.error.contains("no commit `REL_18_RC1`"),
        "{problem}"
    );
    assert!(problem.hint.is_some());
}
