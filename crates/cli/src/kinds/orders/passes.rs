//! What is measured in passes without a break.

use deltabench_kinds::orders::setup::MIX;
use deltabench_model::problem::Problem;

/// What is measured. Passes of minutes are for the mix unless others are asked for.
///
/// Errors: deliveries alone, which use up the orders within seconds.
pub(super) fn only(passes: bool, asked: &[String]) -> Result<Vec<String>, Problem> {
    if !passes {
        return Ok(asked.to_vec());
    }
    if asked.iter().any(|name| name.ends_with("delivery")) {
        return Err(
            Problem::new("deliveries alone use up the orders within seconds")
                .detail("each warehouse has 900 orders in each district that wait for delivery")
                .hint("measure the mix without a break, or deliveries in short visits"),
        );
    }
    match asked {
        [] => Ok(vec![MIX.to_owned()]),
        names => Ok(names.to_vec()),
    }
}
