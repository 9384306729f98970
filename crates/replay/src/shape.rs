//! The shape of a plan: what it does, by a fixed list of fields, and nothing that only one version prints.
//!
//! Left out are costs, rows, widths, worker counts, numbers of subplans, aliases, and keys such as `Disabled`
//! (18) or `Async Capable` (14 and later). Partitions have the name of their root, and those that are read in
//! one way count once, because values choose partitions without choosing another plan.

use crate::clause::{condition, key};
use deltabench_model::replayed::PlanLine;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Conditions of a node.
const CONDITIONS: [&str; 9] = [
    "Index Cond",
    "Order By",
    "Hash Cond",
    "Merge Cond",
    "Join Filter",
    "Filter",
    "One-Time Filter",
    "TID Cond",
    "Run Condition",
];
/// Lists of keys of a node.
const KEYS: [&str; 5] = [
    "Sort Key",
    "Presorted Key",
    "Group Key",
    "Cache Key",
    "Conflict Arbiter Indexes",
];
/// Schemas of the server itself, whose rows every server has of its own.
const SYSTEM: [&str; 3] = ["pg_catalog", "information_schema", "pg_toast"];
/// Digits of a plan's name.
const ID_BYTES: usize = 8;

/// For partitions and their indexes: the names at the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roots {
    /// By the partition's own name.
    pub names: BTreeMap<String, String>,
}

impl Roots {
    fn of<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }
}

/// Whose rows a node reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// The database's, or those of the nodes below.
    Database,
    /// Another server's.
    Foreign,
    /// Those that every server has of its own.
    System,
}

/// A plan without values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    node: String,
    source: Source,
    details: Vec<String>,
    below: Vec<Shape>,
}

impl Shape {
    /// The shape of what `EXPLAIN (FORMAT JSON)` printed; absent if that is no plan.
    pub fn read(text: &str, roots: &Roots) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let plan = value.get(0)?.get("Plan")?;
        plan.is_object().then(|| Self::of(plan, roots))
    }

    /// Its name: equal for equal shapes.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        for line in self.lines() {
            hash.update(format!("{}\t{}\n", line.depth, line.node));
            for detail in &line.details {
                hash.update(format!("\t{detail}\n"));
            }
        }
        let hash = hash.finalize();
        hash.iter()
            .take(ID_BYTES)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Its nodes from the top, each with what is below it.
    pub fn lines(&self) -> Vec<PlanLine> {
        let mut lines = Vec::new();
        self.add_lines(0, &mut lines);
        lines
    }

    /// Whether it reads tables of another server.
    pub fn is_foreign(&self) -> bool {
        self.reads(Source::Foreign)
    }

    /// Whether it reads system catalogs or the state of the server.
    pub fn reads_catalogs(&self) -> bool {
        self.reads(Source::System)
    }

    fn reads(&self, source: Source) -> bool {
        self.source == source || self.below.iter().any(|below| below.reads(source))
    }

    /// Whether it has workers of its own.
    pub fn is_parallel(&self) -> bool {
        self.node.starts_with("Gather") || self.below.iter().any(Self::is_parallel)
    }

    fn add_lines(&self, depth: u32, lines: &mut Vec<PlanLine>) {
        lines.push(PlanLine {
            depth,
            node: self.node.clone(),
            details: self.details.clone(),
        });
        for below in &self.below {
            below.add_lines(depth + 1, lines);
        }
    }

    fn of(plan: &Value, roots: &Roots) -> Self {
        let below = plan.get("Plans").and_then(Value::as_array);
        let mut below: Vec<Self> = below
            .into_iter()
            .flatten()
            .map(|plan| Self::of(plan, roots))
            .collect();
        let kind = word(plan, "Node Type");
        if matches!(kind, "Append" | "Merge Append") {
            below.sort();
            below.dedup();
            // From 12 on the planner itself leaves it out where one partition is read.
            if let [_] = below.as_slice()
                && let Some(only) = below.pop()
            {
                return Self {
                    node: format!("{}{}", relationship(plan), only.node),
                    ..only
                };
            }
        }
        Self {
            node: format!("{}{}", relationship(plan), node(plan, kind, roots)),
            source: source(plan, kind),
            details: details(plan),
            below,
        }
    }
}

/// Whose rows a node reads, by its kind and by the schema that VERBOSE adds to tables and functions.
///
/// Source: `ExplainTargetRel` in PostgreSQL's explain.c.
fn source(plan: &Value, kind: &str) -> Source {
    let system = SYSTEM.contains(&word(plan, "Schema"));
    let table = !word(plan, "Relation Name").is_empty();
    // The views of the server's state call these: pg_stat_get_activity, pg_lock_status.
    let state = word(plan, "Function Name").starts_with("pg_");
    match kind {
        "Foreign Scan" => Source::Foreign,
        _ if system && (table || state) => Source::System,
        _ => Source::Database,
    }
}

