//! Where the servers of a run live, and what they may have of the machine.

use deltabench_server::ServerUser;
use std::path::PathBuf;

/// Whether servers get huge pages for their shared buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugePagesWish {
    /// Where the machine gives them.
    Try,
    /// Or the run is refused.
    On,
    Off,
}

/// Where the servers of a run live.
#[derive(Debug, Clone)]
pub struct Host {
    /// Directory in which the run's workspace is made.
    pub workspaces: PathBuf,
    /// Cache of initialised data directories.
    pub cache: PathBuf,
    pub user: ServerUser,
    pub huge_pages: HugePagesWish,
}
