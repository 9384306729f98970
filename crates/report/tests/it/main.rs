//! Every report, from one fixed comparison.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod full;
#[cfg(test)]
mod page;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod text;
