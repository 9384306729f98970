//! Makes a lab of many small runs, to see how long its pages take:
//! `cargo run -p deltabench-site --example synthetic_lab DIR RUNS`.

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(Ok(runs))) = (arguments.next(), arguments.next().map(|n| n.parse()))
    else {
        eprintln!("usage: synthetic_lab DIR RUNS");
        std::process::exit(2);
    };
    drop(deltabench_testkit::labs::lab(directory.as_ref(), runs));
}
