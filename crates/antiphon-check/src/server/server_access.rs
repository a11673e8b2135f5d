//! Opens connections to the server, makes calls of its own, and adapts its waiting times to the server.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::connection::{ConnectionEnd, HttpResponse, ServerConnection, ServerEvent};
use super::methods::ServerMethods;
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
    /// The timeout of one reply.
    timeout: Duration,
    /// The end of the whole run.
    pub(crate) deadline: Instant,
    /// The delay before an early probe. `None` for the user's own transcripts, whose methods may be
    /// slow.
    probe_delay: Option<Duration>,
    next: AtomicU64,
    /// The number of replies that did not arrive within the timeout.
    hangs: AtomicU64,
    /// The number of calls without a reply, though a later call got one.
    drops: AtomicU64,
    /// The duration of an ordinary call at the start.
    call: Duration,
    /// The duration of the slowest probe, in milliseconds.
    slowest: AtomicU64,
    /// The largest delay of a reply that a later call's reply overtook, in milliseconds.
    lateness: AtomicU64,
    /// The factor of the timeout; larger for attacks.
    factor: AtomicU32,
}

/// After this many hangs, the timeout becomes short.
const MANY: u64 = 3;
/// The shortest timeout of a server that hangs, unless its calls are slower.
const SHORT: Duration = Duration::from_millis(250);
const MANY_DROPS: u64 = 10;
/// This many silences are confirmed with the full timeout, so that a slow server is not blamed.
const SURE: u64 = 2;
/// The time for a new process to reply to its first call. Some language servers start slowly.
const START: Duration = Duration::from_secs(10);
/// The delay before an early probe to a fast server.
pub(crate) const PROBE_DELAY: Duration = Duration::from_millis(50);

impl ServerAccess {
    pub(crate) fn new(
        target: ResolvedTarget,
        profile: Profile,
        timeout: Duration,
        deadline: Instant,
        probe_delay: Option<Duration>,
    ) -> Self {
        let (next, factor) = (AtomicU64::new(1), AtomicU32::new(1));
        let [hangs, drops, lateness, slowest] = [0; 4].map(AtomicU64::new);
        let call = Duration::ZERO;
        Self {
            target,
            profile,
            timeout,
            deadline,
            probe_delay,
            next,
            hangs,
            drops,
            call,
            slowest,
            lateness,
            factor,
        }
    }

    /// Returns the timeout of a reply that a case expects.
    pub(crate) fn reply_timeout(&self) -> Duration {
        let is_attack = self.factor.load(Ordering::Relaxed) > 1;
        match self.hangs.load(Ordering::Relaxed) {
            hangs if !is_attack && (hangs >= MANY || hangs > 0 && self.drops_calls(hangs)) => {
                let slowest = Duration::from_millis(self.slowest.load(Ordering::Relaxed));
                self.full_timeout().min(SHORT.max(10 * self.call).max(2 * slowest))
            }
            _ => self.full_timeout(),
        }
    }

    /// Reports whether the server was silent often enough because it drops calls, and was never late.
    fn drops_calls(&self, hangs: u64) -> bool {
        let silences = hangs + self.drops.load(Ordering::Relaxed);
        silences >= SURE && self.lateness.load(Ordering::Relaxed) == 0
    }

