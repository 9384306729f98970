//! The fleet on real schedulers, and many units.

#[cfg(test)]
mod gathering;
#[cfg(test)]
mod slurm;
