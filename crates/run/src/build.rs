//! How a server was compiled.

use crate::admin::{query, text};
use deltabench_driver::admin::Client;
use deltabench_model::installation::Build;
use deltabench_model::problem::Problem;

/// How the server was compiled, as it says itself; flags are empty where the role may not read them.
///
/// Errors: whatever the server answered. Source: `version()` and the `pg_config` view (9.6 and later), which
/// is closed to all but superusers and those they let read it.
pub(crate) fn build(client: &mut Client) -> Result<Build, Problem> {
    let one = |client: &mut Client, sql: &str| -> Result<String, Problem> {
        let rows = query(client, sql)?;
        Ok(rows.into_iter().next().map(text).unwrap_or_default())
    };
    let version_text = one(client, "SELECT version()")?;
    let compiler = version_text
        .split_once("compiled by ")
        .map_or(String::new(), |(_, rest)| {
            rest.trim_end_matches(", 64-bit").to_owned()
        });
    let readable = "SELECT has_table_privilege('pg_config', 'SELECT') \
                    AND has_function_privilege('pg_config()', 'EXECUTE')";
    let readable = one(client, readable)? == "t";
    let mut setting = |name: &str| match readable {
        true => one(
            client,
            &format!("SELECT setting FROM pg_config WHERE name = '{name}'"),
        ),
        false => Ok(String::new()),
    };
    Ok(Build {
        version_text,
        compiler,
        cflags: setting("CFLAGS")?,
        configure: setting("CONFIGURE")?,
    })
}
