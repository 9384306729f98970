//! What is executed, and what is only explained: `--dry-run` and the replay ask here.

use crate::safety::Volatile;
use crate::shape::Shape;
use crate::work::{Job, TupleJob};
use deltabench_capture::{Kind, tokens};

/// What the user allows to be executed; everything is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consent {
    /// Reads.
    pub reads: bool,
    /// Reads that call volatile functions of the database, too; writes whatever triggers may do.
    pub functions: bool,
    /// Writes and locks, on copies of the tables.
    pub writes: bool,
}

/// What the servers say before anything is executed.
pub struct Facts<'a> {
    pub volatile: &'a Volatile,
    /// All plans of the tuple, on all servers.
    pub plans: Vec<&'a Shape>,
    /// Why no write is committed on copies.
    pub writes: Option<&'a str>,
}

impl Consent {
    /// Why a tuple is only explained, by its text alone: servers add what [`Consent::conditions`] says.
    pub fn objection_of_text(self, job: &Job<'_>, tuple: &TupleJob<'_>) -> Option<String> {
        let facts = Facts {
            volatile: &Volatile::default(),
            plans: Vec::new(),
            writes: None,
        };
        self.objection(job, tuple, &facts)
    }

    /// Why a tuple is only explained; absent if it may be executed.
    pub fn objection(
        self,
        job: &Job<'_>,
        tuple: &TupleJob<'_>,
        facts: &Facts<'_>,
    ) -> Option<String> {
        if !self.reads {
            return Some("nothing is executed".to_owned());
        }
        let kind = job.statement.kind;
        if kind != Kind::Read && !self.writes {
            return Some(format!("a {} is only explained", kind.word()));
        }
        if let Some(why) = facts.writes.filter(|_| kind != Kind::Read) {
            return Some(why.to_owned());
        }
        let tokens = tokens(tuple.sql).tokens;
        let of_text = match kind {
            Kind::Read => facts.volatile.objection(&tokens, self.functions),
            _ => facts.volatile.objection_to_write(&tokens, self.functions),
        };
        of_text.or_else(|| objection_of_plans(&facts.plans))
    }

    /// What has to hold besides for a read that is executed, which only the servers know.
    pub fn conditions(self) -> Vec<&'static str> {
        let mut conditions = vec![
            "every server explains it",
            "its plan reads no foreign table and no system catalog",
        ];
        if !self.functions {
            conditions.push("it calls no volatile function of the database");
        }
        conditions
    }
}

/// Why plans speak against executing a tuple.
fn objection_of_plans(plans: &[&Shape]) -> Option<String> {
    if plans.iter().any(|plan| plan.is_foreign()) {
        return Some("it reads a table of another server".to_owned());
    }
    let system = plans.iter().any(|plan| plan.reads_catalogs());
    system.then(|| "it reads system catalogs, and every server has its own".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Roots;
    use crate::work::Work;
    use deltabench_capture::Capture;
    use serde_json::json;
    use std::collections::BTreeSet;

    const ALL: Consent = Consent {
        reads: true,
        functions: true,
        writes: true,
    };

    fn objections(consent: Consent, text: &str, facts: &Facts<'_>) -> [Option<String>; 2] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("q.sql");
        std::fs::write(&path, text).unwrap();
        let capture = Capture::open(&path).unwrap();
        let work = Work::of(&capture);
        let (job, tuple) = (&work.jobs[0], &work.jobs[0].tuples[0]);
        [
            consent.objection_of_text(job, tuple),
            consent.objection(job, tuple, facts),
        ]
    }

    #[test]
    fn what_the_text_says_is_known_before_a_server_is_asked() {
        let careful = Consent {
            functions: false,
            ..ALL
        };
        let reading = Consent {
            writes: false,
            ..ALL
        };
        let none = Consent {
            reads: false,
            ..ALL
        };
        let volatile = Volatile {
            functions: BTreeSet::from(["visit".to_owned()]),
            views: BTreeSet::new(),
            ..Volatile::default()
        };
        let plans = Vec::new;
        let facts = || Facts {
            volatile: &volatile,
            plans: plans(),
            writes: None,
        };
        for (consent, text, by_text, by_servers) in [
            (ALL, "select 1;", false, false),
            (none, "select 1;", true, true),
            (ALL, "update t set a = 1;", false, false),
            (reading, "update t set a = 1;", true, true),
            (reading, "select a from t for update;", true, true),
            (reading, "select 1;", false, false),
            (careful, "insert into t values (visit());", false, true),
            (
                ALL,
                "insert into t values (pg_terminate_backend(1));",
                true,
                true,
            ),
            (ALL, "select pg_sleep(1);", true, true),
            (careful, "select visit();", false, true),
            (ALL, "select visit();", false, false),
        ] {
            let found = objections(consent, text, &facts()).map(|found| found.is_some());
            assert_eq!(found, [by_text, by_servers], "{text}");
        }
        assert!(careful.conditions().len() > ALL.conditions().len());
        // What keeps all writes from copies keeps no read from its tables.
        let too_large = Facts {
            writes: Some("the database is too large"),
            ..facts()
        };
        let found = |text: &str| objections(ALL, text, &too_large)[1].clone();
        assert_eq!(
            found("delete from t;").unwrap(),
            "the database is too large"
        );
        assert_eq!(found("select 1;"), None);
    }

    #[test]
    fn a_plan_of_any_server_may_speak_against_it() {
        let plan = |kind: &str, schema: &str| {
            let plan =
                json!([{"Plan": {"Node Type": kind, "Relation Name": "pg_x", "Schema": schema}}]);
            Shape::read(&plan.to_string(), &Roots::default()).unwrap()
        };
        let fine = plan("Seq Scan", "shop");
        for (kind, schema, objects) in [
            ("Seq Scan", "shop", false),
            ("Foreign Scan", "shop", true),
            ("Seq Scan", "pg_catalog", true),
        ] {
            let other = plan(kind, schema);
            let facts = Facts {
                volatile: &Volatile::default(),
                plans: vec![&fine, &other],
                writes: None,
            };
            let [_, found] = objections(ALL, "select * from pg_x;", &facts);
            assert_eq!(found.is_some(), objects, "{kind} {schema}");
        }
    }
}
