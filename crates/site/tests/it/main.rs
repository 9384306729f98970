//! The pages of a lab from outside: published, served, and what both have in common.

#[cfg(test)]
mod fresh;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod large;
#[cfg(test)]
mod over_time;
#[cfg(test)]
mod published;
#[cfg(test)]
mod served;
#[cfg(test)]
mod watched;
