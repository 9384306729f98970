//! The store from outside: runs, visits, kills, full disks.

#[cfg(test)]
mod archived;
#[cfg(test)]
mod bisections;
#[cfg(test)]
mod counts;
#[cfg(test)]
mod data;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod observed;
#[cfg(test)]
mod occasions;
#[cfg(test)]
mod records;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod stamps;
#[cfg(test)]
mod visits;
