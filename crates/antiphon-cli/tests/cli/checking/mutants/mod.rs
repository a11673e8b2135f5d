//! Servers with one fault each. The case for that fault finds it, and no other case reports a finding.

pub(crate) mod fault;
mod http;
pub(crate) mod reference;
pub(crate) mod served;
mod ws;

use serde_json::Value;

use self::fault::Fault;
use self::served::{MutantServer, Wire};
use super::{Judged, NamedRun, judged, side_by_side};

/// Runs the suite, or the part that `flags` choose.
fn checked(wire: Wire, fault: Option<Fault>, flags: &[&str]) -> Judged {
    let served = MutantServer::start(wire, fault);
    judged(&[&[&*served.endpoint()], flags].concat())
}

/// The server without a fault passes every case that can be run.
fn right(wire: Wire) {
    let judged = checked(wire, None, &[]);
    let found = ["failed", "warned"].map(|verdict| judged.count(verdict));
    assert_eq!((found, judged.code), ([0, 0], Some(0)), "{}", judged.findings());
    assert!(judged.count("passed") > 300, "only {} cases are run", judged.count("passed"));
}

#[test]
fn reference_over_lines() {
    right(Wire::Lines);
}

#[test]
fn reference_over_http() {
    right(Wire::Http);
}

#[test]
fn reference_over_websocket() {
    right(Wire::Ws);
}

#[test]
fn every_mutant_is_caught() {
    side_by_side(MUTANTS);
}

/// A server with one fault, and the expected findings.
struct Mutant {
    fault: Fault,
    wire: Wire,
    /// The cases for the fault: each must find it.
    named: &'static str,
    /// Other cases that may fail because of it: groups, or names with an optional `*` at the end.
    explained: &'static str,
}

impl Mutant {
    /// Checks that the cases for the fault find it, and that no unrelated case reports a finding.
    fn is_caught(&self, flags: &[&str]) {
        let Self { fault, wire, .. } = *self;
        let judged = checked(wire, Some(fault), flags);
        for name in self.named.split(' ') {
            let verdict = judged.verdict(name);
            assert!(matches!(verdict, "failed" | "warned"), "{fault:?}: {name} is {verdict}");
        }
        for case in judged.report["cases"].as_array().unwrap() {
            let is_found = matches!(case["verdict"].as_str(), Some("failed" | "warned"));
            assert!(!is_found || self.explains(case), "{fault:?} is no reason for {case:#}");
        }
    }

    fn explains(&self, case: &Value) -> bool {
        let (group, name) = (case["group"].as_str().unwrap(), case["name"].as_str().unwrap());
        self.named.split(' ').chain(self.explained.split(' ')).any(|pattern| {
            let is_name = match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == pattern,
            };
            is_name || group == pattern
        })
    }
}

/// Each line is a server: the fault, the wire, the cases for it, the other cases that may fail, and the part
/// of the suite to run if the whole suite would take long.
macro_rules! mutants {
    ($($test:ident: $fault:ident, $wire:ident, $named:literal, $explained:literal
       $(, only $($only:literal)*)?;)*) => {
        $(
            fn $test() {
                let (fault, wire) = (Fault::$fault, Wire::$wire);
                let only: &[&str] = &[$($("--only", $only),*)?];
                Mutant { fault, wire, named: $named, explained: $explained }.is_caught(only);
            }
        )*
        const MUTANTS: &[NamedRun] = &[$((stringify!($test), $test)),*];
    };
}

