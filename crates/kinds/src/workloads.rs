//! Statements of workloads, in slices that alternate between the servers.

use deltabench_compare::Reader;

/// Its slices say everything.
pub struct WorkloadsReader;

impl Reader for WorkloadsReader {}
