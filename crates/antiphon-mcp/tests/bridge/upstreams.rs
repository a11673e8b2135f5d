//! The servers behind the bridge: one of each era on each kind of transport.

use antiphon::Limits;
use antiphon_mcp::bridge::{Bridge, Upstream};
use antiphon_mcp::types::{
    CreateMessageParams, ElicitFormParams, ElicitUrlParams, ElicitationSchema, LoggingLevel,
    Revision, SamplingContent, SamplingMessage, StringSchema,
};
use antiphon_mcp::{McpServer, RequestContext, ServerBuilder, ServerTool, ToolError};
use serde_json::Value;

use crate::support::duplex::serve_tcp;
use crate::support::everything_server;
use crate::support::gate::Gate;
use crate::support::http::Http;

/// How an upstream is reached, and in which era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    LegacyTcp,
    ModernTcp,
    LegacyHttp,
    ModernHttp,
}

impl Way {
    pub(crate) const ALL: [Self; 4] =
        [Self::LegacyTcp, Self::ModernTcp, Self::LegacyHttp, Self::ModernHttp];

    fn revision(self) -> Revision {
        match self {
            Self::LegacyTcp | Self::LegacyHttp => Revision::V2025_11_25,
            Self::ModernTcp | Self::ModernHttp => Revision::V2026_07_28,
        }
    }

    /// Serves.
    pub(crate) async fn serve(self, builder: ServerBuilder) -> (McpServer, Upstream) {
        let server = builder.revisions([self.revision()]).build();
        let endpoint = match self {
            Self::LegacyTcp | Self::ModernTcp => {
                format!("tcp://127.0.0.1:{}", serve_tcp(&server, Limits::default()).await)
            }
            _ => format!("http://127.0.0.1:{}/mcp", Http::serve(&server).await.port),
        };
        (server, Upstream::new(endpoint))
    }
}

/// The example as a process.
pub(crate) fn process() -> Upstream {
    Upstream::new(format!("exec:{} stdio:", everything_server().display()))
}

pub(crate) async fn bridge(upstreams: impl IntoIterator<Item = Upstream>) -> McpServer {
    let bridge = upstreams.into_iter().fold(Bridge::new(), Bridge::upstream);
    crate::support::within(bridge.build()).await.unwrap()
}

pub(crate) fn builder() -> ServerBuilder {
    McpServer::builder("upstream", "7").instructions("Be kind.")
}

fn tool<F>(name: &str, run: fn(RequestContext) -> F) -> ServerTool
where
    F: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    ServerTool::new(name, move |(): (), cx: RequestContext| run(cx))
}

/// A server that signals and asks.
pub(crate) fn asker(gate: &Gate) -> ServerBuilder {
    builder()
        .tool(tool("count", |cx| async move {
            for step in 1..=3 {
                cx.progress(f64::from(step), Some(3.0), Some("step")).await;
                cx.log_of(Some("counter"), LoggingLevel::Info, step).await;
                cx.log(LoggingLevel::Debug, "details").await;
            }
            Ok("counted".to_owned())
        }))
        .tool(tool("form", |cx| async move {
            let form = ElicitationSchema::new().required("name", StringSchema::new());
            let answer = cx.elicit(ElicitFormParams::new("Name?", form)).await?;
            let content = answer.content.map(Value::Object).unwrap_or_default();
            Ok(format!("{:?} {content}", answer.action))
        }))
        .tool(tool("url", |cx| async move {
            let url = ElicitUrlParams::new("Pay?", "https://pay.example/7");
            Ok(format!("{:?}", cx.elicit_url(url).await?.action))
        }))
        .tool(tool("sample", |cx| async move {
            let message = SamplingMessage::user(SamplingContent::text("2+2?"));
            Ok(cx.sample(CreateMessageParams::new(vec![message], 10)).await?.model)
        }))
        .tool(tool("roots", |cx| async move {
            Ok(cx.roots().await?.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
        }))
        .tool(gate.tool("wait"))
}
