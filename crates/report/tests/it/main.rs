//! Every report, from one fixed comparison.

#[cfg(test)]
mod claims;
#[cfg(test)]
mod costs_fixture;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod full;
#[cfg(test)]
mod page;
#[cfg(test)]
mod rich;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod text;