mutants! {
    ids_are_doubles: IdsAreDoubles, Lines,
        "id-over-double id-max-unsigned", "ids batch-exact-ids pipeline-near-ids";
    ids_are_signed: IdsAreSigned, Lines,
        "id-over-signed id-over-unsigned", "ids batch-exact-ids";
    ids_are_unsigned: IdsAreUnsigned, Lines,
        "id-negative", "ids batch-exact-ids";
    null_id_is_none: NullIdIsNone, Lines,
        "id-null notify-null-id-is-none batch-null-id", "id-null-unknown-method pipeline-null-ids";
    false_id_is_none: FalseIdIsNone, Lines,
        "id-zero id-empty-string", "batch-exact-ids";
    digits_become_numbers: DigitsBecomeNumbers, Lines,
        "id-digits-in-string shape-id-kept", "example-* batch-number-and-string-id*";
    any_id_is_taken: AnyIdIsTaken, Lines,
        "id-array id-object id-true", "ids batch-bad-id";
    id_of_the_connection: IdOfTheConnection, Lines,
        "pipeline-calls", "pipelining", only "pipelining" "shape";

    notifications_are_answered: NotificationsAreAnswered, Lines,
        "notify-with-result notify-known example-notification",
        "notifications example-* batch-* id-name-case pipeline-with-notifications line-many-at-once";
    notification_errors_are_reported: NotificationErrorsAreReported, Lines,
        "notify-unknown notify-wrong-params example-notification-unknown-method",
        "notifications batch-* pipeline-with-notifications line-many-at-once";

    batch_of_one_is_unwrapped: BatchOfOneIsUnwrapped, Lines,
        "batch-one-request example-invalid-batch-of-one", "batch line-many-at-once";
    empty_batch_gives_empty_array: EmptyBatchGivesEmptyArray, Lines,
        "example-empty-array batch-empty-with-space", "";
    batch_is_lost_by_one_entry: BatchIsLostByOneEntry, Lines,
        "batch-invalid-among-valid batch-scalars-among-valid",
        "batch example-* envelope-array-is-batch shape-batch line-many-at-once";
    silent_batch_gives_empty_array: SilentBatchGivesEmptyArray, Lines,
        "example-batch-of-notifications batch-one-notification", "batch";
    batch_is_keyed_by_id: BatchIsKeyedById, Lines,
        "batch-same-id", "batch-same-id-any-method batch-hundreds";
    array_is_request: ArrayIsRequest, Lines,
        "envelope-array-is-batch batch-array-as-request", "";

    null_error_beside_result: NullErrorBesideResult, Lines, "shape-result", "*", only "shape" "ids";
    null_result_beside_error: NullResultBesideError, Lines, "shape-error", "*", only "shape" "ids";
    no_version_in_answer: NoVersionInAnswer, Lines, "shape-version", "*", only "shape" "ids";
    null_result_is_left_out: NullResultIsLeftOut, Lines,
        "shape-null-result", "params-absent envelope-params-name-case";
    code_is_string: CodeIsString, Lines, "shape-error-object", "*", only "shape" "ids";
    error_has_no_message: ErrorHasNoMessage, Lines, "shape-error-object", "*", only "shape" "ids";
    error_is_text: ErrorIsText, Lines, "shape-error-object", "*", only "shape" "ids";
    parse_error_has_no_id: ParseErrorHasNoId, Lines,
        "shape-parse-error parse-id-is-null", "parse shape example-* batch-* pipeline-with-faults";

    parse_error_is_invalid_request: ParseErrorIsInvalidRequest, Lines,
        "example-invalid-json parse-word", "parse shape example-* batch-* pipeline-with-faults";
    unknown_method_is_invalid_request: UnknownMethodIsInvalidRequest, Lines,
        "example-method-not-found params-unknown-method-first",
        "reserved shape example-batch id-* method-* batch-not-found-among-valid stream-*";
    wrong_params_are_invalid_request: WrongParamsAreInvalidRequest, Lines,
        "params-missing-one params-needed", "params";
    invalid_request_is_ignored: InvalidRequestIsIgnored, Lines,
        "envelope-empty-object envelope-number invalid-without-id", "envelope",
        only "envelope-*" "invalid-without-id" "notifications";
    version_is_not_checked: VersionIsNotChecked, Lines,
        "version-one version-number version-array", "version-*";
    method_case_is_ignored: MethodCaseIsIgnored, Lines, "method-case", "";
    method_is_trimmed: MethodIsTrimmed, Lines, "method-trailing-space", "";
    text_behind_is_ignored: TextBehindIsIgnored, Ws,
        "parse-text-behind parse-two-values", "parse-line-comment parse-nul-behind parse-bracket-behind";
    bad_text_is_repaired: BadTextIsRepaired, Lines,
        "parse-utf-8-stray-byte parse-utf-8-overlong", "parse-utf-8-*";

    bad_json_closes_connection: BadJsonClosesConnection, Lines,
        "parse-then-call pipeline-with-faults", "parse shape example-* batch-*";
    answers_twice: AnswersTwice, Lines, "shape-object id-one", "*", only "shape" "ids";
    stray_text: StrayText, Lines, "shape-object id-one", "*", only "shape" "ids";
    one_message_a_packet: OneMessageAPacket, Lines,
        "stream-line-two-in-one-packet", "streams", only "streams";
    packet_is_message: PacketIsMessage, Lines,
        "stream-line-in-pieces stream-line-byte-by-byte",
        "streams id-after-large-params id-long-* pipeline-large-and-small long-*";

    http_put_is_post: HttpPutIsPost, Http, "http-put", "http-allow";
    http_type_is_text: HttpTypeIsText, Http,
        "http-status-result http-error-in-json", "http-batch";
    http_silence_is_null: HttpSilenceIsNull, Http,
        "http-notification http-batch-of-notifications notify-known",
        "notifications http-notification-unknown example-* batch-* id-name-case";
    http_silence_has_body: HttpSilenceHasBody, Http,
        "notify-known notify-then-call",
        "notifications http-* example-* batch-* id-name-case";
    http_allows_nothing: HttpAllowsNothing, Http, "http-allow", "";
    http_head_has_body: HttpHeadHasBody, Http, "http-head", "";
    http_host_is_not_checked: HttpHostIsNotChecked, Http,
        "http-host-missing http-host-twice", "";
    http_first_length_counts: HttpFirstLengthCounts, Http, "http-length-twice", "";
    http_length_beside_chunks: HttpLengthBesideChunks, Http, "http-chunked-and-length", "";
    http_chunks_are_not_read: HttpChunksAreNotRead, Http,
        "http-chunked http-chunked-extension", "http-chunk*";
    http_never_closes: HttpNeverCloses, Http, "http-1-0", "", only "http-1-0*" "http-status-*";

    ws_ping_is_ignored: WsPingIsIgnored, Ws, "ws-ping", "", only "ws-ping" "ws-fragmented*";
    ws_close_is_ignored: WsCloseIsIgnored, Ws, "ws-close", "", only "ws-close" "ws-ping*";
    ws_mask_is_not_checked: WsMaskIsNotChecked, Ws, "ws-unmasked", "";
    ws_fragments_are_messages: WsFragmentsAreMessages, Ws,
        "ws-fragmented ws-continuation-alone", "websocket";
    ws_text_is_not_checked: WsTextIsNotChecked, Ws, "ws-bad-utf-8", "";
}

