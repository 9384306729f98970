//! A dump of a database: what is in the file, and how it comes into a server.

mod error;
mod file;
mod item;
mod load;
mod scan;
mod splitter;
mod survey;
mod words;

pub use error::DumpError;
pub use file::DumpFile;
pub use item::Skipped;
pub use load::{LoadFailure, Loaded, Loading, load};
pub use survey::{Survey, reaching_out, survey};
