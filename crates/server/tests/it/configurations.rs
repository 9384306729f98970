//! Named configurations on real servers of every version at hand.

use crate::lab::{Lab, cache, installations, slot};
use crate::query::{query, settings};
use deltabench_model::installation::Installation;
use deltabench_server::{
    Adaptation, Catalogue, Cluster, ClusterSpec, Configurations, adapt, changes, check_known,
    check_values, settings_under, tell, unmet,
};
use std::collections::BTreeSet;

/// A setting that only Debian's builds have.
const DEBIAN: &str = "extension_destdir";
const GIGABYTE: u64 = 1 << 30;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn value<'a>(settings: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = settings.iter().find(|(set, _)| set == name);
    found.map(|(_, value)| value.as_str())
}

fn adapted(asked: &[(String, String)], installation: &Installation, memory: u64) -> Adaptation {
    let catalogue = Catalogue::of(installation).unwrap();
    adapt(asked, installation, &catalogue, memory).unwrap()
}

/// Starts a server with a configuration; what it reports.
fn started(lab: &Lab, installation: &Installation, adapted: &Adaptation) -> Vec<String> {
    let asked = settings_under(&adapted.settings, 16, 20, false);
    let spec = ClusterSpec {
        installation,
        checksums: None,
        settings: &asked,
    };
    let name = format!("c{}", installation.version_num);
    let mut cluster = Cluster::create(lab.workspace(), &name, &spec, &cache(), &lab.user).unwrap();
    let running = cluster.start(&slot(5800), &[]).unwrap();
    let failures = unmet(&asked, &settings(&running.endpoint));
    cluster.stop().unwrap();
    drop(cluster);
    failures
}

#[test]
fn every_configuration_fits_every_version() {
    let known = Configurations::builtin().unwrap();
    for installation in installations() {
        let catalogue = Catalogue::of(&installation).unwrap();
        for name in known.names() {
            let asked = known.get(name).unwrap();
            let Adaptation { settings, adapted } =
                adapt(&asked, &installation, &catalogue, 16 * GIGABYTE).unwrap();
            // Nothing is left out without a record.
            let changed = |name: &String| adapted.iter().any(|adapted| adapted.asked.0 == *name);
            for (setting, _) in &asked {
                let there = settings.iter().any(|(set, _)| set == setting);
                assert!(there || changed(setting), "{name} {setting}");
            }
            check_known(&settings, &catalogue).unwrap();
            let taken = check_values(&settings, &catalogue);
            let Err(problem) = taken else { continue };
            let what = format!("{} cannot do io_method = io_uring", installation.resolved);
            assert_eq!(problem.error, what, "{name}: {problem}");
            assert!(name.starts_with("cx10d"), "{name}");
            let (detail, hint) = (problem.detail.unwrap(), problem.hint.unwrap());
            assert!(
                detail.contains("Available values: sync, worker"),
                "{detail}"
            );
            let way_out = format!("with liburing: {}+o2_nofp", installation.resolved);
            assert!(hint.ends_with(&way_out), "{hint}");
        }
    }
}

#[test]
fn servers_start_with_configurations_and_have_what_was_asked() {
    let known = Configurations::builtin().unwrap();
    for installation in installations() {
        for name in ["cx7", "cx10a", "planetscale"] {
            let mut asked = known.get(name).unwrap();
            if name != "cx10a" {
                // For this machine; cx10a has shares of the memory it is given.
                asked.extend(pairs(&[("shared_buffers", "16MB")]));
            }
            let adapted = adapted(&asked, &installation, 160 << 20);
            let failures = started(&Lab::new(), &installation, &adapted);
            assert_eq!(
                failures,
                Vec::<String>::new(),
                "{name} on {}",
                installation.resolved
            );
            let wanted = if name == "cx10a" { "112MB" } else { "16MB" };
            assert_eq!(value(&adapted.settings, "shared_buffers"), Some(wanted));
        }
    }
}

