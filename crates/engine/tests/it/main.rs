//! Workers on real libraries, which `DELTABENCH_TEST_ROCKSDB` names.

#[cfg(test)]
mod db_bench;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod place;
#[cfg(test)]
mod process;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod steps;
