//! Names of the runs that belong to another one.

/// The name of the next run that counts for another, of which those are known already.
pub fn count_name(run: &str, known: &[String]) -> String {
    next(run, "count", known)
}

/// The name of the next run that samples for another, of which those are known already.
pub fn sample_name(run: &str, known: &[String]) -> String {
    next(run, "sample", known)
}

/// The name of the next run that confirms another, of which those are known already.
pub fn confirmation_name(run: &str, known: &[String]) -> String {
    next(run, "confirm", known)
}

fn next(run: &str, what: &str, known: &[String]) -> String {
    match known.len() {
        0 => format!("{run}-{what}"),
        earlier => format!("{run}-{what}-{}", earlier + 1),
    }
}
