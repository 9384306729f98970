//! Names by number.

use std::collections::HashMap;

/// Names, each once. Stacks hold their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    /// The number of a name, a new one if it has none yet.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// The name with this number.
    pub fn name(&self, number: u32) -> Option<&str> {
        let place = usize::try_from(number).ok()?;
        self.names.get(place).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_a_number_one_name() {
        let mut names = Names::default();
        let (a, b) = (names.number("ExecScan"), names.number("heap_getnext"));
        assert_ne!(a, b);
        assert_eq!(names.number("ExecScan"), a);
        assert_eq!(names.name(b), Some("heap_getnext"));
        assert_eq!(names.name(2), None);
        assert_eq!(names.names, ["ExecScan", "heap_getnext"]);
    }
}
