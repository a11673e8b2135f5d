//! A contract of this process as tools, without a socket.

use std::sync::{Arc, OnceLock};

use antiphon::openrpc::Info;
use antiphon::{
    BatchEntry, BoxFuture, CallError, Caller, Cancellation, Client, Dialect, Follower, Invocation,
    ProgressStyle, RawJson, Router, Watch,
};

use super::{FromOpenRpcError, ToolsFromOpenRpc};
use crate::ServerBuilder;

impl ToolsFromOpenRpc {
    /// Starts with all described methods of a router of this process. A contract describes its methods; closures are
    /// described with [`Router::describe`]. Their progress reaches the client, and its cancellation reaches them.
    ///
    /// ```
    /// use antiphon_mcp::McpServer;
    /// use antiphon_mcp::from_openrpc::ToolsFromOpenRpc;
    ///
    /// # fn example(router: antiphon::Router) -> Result<McpServer, Box<dyn std::error::Error>> {
    /// let tools = ToolsFromOpenRpc::of_router(router).read_only(["get*"]).deny(["admin.*"]);
    /// Ok(McpServer::builder("shop", "1.0.0").tools_from(tools)?.build())
    /// # }
    /// ```
    pub fn of_router(router: Router) -> Self {
        let document = router.openrpc(Info::new("contract", "1"));
        let caller: Arc<dyn Caller> = Arc::new(InProcess { router, client: OnceLock::new() });
        Self::new(document, Client::from(caller))
    }
}

impl ServerBuilder {
    /// Adds the methods of a contract, or of any router that describes its methods, as tools. They are called in this
    /// process.
    ///
    /// ```
    /// use antiphon::CallError;
    /// use antiphon_mcp::McpServer;
    ///
    /// #[antiphon::rpc]
    /// pub trait Math {
    ///     /// Subtracts one number from another.
    ///     async fn subtract(&self, minuend: i64, subtrahend: i64) -> Result<i64, CallError>;
    /// }
    ///
    /// struct Calculator;
    ///
    /// impl Math for Calculator {
    ///     async fn subtract(&self, minuend: i64, subtrahend: i64) -> Result<i64, CallError> {
    ///         Ok(minuend - subtrahend)
    ///     }
    /// }
    ///
    /// let server = McpServer::builder("calc", "1.0.0").contract(Calculator.into_router()).build();
    /// # drop(server);
    /// ```
    ///
    /// # Panics
    /// Panics if the router describes no method, or if the schema of one is not valid.
    /// [`tools_from`](Self::tools_from) returns an error instead.
    pub fn contract(self, router: Router) -> Self {
        self.tools_from(ToolsFromOpenRpc::of_router(router))
            .expect("the router describes its methods; otherwise use `tools_from`")
    }

    /// Adds the tools and resources of a JSON-RPC service.
    ///
    /// # Errors
    /// See [`ToolsFromOpenRpc::build_into`].
    pub fn tools_from(self, tools: ToolsFromOpenRpc) -> Result<Self, FromOpenRpcError> {
        tools.build_into(self)
    }
}

/// Calls a router of this process. The connection in memory needs a runtime, so the first call opens it.
struct InProcess {
    router: Router,
    client: OnceLock<Client>,
}

impl InProcess {
    fn caller(&self) -> &Arc<dyn Caller> {
        let open = || {
            let dialect = Dialect::plain()
                .cancellation(Cancellation::new("$/cancel", "id"))
                .progress(ProgressStyle::by_id("$/progress"));
            Client::builder().dialect(dialect).in_process(self.router.clone())
        };
        self.client.get_or_init(open).caller()
    }
}

impl Caller for InProcess {
    fn send(&self, call: Invocation) -> BoxFuture<'_, Result<RawJson, CallError>> {
        self.caller().send(call)
    }

    fn post(&self, notification: Invocation) -> BoxFuture<'_, Result<(), CallError>> {
        self.caller().post(notification)
    }

    fn send_watched(
        &self,
        call: Invocation,
        watch: Watch,
    ) -> BoxFuture<'_, Result<RawJson, CallError>> {
        self.caller().send_watched(call, watch)
    }

    fn subscribe(
        &self,
        call: Invocation,
        follower: Follower,
    ) -> BoxFuture<'_, Result<(), CallError>> {
        self.caller().subscribe(call, follower)
    }

    fn send_batch(
        &self,
        entries: Vec<BatchEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<RawJson, CallError>>, CallError>> {
        self.caller().send_batch(entries)
    }
}
