//! What a reader should know of the engines of a run, and of the host under them.

use super::fairness::{EngineFacts, fairness};
use super::workers::cache_of;
use deltabench_engine::Opened;
use deltabench_model::fact::HostFacts;
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::Setting;
use deltabench_model::plan::{Plan, PlannedServer, Role, ServerId};
use deltabench_model::units::count;
use deltabench_model::work::rocksdb::RocksdbSetup;
use std::path::Path;

/// Kind of the finding that cores are few.
pub(super) const FEW_CORES: FindingKind = FindingKind::FewCores;

/// Kinds of findings that follow from the files of two targets alone.
const OF_FILES: [&str; 2] = ["options-only-in-base", "options-only-in-candidate"];

/// The options in force, those that were asked for marked.
pub(super) fn settings_of(
    setup: &RocksdbSetup,
    server: &PlannedServer,
    opened: &Opened,
) -> Vec<Setting> {
    let asked = |name: &str| {
        let all = setup.options.iter().chain(&server.settings);
        all.into_iter().any(|(other, _)| is_option(name, other))
    };
    let setting = |(name, value): (&String, &String)| Setting {
        name: name.clone(),
        value: value.clone(),
        unit: None,
        boot_value: None,
        source: match asked(name) {
            true => "asked".to_owned(),
            false => "default".to_owned(),
        },
    };
    opened.in_force.iter().map(setting).collect()
}

/// Whether `SECTION.name` of an option file is the option that was asked for by its `name`.
fn is_option(name: &str, asked: &str) -> bool {
    let last = |path: &str| path.rsplit('.').next().map(str::to_owned);
    name == asked || last(name) == last(asked)
}

/// What programs say of themselves that makes their figures doubtful.
pub(super) fn warnings(plan: &Plan, opened: &[Opened]) -> Vec<Finding> {
    let compared = ServerId::each().zip(plan.servers.iter().zip(opened));
    compared
        .filter(|(_, (server, _))| server.role != Role::Placebo)
        .flat_map(|(id, (_, opened)): (ServerId, _)| {
            let name = plan.server_name(id);
            opened.warnings.iter().map(move |warning| {
                let text = format!("{name} reports: {warning}");
                Finding::new(
                    FindingKind::own("engine-warning"),
                    Severity::Confounder,
                    text,
                )
            })
        })
        .collect()
}

/// What differs between the base and each candidate beside what was asked to differ.
pub(super) fn unfair(plan: &Plan, opened: &[Opened], settings: &[Vec<Setting>]) -> Vec<Finding> {
    let facts = |id: ServerId| {
        let place = id.index();
        let server = plan.servers.get(place)?;
        let opened = opened.get(place)?;
        Some(EngineFacts {
            name: plan.server_name(id),
            installation: &server.installation,
            settings: settings.get(place)?,
            asked: &server.settings,
            left_out: &opened.left_out,
            cache: &opened.cache,
            wanted: cache_of(server),
        })
    };
    let Some(base) = facts(plan.base()) else {
        return Vec::new();
    };
    let mut files: Vec<&Path> = Vec::new();
    let mut findings = Vec::new();
    for candidate in plan.candidates().into_iter().filter_map(facts) {
        let known = files.contains(&candidate.installation.bin_dir.as_path());
        files.push(&candidate.installation.bin_dir);
        let found = fairness(&base, &candidate).into_iter();
        // The same library with another cache lacks the same options.
        findings.extend(found.filter(|f| !(known && OF_FILES.contains(&f.kind.word()))));
    }
    findings
}

