//! What a client's variables hold.

use super::value::{Fault, Value};

/// One variable of one client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variable {
    state: State,
    value: Value,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was never set.
    Unset,
    /// An expression's value.
    Computed,
    /// A text, which is read as a value when an expression wants one.
    Text,
    /// A text that was read as a value.
    Both,
}

impl Variable {
    pub(crate) const UNSET: Self = Self {
        state: State::Unset,
        value: Value::Null,
        text: Vec::new(),
    };

    /// A variable that was given as text.
    pub(crate) fn of_text(name: &str, text: &str) -> Self {
        let value = Value::of_text(name, text.as_bytes());
        Self {
            state: if value.is_ok() {
                State::Both
            } else {
                State::Text
            },
            value: value.unwrap_or(Value::Null),
            text: text.as_bytes().to_vec(),
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, value: Value) {
        self.state = State::Computed;
        self.value = value;
    }

    pub(crate) fn set_text(&mut self, text: &[u8]) {
        self.state = State::Text;
        self.text.clear();
        self.text.extend_from_slice(text);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.state != State::Unset
    }

    #[inline]
    pub(crate) fn value(&self, name: &str) -> Result<Value, Fault> {
        match self.state {
            State::Computed | State::Both => Ok(self.value),
            State::Text => Value::of_text(name, &self.text),
            State::Unset => Err(format!("undefined variable \"{name}\"")),
        }
    }

    /// Appends its text; false if it was never set.
    #[inline]
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> bool {
        match self.state {
            State::Unset => return false,
            State::Computed => self.value.write(out),
            State::Text | State::Both => out.extend_from_slice(&self.text),
        }
        true
    }

    /// Becomes like another one, in the memory that it has.
    #[inline]
    pub(crate) fn copy(&mut self, other: &Self) {
        self.state = other.state;
        self.value = other.value;
        if matches!(other.state, State::Text | State::Both) {
            self.text.clear();
            self.text.extend_from_slice(&other.text);
        }
    }
}
