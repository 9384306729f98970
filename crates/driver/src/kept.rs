//! Rows that a script wants: the last one of each result.

/// The results of one answer. Its memory is used again for the next.
#[derive(Debug, Default)]
pub struct Kept {
    results: Vec<KeptResult>,
    /// How many of them belong to this answer; the last may be incomplete.
    used: usize,
    /// Whether the last of those is complete.
    complete: bool,
}

/// One result: what its columns are called, how many rows it had and the last of them.
#[derive(Debug, Default)]
pub struct KeptResult {
    /// Body of the RowDescription; empty: it was no query.
    description: Vec<u8>,
    /// Body of the last DataRow.
    row: Vec<u8>,
    rows: u64,
}

/// Names of columns, and the values of a row.
pub type Fields<'a> = (Vec<&'a [u8]>, Vec<Option<&'a [u8]>>);

impl Kept {
    /// A new answer begins.
    pub fn clear(&mut self) {
        self.used = 0;
        self.complete = true;
    }

    /// The complete results, in order.
    pub fn results(&self) -> &[KeptResult] {
        let complete = if self.complete {
            self.used
        } else {
            self.used.saturating_sub(1)
        };
        self.results.get(..complete).unwrap_or(&[])
    }

    /// The columns of the next rows; nothing for a statement that has none.
    pub fn described(&mut self, body: &[u8]) {
        if let Some(result) = self.open() {
            result.description.extend_from_slice(body);
        }
    }

    /// A row.
    pub fn row(&mut self, body: &[u8]) {
        if let Some(result) = self.open() {
            result.rows += 1;
            result.row.clear();
            result.row.extend_from_slice(body);
        }
    }

    /// The result is complete.
    pub fn complete(&mut self) {
        self.open();
        self.complete = true;
    }

    /// The result under way; a new one, if there is none.
    fn open(&mut self) -> Option<&mut KeptResult> {
        if self.complete {
            self.complete = false;
            match self.results.get_mut(self.used) {
                Some(result) => {
                    result.description.clear();
                    result.row.clear();
                    result.rows = 0;
                }
                None => self.results.push(KeptResult::default()),
            }
            self.used += 1;
        }
        self.results.get_mut(self.used.saturating_sub(1))
    }
}

impl KeptResult {
    /// How many rows it had.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Columns and values of the last row; `None` if the messages were not what they should be.
    pub fn fields(&self) -> Option<Fields<'_>> {
        let (count, mut rest) = number(&self.description)?;
        let mut columns = Vec::with_capacity(count);
        for _ in 0..count {
            let end = rest.iter().position(|byte| *byte == 0)?;
            let (name, after) = rest.split_at_checked(end)?;
            columns.push(name);
            // Zero, table, column, type, width, modifier, format.
            rest = after.get(1 + 4 + 2 + 4 + 2 + 4 + 2..)?;
        }
        let (count, mut rest) = number(&self.row)?;
        if count != columns.len() {
            return None;
        }
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                values.push(None);
                rest = after;
                continue;
            };
            let (value, after) = after.split_at_checked(length)?;
            values.push(Some(value));
            rest = after;
        }
        Some((columns, values))
    }
}

/// The number of fields at the start of a body, and what follows it.
fn number(body: &[u8]) -> Option<(usize, &[u8])> {
    let (count, rest) = body.split_first_chunk::<2>()?;
    Some((usize::from(u16::from_be_bytes(*count)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn description(names: &[&str]) -> Vec<u8> {
        let mut body = u16::try_from(names.len()).unwrap().to_be_bytes().to_vec();
        for name in names {
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(&[0; 19]);
        }
        body
    }

    fn row(values: &[Option<&str>]) -> Vec<u8> {
        let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
        for value in values {
            let length = value.map_or(-1, |text| i32::try_from(text.len()).unwrap());
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(value.unwrap_or_default().as_bytes());
        }
        body
    }

    #[test]
    fn each_result_keeps_its_columns_and_its_last_row() {
        let mut kept = Kept::default();
        for _ in 0..2 {
            kept.clear();
            assert!(kept.results().is_empty());
            kept.described(&description(&["a", "b"]));
            kept.row(&row(&[Some("1"), None]));
            kept.row(&row(&[Some(""), Some("two")]));
            kept.complete();
            kept.complete();
            kept.described(&description(&["c"]));
            kept.complete();
            // This one is cut off by an error.
            kept.described(&description(&["d"]));
            kept.row(&row(&[Some("9")]));
            let rows: Vec<u64> = kept.results().iter().map(KeptResult::rows).collect();
            assert_eq!(rows, [2, 0, 0]);
            let fields = kept.results()[0].fields().unwrap();
            assert_eq!(fields.0, [b"a", b"b"]);
            assert_eq!(fields.1, [Some(&b""[..]), Some(&b"two"[..])]);
            assert!(kept.results()[1].fields().is_none());
        }
    }

    #[test]
    fn a_row_that_does_not_fit_its_description_is_told() {
        for (names, row) in [
            (&["a"][..], row(&[])),
            (&[], row(&[None])),
            (&["a"], vec![0, 1, 0, 0, 0, 9, 1]),
        ] {
            let mut kept = Kept::default();
            kept.clear();
            kept.described(&description(names));
            kept.row(&row);
            kept.complete();
            assert!(kept.results()[0].fields().is_none(), "{names:?} {row:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bodies_are_read_without_panic(described: Vec<u8>, row: Vec<u8>) {
            let mut kept = Kept::default();
            kept.clear();
            kept.described(&described);
            kept.row(&row);
            kept.complete();
            let fields = kept.results()[0].fields();
            prop_assert!(fields.is_none_or(|(columns, values)| columns.len() == values.len()));
        }
    }
}
