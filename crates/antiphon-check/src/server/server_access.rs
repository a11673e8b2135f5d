//! Opens connections to the server, and makes calls of its own.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use super::connection::{ConnectionEnd, HttpResponse, ServerConnection, ServerEvent};
use super::mcp::McpClient;
use super::methods::ServerMethods;
use super::timing::Timing;
use crate::raw::{AddressProtocol, ResolvedTarget, TargetLocation};
use crate::result::shortened;
use crate::transcript::Profile;
use crate::transcript::json::Json;

/// The prefix of the checker's own ids. No case uses it.
const OURS: &str = "antiphon";

/// Opens connections to the server under test.
pub(crate) struct ServerAccess {
    pub(crate) target: ResolvedTarget,
    pub(crate) profile: Profile,
    pub(crate) timing: Timing,
    /// The client of an MCP server.
    pub(crate) mcp: Option<McpClient>,
    /// The number of the next id.
    next: AtomicU64,
}

impl ServerAccess {
    pub(crate) fn new(target: ResolvedTarget, profile: Profile, timing: Timing) -> Self {
        Self { target, profile, timing, mcp: None, next: AtomicU64::new(1) }
    }

    /// Connects, and performs the handshake of the dialect.
    pub(crate) async fn dial(&self) -> Result<ServerConnection, String> {
        let mut connection = self.connect(false).await?;
        if self.profile == Profile::Lsp {
            self.initialize(&mut connection).await?;
        }
        if let Some(mcp) = &self.mcp {
            self.begin_mcp(&mut connection, mcp.has_handshake()).await?;
        }
        Ok(connection)
    }

    /// Connects, and sends nothing.
    pub(crate) async fn connect(&self, bare: bool) -> Result<ServerConnection, String> {
        self.open(bare).await.map_err(|error| error.to_string())
    }

    /// Checks that the server accepts connections, TLS included.
    pub(crate) async fn reach(&self) -> io::Result<()> {
        self.open(true).await.map(drop)
    }

    async fn open(&self, bare: bool) -> io::Result<ServerConnection> {
        let reply_timeout = self.timing.full_timeout();
        let late = |_| io::Error::other(format!("no connection within {reply_timeout:?}"));
        let connected = timeout(reply_timeout, ServerConnection::connect(&self.target, bare));
        let mut connection = connected.await.map_err(late)??;
        if let Some(mcp) = &self.mcp {
            connection.set_mcp(mcp.connection());
        }
        Ok(connection)
    }

    async fn initialize(&self, connection: &mut ServerConnection) -> Result<(), String> {
        const PARAMS: &str = r#"{"processId":null,"rootUri":null,"capabilities":{}}"#;
        let request = self.request(&quoted("initialize"), PARAMS);
        let reply_timeout = match self.target.location {
            TargetLocation::Child(_) => self.timing.start_timeout(),
            _ => self.timing.full_timeout(),
        };
        self.reply_within(connection, request, reply_timeout).await?;
        let initialized = br#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
        let _ = timeout(self.timing.reply_timeout(), connection.send(initialized)).await;
        Ok(())
    }