    /// Returns the full timeout, for replies that decide whether the server is alive.
    pub(crate) fn full_timeout(&self) -> Duration {
        let timeout = self.timeout.saturating_mul(self.factor.load(Ordering::Relaxed));
        timeout.min(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns the timeout of the first reply on a connection, which may be a new process.
    fn start_timeout(&self) -> Duration {
        match self.target.location {
            TargetLocation::Child(_) => {
                let rest = self.deadline.saturating_duration_since(Instant::now());
                self.full_timeout().max(START).min(rest)
            }
            _ => self.full_timeout(),
        }
    }

    /// Sets whether the next case is an attack. The server may need longer to read it.
    pub(crate) fn attacks(&self, is_hostile: bool) {
        self.factor.store(if is_hostile { 5 } else { 1 }, Ordering::Relaxed);
    }

    /// Returns the delay before an early probe, and the delay after its reply. Both shrink for a server
    /// that drops calls, more so if it was never late.
    pub(crate) fn probe_delays(&self) -> Option<(Duration, Duration)> {
        let late = Duration::from_millis(self.lateness.load(Ordering::Relaxed));
        let probe_delay = self.probe_delay?.max(2 * late);
        match self.drops.load(Ordering::Relaxed) {
            ..SURE => Some((probe_delay, self.reply_timeout())),
            SURE..MANY_DROPS => Some((probe_delay, 2 * probe_delay)),
            _ if late.is_zero() => Some((probe_delay / 4, probe_delay / 4)),
            _ => Some((probe_delay / 2, probe_delay / 2)),
        }
    }

    /// Records a reply that was overtaken, and its delay.
    pub(crate) fn record_overtaken(&self, took: Duration) {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.lateness.fetch_max(took, Ordering::Relaxed);
    }

    /// Records a call without a reply, though a later call got one.
    pub(crate) fn record_drop(&self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a reply that did not arrive within the timeout.
    pub(crate) fn record_hang(&self) {
        self.hangs.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the duration of a probe. Under attack, a server may be slower.
    pub(crate) fn record_probe(&self, took: Duration) {
        if self.factor.load(Ordering::Relaxed) == 1 {
            let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            self.slowest.fetch_max(took, Ordering::Relaxed);
        }
    }

    /// Adapts the delays to the duration of an ordinary call.
    pub(crate) fn adapt_to(&mut self, call: Duration) {
        self.call = call;
        self.probe_delay = self.probe_delay.map(|probe_delay| probe_delay.max(5 * call));
    }

    /// Connects, and performs the handshake of the dialect.
    pub(crate) async fn dial(&self) -> Result<ServerConnection, String> {
        let mut connection = self.connect(false).await?;
        if self.profile == Profile::Lsp {
            self.initialize(&mut connection).await?;
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
        let reply_timeout = self.full_timeout();
        let late = |_| io::Error::other(format!("no connection within {reply_timeout:?}"));
        timeout(reply_timeout, ServerConnection::connect(&self.target, bare)).await.map_err(late)?
    }

    async fn initialize(&self, connection: &mut ServerConnection) -> Result<(), String> {
        const PARAMS: &str = r#"{"processId":null,"rootUri":null,"capabilities":{}}"#;
        let request = self.request(&quoted("initialize"), PARAMS);
        self.reply_within(connection, request, self.start_timeout()).await?;
        let initialized = br#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
        let _ = timeout(self.reply_timeout(), connection.send(initialized)).await;
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
        self.reply_within(connection, request, self.full_timeout()).await
    }

    async fn reply_within(
        &self,
        connection: &mut ServerConnection,
        (call, id): (String, String),
        reply_timeout: Duration,
    ) -> Result<Json, String> {
        let reply = async {
            if self.is_http() {
                let reply = self.post(connection, call.as_bytes()).await.map_err(|end| end.what)?;
                let told = || format!("HTTP status {} {}", reply.status, shortened(&reply.body));
                return answer_to(&reply.body, &id).ok_or_else(told);
            }
            connection.send(call.as_bytes()).await;
            loop {
                let message = match connection.next().await {
                    ServerEvent::Message(message) => message,
                    ServerEvent::Control(8, _) => {
                        return Err("the server sent a close frame".to_owned());
                    }
                    ServerEvent::Control(..) | ServerEvent::Response(_) => continue,
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
            let error = r#"{"code":-32601,"message":"Method not found"}"#;
            let reply = format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{}}}"#, id.text());
            let _ = timeout(self.reply_timeout(), connection.send(reply.as_bytes())).await;
        }
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
            *connection = self.connect(false).await.map_err(ConnectionEnd::closed)?;
        }
        loop {
            connection.send(message).await;
            match final_answer(connection).await {
                Err(end) if !is_fresh && !end.is_violation => {
                    *connection = self.connect(false).await.map_err(ConnectionEnd::closed)?;
                    is_fresh = true;
                }
                reply => return reply,
            }
        }
    }

    /// Returns a call with a new id, and the id.
    fn request(&self, method: &str, params: &str) -> (String, String) {
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
            ServerEvent::Message(_) | ServerEvent::Control(..) => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{RemoteHosts, TlsOptions};

    async fn access(timeout: Duration, probe_delay: Option<Duration>) -> ServerAccess {
        let address = "exec:server".parse().unwrap();
        let (tls, remote) = (TlsOptions::default(), RemoteHosts::Allowed);
        let target = ResolvedTarget::resolve(address, &[], &tls, remote).await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(3_600);
        ServerAccess::new(target, Profile::Lsp, timeout, deadline, probe_delay)
    }

    #[tokio::test]
    async fn the_timeout_becomes_short_for_a_server_that_drops_calls() {
        let (timeout, call) = (Duration::from_secs(2), Duration::from_millis(70));
        let access = async || {
            let mut access = access(timeout, None).await;
            access.adapt_to(call);
            access
        };
        let dropping = access().await;
        dropping.record_drop();
        // Silence to a later call, too, has the full timeout once.
        assert_eq!(dropping.reply_timeout(), timeout);
        dropping.record_hang();
        assert_eq!(dropping.reply_timeout(), 10 * call);
        dropping.attacks(true);
        assert_eq!(dropping.reply_timeout(), 5 * timeout);
        dropping.record_probe(timeout);
        dropping.attacks(false);
        assert_eq!(dropping.reply_timeout(), 10 * call);
        dropping.record_probe(9 * call);
        assert_eq!(dropping.reply_timeout(), 18 * call, "a loaded machine has longer timeouts");

        let late = access().await;
        (0..5).for_each(|_| late.record_drop());
        late.record_overtaken(Duration::from_millis(900));
        late.record_hang();
        assert_eq!(late.reply_timeout(), timeout, "its next reply may be late, too");
    }

    #[tokio::test]
    async fn the_probes_follow_faster_after_many_dropped_calls() {
        let (timeout, delay) = (Duration::from_secs(2), Duration::from_millis(80));
        let access = access(timeout, Some(delay)).await;
        let mut found = Vec::new();
        for _ in 0..=MANY_DROPS {
            found.extend(access.probe_delays());
            access.record_drop();
        }
        assert_eq!(found[..2], [(delay, timeout); 2], "the reply may be late");
        assert_eq!(found[2..10], [(delay, 2 * delay); 8]);
        assert_eq!(found[10], (delay / 4, delay / 4));
        access.record_overtaken(timeout);
        assert_eq!(access.probe_delays(), Some((timeout, timeout)), "it was late once");
    }
}
