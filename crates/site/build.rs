//! Gives the pages of a site a number that nobody has to raise: a hash of the sources that they come from,
//! with the script of reports.

#[path = "../lab/sources.rs"]
mod sources;

fn main() {
    // Tests know DELTABENCH_PAGES as something else, and cargo gives them what a build script exports.
    sources::export("site", &["src", "web/dist"], "DELTABENCH_SITE_SOURCES");
}
