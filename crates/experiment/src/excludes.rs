//! What has no meaning beside a benchmark that stands in place of workloads.

use deltabench_document::Section;
use deltabench_model::problem::Problem;

/// What a section, or a word of one, and others exclude.
pub(crate) struct Excluded {
    pub(crate) by: &'static str,
    /// Sections, and what to do instead.
    pub(crate) sections: &'static [(&'static str, &'static str)],
    /// Keys of sections, and what to do instead.
    pub(crate) keys: &'static [(&'static str, &'static str, &'static str)],
}

/// Refuses what has no meaning beside the section.
pub(crate) fn excludes(root: &Section<'_>, excluded: &Excluded) -> Result<(), Problem> {
    let refuse = |at: usize, what: String, hint: &str| {
        let what = format!("{what} and {} exclude each other", excluded.by);
        Err(root.problem_at(at, what).hint(hint))
    };
    for (key, hint) in excluded.sections {
        if let Some((_, at)) = root.value(key) {
            return refuse(at, format!("[{key}]"), hint);
        }
    }
    for (table, key, hint) in excluded.keys {
        let section = root.section(table, format!("[{table}]"))?;
        if let Some((_, at)) = section.and_then(|section| section.value(key)) {
            return refuse(at, format!("`{key}` of [{table}]"), hint);
        }
    }
    Ok(())
}
