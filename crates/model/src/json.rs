//! JSON as all files of deltabench have it: what is not known is left out.

use serde_json::Value;

/// An object without those of its own fields that are null.
pub fn known(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// A list that is left out where it has nothing.
pub fn unless_empty(list: impl Iterator<Item = Value>) -> Option<Value> {
    let list: Vec<Value> = list.collect();
    (!list.is_empty()).then_some(Value::Array(list))
}

/// A text that is left out where it is empty.
pub fn unless_blank(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
