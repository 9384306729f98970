//! How the two were compiled.

use super::{ServerFacts, only_in};
use deltabench_model::finding::{Finding, FindingKind, Severity};
use deltabench_model::installation::Build;
use std::collections::BTreeSet;

pub(super) fn findings(base: &ServerFacts<'_>, candidate: &ServerFacts<'_>) -> Vec<Finding> {
    let hash = |side: &ServerFacts<'_>| side.installation.binary_sha256.clone();
    let mut findings = Vec::new();
    if !hash(base).is_empty() && hash(base) == hash(candidate) {
        let what = if base.asked_settings == candidate.asked_settings {
            "this is an A/A comparison"
        } else {
            "only the settings that you asked for differ"
        };
        let text = format!(
            "{} and {} run the same binary: {what}",
            base.name, candidate.name
        );
        findings.push(Finding::new(FindingKind::SameBinary, Severity::Note, text));
    }
    let (left, right) = match (&base.installation.build, &candidate.installation.build) {
        (Some(left), Some(right)) => (left, right),
        (left, _) => {
            let name = if left.is_none() {
                &base.name
            } else {
                &candidate.name
            };
            let text = format!(
                "deltabench does not know how {name} was compiled, so it did not \
                                compare builds"
            );
            findings.push(Finding::new(
                FindingKind::BuildUnknown,
                Severity::Note,
                text,
            ));
            return findings;
        }
    };
    if left.compiler != right.compiler {
        let text = format!(
            "{} was compiled by {}, {} by {}",
            base.name, left.compiler, candidate.name, right.compiler
        );
        findings.push(Finding::new(
            FindingKind::CompilerDiffers,
            Severity::Confounder,
            text,
        ));
    }
    findings.extend(flags(base, candidate, left, right));
    findings.extend(optimisation(base, candidate, left, right));
    findings.extend(configure(base, candidate, left, right));
    findings
}

/// CFLAGS that make other machine code.
fn flags(
    base: &ServerFacts<'_>,
    candidate: &ServerFacts<'_>,
    left: &Build,
    right: &Build,
) -> Option<Finding> {
    let (left, right) = (code_flags(&left.cflags), code_flags(&right.cflags));
    let (left_only, right_only) = differences(&left, &right);
    let text = only_in(&base.name, &candidate.name, &left_only, &right_only);
    (!text.is_empty()).then(|| {
        Finding::new(
            FindingKind::CflagsDiffer,
            Severity::Confounder,
            format!("compiler flags differ: {text}"),
        )
    })
}

/// The flags without those that cannot change code: warnings, debug information, paths. Of several `-O` the
/// last counts, as for the compiler.
fn code_flags(cflags: &str) -> BTreeSet<String> {
    let mut flags: BTreeSet<String> = cflags
        .split_whitespace()
        .filter(|flag| !is_harmless(flag) && !flag.starts_with("-O"))
        .map(str::to_owned)
        .collect();
    flags.extend(level(cflags).map(str::to_owned));
    flags
}

fn is_harmless(flag: &str) -> bool {
    let passed_on = ["-Wp,", "-Wa,", "-Wl,"]
        .iter()
        .any(|prefix| flag.starts_with(prefix));
    let paths = [
        "-fdebug-prefix-map=",
        "-ffile-prefix-map=",
        "-fmacro-prefix-map=",
        "-fdiagnostics-",
        "-I",
        "-L",
    ];
    (flag.starts_with("-W") && !passed_on)
        || flag.starts_with("-g")
        || flag == "-pipe"
        || paths.iter().any(|prefix| flag.starts_with(prefix))
}

/// The `-O` flag in force.
fn level(cflags: &str) -> Option<&str> {
    cflags
        .split_whitespace()
        .rfind(|flag| flag.starts_with("-O"))
}

/// A server that is not compiled as for production. Flags that are not recorded at all are not judged.
fn optimisation(
    base: &ServerFacts<'_>,
    candidate: &ServerFacts<'_>,
    left: &Build,
    right: &Build,
) -> Option<Finding> {
    let low = |build: &Build| {
        let full = matches!(level(&build.cflags), Some("-O2" | "-O3" | "-O4" | "-Ofast"));
        let recorded = build
            .cflags
            .split_whitespace()
            .any(|flag| flag.starts_with('-'));
        (recorded && !full).then(|| level(&build.cflags).unwrap_or("no -O flag").to_owned())
    };
    let (severity, text) = match (low(left), low(right)) {
        (None, None) => return None,
        (Some(a), Some(b)) if a == b => {
            (Severity::Note, format!("both sides are compiled with {a}"))
        }
        (Some(a), Some(b)) => (
            Severity::Confounder,
            format!(
                "{} is compiled with {a} and {} with {b}",
                base.name, candidate.name
            ),
        ),
        (Some(a), None) => (
            Severity::Confounder,
            format!("{} is compiled with {a}", base.name),
        ),
        (None, Some(b)) => (
            Severity::Confounder,
            format!("{} is compiled with {b}", candidate.name),
        ),
    };
    let why = "not -O2 as in production, so an operation takes more CPU than in production";
    Some(Finding::new(
        FindingKind::OptimisationLow,
        severity,
        format!("{text}, {why}"),
    ))
}

