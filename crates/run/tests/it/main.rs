//! Fleets of real servers: what is loaded, aged and made anew; and the loop over blocks, without any.
//!
//! Servers come from `DELTABENCH_TEST_TREES`, as in the tests of `deltabench-server`.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod block_loop;
#[cfg(test)]
mod data;
#[cfg(test)]
mod drawn;
#[cfg(test)]
mod fake_kind;
#[cfg(test)]
mod interleaved;
#[cfg(test)]
mod interrupted;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod rotation;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod trust;
