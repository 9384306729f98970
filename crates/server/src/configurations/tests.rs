use super::*;

fn own(include: &[&str], set: &[(&str, &str)], unset: &[&str]) -> OwnConfiguration {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    OwnConfiguration {
        include: words(include),
        set: set
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        unset: words(unset),
    }
}

fn with(all: &[(&str, OwnConfiguration)]) -> Result<Configurations, Problem> {
    let all: Vec<(String, OwnConfiguration)> = all
        .iter()
        .map(|(name, own)| ((*name).to_owned(), own.clone()))
        .collect();
    Configurations::builtin()?.with(&all)
}

fn value(name: &str, setting: &str) -> Option<String> {
    let settings = Configurations::builtin().unwrap().get(name).unwrap();
    let found = settings.into_iter().find(|(name, _)| name == setting);
    found.map(|(_, value)| value)
}

#[test]
fn every_file_is_built_in_and_can_be_resolved() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut files: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            Some(
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".conf")?
                    .to_owned(),
            )
        })
        .collect();
    files.sort_unstable();
    let built_in: Vec<&str> = BUILTIN.iter().map(|(name, _)| *name).collect();
    assert_eq!(files, built_in);
    let known = Configurations::builtin().unwrap();
    for name in built_in {
        assert!(!known.get(name).unwrap().is_empty(), "{name}");
        assert!(known.title(name).is_some(), "{name}");
    }
    assert!(!known.names().contains(&"needed") && known.names().contains(&"cx7"));
}

#[test]
fn the_published_families_are_as_published() {
    for (name, setting, wanted) in [
        ("cx7", "shared_buffers", Some("10GB")),
        ("cx7", "max_wal_size", Some("40GB")),
        ("cx7", "wal_compression", Some("off")),
        ("cx7", "bgwriter_lru_maxpages", Some("2000")),
        ("cx7", "checkpoint_timeout", None),
        ("cx7", "jit", None),
        ("cx10a_c8r32", "shared_buffers", Some("23GB")),
        ("cx10a_c8r32", "vacuum_buffer_usage_limit", None),
        ("cx10a_c8r32", "checkpoint_timeout", Some("1800s")),
        ("cx10a_c24r64", "bgwriter_delay", Some("50ms")),
        ("cx10a_c32r128", "min_wal_size", Some("48GB")),
        ("cx10a_c32r128", "vacuum_buffer_usage_limit", Some("256MB")),
        ("cx10b_c8r32", "io_method", Some("sync")),
        ("cx10c_c8r32", "io_workers", Some("16")),
        ("cx10c_c32r128", "io_workers", Some("32")),
        ("cx10c_c24r64", "io_workers", None),
        ("cx10d_c24r64", "io_method", Some("io_uring")),
        ("cx10d_c24r64", "shared_buffers", Some("48GB")),
        (
            "planetscale",
            "shared_preload_libraries",
            Some("pg_stat_statements"),
        ),
        ("vondra", "checkpoint_segments", Some("64")),
        ("vondra_128mb", "shared_buffers", Some("128MB")),
        ("vondra_128mb", "work_mem", Some("64MB")),
    ] {
        assert_eq!(value(name, setting).as_deref(), wanted, "{name} {setting}");
    }
}

#[test]
fn own_ones_include_set_and_unset() {
    let known = with(&[
        (
            "tuned",
            own(
                &["cx10a_c8r32"],
                &[("Work_Mem", "64MB"), ("jit", "on")],
                &["autovacuum_work_mem"],
            ),
        ),
        ("more", own(&["tuned", "cx10b"], &[], &[])),
    ])
    .unwrap();
    let tuned = known.get("tuned").unwrap();
    let value = |settings: &[(String, String)], name: &str| {
        let found = settings.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.clone())
    };
    assert_eq!(value(&tuned, "work_mem").as_deref(), Some("64MB"));
    assert_eq!(value(&tuned, "jit").as_deref(), Some("on"));
    assert_eq!(value(&tuned, "autovacuum_work_mem"), None);
    // Later includes win.
    let more = known.get("more").unwrap();
    assert_eq!(value(&more, "jit").as_deref(), Some("off"));
    assert_eq!(value(&more, "shared_buffers").as_deref(), Some("70%"));
    let names: std::collections::BTreeSet<&String> = more.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), more.len(), "each setting once");
    assert!(known.names().contains(&"tuned"));
}