#[test]
fn what_a_version_lacks_is_left_out_with_a_record() {
    let known = Configurations::builtin().unwrap();
    let asked = known.get("cx10c_c32r128").unwrap();
    for installation in installations() {
        let adapted = adapted(&asked, &installation, GIGABYTE);
        let told: Vec<String> = adapted.adapted.iter().map(tell).collect();
        let version = installation.version_num;
        for (name, since) in [
            ("max_parallel_workers", 100_000),
            ("jit", 110_000),
            ("autovacuum_vacuum_insert_scale_factor", 130_000),
            ("vacuum_buffer_usage_limit", 160_000),
            ("io_method", 180_000),
            ("io_workers", 180_000),
        ] {
            let there = value(&adapted.settings, name).is_some();
            assert_eq!(there, version >= since, "{name} in {version}");
            let line = told
                .iter()
                .find(|line| line.starts_with(&format!("{name} = ")));
            assert_eq!(line.is_some(), version < since, "{told:?}");
            let brought = format!("{} introduced it", since / 10_000);
            assert!(line.is_none_or(|line| line.ends_with(&brought)), "{line:?}");
        }
        let pages = value(&adapted.settings, "bgwriter_lru_maxpages");
        assert_eq!(pages, Some(if version < 100_000 { "1000" } else { "2000" }));
    }
}

#[test]
fn every_translation_is_taken_by_the_server_itself() {
    let asked = pairs(&[
        ("checkpoint_segments", "64"),
        ("checkpoint_completion_target", "0.9"),
        ("wal_keep_segments", "10"),
        ("force_parallel_mode", "regress"),
        ("min_parallel_relation_size", "4MB"),
        ("replication_timeout", "30s"),
        ("ssl_ecdh_curve", "prime256v1"),
        ("replacement_sort_tuples", "1000"),
        ("vacuum_defer_cleanup_age", "5"),
        ("stats_temp_directory", "pg_stat_tmp"),
        ("default_with_oids", "on"),
        ("old_snapshot_threshold", "60"),
        ("db_user_namespace", "off"),
        ("wal_compression", "pglz"),
        ("vacuum_cost_delay", "0.5ms"),
        ("autovacuum_vacuum_cost_delay", "1.5ms"),
        ("work_mem", "1.5GB"),
        ("bgwriter_lru_maxpages", "5000"),
        ("wal_level", "hot_standby"),
        ("password_encryption", "on"),
        (
            "shared_preload_libraries",
            "pg_stat_statements, no_such_library",
        ),
        ("no_such_library.setting", "1"),
        ("pg_stat_statements.max", "200"),
        ("jit", "on"),
        ("Max_Wal_Size", "1GB"),
        ("max_wal_size", "8GB"),
    ]);
    for installation in installations() {
        let mut without = asked.clone();
        without.truncate(asked.len() - 2);
        for asked in [&asked, &without] {
            let adapted = adapted(asked, &installation, GIGABYTE);
            let catalogue = Catalogue::of(&installation).unwrap();
            check_values(&adapted.settings, &catalogue).unwrap();
            // Whichever is set wins over the translation of another.
            let size = value(&adapted.settings, "max_wal_size");
            let translated = if installation.version_num < 110_000 {
                "2976MB"
            } else {
                "1952MB"
            };
            let own = asked.len() > without.len();
            assert_eq!(size, Some(if own { "8GB" } else { translated }));
        }
        let adapted = adapted(&without, &installation, GIGABYTE);
        let failures = started(&Lab::new(), &installation, &adapted);
        assert_eq!(failures, Vec::<String>::new(), "{}", installation.resolved);
    }
}

