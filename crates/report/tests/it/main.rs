//! Every report, from one fixed comparison.

#[cfg(test)]
mod bisected;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod costs_fixture;
#[cfg(test)]
mod explained;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod full;
#[cfg(test)]
mod insert;
#[cfg(test)]
mod insert_fixture;
#[cfg(test)]
mod made;
#[cfg(test)]
mod page;
#[cfg(test)]
mod pgbench;
#[cfg(test)]
mod pgbench_fixture;
#[cfg(test)]
mod rich;
#[cfg(test)]
mod rocksdb;
#[cfg(test)]
mod rocksdb_fixture;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod study;
#[cfg(test)]
mod study_fixture;
#[cfg(test)]
mod text;
