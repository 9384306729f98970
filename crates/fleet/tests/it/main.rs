//! The fleet on real schedulers.

#[cfg(test)]
mod slurm;
