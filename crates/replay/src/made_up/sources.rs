//! Which column, in which form, or which default stands for each parameter.

use super::conditions::Compared;
use super::values::{Form, Source};
use std::collections::BTreeMap;

/// A type, as far as values are made up for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// As SQL writes it.
    pub name: String,
    /// PostgreSQL's category: `N` for numbers, `S` for strings, `D` for times.
    pub category: String,
    /// The same of its elements, if it is an array.
    pub element: Option<(String, String)>,
}

/// Categories whose types take each other's values.
const FAMILIES: [&str; 3] = ["N", "S", "D"];

impl Kind {
    /// Of a row with name, category and those of the elements.
    pub fn read(row: Vec<Option<String>>) -> Option<Self> {
        let [name, category, element, of_element] = <[Option<String>; 4]>::try_from(row).ok()?;
        Some(Self {
            name: name?,
            category: category?,
            element: element.zip(of_element),
        })
    }

    fn takes(&self, other: &Self) -> bool {
        alike((&self.name, &self.category), (&other.name, &other.category))
    }

    /// Whether it is an array of such values.
    fn lists(&self, other: &Self) -> bool {
        let element = self.element.as_ref();
        element
            .is_some_and(|(name, category)| alike((name, category), (&other.name, &other.category)))
    }
}

fn alike(one: (&str, &str), other: (&str, &str)) -> bool {
    one.0 == other.0 || one.1 == other.1 && FAMILIES.contains(&one.1)
}

/// What a parameter is compared with, and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub compared: Compared,
    pub kind: Kind,
}

impl Place {
    /// The expression whose values a parameter of this type takes, with its type, and the form that they get.
    fn read_as(&self, parameter: &Kind) -> Option<(String, String, Form)> {
        let expression = &self.compared.expression;
        if parameter.takes(&self.kind) {
            let form = match self.compared.operator.as_str() {
                "~~" | "~~*" => Form::Pattern,
                _ => Form::Same,
            };
            return Some((expression.clone(), parameter.name.clone(), form));
        }
        if let Some((element, _)) = parameter
            .element
            .as_ref()
            .filter(|_| parameter.lists(&self.kind))
        {
            return Some((expression.clone(), element.clone(), Form::List));
        }
        self.kind.lists(parameter).then(|| {
            let first = format!("({expression})[pg_catalog.array_lower({expression}, 1)]");
            (first, parameter.name.clone(), Form::Same)
        })
    }
}

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub kind: Kind,
    /// Its value if it says how many rows are wanted.
    pub fixed: Option<&'static str>,
    /// Absent if it is compared with no column.
    pub place: Option<Place>,
}

/// Expressions with their types that are wanted of a table, by its name in the plan.
pub type Wanted = Vec<(String, Vec<(String, String)>)>;

/// What stands for each parameter, and what must be read for it.
///
/// Errors: why a parameter has no value.
pub fn sources(parameters: &[Parameter]) -> Result<(Vec<Source>, Wanted), String> {
    let mut wanted: Wanted = Vec::new();
    let mut sources = Vec::new();
    for parameter in parameters {
        let read = parameter
            .place
            .as_ref()
            .filter(|_| parameter.fixed.is_none());
        let read = read.and_then(|place| Some((place, place.read_as(&parameter.kind)?)));
        let Some((place, (expression, kind, form))) = read else {
            sources.push(Source::Default(default(parameter)?));
            continue;
        };
        let alias = &place.compared.alias;
        let table = wanted.iter().position(|(known, _)| known == alias);
        let table = table.unwrap_or_else(|| {
            wanted.push((alias.clone(), Vec::new()));
            wanted.len() - 1
        });
        let expressions = wanted.get_mut(table).map(|(_, all)| all);
        let expressions = expressions.ok_or("its plan cannot be read")?;
        let expression = (expression, kind);
        let value = expressions.iter().position(|known| *known == expression);
        let value = value.unwrap_or_else(|| {
            expressions.push(expression);
            expressions.len() - 1
        });
        sources.push(Source::Of { table, value, form });
    }
    pair(parameters, &mut sources);
    Ok((sources, wanted))
}

