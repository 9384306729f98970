//! Servers whose configuration has to be named.

use deltabench_document::Section;
use deltabench_model::problem::Problem;

/// Refuses servers that have the steady settings without saying so: autovacuum is off in them, which no table
/// that is written to for so long stands.
pub(crate) fn configured(root: &Section<'_>) -> Result<(), Problem> {
    let entries = root.sections("servers", "[[servers]] entry", "servers")?;
    let unsaid = |section: &Section<'_>| section.value("configuration").is_none();
    match entries.unwrap_or_default().into_iter().find(unsaid) {
        None => Ok(()),
        Some(section) => Err(section
            .problem("`configuration` is missing")
            .detail("without one it would be the steady settings, which have autovacuum off")
            .hint("write configuration = \"cx10a\", or \"steady\" if that is meant")),
    }
}
