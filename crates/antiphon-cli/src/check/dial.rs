//! How a connection to the server is made ready for cases, and how one asks whether it lives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::subject::Subject;
use super::talk::{Came, Talk};
use super::transcript::Profile;
use super::transcript::json::Json;
use crate::raw::target::Target;

/// What every id of ours begins with, so that no case uses it.
const OURS: &str = "antiphon-";

/// Whom to call, and how long to wait for it.
pub(crate) struct Dialer {
    pub(crate) target: Target,
    pub(crate) profile: Profile,
    /// How long one answer may take.
    longest: Duration,
    /// After which time the probe may be sent to a server that does not answer; nothing, where its
    /// methods are not ours to know.
    pub(crate) pace: Option<Duration>,
    next: AtomicU64,
    /// How often all patience was in vain.
    hangs: AtomicU64,
}

/// After so many hangs, nobody waits for long any more.
const MANY: u64 = 4;
const SHORT: Duration = Duration::from_millis(500);
/// How long a quick server is waited for before the probe.
pub(crate) const PACE: Duration = Duration::from_millis(50);

impl Dialer {
    pub(crate) fn new(
        target: Target,
        profile: Profile,
        longest: Duration,
        pace: Option<Duration>,
    ) -> Self {
        let (next, hangs) = (AtomicU64::new(1), AtomicU64::new(0));
        Self { target, profile, longest, pace, next, hangs }
    }

    /// How long one answer is waited for.
    pub(crate) fn patience(&self) -> Duration {
        match self.hangs.load(Ordering::Relaxed) {
            ..MANY => self.longest,
            _ => self.longest.min(SHORT),
        }
    }

    /// Takes note that an answer was waited for in vain.
    pub(crate) fn hung(&self) {
        self.hangs.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the pace by how long an ordinary call took.
    pub(crate) fn set_pace(&mut self, call: Duration) {
        self.pace = self.pace.map(|pace| pace.max(10 * call));
    }

    /// Connects, and says what the dialect says first.
    pub(crate) async fn dial(&self) -> Result<Talk, String> {
        let mut talk = self.connect(false).await?;
        if self.profile == Profile::Lsp {
            self.initialize(&mut talk).await?;
        }
        Ok(talk)
    }

    /// Connects, and says nothing.
    pub(crate) async fn connect(&self, bare: bool) -> Result<Talk, String> {
        match timeout(self.patience(), Talk::connect(&self.target, bare)).await {
            Ok(talk) => talk.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no connection within {:?}", self.patience())),
        }
    }

    async fn initialize(&self, talk: &mut Talk) -> Result<(), String> {
        const PARAMS: &str = r#"{"processId":null,"rootUri":null,"capabilities":{}}"#;
        self.ask(talk, "initialize", PARAMS).await?;
        let initialized = br#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
        let _ = timeout(self.patience(), talk.send(initialized)).await;
        Ok(())
    }

    /// An id of ours, that nobody else uses.
    fn id(&self) -> String {
        format!("\"{OURS}{}\"", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls a method and gives its answer, whatever else comes meanwhile.
    pub(crate) async fn ask(
        &self,
        talk: &mut Talk,
        method: &str,
        params: &str,
    ) -> Result<Json, String> {
        let (call, id) = self.call(&quoted(method), params);
        let deadline = Instant::now() + self.patience();
        let asked = async {
            talk.send(call.as_bytes()).await;
            loop {
                let message = match talk.next().await {
                    Came::Message(message) => message,
                    Came::Answer(answer) if answer.status < 200 => continue,
                    Came::Answer(answer) if answer.body.is_empty() => {
                        return Err(format!("HTTP status {} and nothing else", answer.status));
                    }
                    Came::Answer(answer) => answer.body,
                    Came::Control(8, _) => return Err("a close frame".to_owned()),
                    Came::Control(..) => continue,
                    Came::End(end) => return Err(end),
                };
                if let Some(answer) = answer_to(&message, &id) {
                    return Ok(answer);
                }
                if matches!(&self.target.speech, crate::raw::target::Speech::Http { .. }) {
                    return Err(super::verdict::shortened(&message));
                }
            }
        };
        match timeout_at(deadline, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {:?}", self.patience())),
        }
    }

    /// A call with an id of ours.
    fn call(&self, method: &str, params: &str) -> (String, String) {
        let id = self.id();
        let call = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params},"id":{id}}}"#);
        (call, id)
    }

    /// The call that asks whether the server lives, and its id.
    pub(crate) fn probe(&self, subject: &Subject) -> (String, String) {
        self.call(&quoted(&subject.method), &subject.params)
    }

    /// Whether the server answers an ordinary call on a connection of its own.
    pub(crate) async fn is_alive(&self, subject: &Subject) -> Result<(), String> {
        let mut talk = self.dial().await?;
        let answer = self.ask(&mut talk, &subject.method, &subject.params).await?;
        talk.leave().await;
        subject.recognises(&answer)
    }
}

/// The message, if it is the Response to this id.
pub(crate) fn answer_to(message: &[u8], id: &str) -> Option<Json> {
    let json = Json::parse(std::str::from_utf8(message).ok()?).ok()?;
    let is_ours = json.member("id").is_some_and(|found| found.text == id);
    (is_ours && json.member("method").is_none()).then_some(json)
}

/// Whether it is an answer to a call that no case made.
pub(crate) fn is_ours(message: &[u8]) -> bool {
    let Some(json) = std::str::from_utf8(message).ok().and_then(|text| Json::parse(text).ok())
    else {
        return false;
    };
    let prefix = format!("\"{OURS}");
    json.member("id").is_some_and(|id| id.text.starts_with(&prefix))
        && json.member("method").is_none()
}

/// A name as a JSON String.
pub(crate) fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}
