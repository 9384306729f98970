//! Which runs are those of nights.

/// Options of every command that have a value: their values are not the name of a command.
const VALUED: [&str; 2] = ["--lab", "--cache"];

/// Whether a command line is that of a night.
pub fn is_night(command: &[String]) -> bool {
    let mut words = command.iter().skip(1);
    while let Some(word) = words.next() {
        if VALUED.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with("--") {
            return word == "nightly";
        }
    }
    false
}