#[test]
fn shares_are_of_memory_and_of_nothing_else() {
    for installation in installations() {
        let catalogue = Catalogue::of(&installation).unwrap();
        let share = |name: &str, value: &str| {
            adapt(
                &pairs(&[(name, value)]),
                &installation,
                &catalogue,
                10 * GIGABYTE,
            )
        };
        for (name, asked, wanted) in [
            ("shared_buffers", "25%", "2560MB"),
            ("work_mem", "0.5 %", "51MB"),
            ("effective_cache_size", "75%", "7680MB"),
            ("maintenance_work_mem", "0.001%", "104kB"),
            ("max_wal_size", "125%", "12800MB"),
            ("wal_buffers", "1%", "102MB"),
        ] {
            let settings = share(name, asked).unwrap().settings;
            assert_eq!(value(&settings, name), Some(wanted), "{name}");
        }
        let settings = share("log_line_prefix", "25%").unwrap().settings;
        assert_eq!(value(&settings, "log_line_prefix"), Some("25%"));
        for (name, asked, why) in [
            ("max_connections", "25%", "not an amount of memory"),
            ("checkpoint_timeout", "25%", "not an amount of memory"),
            (
                "autovacuum_vacuum_scale_factor",
                "5%",
                "not an amount of memory",
            ),
            ("jit_above_cost", "5%", "not an amount of memory"),
            ("fsync", "50%", "not an amount of memory"),
            ("work_mem", "0%", "zero"),
        ] {
            if installation.version_num < 110_000 && name.starts_with("jit") {
                continue;
            }
            let problem = share(name, asked).unwrap_err();
            assert_eq!(problem.error, format!("{name} cannot be {asked}"));
            assert!(problem.detail.unwrap().ends_with(why), "{name}");
        }
        let auto = pairs(&[("shared_buffers", "auto"), ("huge_pages", "auto")]);
        let kept = adapt(&auto, &installation, &catalogue, GIGABYTE).unwrap();
        assert_eq!(kept.settings, auto);
        check_values(&auto, &catalogue).unwrap();
    }
}

#[test]
fn what_no_version_has_and_what_no_build_can_do_is_refused() {
    for installation in installations() {
        let catalogue = Catalogue::of(&installation).unwrap();
        let typo = pairs(&[("wrok_mem", "1MB")]);
        let wanted = format!("{} has no setting `wrok_mem`", installation.resolved);
        for problem in [
            check_known(&typo, &catalogue).unwrap_err(),
            adapt(&typo, &installation, &catalogue, GIGABYTE).unwrap_err(),
            check_values(&typo, &catalogue).unwrap_err(),
        ] {
            assert_eq!(problem.error, wanted);
            assert_eq!(problem.hint.as_deref(), Some("did you mean work_mem?"));
        }
        let nonsense = pairs(&[
            ("fsync", "on"),
            ("work_mem", "12 parsecs"),
            ("log_min_messages", "panic"),
        ]);
        let problem = check_values(&nonsense, &catalogue).unwrap_err();
        let wanted = format!("{} cannot do work_mem = 12 parsecs", installation.resolved);
        assert_eq!(problem.error, wanted);
        assert!(problem.detail.unwrap().contains("Valid units"));
        // Hidden ones are settings too.
        check_known(
            &pairs(&[("zero_damaged_pages", "on"), ("a.b", "1")]),
            &catalogue,
        )
        .unwrap();
    }
}

#[test]
fn the_table_of_versions_agrees_with_the_servers() {
    let versions: Vec<(u32, BTreeSet<String>)> = installations()
        .iter()
        .map(|installation| {
            let lab = Lab::new();
            let mut cluster = lab.cluster("c", installation);
            let running = cluster.start(&slot(5801), &[]).unwrap();
            let rows = query(&running.endpoint, "select lower(name) from pg_settings");
            let names: BTreeSet<String> = rows.into_iter().flatten().flatten().collect();
            cluster.stop().unwrap();
            let catalogue = Catalogue::of(installation).unwrap();
            for name in &names {
                // Also that the table does not hide it.
                assert!(
                    catalogue.has(name).unwrap(),
                    "{name} in {}",
                    installation.resolved
                );
            }
            for entry in catalogue.entries() {
                assert!(
                    names.contains(&entry.name.to_ascii_lowercase()),
                    "{entry:?}"
                );
            }
            (installation.version_num, names)
        })
        .collect();
    let in_table: BTreeSet<&str> = changes()
        .into_iter()
        .flat_map(|(_, brought, last)| [brought, last].concat())
        .collect();
    for (version, names) in &versions {
        for (other, theirs) in &versions {
            for name in names.difference(theirs) {
                assert!(
                    in_table.contains(name.as_str()) || name == DEBIAN,
                    "{name} is in {version}, not in {other}"
                );
            }
        }
    }
}
