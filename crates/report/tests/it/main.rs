//! Every report, from one fixed comparison.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod page;
#[cfg(test)]
mod text;