/// Whether the threads of a target have to share cores with its flushes and compactions.
pub(super) fn few_cores(plan: &Plan, setup: &RocksdbSetup, host: &HostFacts) -> Option<Finding> {
    let allowed = host.allowed_cores.unwrap_or(host.online_cores);
    let cores = match &plan.pins {
        Some(pins) => count(pins.server.len()),
        None => allowed.min(host.online_cores),
    };
    let threads = setup.chain().iter().map(|link| link.threads).max()?;
    let writer = u32::from(setup.steps.iter().any(|step| step.beside_a_writer()));
    let jobs = setup.background_jobs;
    let wanted = u64::from(threads) + u64::from(writer) + u64::from(jobs);
    (cores > 0 && wanted > cores).then(|| {
        let beside = match writer {
            0 => "",
            _ => ", with the writer",
        };
        let text = format!(
            "{cores} cores serve up to {threads} reading or writing threads{beside} and {jobs} \
             background jobs of a target: while it compacts, its throughput also shows how they share cores; \
             CPU per operation shows it less"
        );
        Finding::new(FEW_CORES, Severity::Note, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::rocksdb_plan;

    #[test]
    fn options_that_were_asked_for_are_known_by_their_names_in_any_section() {
        let plan = rocksdb_plan(&["a", "b"]);
        let mut setup = plan.work.rocksdb().cloned().unwrap();
        setup.options = vec![("block_based_table_factory.block_size".into(), "4096".into())];
        let mut server = plan.servers[0].clone();
        server.settings = vec![("write_buffer_size".into(), "1".into())];
        let names = [
            "CFOptions.write_buffer_size",
            "DBOptions.db_write_buffer_size",
            "TableOptions.block_size",
        ];
        let opened = Opened {
            in_force: names.map(|name| (name.to_owned(), "1".to_owned())).into(),
            ..Opened::default()
        };
        let sources: Vec<String> = settings_of(&setup, &server, &opened)
            .into_iter()
            .map(|setting| setting.source)
            .collect();
        assert_eq!(sources, ["asked", "default", "asked"]);
    }

    #[test]
    fn cores_are_few_when_threads_and_jobs_have_to_share_them() {
        let mut plan = rocksdb_plan(&["a", "b"]);
        let mut setup = plan.work.rocksdb().cloned().unwrap();
        let told = |plan: &Plan, setup: &RocksdbSetup, cores| {
            let host = HostFacts {
                online_cores: cores,
                ..HostFacts::default()
            };
            few_cores(plan, setup, &host).map(|finding| finding.text)
        };
        // One thread, the writer and two background jobs.
        assert!(
            told(&plan, &setup, 3)
                .unwrap()
                .starts_with("3 cores serve up to 1")
        );
        assert_eq!(told(&plan, &setup, 4), None);
        setup.threads = vec![1, 4];
        assert!(told(&plan, &setup, 4).is_some());
        plan.pins = Some(deltabench_model::plan::Pins {
            server: (0..8).collect(),
            client: vec![0],
        });
        assert_eq!(told(&plan, &setup, 4), None);
    }

    #[test]
    fn what_two_files_lack_is_told_once_for_all_that_run_them() {
        let mut plan = rocksdb_plan(&["a", "a", "b", "b"]);
        plan.servers[1].role = Role::Placebo;
        let of = |name: &str| Opened {
            in_force: [(format!("DBOptions.{name}"), "1".to_owned())].into(),
            ..Opened::default()
        };
        let opened = [of("x"), of("x"), of("y"), of("y")];
        let setup = plan.work.rocksdb().cloned().unwrap();
        let pairs = plan.servers.iter().zip(&opened);
        let settings: Vec<Vec<Setting>> = pairs
            .map(|(server, opened)| settings_of(&setup, server, opened))
            .collect();
        let kinds: Vec<FindingKind> = unfair(&plan, &opened, &settings)
            .into_iter()
            .map(|finding| finding.kind)
            .filter(|kind| OF_FILES.contains(&kind.word()))
            .collect();
        assert_eq!(kinds, OF_FILES);
    }

    #[test]
    fn a_warning_is_told_once_and_not_of_the_placebo() {
        let plan = rocksdb_plan(&["a", "a", "b"]);
        let opened = Opened {
            warnings: vec!["Assertions are enabled".to_owned()],
            ..Opened::default()
        };
        let told = warnings(&plan, &[opened.clone(), opened.clone(), opened]);
        let texts: Vec<&str> = told.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "base reports: Assertions are enabled",
                "b reports: Assertions are enabled"
            ]
        );
    }
}
