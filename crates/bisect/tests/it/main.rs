//! Searches through made-up histories whose answer is known.

#[cfg(test)]
mod histories;