/// Two bounds of one column enclose some rows, and a column that is asked for twice gets two values.
fn pair(parameters: &[Parameter], sources: &mut [Source]) {
    let mut begun: BTreeMap<(usize, usize), (bool, bool)> = BTreeMap::new();
    let operator = |parameter: &Parameter| {
        let place = parameter.place.as_ref();
        place
            .map(|place| place.compared.operator.clone())
            .unwrap_or_default()
    };
    for (parameter, source) in parameters.iter().zip(&*sources) {
        if let Source::Of { table, value, .. } = source {
            let has = begun.entry((*table, *value)).or_default();
            has.0 |= operator(parameter).starts_with('>');
        }
    }
    for (parameter, source) in parameters.iter().zip(sources) {
        let Source::Of { table, value, form } = source else {
            continue;
        };
        let operator = operator(parameter);
        let has = begun.entry((*table, *value)).or_default();
        if *form == Form::Same && has.0 && matches!(operator.as_str(), "<" | "<=") {
            *form = Form::Later;
        }
        if *form == Form::Same && operator == "=" && std::mem::replace(&mut has.1, true) {
            *form = Form::Other;
        }
    }
}

/// What stands for a parameter that is compared with no column.
fn default(parameter: &Parameter) -> Result<String, String> {
    if let Some(fixed) = parameter.fixed {
        return Ok(fixed.to_owned());
    }
    let value = match parameter.kind.category.as_str() {
        "N" => "1",
        "B" => "true",
        "T" => "1 day",
        _ => {
            let name = &parameter.kind.name;
            return Err(format!(
                "a parameter of type {name} is compared with no column"
            ));
        }
    };
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, category: &str) -> Kind {
        Kind {
            name: name.to_owned(),
            category: category.to_owned(),
            element: None,
        }
    }

    fn array(name: &str, category: &str) -> Kind {
        Kind {
            element: Some((name.to_owned(), category.to_owned())),
            ..kind(&format!("{name}[]"), "A")
        }
    }

    fn parameter(of: Kind, column: Option<(&str, &str, Kind)>) -> Parameter {
        let place = column.map(|(expression, operator, kind)| Place {
            compared: Compared {
                alias: "o".to_owned(),
                expression: expression.to_owned(),
                operator: operator.to_owned(),
            },
            kind,
        });
        Parameter {
            kind: of,
            fixed: None,
            place,
        }
    }

    #[test]
    fn forms_follow_from_types_and_operators() {
        let (int, text) = (kind("integer", "N"), kind("text", "S"));
        let ints = array("integer", "N");
        let all = [
            parameter(int.clone(), Some(("o.id", ">=", kind("bigint", "N")))),
            parameter(int.clone(), Some(("o.id", "<=", kind("bigint", "N")))),
            parameter(text.clone(), Some(("o.name", "~~", kind("varchar", "S")))),
            parameter(ints, Some(("o.customer", "=", int.clone()))),
            parameter(text.clone(), Some(("o.tags", "@>", array("text", "S")))),
            parameter(int.clone(), Some(("o.status", "=", int.clone()))),
            parameter(int.clone(), Some(("o.status", "=", int.clone()))),
            parameter(
                kind("interval", "T"),
                Some(("o.at", ">", kind("timestamp", "D"))),
            ),
        ];
        let (found, wanted) = sources(&all).unwrap();
        let forms = found.iter().map(|source| match source {
            Source::Of { form, .. } => format!("{form:?}"),
            Source::Default(value) => value.clone(),
        });
        assert_eq!(
            forms.collect::<Vec<_>>(),
            [
                "Same", "Later", "Pattern", "List", "Same", "Same", "Other", "1 day"
            ]
        );
        assert_eq!(wanted.len(), 1);
        let first = "(o.tags)[pg_catalog.array_lower(o.tags, 1)]";
        let expressions: Vec<&str> = wanted[0].1.iter().map(|(it, _)| it.as_str()).collect();
        assert_eq!(
            expressions,
            ["o.id", "o.name", "o.customer", first, "o.status"]
        );
    }

    #[test]
    fn a_text_without_a_column_has_no_value() {
        let why = sources(&[parameter(kind("text", "S"), None)]).unwrap_err();
        assert!(
            why.contains("type text is compared with no column"),
            "{why}"
        );
        let mut limit = parameter(kind("bigint", "N"), None);
        limit.fixed = Some("10");
        let (found, _) = sources(&[limit]).unwrap();
        assert_eq!(found, [Source::Default("10".to_owned())]);
    }
}
