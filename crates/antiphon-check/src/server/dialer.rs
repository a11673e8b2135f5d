//! How a connection to the server is made ready for cases, and how one asks whether it lives.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::connection::{ConnectionEnd, HttpResponse, ServerConnection, ServerEvent};
use super::methods::ServerMethods;
use crate::raw::{AddressProtocol, Target};
use crate::result::shortened;
use crate::transcript::Profile;
use crate::transcript::json::Json;

/// What every id of ours begins with, so that no case uses it.
const OURS: &str = "antiphon";

/// Whom to call, and how long to wait for it.
pub(crate) struct Dialer {
    pub(crate) target: Target,
    pub(crate) profile: Profile,
    /// How long one answer may take.
    longest: Duration,
    /// When the time of the whole run is up.
    pub(crate) deadline: Instant,
    /// After which time the probe may be sent to a server that does not answer; nothing, where its
    /// methods are not ours to know.
    pace: Option<Duration>,
    next: AtomicU64,
    /// How often all patience was in vain.
    hangs: AtomicU64,
    /// How often a call got no answer though a later one did.
    drops: AtomicU64,
    /// How long the slowest of some ordinary calls took.
    slowest: Duration,
    /// How late an answer came behind that of a later call, in milliseconds.
    lateness: AtomicU64,
    /// How much longer an attack may take to be answered.
    factor: AtomicU32,
}

/// After so many hangs, nobody waits for long any more.
const MANY: u64 = 3;
const SHORT: Duration = Duration::from_millis(500);
const MANY_DROPS: u64 = 10;
/// So many drops are waited for with all patience: who is only late is not to be blamed.
const SURE: u64 = 2;
/// How long a quick server is waited for before the probe.
pub(crate) const PACE: Duration = Duration::from_millis(50);

impl Dialer {
    pub(crate) fn new(
        target: Target,
        profile: Profile,
        longest: Duration,
        deadline: Instant,
        pace: Option<Duration>,
    ) -> Self {
        let (next, factor) = (AtomicU64::new(1), AtomicU32::new(1));
        let [hangs, drops, lateness] = [0; 3].map(AtomicU64::new);
        let slowest = Duration::ZERO;
        Self {
            target,
            profile,
            longest,
            deadline,
            pace,
            next,
            hangs,
            drops,
            slowest,
            lateness,
            factor,
        }
    }

    /// How long the answer that a case expects is waited for.
    pub(crate) fn patience(&self) -> Duration {
        let is_attack = self.factor.load(Ordering::Relaxed) > 1;
        match self.hangs.load(Ordering::Relaxed) {
            MANY.. if !is_attack => self.full_patience().min(SHORT.max(10 * self.slowest)),
            _ => self.full_patience(),
        }
    }

