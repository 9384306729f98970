//! Values for the parameters of a statement, from rows of the tables that they are compared with.

use super::text::LIST;
use deltabench_capture::Tuple;
use deltabench_model::units::{count, index};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A range from one row's value to a later one has this share of the rows.
const RANGE: usize = 100;
/// Letters of a value that begin a pattern: half of them, and so many at least.
const PREFIX: usize = 3;

/// Rows of a table: the values that are asked for, none of them NULL.
pub type Rows = Vec<Vec<String>>;

/// What stands for a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The same for every tuple.
    Default(String),
    /// Of a table by its place, and the place of the value in its rows.
    Of {
        table: usize,
        value: usize,
        form: Form,
    },
}

/// How a value of a row becomes that of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Same,
    /// That of another row: the same column is asked for a second time.
    Other,
    /// A later value, which ends a range that the row's begins.
    Later,
    /// Its first letters, as a pattern.
    Pattern,
    /// An array that begins with it.
    List,
}

/// Numbers that look random, and depend on a seed and a statement only.
pub struct Chance(u64);

impl Chance {
    /// Of this statement.
    pub fn of(seed: u64, statement: &str) -> Self {
        let digest = Sha256::new()
            .chain_update(seed.to_le_bytes())
            .chain_update(statement)
            .finalize();
        let first = digest.first_chunk::<8>().copied().unwrap_or_default();
        Self(u64::from_le_bytes(first))
    }

    /// A number below `most`.
    ///
    /// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators" (2014), `splitmix64`.
    pub fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        index((mixed ^ (mixed >> 31)) % count(most).max(1))
    }
}

/// A column of some rows, as a choice of rows needs it.
struct Column {
    /// Rows in the order of their values.
    sorted: Vec<usize>,
    /// A row of each value that several rows have, the most common one first.
    common: Vec<usize>,
}

impl Column {
    fn of(rows: &Rows, value: usize) -> Self {
        let text = |row: usize| {
            let row = rows.get(row);
            row.and_then(|row| row.get(value))
                .map_or("", String::as_str)
        };
        let mut sorted: Vec<usize> = (0..rows.len()).collect();
        sorted.sort_by(|one, other| order(text(*one), text(*other)).then(one.cmp(other)));
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for row in 0..rows.len() {
            counts.entry(text(row)).or_insert((0, row)).0 += 1;
        }
        let mut common: Vec<(usize, usize)> = counts
            .into_values()
            .filter(|(times, _)| *times > 1)
            .collect();
        common.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        Self {
            sorted,
            common: common.into_iter().map(|(_, row)| row).collect(),
        }
    }

    /// The row whose value bounds one of so many equal parts of the rows.
    fn bound(&self, place: usize, of: usize) -> Option<usize> {
        let last = self.sorted.len().checked_sub(1)?;
        let at = last * place / of.saturating_sub(1).max(1);
        self.sorted.get(at.min(last)).copied()
    }

    /// A row whose value ends a range that this row's begins.
    fn later(&self, row: usize) -> Option<usize> {
        let last = self.sorted.len().checked_sub(1)?;
        let at = self.sorted.iter().position(|other| *other == row)?;
        let step = (self.sorted.len() / RANGE).max(1);
        self.sorted.get((at + step).min(last)).copied()
    }
}

/// Numbers by their size, and all else by letters: dates are printed with the year first.
fn order(one: &str, other: &str) -> std::cmp::Ordering {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one.total_cmp(&other),
        _ => one.cmp(other),
    }
}

/// A table with its columns.
struct Sampled<'a> {
    rows: &'a Rows,
    columns: Vec<Column>,
}

impl<'a> Sampled<'a> {
    fn of(rows: &'a Rows) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        Self {
            rows,
            columns: (0..width).map(|value| Column::of(rows, value)).collect(),
        }
    }

    /// The row of a tuple: the first quarter has the most common values, the second one bounds of equal parts
    /// of the rows, of each column in turn; the rest are rows at random.
    fn row(&self, tuple: usize, of: usize, chance: &mut Chance) -> usize {
        let random = chance.below(self.rows.len());
        let width = self.columns.len().max(1);
        let quarter = of / 4;
        let column = |tuple: usize| self.columns.get(tuple % width);
        let chosen = if tuple < quarter {
            column(tuple).and_then(|column| column.common.get(tuple / width).copied())
        } else if tuple < 2 * quarter {
            let place = tuple - quarter;
            column(place).and_then(|column| column.bound(place / width, quarter.div_ceil(width)))
        } else {
            None
        };
        chosen.unwrap_or(random)
    }

    fn value(&self, row: usize, value: usize) -> &str {
        let row = self.rows.get(row);
        row.and_then(|row| row.get(value))
            .map_or("", String::as_str)
    }

    fn formed(&self, row: usize, value: usize, form: Form, chance: &mut Chance) -> String {
        let text = |row: usize| self.value(row, value).to_owned();
        match form {
            Form::Same => text(row),
            Form::Other => text(chance.below(self.rows.len())),
            Form::Later => {
                let column = self.columns.get(value);
                text(column.and_then(|column| column.later(row)).unwrap_or(row))
            }
            Form::Pattern => pattern(&text(row)),
            Form::List => {
                let others = (1..LIST).map(|_| text(chance.below(self.rows.len())));
                let others: Vec<String> = others.collect();
                array(std::iter::once(text(row)).chain(others))
            }
        }
    }
}

