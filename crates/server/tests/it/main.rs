//! Real servers, started, broken, killed and cleared.

#[cfg(test)]
mod burn;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod configurations;
#[cfg(test)]
mod directory;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod guide;
#[cfg(test)]
mod huge_pages;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod query;
