//! Values that a build cannot do, refused before anything runs.

use super::adaptation::is_auto;
use super::catalogue::Catalogue;
use super::enquiry::{Answer, is_unknown};
use deltabench_model::problem::Problem;

/// What a build must be made with to take a value: setting, value, library, option of configure, a variant
/// that has it.
const NEEDS: &[(&str, &str, &str, &str, Option<&str>)] = &[
    (
        "io_method",
        "io_uring",
        "liburing",
        "--with-liburing",
        Some("o2_nofp"),
    ),
    (
        "wal_compression",
        "lz4",
        "lz4",
        "--with-lz4",
        Some("o2_nofp"),
    ),
    (
        "default_toast_compression",
        "lz4",
        "lz4",
        "--with-lz4",
        Some("o2_nofp"),
    ),
    ("wal_compression", "zstd", "zstd", "--with-zstd", None),
];

/// Asks the server's program whether it takes these values, without starting it. For settings that have been
/// adapted: names are checked as well.
///
/// What only a starting server finds is not found here: values that contradict each other, too little memory,
/// a kernel without io_uring.
///
/// Errors: the first value that it does not take, with what it said.
pub fn check_values(settings: &[(String, String)], catalogue: &Catalogue) -> Result<(), Problem> {
    let plain: Vec<(String, String)> = settings
        .iter()
        .filter(|(name, value)| !is_auto(name, value))
        .cloned()
        .collect();
    // One of those that every version has.
    let any = "max_connections";
    let Answer::Refused(all) = catalogue.ask(any, &plain)? else {
        return Ok(());
    };
    for setting in &plain {
        if let Answer::Refused(why) = catalogue.ask(any, std::slice::from_ref(setting))? {
            return Err(refusal(setting, &why, catalogue));
        }
    }
    Err(Problem::new(format!(
        "{} rejects this combination of settings",
        catalogue.server()
    ))
    .detail(all))
}

fn refusal((name, value): &(String, String), why: &str, catalogue: &Catalogue) -> Problem {
    if is_unknown(why) {
        return catalogue.unknown(name);
    }
    let server = catalogue.server();
    let problem = Problem::new(format!("{server} cannot do {name} = {value}"))
        .detail(format!("the server says: {why}"));
    let needed = NEEDS.iter().find(|(setting, word, ..)| {
        name.eq_ignore_ascii_case(setting) && value.trim().eq_ignore_ascii_case(word)
    });
    let Some((_, _, library, option, variant)) = needed else {
        return problem.hint(match why.contains("cannot be changed") {
            true => format!("leave {name} out"),
            false => format!("give {name} a value that this version has"),
        });
    };
    let release = server.split('+').next().unwrap_or(server);
    match variant.filter(|_| release.starts_with("postgres:")) {
        Some(variant) => problem.hint(format!(
            "build it from source with {library}: {release}+{variant}"
        )),
        None => problem.hint(format!("build it from source with {library}: {option}")),
    }
}