    /// Returns a new id of the checker.
    fn id(&self) -> String {
        format!("\"{OURS}{}\"", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls a method and returns the reply. Skips every other message.
    pub(crate) async fn call(
        &self,
        connection: &mut ServerConnection,
        method: &str,
        params: &str,
    ) -> Result<Json, String> {
        self.reply(connection, self.request(&quoted(method), params)).await
    }

    /// Like [`Self::call`], without params.
    pub(crate) async fn call_without_params(
        &self,
        connection: &mut ServerConnection,
        method: &str,
    ) -> Result<Json, String> {
        let id = self.id();
        let call = format!(r#"{{"jsonrpc":"2.0","method":{},"id":{id}}}"#, quoted(method));
        self.reply(connection, (call, id)).await
    }

    async fn reply(
        &self,
        connection: &mut ServerConnection,
        request: (String, String),
    ) -> Result<Json, String> {
        self.reply_within(connection, request, self.timing.full_timeout()).await
    }

    pub(super) async fn reply_within(
        &self,
        connection: &mut ServerConnection,
        (call, id): (String, String),
        reply_timeout: Duration,
    ) -> Result<Json, String> {
        let reply = async {
            if self.is_http() {
                let reply = self.post(connection, call.as_bytes()).await.map_err(|end| end.what)?;
                return reply_in(connection, &reply, &id).await;
            }
            connection.send(call.as_bytes()).await;
            loop {
                let message = match connection.next().await {
                    ServerEvent::Message(message) => message,
                    ServerEvent::Control(8, _) => {
                        return Err("the server sent a close frame".to_owned());
                    }
                    ServerEvent::Control(..)
                    | ServerEvent::Response(_)
                    | ServerEvent::StreamEnd => continue,
                    ServerEvent::End(end) => return Err(end.what),
                };
                if let Some(reply) = answer_to(&message, &id) {
                    return Ok(reply);
                }
                self.refuse(connection, &message).await;
            }
        };
        timeout(reply_timeout, reply)
            .await
            .unwrap_or_else(|_| Err(format!("no reply within {reply_timeout:?}")))
    }

    /// Replies to a Request of the server with "Method not found", because the server may wait for it.
    pub(crate) async fn refuse(&self, connection: &mut ServerConnection, message: &[u8]) {
        let Some(json) = std::str::from_utf8(message).ok().and_then(|text| Json::parse(text).ok())
        else {
            return;
        };
        // An echo of the checker's own call is not a Request.
        let id = json.member("id").filter(|id| !has_our_prefix(id));
        if let (Some(_), Some(id)) = (json.member("method"), id) {
            let is_ping = self.mcp.is_some()
                && json.member("method").is_some_and(|method| method.is_text("ping"));
            let answer = match is_ping {
                true => r#""result":{}"#,
                false => r#""error":{"code":-32601,"message":"Method not found"}"#,
            };
            let reply = format!(r#"{{"jsonrpc":"2.0",{answer},"id":{}}}"#, id.text());
            let _ = timeout(self.timing.reply_timeout(), connection.send(reply.as_bytes())).await;
        }
    }

    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.target.address.protocol, AddressProtocol::Stream(_))
    }

    pub(crate) fn is_http(&self) -> bool {
        matches!(self.target.address.protocol, AddressProtocol::Http { .. })
    }

    /// Sends a message by POST. If the server closed the connection between two requests, it sends it
    /// again on a new one.
    pub(crate) async fn post(
        &self,
        connection: &mut ServerConnection,
        message: &[u8],
    ) -> Result<HttpResponse, ConnectionEnd> {
        let mut is_fresh = connection.is_over();
        if is_fresh {
            self.reconnect(connection).await?;
        }
        loop {
            connection.send(message).await;
            match final_answer(connection).await {
                Err(end) if !is_fresh && !end.is_violation => {
                    self.reconnect(connection).await?;
                    is_fresh = true;
                }
                reply => return reply,
            }
        }
    }

    /// Returns the response to a request that is not a POST of a message.
    pub(super) async fn next_response(
        &self,
        connection: &mut ServerConnection,
    ) -> Result<Result<HttpResponse, ConnectionEnd>, tokio::time::error::Elapsed> {
        timeout(self.timing.full_timeout(), final_answer(connection)).await
    }

    /// Replaces the connection by a new one in the same session.
    async fn reconnect(&self, connection: &mut ServerConnection) -> Result<(), ConnectionEnd> {
        let mut new = self.connect(false).await.map_err(ConnectionEnd::closed)?;
        new.continue_session_of(connection);
        *connection = new;
        Ok(())
    }

    /// Returns a call with a new id, and the id.
    pub(super) fn request(&self, method: &str, params: &str) -> (String, String) {
        let id = self.id();
        let call = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params},"id":{id}}}"#);
        (call, id)
    }

    /// Returns the probe, an ordinary call, and its id.
    pub(crate) fn probe(&self, methods: &ServerMethods) -> (String, String) {
        self.request(&quoted(&methods.method), &methods.params)
    }

    /// Checks that the server replies to an ordinary call on a new connection.
    pub(crate) async fn is_alive(&self, methods: &ServerMethods) -> Result<(), String> {
        let mut connection = self.dial().await?;
        let reply = self.call(&mut connection, &methods.method, &methods.params).await?;
        methods.check_probe(&reply)
    }
}

/// Returns the next final HTTP response.
async fn final_answer(connection: &mut ServerConnection) -> Result<HttpResponse, ConnectionEnd> {
    loop {
        match connection.next().await {
            ServerEvent::Response(reply) if reply.status < 200 && reply.status != 101 => {}
            ServerEvent::Response(reply) => return Ok(reply),
            ServerEvent::End(end) => return Err(end),
            ServerEvent::Message(_) | ServerEvent::Control(..) | ServerEvent::StreamEnd => {}
        }
    }
}

/// Returns the Response with this id from an HTTP response or its event stream.
async fn reply_in(
    connection: &mut ServerConnection,
    response: &HttpResponse,
    id: &str,
) -> Result<Json, String> {
    if !response.is_stream {
        let told = || format!("HTTP status {} {}", response.status, shortened(&response.body));
        return answer_to(&response.body, id).ok_or_else(told);
    }
    loop {
        match connection.next().await {
            ServerEvent::Message(message) => {
                if let Some(reply) = answer_to(&message, id) {
                    return Ok(reply);
                }
            }
            ServerEvent::End(end) => return Err(end.what),
            _ => return Err("the event stream ended without a response".to_owned()),
        }
    }
}

/// Returns the message, if it is the Response with this id.
pub(crate) fn answer_to(message: &[u8], id: &str) -> Option<Json> {
    let json = Json::parse(std::str::from_utf8(message).ok()?).ok()?;
    let is_ours = json.member("id").is_some_and(|found| found.text() == id);
    (is_ours && json.member("method").is_none()).then_some(json)
}

/// Reports whether it is a reply to one of the checker's own calls.
pub(crate) fn is_ours(message: &[u8]) -> bool {
    let Some(json) = std::str::from_utf8(message).ok().and_then(|text| Json::parse(text).ok())
    else {
        return false;
    };
    json.member("id").is_some_and(has_our_prefix) && json.member("method").is_none()
}

fn has_our_prefix(id: &Json) -> bool {
    id.text().strip_prefix('"').is_some_and(|text| text.starts_with(OURS))
}

/// Returns a name as a JSON String.
pub(crate) fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}
