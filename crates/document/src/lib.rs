//! What did the user write? Strict TOML, amounts, times and percents.
//!
//! Of a file every problem says the line; an unknown key is refused with the nearest one. What values come to
//! is worked out by those who read them.
//!
//! ```
//! use deltabench_document::{Document, Section};
//!
//! let document = Document { file: "small.toml", text: "clients = 4\nrow = 1" };
//! let table = document.parse()?;
//! let root = Section::new(document, "the file".to_owned(), 0, table.get_ref());
//! assert_eq!(root.number::<u32>("clients", 1..=64)?, Some(4));
//! let refused = root.allow(&["clients", "rows"]).unwrap_err();
//! assert_eq!(refused.error, "small.toml:2: unknown key `row` in the file");
//! assert_eq!(refused.hint.as_deref(), Some("did you mean `rows`?"));
//! # Ok::<(), deltabench_model::problem::Problem>(())
//! ```

pub mod amounts;
mod document;
mod section;

pub use document::Document;
pub use section::{Placed, Section, Value, whole};
