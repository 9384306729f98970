//! Text that Markdown shows as it is.

/// How text is set as it is: fenced, or, where it could end the fence or look like HTML, escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    Fenced,
    Escaped,
}

impl Fence {
    pub(crate) fn around(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let plain = |text: &str| !text.contains('<') && !text.contains("```");
        if texts.into_iter().all(|text| plain(text.as_ref())) {
            Self::Fenced
        } else {
            Self::Escaped
        }
    }

    pub(crate) fn begin(self, language: &str) -> String {
        match self {
            Self::Fenced => format!("```{language}"),
            Self::Escaped => "<pre>".to_owned(),
        }
    }

    pub(crate) fn text(self, text: &str) -> String {
        match self {
            Self::Fenced => text.to_owned(),
            Self::Escaped => text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;"),
        }
    }

    pub(crate) fn end(self) -> &'static str {
        match self {
            Self::Fenced => "```",
            Self::Escaped => "</pre>",
        }
    }
}

/// Text as it is, with an empty line after it.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let fence = Fence::around([text]);
    format!(
        "{}\n{}\n{}\n",
        fence.begin(language),
        fence.text(text),
        fence.end()
    )
}

/// Text that Markdown shows as it is.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
