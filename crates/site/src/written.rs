//! A page as text.

/// What a page is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Html,
    Json,
    Atom,
    Script,
}

impl Kind {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
            Self::Atom => "application/atom+xml; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
        }
    }
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub kind: Kind,
    pub text: String,
    /// Whether it says less than it would if no run were measured: it is to be asked for again later.
    pub waits: bool,
    /// Whether it only says that the page wanted is made after a run.
    pub later: bool,
}

impl Page {
    /// A page for people.
    pub(crate) fn html(text: String) -> Self {
        Self {
            kind: Kind::Html,
            text,
            waits: false,
            later: false,
        }
    }

    /// The script of pages.
    pub(crate) fn script(text: &str) -> Self {
        Self {
            kind: Kind::Script,
            ..Self::html(text.to_owned())
        }
    }

    /// The same, of which a part waits for the end of a run.
    pub(crate) fn that_waits(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// The same, as a stand-in for a page that is made after a run.
    pub(crate) fn for_later(self) -> Self {
        Self {
            waits: true,
            later: true,
            ..self
        }
    }
}
