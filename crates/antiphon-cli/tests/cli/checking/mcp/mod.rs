//! `check --profile mcp` with a server of each era: the right one has no finding, and each fault is found and named.

mod fault;
mod foreign;
mod http;
mod lines;
mod reference;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use self::fault::Fault;
use self::http::Sessions;
use self::lines::LinesEnd;
use self::reference::{Era, Reference};
use super::{Judged, NamedRun, judged, side_by_side};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Lines,
    Http,
}

/// A listening server.
struct McpServer {
    address: SocketAddr,
    wire: Wire,
    is_over: Arc<AtomicBool>,
}

impl McpServer {
    fn start(wire: Wire, reference: Reference) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (is_over, sessions) = (Arc::new(AtomicBool::new(false)), Arc::new(Sessions::default()));
        let over = Arc::clone(&is_over);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (over, sessions) = (Arc::clone(&over), Arc::clone(&sessions));
                thread::spawn(move || match wire {
                    Wire::Http => http::serve(&socket, reference, &sessions),
                    Wire::Lines => {
                        if matches!(lines::serve(&socket, reference), LinesEnd::Server) {
                            stop(&over, address);
                        }
                    }
                });
            }
        });
        Self { address, wire, is_over }
    }

    fn endpoint(&self) -> String {
        match self.wire {
            Wire::Lines => format!("tcp+line://{}", self.address),
            Wire::Http => format!("http://{}/mcp", self.address),
        }
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        stop(&self.is_over, self.address);
    }
}

/// Ends the listener, which blocks in `accept`, with one more connection.
fn stop(is_over: &AtomicBool, address: SocketAddr) {
    is_over.store(true, Ordering::SeqCst);
    drop(TcpStream::connect(address));
}

