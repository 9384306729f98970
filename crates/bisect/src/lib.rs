//! Which point of a sequence is measured next, and where did its cost change?
//!
//! The points are in order of time. Measuring one is expensive and says its cost almost exactly, so a
//! difference of two points is there or not. Each interval whose ends differ is halved, the largest
//! difference first, until the steps that are left lie between neighbours. A point that cannot be measured is
//! skipped and never blamed: where a step lies in a run of such points, the run is the answer.
//!
//! What it cannot see: steps that cancel inside one interval. It counts the points that it did not look at
//! ([`Quiet`]), so that whoever reports can say so.
//!
//! Nothing here is stored: what comes next is a function of what is known, so a search that was killed
//! continues from its measurements alone.

mod choice;
mod forecast;
mod found;
mod gaussian;
mod prior;
mod sequence;
mod stairs;
mod timed;

pub use choice::{Choice, Next, next};
pub use forecast::{Looks, forecast};
pub use found::{Found, Quiet, Step, found};
pub use gaussian::TimedRun;
pub use prior::{Touches, weights};
pub use sequence::{Interval, Known, Sequence, Wish};
pub use stairs::{Climbed, Contrast, Contrasts, Stairs, TimedStep};
pub use timed::{Answer, Timed};
