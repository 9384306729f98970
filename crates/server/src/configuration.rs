//! The settings file that every start writes.

use deltabench_model::problem::Problem;
use std::path::Path;

/// Settings that decide where a server lives and whether we can watch it; they are ours.
const RESERVED: &[&str] = &[
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "include",
    "include_dir",
    "include_if_exists",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "port",
    "unix_socket_directories",
    "unix_socket_group",
    "unix_socket_permissions",
];

/// Checks that settings can be written to a server's configuration.
///
/// Errors: a name that is none, a value that does not fit on a line, a setting that deltabench keeps to
/// itself.
pub fn check_settings(settings: &[(String, String)]) -> Result<(), Problem> {
    for (name, value) in settings {
        let lower = name.to_ascii_lowercase();
        if !is_name(name) {
            return Err(
                Problem::new(format!("`{name}` is not the name of a setting"))
                    .hint("write NAME=VALUE, for example work_mem=64MB"),
            );
        }
        if RESERVED.contains(&lower.as_str()) {
            return Err(Problem::new(format!("setting `{name}` cannot be chosen"))
                .detail("deltabench decides where its servers live, listen and log")
                .hint(format!("leave out {name}")));
        }
        if value.contains(['\n', '\r', '\0']) {
            return Err(Problem::new(format!(
                "the value of setting `{name}` has more than one line"
            )));
        }
    }
    Ok(())
}

/// Whether this can be the name of a setting.
pub(crate) fn is_name(name: &str) -> bool {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts_well
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'))
}

/// The settings file: what was asked for, later ones winning, then where the server listens: on the local
/// socket, and where `network` says.
pub(crate) fn render(
    settings: &[(String, String)],
    sockets: &Path,
    port: u16,
    network: &[(&str, &str)],
) -> String {
    let mut text = "# written by deltabench at every start\n".to_owned();
    for (place, (name, value)) in settings.iter().enumerate() {
        let overridden = settings
            .iter()
            .skip(place + 1)
            .any(|(later, _)| later.eq_ignore_ascii_case(name));
        if !overridden {
            text.push_str(&line(name, value));
        }
    }
    let port = port.to_string();
    let sockets = sockets.display().to_string();
    for (name, value) in [
        ("listen_addresses", ""),
        ("port", port.as_str()),
        // A list: quoted inside, so that a comma in the path does not split it.
        ("unix_socket_directories", &format!("\"{sockets}\"")),
        ("unix_socket_permissions", "0700"),
        ("logging_collector", "off"),
        ("log_destination", "stderr"),
    ] {
        text.push_str(&line(name, value));
    }
    for (name, value) in network {
        text.push_str(&line(name, value));
    }
    text
}

fn line(name: &str, value: &str) -> String {
    // Inside quotes the file's reader takes backslashes as escapes too (GUC_scanstr).
    format!(
        "{name} = '{}'\n",
        value.replace('\\', "\\\\").replace('\'', "''")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn later_settings_win_and_where_it_listens_is_ours() {
        let settings = pairs(&[("work_mem", "1MB"), ("jit", "off"), ("Work_Mem", "2MB")]);
        let text = render(&settings, Path::new("/s"), 5501, &[]);
        assert!(
            !text.contains("1MB")
                && text.contains("Work_Mem = '2MB'")
                && text.contains("jit = 'off'")
        );
        assert!(text.contains("port = '5501'") && text.contains("listen_addresses = ''"));
        assert!(text.contains("unix_socket_directories = '\"/s\"'"));
    }

    #[test]
    fn quotes_and_backslashes_stay_inside_their_value() {
        assert_eq!(
            line("log_line_prefix", r"it's \n"),
            "log_line_prefix = 'it''s \\\\n'\n"
        );
    }

    #[test]
    fn settings_that_would_move_or_hide_a_server_are_refused() {
        for name in ["port", "Listen_Addresses", "data_directory", "include"] {
            let problem = check_settings(&pairs(&[(name, "x")])).unwrap_err();
            assert!(problem.error.contains("cannot be chosen"), "{name}");
        }
        for (name, value) in [
            ("", "x"),
            ("a b", "x"),
            ("1a", "x"),
            ("work_mem", "1\nport=1"),
        ] {
            assert!(check_settings(&pairs(&[(name, value)])).is_err(), "{name}");
        }
        check_settings(&pairs(&[
            ("work_mem", "64MB"),
            ("auto_explain.log_min_duration", "0"),
        ]))
        .unwrap();
    }
}
