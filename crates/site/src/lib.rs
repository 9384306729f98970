//! How do people see a lab? Its pages, published as files or served read only.
//!
//! [`Lab`] is a lab that is looked at, [`Route`] names a page of it, and [`page()`] makes that page: the
//! same bytes for [`publish()`] and for [`web::serve`], but for the links. Nothing is measured here, and
//! nothing is written but the files of a published site. What a run says is what `lab` and `report` say.

mod api;
mod band;
mod builds;
mod cells;
mod changes;
mod compare;
mod digest;
mod entry;
mod executions;
mod feed;
mod frame;
mod home;
mod hosts;
mod lab;
mod outcome;
mod page;
mod placed;
mod publish;
mod route;
mod run;
mod runs;
mod search;
mod secret;
mod stamps;
mod study;
mod times;
mod trends;
mod versions;
pub mod web;
mod withhold;
mod within;
mod written;

pub use lab::{Lab, Places};
pub use page::page;
pub use publish::{Published, publish};
pub use route::Route;
pub use study::{Loaded, place_unbegun, study_context, tables_of};
pub use times::Circumstances;
pub use written::{Kind, Page};
