//! Gives the analysis a number that nobody has to raise: a hash of the sources from which a judgement comes.
//! They are those of this crate and of all crates of ours that it uses.

mod sources;

fn main() {
    sources::export("lab", &["src"], "DELTABENCH_ANALYSIS");
}
