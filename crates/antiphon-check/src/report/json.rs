//! The report as one JSON document.

use serde_json::{Map, Value, json};

use super::CheckReport;
use crate::baseline::BaselineChange;
use crate::result::{CaseResult, CaseStatus, DialogueLine};
use crate::spec_links;

pub(super) fn report(report: &CheckReport) -> String {
    let mut root = Map::new();
    root.insert("antiphon".into(), env!("CARGO_PKG_VERSION").into());
    for (name, value) in &report.facts {
        root.insert((*name).into(), value.clone().into());
    }
    root.insert("seconds".into(), ((report.seconds * 1000.0).round() / 1000.0).into());
    let counts: Map<String, Value> = CaseStatus::ALL
        .into_iter()
        .map(|status| (status.to_string().replace('-', "_"), report.count(status).into()))
        .collect();
    root.insert("counts".into(), counts.into());
    if let Some(changes) = &report.changes {
        root.insert("changes".into(), changes.iter().map(change).collect());
    }
    root.insert("cases".into(), report.results.iter().map(case).collect());
    format!("{:#}", Value::from(root))
}

fn change(change: &BaselineChange) -> Value {
    json!({ "name": change.name, "was": change.was.to_string(), "is": change.now() })
}

fn case(case: &CaseResult) -> Value {
    let mut members = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        value.and_then(|value| members.insert(name.into(), value));
    };
    add("group", Some(case.group.clone().into()));
    add("name", Some(case.name.clone().into()));
    add("title", Some(case.title.clone().into()));
    add("level", Some(case.level.to_string().into()));
    add("section", Some(case.section.clone().into()));
    add("link", spec_links::link(&case.section).map(Value::from));
    add("why", case.why.clone().map(Value::from));
    add("verdict", Some(case.status.to_string().into()));
    add("reason", case.reason.clone().map(Value::from));
    add("fault", case.fault.map(|fault| fault.to_string().into()));
    let dialogue = case.dialogue.iter().map(|line| match line {
        DialogueLine::Sent(text) => json!({ "sent": text }),
        DialogueLine::Received(text) => json!({ "came": text }),
    });
    add("dialogue", (!case.dialogue.is_empty()).then(|| dialogue.collect()));
    members.into()
}
