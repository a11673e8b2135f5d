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

fn case(outcome: &CaseResult) -> Value {
    let mut case = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        value.and_then(|value| case.insert(name.into(), value));
    };
    add("group", Some(outcome.group.clone().into()));
    add("name", Some(outcome.name.clone().into()));
    add("title", Some(outcome.title.clone().into()));
    add("level", Some(outcome.level.to_string().into()));
    add("section", Some(outcome.section.clone().into()));
    add("link", spec_links::link(&outcome.section).map(Value::from));
    add("why", outcome.why.clone().map(Value::from));
    add("verdict", Some(outcome.status.to_string().into()));
    add("reason", outcome.reason.clone().map(Value::from));
    add("fault", outcome.fault.map(|fault| fault.to_string().into()));
    let dialogue = outcome.dialogue.iter().map(|said| match said {
        DialogueLine::Sent(text) => json!({ "sent": text }),
        DialogueLine::Received(text) => json!({ "came": text }),
    });
    add("dialogue", (!outcome.dialogue.is_empty()).then(|| dialogue.collect()));
    case.into()
}
