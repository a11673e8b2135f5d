//! The report as one JSON document.

use serde_json::{Map, Value, json};

use super::Report;
use crate::check::baseline::Change;
use crate::check::spec;
use crate::check::verdict::{Judged, Said, Verdict};

pub(super) fn report(report: &Report) -> String {
    let mut root = Map::new();
    root.insert("antiphon".into(), env!("CARGO_PKG_VERSION").into());
    for (name, value) in &report.facts {
        root.insert((*name).into(), value.clone().into());
    }
    root.insert("seconds".into(), ((report.seconds * 1000.0).round() / 1000.0).into());
    let counts: Map<String, Value> = Verdict::ALL
        .into_iter()
        .map(|verdict| (verdict.to_string().replace('-', "_"), report.count(verdict).into()))
        .collect();
    root.insert("counts".into(), counts.into());
    if let Some(changes) = &report.changes {
        root.insert("changes".into(), changes.iter().map(change).collect());
    }
    root.insert("cases".into(), report.judged.iter().map(case).collect());
    format!("{:#}", Value::from(root))
}

fn change(change: &Change) -> Value {
    json!({ "name": change.name, "was": change.was.to_string(), "is": change.now() })
}

fn case(judged: &Judged) -> Value {
    let mut case = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        value.and_then(|value| case.insert(name.into(), value));
    };
    add("group", Some(judged.group.clone().into()));
    add("name", Some(judged.name.clone().into()));
    add("title", Some(judged.title.clone().into()));
    add("level", Some(judged.level.to_string().into()));
    add("section", Some(judged.section.clone().into()));
    add("link", spec::link(&judged.section).map(Value::from));
    add("why", judged.why.clone().map(Value::from));
    add("verdict", Some(judged.verdict.to_string().into()));
    add("reason", judged.reason.clone().map(Value::from));
    add("fault", judged.fault.map(|fault| fault.to_string().into()));
    let dialogue = judged.dialogue.iter().map(|said| match said {
        Said::Sent(text) => json!({ "sent": text }),
        Said::Came(text) => json!({ "came": text }),
    });
    add("dialogue", (!judged.dialogue.is_empty()).then(|| dialogue.collect()));
    case.into()
}