/// At most so many tuples of values for these parameters, each with the times that it was drawn. Parameters
/// of one table have the values of one row.
pub fn tuples(
    sources: &[Source],
    tables: &[Rows],
    most: usize,
    mut chance: Chance,
) -> Vec<(Vec<String>, f64)> {
    let sampled: Vec<Sampled<'_>> = tables.iter().map(Sampled::of).collect();
    let mut drawn: Vec<(Vec<String>, f64)> = Vec::new();
    for tuple in 0..if tables.is_empty() { 1 } else { most } {
        let rows: Vec<usize> = sampled
            .iter()
            .map(|table| table.row(tuple, most, &mut chance))
            .collect();
        let values = sources.iter().map(|source| match source {
            Source::Default(value) => value.clone(),
            Source::Of { table, value, form } => match (sampled.get(*table), rows.get(*table)) {
                (Some(table), Some(row)) => table.formed(*row, *value, *form, &mut chance),
                _ => String::new(),
            },
        });
        let values: Vec<String> = values.collect();
        match drawn.iter_mut().find(|(known, _)| *known == values) {
            Some((_, times)) => *times += 1.0,
            None => drawn.push((values, 1.0)),
        }
    }
    drawn
}

/// Tuples as those of a capture have them.
pub fn as_captured(sql: &str, drawn: Vec<(Vec<String>, f64)>) -> Vec<Tuple> {
    let tuple = |(values, n): (Vec<String>, f64)| Tuple {
        text: Some(sql.to_owned()),
        values: values.into_iter().map(Some).collect(),
        ms: None,
        n,
    };
    drawn.into_iter().map(tuple).collect()
}

/// `abc%` for `abcdef`.
fn pattern(value: &str) -> String {
    let mut pattern = String::new();
    let half = value.chars().count().div_ceil(2);
    for letter in value.chars().take(half.max(PREFIX)) {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

/// An array in text form.
fn array(values: impl Iterator<Item = String>) -> String {
    let quoted =
        values.map(|value| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 orders: customer 1 has half of them, and the id is ten times the place.
    fn orders() -> Rows {
        let customer = |place: usize| if place.is_multiple_of(2) { 1 } else { place };
        (0..1000)
            .map(|place| vec![(place * 10).to_string(), customer(place).to_string()])
            .collect()
    }

    fn of(value: usize, form: Form) -> Source {
        Source::Of {
            table: 0,
            value,
            form,
        }
    }

    #[test]
    fn parameters_of_one_table_have_the_values_of_one_row() {
        let rows = orders();
        let sources = [
            of(0, Form::Same),
            of(1, Form::Same),
            Source::Default("10".to_owned()),
        ];
        let drawn = tuples(
            &sources,
            std::slice::from_ref(&rows),
            64,
            Chance::of(1, "a"),
        );
        let whole: f64 = drawn.iter().map(|(_, times)| times).sum();
        assert!((whole - 64.0).abs() < 1e-9);
        for (values, _) in &drawn {
            assert!(rows.iter().any(|row| row[..] == values[..2]), "{values:?}");
            assert_eq!(values[2], "10");
        }
        let ids: Vec<&str> = drawn.iter().map(|(values, _)| values[0].as_str()).collect();
        // The bounds.
        assert!(ids.contains(&"0") && ids.contains(&"9990"));
        let again = tuples(
            &sources,
            std::slice::from_ref(&rows),
            64,
            Chance::of(1, "a"),
        );
        assert_eq!(drawn, again);
        assert_ne!(
            drawn,
            tuples(
                &sources,
                std::slice::from_ref(&rows),
                64,
                Chance::of(2, "a")
            )
        );
    }

    #[test]
    fn a_common_value_counts_about_as_often_as_rows_have_it() {
        let drawn = tuples(&[of(1, Form::Same)], &[orders()], 64, Chance::of(1, "a"));
        let of_first = drawn.iter().find(|(values, _)| values[0] == "1").unwrap();
        assert!((16.0..48.0).contains(&of_first.1), "{}", of_first.1);
    }

    #[test]
    fn ranges_patterns_and_lists_begin_with_the_value_of_the_row() {
        let sources = [of(0, Form::Same), of(0, Form::Later), of(0, Form::List)];
        for (values, _) in tuples(&sources, &[orders()], 64, Chance::of(1, "a")) {
            let (from, to): (u64, u64) = (values[0].parse().unwrap(), values[1].parse().unwrap());
            assert!(from < to && to <= from + 100 || to == 9990, "{from} {to}");
            assert!(
                values[2].starts_with(&format!("{{\"{from}\",\"")),
                "{}",
                values[2]
            );
        }
        assert_eq!(pattern("50%ab"), "50\\%%");
        assert_eq!(pattern("Customer 7"), "Custo%");
        assert_eq!(
            array(["a\"b".to_owned(), "c".to_owned()].into_iter()),
            "{\"a\\\"b\",\"c\"}"
        );
    }

    #[test]
    fn without_a_table_one_tuple_says_all() {
        let drawn = tuples(
            &[Source::Default("1".to_owned())],
            &[],
            64,
            Chance::of(1, "a"),
        );
        assert_eq!(drawn, [(vec!["1".to_owned()], 1.0)]);
    }
}
