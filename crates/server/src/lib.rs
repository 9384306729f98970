//! One database's life: initdb, configure, start, verify settings, copy, stop, keep logs.
//!
//! Servers run as an unprivileged user, listen on a local socket in a directory of their own only, and
//! are children of this process: `postgres -D` is started directly, so that its pid is known from the
//! first moment, its exit status is reaped, and the kernel takes it down when deltabench is killed. The
//! price is that [`Cluster::start`] must be called on a thread that outlives the server: the kernel's
//! parent-death signal follows the thread, not the process.
//!
//! Workers of embedded engines are started the same way ([`Launch`]), and ended and cleared by the same
//! rules.
//!
//! What this crate refuses to do: signal a process it cannot prove to be one of its servers, start a
//! server where its user cannot read the binaries, or work in a directory that others can write to.
//!
//! ```no_run
//! # fn demo(installation: &deltabench_model::installation::Installation)
//! # -> Result<(), deltabench_model::problem::Problem> {
//! use deltabench_server::{Cluster, ClusterSpec, ServerUser, Slot, Workspace};
//! use std::path::Path;
//! let user = ServerUser::choose(None)?;
//! let parent = Workspace::default_parent(&user, Path::new("lab"));
//! for line in deltabench_server::sweep(&parent) {
//!     eprintln!("{line}");
//! }
//! let workspace = Workspace::create(&parent, "demo", &user)?;
//! let spec = ClusterSpec { installation, checksums: None, settings: &[] };
//! let mut cluster = Cluster::create(&workspace, "c0", &spec, Path::new("cache"), &user)?;
//! let slot = Slot { port: 5500, ..Slot::default() };
//! println!("{}", cluster.start(&slot, &[])?.endpoint);
//! cluster.stop()?;
//! drop(cluster);
//! workspace.remove()
//! # }
//! ```

mod access;
mod apart;
mod burn;
mod catalogs;
mod cgroups;
mod clock;
mod cluster;
mod configuration;
mod configurations;
mod counter;
mod directory;
mod failure;
mod frozen;
mod huge_pages;
mod kernel;
mod log;
mod network;
mod preload;
mod probe;
mod process;
mod profile;
mod programs;
mod records;
mod remnants;
mod room;
mod settings;
mod spawn;
mod sweep;
mod template;
mod tree;
mod upgrade;
mod user;
mod workspace;

pub use apart::choose_apart;
pub use burn::Burn;
pub use clock::Clock;
pub use cluster::{Cluster, ClusterSpec, Running, Slot};
pub use configuration::check_settings;
pub use configurations::{
    Adaptation, Catalogue, Configurations, Entry, Kind, OwnConfiguration, Translation, adapt,
    changes, check_known, check_values, is_auto, tell, translations,
};
pub use counter::{Counter, counts_file};
pub use directory::{Control, DataDirectory, DirectorySettings, State};
pub use frozen::{FrozenServer, ThawGuard};
pub use huge_pages::HugePages;
pub use network::Network;
pub use process::{ENGINE_MARK, Frozen, Handle};
pub use profile::{BaseSettings, base_settings, settings_under};
pub use remnants::end_engines;
pub use room::check_room;
pub use settings::{Normal, is_off, megabytes, normalise, unmet};
pub use spawn::Launch;
pub use sweep::sweep;
pub use template::Template;
pub use upgrade::check_upgrade;
pub use user::ServerUser;
pub use workspace::Workspace;

/// The superuser of every cluster made here; its database is `postgres`.
pub const SUPERUSER: &str = "deltabench";
