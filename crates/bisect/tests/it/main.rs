//! Searches through made-up histories whose answer is known.

mod histories;
