//! Where the tables of a replay are from.

use super::{base_name, megabytes, server_name};
use deltabench_model::replayed::{Replayed, ReplayedData};

/// `data: a copy of a data directory of 17 (…)`; absent for a dump, and for servers that already ran.
pub(super) fn sentence(replayed: &Replayed, place: usize) -> Option<String> {
    let data = replayed.data.as_ref()?;
    let directory = data.directory.as_ref()?;
    let made = match (
        directory.upgraded.contains(&0),
        directory.upgraded.contains(&place),
    ) {
        (false, false) => String::new(),
        (false, true) => format!("; pg_upgrade made that of {}", server_name(replayed, place)),
        (true, false) => format!("; pg_upgrade made that of {}", server_name(replayed, 0)),
        (true, true) => "; pg_upgrade made those of both servers".to_owned(),
    };
    Some(format!(
        "data: a copy of a data directory of {} ({}, with its bloat and order of rows), database {}{made}",
        directory.major,
        megabytes(data.bytes),
        directory.database
    ))
}

/// What statistics were drawn on: `after loading shop.dump`.
pub(super) fn drawn_on(data: &ReplayedData) -> String {
    match &data.directory {
        None => format!("after loading {}", base_name(&data.path)),
        Some(_) => format!(
            "by ANALYZE and without VACUUM, on its copy of {}",
            data.path
        ),
    }
}

/// The line of a page.
pub(super) fn provenance(data: &ReplayedData) -> String {
    match &data.directory {
        Some(directory) => format!(
            "data: {} of {}, {}",
            data.path, directory.major, directory.identity
        ),
        None => format!(
            "data: {}, SHA-256 {}{}",
            data.path,
            data.sha256,
            data.dumped_from
                .as_ref()
                .map_or_else(String::new, |version| format!(", dumped from {version}"))
        ),
    }
}