/// Options of the configure line, without paths and what only concerns the build itself.
fn configure(
    base: &ServerFacts<'_>,
    candidate: &ServerFacts<'_>,
    left: &Build,
    right: &Build,
) -> Option<Finding> {
    let (left, right) = (options(&left.configure), options(&right.configure));
    let (left_only, right_only) = differences(&left, &right);
    let text = only_in(&base.name, &candidate.name, &left_only, &right_only);
    let severity = if left_only
        .iter()
        .chain(&right_only)
        .any(|option| moves_numbers(option))
    {
        Severity::Confounder
    } else {
        Severity::Note
    };
    (!text.is_empty()).then(|| {
        Finding::new(
            FindingKind::ConfigureDiffers,
            severity,
            format!("configure options differ: {text}"),
        )
    })
}

/// What is only in the one and only in the other.
fn differences(left: &BTreeSet<String>, right: &BTreeSet<String>) -> (Vec<String>, Vec<String>) {
    (
        left.difference(right).cloned().collect(),
        right.difference(left).cloned().collect(),
    )
}

fn options(configure: &str) -> BTreeSet<String> {
    split_quoted(configure)
        .iter()
        .filter_map(|option| option_of_interest(option))
        .collect()
}

/// Options that say where things go or how the build runs, not what is built.
const IGNORED_OPTIONS: [&str; 39] = [
    "--prefix",
    "--exec-prefix",
    "--bindir",
    "--sbindir",
    "--libdir",
    "--libexecdir",
    "--includedir",
    "--oldincludedir",
    "--datarootdir",
    "--datadir",
    "--infodir",
    "--localedir",
    "--mandir",
    "--docdir",
    "--htmldir",
    "--sysconfdir",
    "--sharedstatedir",
    "--localstatedir",
    "--runstatedir",
    "--srcdir",
    "--cache-file",
    "--build",
    "--host",
    "--target",
    "--with-includes",
    "--with-libraries",
    "--with-libs",
    "--with-tclconfig",
    "--with-extra-version",
    "--with-pgport",
    "--with-gnu-ld",
    "--disable-option-checking",
    "--disable-silent-rules",
    "--disable-maintainer-mode",
    "--disable-dependency-tracking",
    "--enable-depend",
    "--disable-rpath",
    "--enable-tap-tests",
    "--enable-debug",
];

/// Variables that change code; all others name tools. `CFLAGS` and `CC` are compared as flags and compiler.
const CODE_VARIABLES: [&str; 4] = ["CPPFLAGS", "LDFLAGS", "LDFLAGS_EX", "LIBS"];

fn option_of_interest(option: &str) -> Option<String> {
    let (key, value) = option.split_once('=').unwrap_or((option, ""));
    if !key.starts_with('-') {
        if !CODE_VARIABLES.contains(&key) {
            return None;
        }
        let flags: Vec<&str> = value
            .split_whitespace()
            .filter(|flag| !is_search_path(flag))
            .collect();
        return (!flags.is_empty()).then(|| format!("{key}={}", flags.join(" ")));
    }
    if IGNORED_OPTIONS.contains(&key) {
        return None;
    }
    // `--with-system-tzdata=/usr/share/zoneinfo`: that it is used matters, where it is does not.
    Some(if value.starts_with('/') {
        key.to_owned()
    } else {
        option.to_owned()
    })
}

fn is_search_path(flag: &str) -> bool {
    is_harmless(flag) || flag.starts_with("-Wl,-rpath")
}

/// Whether an option that differs is likely to show in the numbers.
fn moves_numbers(option: &str) -> bool {
    let moving = [
        "--enable-cassert",
        "--enable-profiling",
        "--enable-coverage",
        "--disable-spinlocks",
        "--disable-atomics",
        "--disable-float8-byval",
        "--with-blocksize",
        "--with-wal-blocksize",
        "--with-llvm",
        "-Dcassert",
        "-Dllvm",
        "-Dblocksize",
        "-Dwal_blocksize",
        "-Dbuildtype",
        "-Doptimization",
        "-Db_",
        "-Dc_args",
        "-Dc_link_args",
    ];
    moving.iter().any(|prefix| option.starts_with(prefix)) || !option.starts_with('-')
}

/// Words of a line as the shell would split it: `'a b' c` is `a b` and `c`.
fn split_quoted(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(letter),
            (_, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configure_line_splits_as_the_shell_would() {
        assert_eq!(
            split_quoted(r#" '--prefix=/a b'  --with-x=1 'CFLAGS=-O2 -g' "a\"b" 'it'\''s' '' "#),
            [
                "--prefix=/a b",
                "--with-x=1",
                "CFLAGS=-O2 -g",
                "a\"b",
                "it's",
                ""
            ]
        );
        assert!(split_quoted("  ").is_empty());
    }

    #[test]
    fn only_flags_that_change_code_are_compared_and_the_last_level_counts() {
        let flags = |text: &str| code_flags(text).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(
            flags("-Wall -g3 -O2 -fwrapv -Os -ffile-prefix-map=/a=b -pipe"),
            "-Os -fwrapv"
        );
        assert_eq!(
            flags("-Wp,-D_FORTIFY_SOURCE=2 -march=native"),
            "-Wp,-D_FORTIFY_SOURCE=2 -march=native"
        );
    }

    #[test]
    fn paths_and_tools_are_no_options() {
        let left = options(
            "'--prefix=/a' 'CC=/usr/bin/gcc' 'LDFLAGS=-L/opt/lib' '--with-system-tzdata=/usr/share/zoneinfo'",
        );
        let right = options("--with-system-tzdata=/opt/zoneinfo --enable-debug");
        assert_eq!(left, right);
        assert_eq!(
            left.into_iter().collect::<Vec<_>>(),
            ["--with-system-tzdata"]
        );
    }
}
