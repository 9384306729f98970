//! The JSON reports against `docs/reference/*.schema.json`: what JSON Schema 2020-12 says, as far as these
//! schemas use it; a keyword that is not known here is a failure.

use serde_json::Value;

/// What in a document is not as a schema says, each with its place.
pub fn breaches(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, document, "", &mut found);
    found
}

/// Asserts that what deltabench says of the host or of itself is as `checks.schema.json` says.
pub fn assert_check(document: &Value) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/checks.schema.json"
    );
    let root: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let format = document["format"].as_str().unwrap();
    let mut found = Vec::new();
    check(&root, &root["$defs"][format], document, "", &mut found);
    assert!(found.is_empty(), "{format}:\n{}", found.join("\n"));
}

fn check(root: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    let mut breach = |text: String| found.push(format!("{place}: {text}"));
    let mut inner: Vec<(&Value, &Value, String)> = Vec::new();
    for (keyword, wanted) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" | "items" | "additionalProperties" => {}
            "$ref" => {
                let pointer = wanted.as_str().unwrap().trim_start_matches('#');
                inner.push((root.pointer(pointer).unwrap(), value, place.to_owned()));
            }
            "type" if types(wanted).any(|wanted| has_type(value, wanted)) => {}
            "type" => breach(format!("{value} is no {wanted}")),
            "const" if value == wanted => {}
            "enum" if wanted.as_array().unwrap().contains(value) => {}
            "const" => breach(format!("{value} is not {wanted}")),
            // Nothing is said of what is no number.
            "minimum" if value.is_null() || value.as_f64() >= wanted.as_f64() => {}
            "exclusiveMinimum" if value.as_f64() > wanted.as_f64() => {}
            "exclusiveMaximum" if value.as_f64() < wanted.as_f64() => {}
            "minItems" if length(value) >= wanted.as_u64() => {}
            "maxItems" if length(value) <= wanted.as_u64() => {}
            "required" => {
                for name in wanted.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        breach(format!("{name} is missing"));
                    }
                }
            }
            "prefixItems" => {
                let values = value.as_array().into_iter().flatten();
                let pairs = wanted.as_array().unwrap().iter().zip(values);
                inner.extend(pairs.map(|(schema, value)| (schema, value, format!("{place}[]"))));
            }
            "properties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    let place = format!("{place}.{name}");
                    match (wanted.get(name), &schema["additionalProperties"]) {
                        (Some(schema), _) => inner.push((schema, value, place)),
                        (None, Value::Bool(false)) => breach(format!("{name} has no place here")),
                        _ => {}
                    }
                }
            }
            _ => breach(format!("{value} breaks {keyword} {wanted}")),
        }
    }
    if let (Some(schema), Some(values)) = (schema.get("items"), value.as_array()) {
        inner.extend(
            values
                .iter()
                .map(|value| (schema, value, format!("{place}[]"))),
        );
    }
    let others = schema
        .get("additionalProperties")
        .filter(|other| other.is_object());
    if let (Some(other), None, Some(values)) = (others, schema.get("properties"), value.as_object())
    {
        inner.extend(
            values
                .iter()
                .map(|(name, value)| (other, value, format!("{place}.{name}"))),
        );
    }
    for (schema, value, place) in inner {
        check(root, schema, value, &place, found);
    }
}

/// One type, or several of which one is enough.
fn types(wanted: &Value) -> impl Iterator<Item = &str> {
    let all = wanted
        .as_array()
        .map_or(std::slice::from_ref(wanted), Vec::as_slice);
    all.iter().map(|wanted| wanted.as_str().unwrap())
}

fn has_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("{other} is no type of these schemas"),
    }
}

fn length(value: &Value) -> Option<u64> {
    Some(u64::try_from(value.as_array()?.len()).unwrap())
}

#[test]
fn what_a_schema_does_not_say_is_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {
            "a": {"$ref": "#/$defs/N"},
            "b": {"type": "array", "items": {"type": "string"}},
            "c": {"type": ["integer", "null"], "minimum": 1},
        },
        "$defs": {"N": {"type": "integer", "minimum": 1}},
    });
    let wrong = |document: Value| breaches(&schema, &document).len();
    assert_eq!(wrong(serde_json::json!({"a": 1, "b": ["x"]})), 0);
    assert_eq!(wrong(serde_json::json!({"a": 0})), 1);
    assert_eq!(wrong(serde_json::json!({"a": 1, "c": null})), 0);
    assert_eq!(wrong(serde_json::json!({"a": 1, "c": 0})), 1);
    assert_eq!(wrong(serde_json::json!({"b": [1], "d": null})), 3);
}
