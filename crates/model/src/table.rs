//! A table as plain data: what it says, and not how a terminal, a page or a file shows it.

/// Named rows under heads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// What it shows; empty where the words before it say so.
    pub title: String,
    /// How it is read, with the sign that parts it from the title.
    pub reading: String,
    /// Head of the rows' names.
    pub corner: String,
    /// The columns after the names.
    pub columns: Vec<Column>,
    /// Rows and the headings between them.
    pub lines: Vec<Line>,
    /// What a row is, where rows are counted: `server`.
    pub row_noun: &'static str,
    /// What who hears a page is told; empty for a table that needs no room of its own.
    pub label: String,
    /// How it looks where there is a choice.
    pub look: Look,
}

/// How a table looks where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// Whether it is closed at first.
    pub folded: bool,
    /// Whether heads stay on one line and columns that do not fit follow at once, as in published reports.
    pub compact: bool,
    pub class: &'static str,
    /// Whether names are numbers.
    pub numbered: bool,
}

/// A column of figures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Column {
    pub head: String,
    /// The unit below the head; empty for none.
    pub unit: String,
    /// What it means, for who asks; empty for what needs no word.
    pub about: String,
    /// On which side its texts stand.
    pub align: Align,
}

/// On which side the texts of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Align {
    #[default]
    Right,
    /// Words, and numbers with words.
    Left,
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// What the rows below have in common.
    Heading(String),
    Row(Row),
}

/// A name with its figures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Whose figures these are.
    pub name: String,
    /// A cell for each column.
    pub cells: Vec<Cell>,
    /// Whether it sums up the rows above.
    pub is_mean: bool,
}

/// What stands at one place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Its text, in parts.
    pub spans: Vec<Span>,
    /// What its colour says.
    pub tone: Option<Tone>,
    /// More, for who asks.
    pub tip: String,
    /// A bar instead of text, where one can be drawn.
    pub bar: Option<Bar>,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    pub text: String,
    /// What its colour says.
    pub tone: Option<Tone>,
    pub form: SpanForm,
}

/// How a part of a text is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpanForm {
    /// As the rest.
    #[default]
    Plain,
    /// As it is: no writer escapes its brackets or sets its signs.
    AsIs,
    /// With weight, after a sign that is seen and not read out.
    Strong {
        /// The sign; empty for none.
        sign: &'static str,
    },
    Small,
    /// Read out, and not seen: what a colour or sign says.
    Spoken,
}

/// What a colour says. No colour says anything alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Verdict: slower.
    Worse,
    /// Verdict: faster.
    Better,
    /// Verdict: no change.
    Same,
    /// Verdict: inconclusive.
    Open,
    /// Verdict: unfit.
    Void,
    /// Published band: bad.
    Red,
    /// Published band: good.
    Green,
    /// Published band: neither, or not ranked.
    Grey,
    /// Of less weight.
    Muted,
}

/// A value with its interval, as shares of the longest bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The value; nothing is drawn without one.
    pub value: Option<f64>,
    /// The ends of its interval.
    pub ends: Option<(f64, f64)>,
    /// The same in words.
    pub words: String,
}

impl Column {
    /// A column of numbers under a head.
    pub fn of(head: impl Into<String>) -> Self {
        Self {
            head: head.into(),
            ..Self::default()
        }
    }

    /// A column of words under a head.
    pub fn of_words(head: impl Into<String>) -> Self {
        Self {
            align: Align::Left,
            ..Self::of(head)
        }
    }
}

impl Line {
    /// A row of figures.
    pub fn row(name: impl Into<String>, cells: Vec<Cell>) -> Self {
        Self::Row(Row {
            name: name.into(),
            cells,
            is_mean: false,
        })
    }
}

impl Table {
    /// The rows, without the headings.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.lines.iter().filter_map(|line| match line {
            Line::Row(row) => Some(row),
            Line::Heading(_) => None,
        })
    }
}

impl Cell {
    /// A text that is written as it is: numbers with their intervals, values of settings.
    pub fn as_is(text: impl Into<String>) -> Self {
        Self {
            spans: vec![Span::set(text, SpanForm::AsIs, None)],
            ..Self::default()
        }
    }

    /// In a colour.
    #[must_use]
    pub fn toned(self, tone: Option<Tone>) -> Self {
        Self { tone, ..self }
    }

    /// With more for who asks.
    #[must_use]
    pub fn tipped(self, tip: String) -> Self {
        Self { tip, ..self }
    }

    /// What is seen of it, without form.
    pub fn text(&self) -> String {
        self.spans
            .iter()
            .filter(|span| span.form != SpanForm::Spoken)
            .map(Span::seen)
            .collect()
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            spans: vec![text.into().into()],
            ..Self::default()
        }
    }
}

impl Span {
    /// In a form, with a colour where it has one.
    pub fn set(text: impl Into<String>, form: SpanForm, tone: Option<Tone>) -> Self {
        Self {
            text: text.into(),
            tone,
            form,
        }
    }

    /// Sign and words.
    pub fn seen(&self) -> String {
        match self.form {
            SpanForm::Strong { sign } if !sign.is_empty() => format!("{sign} {}", self.text),
            _ => self.text.clone(),
        }
    }
}

impl<T: Into<String>> From<T> for Span {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}