fn word<'a>(plan: &'a Value, name: &str) -> &'a str {
    plan.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is(plan: &Value, name: &str) -> bool {
    plan.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// What a node is to the one above it, where it is no input.
fn relationship(plan: &Value) -> String {
    match (
        word(plan, "Parent Relationship"),
        word(plan, "Subplan Name"),
    ) {
        (_, name) if name.starts_with("CTE ") => format!("{name}: "),
        ("InitPlan", _) => "InitPlan: ".to_owned(),
        ("SubPlan", _) => "SubPlan: ".to_owned(),
        _ => String::new(),
    }
}

/// `Parallel Index Scan Backward using i on t`.
fn node(plan: &Value, kind: &str, roots: &Roots) -> String {
    let mut text = String::new();
    if let partial @ ("Partial" | "Finalize") = word(plan, "Partial Mode") {
        text.push_str(partial);
        text.push(' ');
    }
    if is(plan, "Parallel Aware") {
        text.push_str("Parallel ");
    }
    text.push_str(&named(plan, kind));
    if word(plan, "Scan Direction") == "Backward" {
        text.push_str(" Backward");
    }
    let index = word(plan, "Index Name");
    if !index.is_empty() {
        let preposition = if kind == "Bitmap Index Scan" {
            "on"
        } else {
            "using"
        };
        text.push_str(&format!(" {preposition} {}", roots.of(index)));
    }
    let on = [
        "Relation Name",
        "CTE Name",
        "Function Name",
        "Table Function Name",
        "Tuplestore Name",
    ];
    let on = on
        .iter()
        .map(|name| word(plan, name))
        .find(|name| !name.is_empty());
    if let Some(on) = on {
        // A table of the user may have the name of a catalog.
        let schema = match source(plan, kind) {
            Source::System => format!("{}.", word(plan, "Schema")),
            _ => String::new(),
        };
        text.push_str(&format!(" on {schema}{}", roots.of(on)));
    }
    text
}

/// The kind of a node in the words of EXPLAIN's text.
fn named(plan: &Value, kind: &str) -> String {
    match kind {
        "Aggregate" => match word(plan, "Strategy") {
            "Hashed" => "HashAggregate".to_owned(),
            "Sorted" => "GroupAggregate".to_owned(),
            "Mixed" => "MixedAggregate".to_owned(),
            _ => "Aggregate".to_owned(),
        },
        "SetOp" => match word(plan, "Strategy") {
            "Hashed" => format!("HashSetOp {}", word(plan, "Command")),
            _ => format!("SetOp {}", word(plan, "Command")),
        },
        "ModifyTable" => word(plan, "Operation").to_owned(),
        "Hash Join" | "Merge Join" | "Nested Loop" => match word(plan, "Join Type") {
            "Inner" | "" => kind.to_owned(),
            join => format!("{} {join} Join", kind.trim_end_matches(" Join")),
        },
        // Foreign Scan of a write, Custom Scan with its provider.
        kind => [kind, word(plan, "Custom Plan Provider")]
            .join(" ")
            .trim()
            .to_owned(),
    }
}

fn details(plan: &Value) -> Vec<String> {
    let mut details = Vec::new();
    for name in CONDITIONS {
        let condition = condition(word(plan, name));
        if !condition.is_empty() {
            details.push(format!("{name}: {condition}"));
        }
    }
    for name in KEYS {
        let keys = match plan.get(name) {
            Some(Value::Array(keys)) => keys.iter().filter_map(Value::as_str).map(key).collect(),
            Some(Value::String(text)) => vec![condition(text)],
            _ => Vec::new(),
        };
        if !keys.is_empty() {
            details.push(format!("{name}: {}", keys.join(", ")));
        }
    }
    let sets = plan.get("Grouping Sets").and_then(Value::as_array);
    if let Some(sets) = sets {
        details.push(format!("Grouping Sets: {}", sets.len()));
    }
    details
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(plan: &Value) -> Shape {
        Shape::read(&json!([{ "Plan": plan }]).to_string(), &Roots::default()).unwrap()
    }

    fn scan(table: &str, cond: &str) -> Value {
        json!({"Node Type": "Index Scan", "Parallel Aware": false, "Index Name": "i", "Relation Name": table,
               "Alias": "o_1", "Startup Cost": 0.1, "Plan Rows": 7, "Index Cond": cond,
               "Scan Direction": "Forward", "Output": ["o.a"]})
    }

    #[test]
    fn what_only_one_version_prints_is_no_difference() {
        let old = scan("orders", "(o.customer = 17)");
        let mut new = scan("orders", "(o.customer = '12'::integer)");
        new["Disabled"] = json!(false);
        new["Async Capable"] = json!(false);
        new["Plan Rows"] = json!(1e6);
        new["Alias"] = json!("orders");
        assert_eq!(read(&old).id(), read(&new).id());
        assert_eq!(read(&old).lines()[0].node, "Index Scan using i on orders");
        assert_eq!(read(&old).lines()[0].details, ["Index Cond: customer = ?"]);
    }

    #[test]
    fn what_a_plan_does_is_a_difference() {
        let base = scan("orders", "(o.customer = 17)");
        let changes = [
            ("Node Type", json!("Index Only Scan")),
            ("Index Name", json!("j")),
            ("Relation Name", json!("other")),
            ("Scan Direction", json!("Backward")),
            ("Parallel Aware", json!(true)),
            ("Index Cond", json!("(o.customer > 17)")),
            ("Filter", json!("(o.a = 1)")),
            ("Parent Relationship", json!("InitPlan")),
        ];
        for (name, value) in changes {
            let mut other = base.clone();
            other[name] = value;
            assert_ne!(read(&base).id(), read(&other).id(), "{name}");
        }
    }

    #[test]
    fn whose_rows_are_read_is_a_fact_of_the_plan_and_not_of_names() {
        let of = |plan: Value| {
            let shape = read(&json!({"Node Type": "Limit", "Plans": [plan]}));
            (shape.is_foreign(), shape.reads_catalogs())
        };
        let scan = |table: &str, schema: &str| {
            let mut scan = scan(table, "");
            scan["Schema"] = json!(schema);
            scan
        };
        assert_eq!(of(scan("pg_class", "pg_catalog")), (false, true));
        assert_eq!(
            of(scan("sql_features", "information_schema")),
            (false, true)
        );
        assert_eq!(of(scan("pg_orders", "shop")), (false, false));
        assert_eq!(of(scan("Foreign trade", "shop")), (false, false));
        let call = |name: &str, schema: &str| {
            let kind = "Function Scan";
            json!({"Node Type": kind, "Function Name": name, "Schema": schema})
        };
        assert_eq!(of(call("pg_lock_status", "pg_catalog")), (false, true));
        assert_eq!(of(call("generate_series", "pg_catalog")), (false, false));
        assert_eq!(of(call("pg_totals", "shop")), (false, false));
        let mut foreign = scan("orders", "shop");
        foreign["Node Type"] = json!("Foreign Scan");
        assert_eq!(of(foreign), (true, false));
        let (catalog, table) = (scan("pg_class", "pg_catalog"), scan("pg_class", "shop"));
        assert_ne!(read(&catalog).id(), read(&table).id());
    }

    #[test]
    fn partitions_that_are_read_alike_count_once_and_have_the_name_of_the_root() {
        let names = [("p1", "p"), ("p2", "p"), ("i1", "i"), ("i2", "i")];
        let names = names.map(|(part, root)| (part.to_owned(), root.to_owned()));
        let roots = Roots {
            names: names.into_iter().collect(),
        };
        let part = |number: u32| {
            let mut scan = scan(&format!("p{number}"), "(a = 1)");
            scan["Index Name"] = json!(format!("i{number}"));
            scan
        };
        let all = json!([{"Plan": {"Node Type": "Append", "Plans": [part(1), part(2)]}}]);
        let one = json!([{ "Plan": part(2) }]);
        let of = |value: Value| Shape::read(&value.to_string(), &roots).unwrap();
        assert_eq!(of(all).id(), of(one.clone()).id());
        assert_eq!(of(one).lines()[0].node, "Index Scan using i on p");
    }

    #[test]
    fn joins_aggregates_and_subplans_are_named_as_explain_names_them() {
        let plan = json!({"Node Type": "Aggregate", "Strategy": "Hashed", "Partial Mode": "Finalize",
        "Group Key": ["o.a", "(lower(o.b))"], "Plans": [
            {"Node Type": "Hash Join", "Join Type": "Left", "Hash Cond": "(o.a = p.a)", "Plans": []},
            {"Node Type": "Foreign Scan", "Parent Relationship": "SubPlan", "Subplan Name": "SubPlan 1"},
        ]});
        let shape = read(&plan);
        let lines: Vec<String> = shape.lines().into_iter().map(|line| line.node).collect();
        assert_eq!(
            lines,
            [
                "Finalize HashAggregate",
                "Hash Left Join",
                "SubPlan: Foreign Scan"
            ]
        );
        assert_eq!(shape.lines()[0].details, ["Group Key: a, lower(b)"]);
        assert!(Shape::read("no plan", &Roots::default()).is_none());
    }
}