#[test]
fn what_cannot_be_taken_in_is_refused() {
    let error = |all: &[(&str, OwnConfiguration)]| with(all).unwrap_err();
    let problem = error(&[("mine", own(&["cx10a_c8r23"], &[], &[]))]);
    assert!(
        problem
            .error
            .contains("configuration `mine` includes `cx10a_c8r23`"),
        "{problem}"
    );
    assert_eq!(problem.hint.as_deref(), Some("did you mean cx10a_c8r32?"));
    let problem = error(&[("a", own(&["b"], &[], &[])), ("b", own(&["a"], &[], &[]))]);
    assert_eq!(problem.error, "configuration `a` includes itself");
    assert_eq!(problem.detail.as_deref(), Some("a -> b -> a"));
    let problem = error(&[("cx7", own(&[], &[("work_mem", "1MB")], &[]))]);
    assert!(problem.error.contains("a configuration `cx7` already"));
    let problem = error(&[("a b", own(&[], &[], &[]))]);
    assert!(problem.error.contains("not a valid name"));
    let problem = error(&[("mine", own(&["cx7"], &[], &["shared_bufers"]))]);
    assert_eq!(
        problem.hint.as_deref(),
        Some("did you mean shared_buffers?")
    );
    let problem = error(&[("mine", own(&["cx7"], &[("jit", "on")], &["JIT"]))]);
    assert!(problem.error.contains("sets and unsets JIT"));
    let problem = error(&[("mine", own(&[], &[("port", "1")], &[]))]);
    assert!(
        problem
            .error
            .starts_with("configuration `mine`: setting `port` cannot"),
        "{problem}"
    );
}

#[test]
fn a_name_that_is_not_there_is_told_with_the_nearest() {
    let known = Configurations::builtin().unwrap();
    let problem = known.get("cx10a_c8r3").unwrap_err();
    assert_eq!(problem.error, "there is no configuration `cx10a_c8r3`");
    assert_eq!(problem.hint.as_deref(), Some("did you mean cx10a_c8r32?"));
    assert!(problem.detail.unwrap().contains("planetscale"));
    assert!(
        known
            .get("something else")
            .unwrap_err()
            .hint
            .unwrap()
            .contains(".conf")
    );
}

#[test]
fn files_of_the_users_are_configurations_too() {
    assert!(Configurations::is_file("./own.conf") && !Configurations::is_file("cx10a_c8r32"));
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("own.conf");
    std::fs::write(&path, "# mine\ninclude = 'cx7.conf'\nwork_mem 8MB\n").unwrap();
    let known = Configurations::builtin().unwrap();
    let known = known.with_file("./own.conf", &path).unwrap();
    let settings = known.get("./own.conf").unwrap();
    assert!(settings.contains(&("work_mem".into(), "8MB".into())));
    assert!(settings.contains(&("shared_buffers".into(), "10GB".into())));
    let again = known
        .clone()
        .with_text("other.conf", "include = 'other.conf'");
    assert_eq!(
        again.unwrap_err().error,
        "configuration `other.conf` includes itself"
    );
    let problem = known
        .with_file("no.conf", Path::new("/no/such.conf"))
        .unwrap_err();
    assert_eq!(problem.error, "cannot read /no/such.conf");
}

#[test]
fn a_description_says_where_each_setting_came_from_and_can_be_read_again() {
    let mine = own(&["vondra_128mb"], &[("log_line_prefix", "it's ")], &[]);
    let known = with(&[("mine", mine)]).unwrap();
    let text = known.describe("mine").unwrap();
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
    assert!(line("shared_buffers = '128MB'").ends_with("# vondra_128mb, over '2GB' of vondra"));
    assert!(line("work_mem = '64MB'").ends_with("# vondra"));
    assert!(line("log_line_prefix = 'it''s '").ends_with("# mine"));
    let again = known.clone().with_text("again.conf", &text).unwrap();
    assert_eq!(again.get("again.conf").unwrap(), known.get("mine").unwrap());
    assert!(
        known
            .describe("cx7")
            .unwrap()
            .starts_with("# cx7, for a small server with 16 GB")
    );
}