/// The slow tool, as a user names it.
const SLOW: [&str; 4] = ["--method", "tools/call", "--params", r#"{"name":"slow","arguments":{}}"#];

fn checked(wire: Wire, era: Era, fault: Option<Fault>, flags: &[&str]) -> Judged {
    let served = McpServer::start(wire, Reference::new(era, fault));
    judged(&[&[&*served.endpoint(), "--profile", "mcp"], flags].concat())
}

/// The server without a fault passes every case that can be run.
fn right(wire: Wire, era: Era, passed: u64) {
    for flags in [&[][..], &SLOW] {
        let judged = checked(wire, era, None, flags);
        let found = ["failed", "warned", "differs"].map(|verdict| judged.count(verdict));
        assert_eq!((found, judged.code), ([0; 3], Some(0)), "{}", judged.findings());
        assert!(judged.count("passed") >= passed, "{} cases are run", judged.count("passed"));
    }
}

#[test]
fn legacy_over_lines() {
    right(Wire::Lines, Era::Legacy, 55);
}

#[test]
fn legacy_over_http() {
    right(Wire::Http, Era::Legacy, 55);
}

#[test]
fn modern_over_lines() {
    right(Wire::Lines, Era::Modern, 55);
}

#[test]
fn modern_over_http() {
    right(Wire::Http, Era::Modern, 65);
}

#[test]
fn every_mutant_is_caught() {
    side_by_side(MUTANTS);
}

/// Each line is a server: the fault, the wire, the era, the cases that must find it, and whether the user names the slow
/// tool.
macro_rules! mutants {
    ($($test:ident: $fault:ident, $wire:ident $era:ident $($slow:ident)?, $named:literal;)*) => {
        $(
            fn $test() {
                let flags: &[&str] = mutants!(@flags $($slow)?);
                // A rule for all messages needs all cases. Any other fault is found by its own cases.
                let names: Vec<&str> = $named.split(' ').collect();
                let is_rule = names.iter().any(|name| name.starts_with("mcp-message-"));
                let only = names.iter().filter(|_| !is_rule).flat_map(|name| ["--only", name]);
                let flags: Vec<&str> = flags.iter().copied().chain(only).collect();
                let judged = checked(Wire::$wire, Era::$era, Some(Fault::$fault), &flags);
                for name in $named.split(' ') {
                    let verdict = judged.verdict(name);
                    let is_found = matches!(verdict, "failed" | "warned");
                    let test = stringify!($test);
                    assert!(is_found, "{test}: {name} is {verdict}: {}", judged.findings());
                }
            }
        )*
        const MUTANTS: &[NamedRun] = &[$((stringify!($test), $test)),*];
    };
    (@flags) => { &[] };
    (@flags $slow:ident) => { &SLOW };
}

mutants! {
    null_id_is_answered: NullIdIsAnswered, Lines Legacy, "mcp-legacy-id-null mcp-message-null-id";
    null_id_is_answered_by_modern: NullIdIsAnswered, Lines Modern, "mcp-modern-id-null";
    null_id_is_answered_over_http: NullIdIsAnswered, Http Legacy, "mcp-message-null-id";
    notifications_are_answered: NotificationsAreAnswered, Lines Legacy,
        "mcp-legacy-unknown-notification mcp-legacy-notification-of-request";
    responses_are_answered: ResponsesAreAnswered, Lines Legacy, "mcp-legacy-response-unknown";
    cancelled_is_answered: CancelledIsAnswered, Lines Legacy slow, "mcp-legacy-cancel";
    cancelled_is_answered_by_modern: CancelledIsAnswered, Lines Modern slow,
        "mcp-modern-cancel mcp-modern-listen-cancel";
    progress_decreases: ProgressDecreases, Lines Legacy slow, "mcp-message-progress-grows";
    progress_decreases_over_http: ProgressDecreases, Http Modern slow, "mcp-message-progress-grows";
    progress_token_is_text: ProgressTokenIsText, Lines Modern slow, "mcp-message-progress-token";
    progress_follows_response: ProgressFollowsResponse, Lines Legacy slow, "mcp-message-progress-ends";
    progress_follows_response_over_http: ProgressFollowsResponse, Http Legacy slow,
        "mcp-message-progress-ends";
    result_and_error: ResultAndError, Lines Legacy, "mcp-message-result-or-error mcp-legacy-id-string";
    responses_repeat: ResponsesRepeat, Lines Legacy, "mcp-legacy-ping mcp-legacy-id-string";
    responses_repeat_by_modern: ResponsesRepeat, Lines Modern, "mcp-modern-id-string";
    banner_on_stdout: BannerOnStdout, Lines Legacy, "mcp-message-json";
    messages_have_newlines: MessagesHaveNewlines, Lines Modern slow, "mcp-message-json";
    batches_are_answered: BatchesAreAnswered, Lines Legacy, "mcp-legacy-batch mcp-message-batch";
    batches_are_answered_by_modern: BatchesAreAnswered, Lines Modern, "mcp-modern-batch mcp-message-batch";
    version_is_echoed: VersionIsEchoed, Http Legacy, "mcp-legacy-version-unknown";
    ping_returns_null: PingReturnsNull, Lines Legacy, "mcp-legacy-ping mcp-message-envelope";
    ids_become_text: IdsBecomeText, Lines Legacy, "mcp-legacy-id-zero mcp-legacy-id-large";
    zero_id_is_none: ZeroIdIsNone, Lines Modern, "mcp-modern-id-zero";
    unknown_tool_succeeds: UnknownToolSucceeds, Lines Legacy,
        "mcp-legacy-tool-unknown mcp-legacy-tool-unknown-code";
    arguments_are_not_checked: ArgumentsAreNotChecked, Http Modern, "mcp-modern-tool-arguments";
    cursor_loops: CursorLoops, Lines Legacy, "mcp-message-cursor-loop";
    cursor_is_ignored: CursorIsIgnored, Lines Modern, "mcp-modern-cursor-invalid";
    schema_has_no_type: SchemaHasNoType, Lines Legacy, "mcp-message-tool-schema";
    tool_names_repeat: ToolNamesRepeat, Http Legacy, "mcp-message-unique-names";
    logs_below_level: LogsBelowLevel, Lines Legacy slow, "mcp-message-log-level";
    logs_below_level_by_modern: LogsBelowLevel, Http Modern slow, "mcp-message-log-level";
    logs_without_capability: LogsWithoutCapability, Lines Legacy slow, "mcp-message-log-capability";
    logs_are_not_requested: LogsAreNotRequested, Lines Modern slow, "mcp-message-log-requested";
    list_changes_without_capability: ListChangesWithoutCapability, Lines Legacy slow,
        "mcp-message-list-changed";
    calls_the_client: CallsTheClient, Lines Modern slow, "mcp-message-server-request";
    long_line_kills: LongLineKills, Lines Legacy, "mcp-legacy-line-long";
    undeclared_method_works: UndeclaredMethodWorks, Lines Legacy, "mcp-legacy-no-completions";
    tools_are_declared_only: ToolsAreDeclaredOnly, Lines Legacy, "mcp-message-list-shape";

    result_type_is_missing: ResultTypeIsMissing, Lines Modern, "mcp-message-result-type";
    cache_hints_are_missing: CacheHintsAreMissing, Http Modern, "mcp-message-cache-hints";
    server_info_is_missing: ServerInfoIsMissing, Lines Modern, "mcp-message-server-info";
    meta_is_not_checked: MetaIsNotChecked, Lines Modern,
        "mcp-modern-meta-missing mcp-modern-meta-version mcp-modern-meta-capabilities";
    any_version_is_served: AnyVersionIsServed, Lines Modern, "mcp-modern-version-unsupported";
    ping_remains: PingRemains, Http Modern, "mcp-modern-ping";
    listen_has_no_acknowledgment: ListenHasNoAcknowledgment, Lines Modern,
        "mcp-modern-listen mcp-message-subscription";
    subscription_id_is_missing: SubscriptionIdIsMissing, Http Modern,
        "mcp-modern-listen mcp-message-subscription";
    old_resource_code: OldResourceCode, Lines Modern,
        "mcp-modern-resource-unknown mcp-message-reserved-code";
    undefined_reserved_code: UndefinedReservedCode, Lines Modern,
        "mcp-modern-version-unsupported mcp-message-reserved-code";

    notification_is_200: NotificationIs200, Http Legacy, "mcp-legacy-http-notification";
    notification_is_200_by_modern: NotificationIs200, Http Modern, "mcp-modern-http-notification";
    origin_is_not_checked: OriginIsNotChecked, Http Legacy, "mcp-legacy-http-origin";
    origin_is_not_checked_by_modern: OriginIsNotChecked, Http Modern, "mcp-modern-http-origin";
    session_survives: SessionSurvives, Http Legacy, "mcp-legacy-http-session-deleted";
    session_id_has_space: SessionIdHasSpace, Http Legacy, "mcp-message-session-id";
    unknown_session_is_400: UnknownSessionIs400, Http Legacy,
        "mcp-legacy-http-session-unknown mcp-legacy-http-session-deleted";
    missing_session_is_403: MissingSessionIs403, Http Legacy, "mcp-legacy-http-session-missing";
    session_is_shared: SessionIsShared, Http Legacy, "mcp-message-session-unique";
    version_header_is_ignored: VersionHeaderIsIgnored, Http Legacy, "mcp-legacy-http-version-invalid";
    get_is_404: GetIs404, Http Legacy, "mcp-legacy-http-get";
    get_is_404_by_modern: GetIs404, Http Modern, "mcp-modern-http-get";
    content_type_is_text: ContentTypeIsText, Http Legacy, "mcp-message-content-type";
    events_are_broken: EventsAreBroken, Http Legacy, "mcp-message-json";
    headers_are_not_compared: HeadersAreNotCompared, Http Modern,
        "mcp-modern-http-method-missing mcp-modern-http-method-mismatch mcp-modern-http-name-missing";
    name_is_not_compared: NameIsNotCompared, Http Modern,
        "mcp-modern-http-name-mismatch mcp-modern-http-name-resource";
    unknown_method_is_200: UnknownMethodIs200, Http Modern, "mcp-modern-unknown-method";
    meta_error_is_200: MetaErrorIs200, Http Modern, "mcp-modern-meta-capabilities";
    base64_is_not_decoded: Base64IsNotDecoded, Http Modern, "mcp-modern-http-name-base64";
    buffering_is_allowed: BufferingIsAllowed, Http Modern, "mcp-modern-http-buffering";
}