/// A choice is reported, not scored.
#[test]
fn a_choice_is_reported_not_scored() {
    let judged = checked(Wire::Http, Some(Fault::HttpGetIsAnswered), &["--only", "http"]);
    assert_eq!(judged.verdict("http-get"), "differs");
    let found = [judged.count("failed"), judged.count("warned")];
    assert_eq!(found, [0, 0], "{}", judged.findings());
}

/// A server that goes away is a failure, and the remaining cases are not run.
#[test]
fn depth_kills() {
    let fault = Some(Fault::DepthKills);
    let judged = checked(Wire::Lines, fault, &["--hostile", "--only", "bomb-*"]);
    let case = judged.case("bomb-unclosed-arrays");
    assert_eq!(
        (&case["verdict"], &case["fault"]),
        (&"failed".into(), &"crashed".into()),
        "{case:#}"
    );
    assert_eq!((judged.count("failed"), judged.code), (1, Some(1)));
    let left = judged.case("bomb-closing");
    assert_eq!(left["verdict"], "not-run");
    assert!(left["reason"].as_str().unwrap().contains("--spawn"), "{left:#}");
}

/// Without a correct reply, or without a WebSocket handshake, no case can be run.
#[test]
fn no_case_runs_without_an_ordinary_reply() {
    for (fault, wire, code, words) in [
        (Fault::AnswerIsArray, Wire::Lines, 5, "no ordinary call succeeds"),
        (Fault::WsProofIsWrong, Wire::Ws, 3, "no valid Sec-WebSocket-Accept"),
    ] {
        let served = MutantServer::start(wire, Some(fault));
        let ended = super::check(&[&served.endpoint()]);
        assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{fault:?}: {ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
}
