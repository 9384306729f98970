//! A TOML file as it was written.

use deltabench_model::problem::Problem;
use deltabench_model::units::count;
use toml::Spanned;
use toml::de::DeTable;

/// A file being read.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// How problems call it.
    pub file: &'a str,
    pub text: &'a str,
}

impl<'a> Document<'a> {
    /// Parses the whole file.
    ///
    /// Errors: it is not TOML.
    pub fn parse(self) -> Result<Spanned<DeTable<'a>>, Problem> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let what = format!("not TOML: {}", error.message().trim_end());
            self.at(at, Problem::new(what))
        })
    }

    /// `problem` with the place of byte `offset` in front.
    pub fn at(self, offset: usize, mut problem: Problem) -> Problem {
        problem.error = format!("{}:{}: {}", self.file, self.line(offset), problem.error);
        problem
    }

    /// The line of a byte, from 1.
    pub fn line(self, offset: usize) -> u64 {
        let before = self.text.bytes().take(offset);
        count(before.filter(|&byte| byte == b'\n').count()) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let document = Document {
            file: "f",
            text: "a\nb\n",
        };
        let lines = [0, 1, 2, 4].map(|offset| document.line(offset));
        assert_eq!(lines, [1, 1, 2, 3]);
    }

    #[test]
    fn what_is_not_toml_is_refused_with_its_line() {
        let document = Document {
            file: "f.toml",
            text: "a = 1\nb = = 2\n",
        };
        let error = document.parse().unwrap_err().error;
        assert!(error.starts_with("f.toml:2: not TOML: "), "{error}");
    }
}
