//! Connects in the revision of a scenario, with every capability.

use std::sync::{Arc, OnceLock};

use antiphon::ErrorObject;
use antiphon_mcp::client::{McpClient, ServerEra};
use antiphon_mcp::types::{CreateMessageResult, Root};
use serde_json::json;

use super::scenario::Scenario;
use super::{Failure, answers, oauth};

/// Connects to the server of a scenario.
pub(crate) async fn connect(scenario: &Scenario) -> Result<McpClient, Failure> {
    let connected: Arc<OnceLock<McpClient>> = Arc::default();
    let (interlude, own) = (scenario.interlude(), connected.clone());
    let mut builder = McpClient::builder()
        .validate(scenario.has_valid_arguments())
        .roots(vec![Root::new("file:///conformance")])
        .on_sample(|_| async { Ok(CreateMessageResult::new("none", "I have no model.")) })
        .on_elicit(move |question| {
            let interlude = interlude.zip(own.get().cloned());
            async move {
                if let Some((tool, client)) = interlude {
                    let called = client.call_tool(tool, json!({})).await;
                    called.map_err(ErrorObject::internal)?;
                }
                Ok(answers::to_question(&question))
            }
        });
    // The probe finds modern servers. The mocks of legacy servers have no answer to it.
    if !scenario.revision.is_modern() {
        builder = builder.assume(ServerEra::new(scenario.revision));
    }
    if scenario.name.starts_with("auth/") {
        builder = builder.credentials(oauth::client(scenario)?);
    }
    let client = builder.connect(&*scenario.url).await?;
    Ok(connected.get_or_init(|| client).clone())
}