    /// How long an answer is waited for that must come: who is only slow is not gone.
    pub(crate) fn full_patience(&self) -> Duration {
        let longest = self.longest.saturating_mul(self.factor.load(Ordering::Relaxed));
        longest.min(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether what follows is an attack: much to read, and to answer.
    pub(crate) fn attacks(&self, is_hostile: bool) {
        self.factor.store(if is_hostile { 5 } else { 1 }, Ordering::Relaxed);
    }

    /// How long an answer is waited for before the probe, and how long after the probe's answer: less
    /// and less with a server that was never only late.
    pub(crate) fn pace(&self) -> Option<(Duration, Duration)> {
        let late = Duration::from_millis(self.lateness.load(Ordering::Relaxed));
        let pace = self.pace?.max(2 * late);
        match self.drops.load(Ordering::Relaxed) {
            ..SURE => Some((pace, self.patience())),
            SURE..MANY_DROPS => Some((pace, 2 * pace)),
            _ => Some((pace / 2, pace / 2)),
        }
    }

    /// Takes note that an answer took so long, and came behind that of a later call.
    pub(crate) fn came_late(&self, took: Duration) {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.lateness.fetch_max(took, Ordering::Relaxed);
    }

    /// Takes note that a call got no answer though a later one did.
    pub(crate) fn dropped(&self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes note that an answer was waited for in vain.
    pub(crate) fn hung(&self) {
        self.hangs.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the pace by how long an ordinary call took.
    pub(crate) fn set_pace(&mut self, call: Duration) {
        self.slowest = call;
        self.pace = self.pace.map(|pace| pace.max(5 * call));
    }

    /// Connects, and says what the dialect says first.
    pub(crate) async fn dial(&self) -> Result<ServerConnection, String> {
        let mut connection = self.connect(false).await?;
        if self.profile == Profile::Lsp {
            self.initialize(&mut connection).await?;
        }
        Ok(connection)
    }

    /// Connects, and says nothing.
    pub(crate) async fn connect(&self, bare: bool) -> Result<ServerConnection, String> {
        self.open(bare).await.map_err(|error| error.to_string())
    }

    /// Whether there is anybody at all. Even a listener may be silent, where TLS is due.
    pub(crate) async fn reach(&self) -> io::Result<()> {
        self.open(true).await.map(drop)
    }

    async fn open(&self, bare: bool) -> io::Result<ServerConnection> {
        let patience = self.full_patience();
        let late = |_| io::Error::other(format!("no connection within {patience:?}"));
        timeout(patience, ServerConnection::connect(&self.target, bare)).await.map_err(late)?
    }

    async fn initialize(&self, connection: &mut ServerConnection) -> Result<(), String> {
        const PARAMS: &str = r#"{"processId":null,"rootUri":null,"capabilities":{}}"#;
        self.ask(connection, "initialize", PARAMS).await?;
        let initialized = br#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
        let _ = timeout(self.patience(), connection.send(initialized)).await;
        Ok(())
    }

    /// An id of ours, that nobody else uses.
    fn id(&self) -> String {
        format!("\"{OURS}{}\"", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls a method and gives its answer, whatever else comes meanwhile.
    pub(crate) async fn ask(
        &self,
        connection: &mut ServerConnection,
        method: &str,
        params: &str,
    ) -> Result<Json, String> {
        self.asked(connection, self.call(&quoted(method), params)).await
    }

    /// The same, with no params at all.
    pub(crate) async fn ask_without_params(
        &self,
        connection: &mut ServerConnection,
        method: &str,
    ) -> Result<Json, String> {
        let id = self.id();
        let call = format!(r#"{{"jsonrpc":"2.0","method":{},"id":{id}}}"#, quoted(method));
        self.asked(connection, (call, id)).await
    }

    async fn asked(
        &self,
        connection: &mut ServerConnection,
        (call, id): (String, String),
    ) -> Result<Json, String> {
        let asked = async {
            if self.is_http() {
                let answer =
                    self.post(connection, call.as_bytes()).await.map_err(|end| end.what)?;
                let told = || format!("HTTP status {} {}", answer.status, shortened(&answer.body));
                return answer_to(&answer.body, &id).ok_or_else(told);
            }
            connection.send(call.as_bytes()).await;
            loop {
                let message = match connection.next().await {
                    ServerEvent::Message(message) => message,
                    ServerEvent::Control(8, _) => return Err("a close frame".to_owned()),
                    ServerEvent::Control(..) | ServerEvent::Answer(_) => continue,
                    ServerEvent::End(end) => return Err(end.what),
                };
                if let Some(answer) = answer_to(&message, &id) {
                    return Ok(answer);
                }
                self.refuse(connection, &message).await;
            }
        };
        let patience = self.full_patience();
        timeout(patience, asked)
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {patience:?}")))
    }

    /// Answers a Request of the server's, which may wait for that: we have no such method.
    pub(crate) async fn refuse(&self, connection: &mut ServerConnection, message: &[u8]) {
        let Some(json) = std::str::from_utf8(message).ok().and_then(|text| Json::parse(text).ok())
        else {
            return;
        };
        // What only echoes has no question.
        let id = json.member("id").filter(|id| !has_our_prefix(id));
        if let (Some(_), Some(id)) = (json.member("method"), id) {
            let error = r#"{"code":-32601,"message":"Method not found"}"#;
            let answer = format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{}}}"#, id.text());
            let _ = timeout(self.patience(), connection.send(answer.as_bytes())).await;
        }
    }

    pub(crate) fn is_http(&self) -> bool {
        matches!(self.target.address.protocol, AddressProtocol::Http { .. })
    }

    /// Asks by HTTP. A server may end a connection between two requests; then there is another. `Err`
    /// says that it ended without an answer.
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
                Err(end) if !is_fresh && !end.is_nonsense => {
                    *connection = self.connect(false).await.map_err(ConnectionEnd::closed)?;
                    is_fresh = true;
                }
                answer => return answer,
            }
        }
    }

    /// A call with an id of ours.
    fn call(&self, method: &str, params: &str) -> (String, String) {
        let id = self.id();
        let call = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params},"id":{id}}}"#);
        (call, id)
    }

    /// The call that asks whether the server lives, and its id.
    pub(crate) fn probe(&self, methods: &ServerMethods) -> (String, String) {
        self.call(&quoted(&methods.method), &methods.params)
    }

    /// Whether the server answers an ordinary call on a connection of its own.
    pub(crate) async fn is_alive(&self, methods: &ServerMethods) -> Result<(), String> {
        let mut connection = self.dial().await?;
        let answer = self.ask(&mut connection, &methods.method, &methods.params).await?;
        methods.recognises(&answer)
    }
}

/// The next HTTP answer that is not only a sign of life.
async fn final_answer(connection: &mut ServerConnection) -> Result<HttpResponse, ConnectionEnd> {
    loop {
        match connection.next().await {
            ServerEvent::Answer(answer) if answer.status < 200 && answer.status != 101 => {}
            ServerEvent::Answer(answer) => return Ok(answer),
            ServerEvent::End(end) => return Err(end),
            ServerEvent::Message(_) | ServerEvent::Control(..) => {}
        }
    }
}

/// The message, if it is the Response to this id.
pub(crate) fn answer_to(message: &[u8], id: &str) -> Option<Json> {
    let json = Json::parse(std::str::from_utf8(message).ok()?).ok()?;
    let is_ours = json.member("id").is_some_and(|found| found.text() == id);
    (is_ours && json.member("method").is_none()).then_some(json)
}

/// Whether it is an answer to a call that no case made.
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

/// A name as a JSON String.
pub(crate) fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}
