//! The OpenRPC document of a server in `list`, `describe` and `call`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use crate::support::{Ended, Scratch, Server, antiphon, run};

fn cli(words: &[&str]) -> Ended {
    run(antiphon().args(words), b"")
}

/// Asserts this exit code, an empty stdout and each of these texts on stderr.
#[track_caller]
fn fails(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is missing: {}", ended.stderr);
    }
}

const WIRES: &str = "tcp://127.0.0.1:0 http://127.0.0.1:0 ws://127.0.0.1:0";

/// Starts a server that replies to each line with `answer`, and returns all received lines at its end.
/// `None` sends no reply.
fn scripted(
    answer: impl Fn(&str) -> Option<String> + Send + 'static,
) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let serve = move |stream: TcpStream| {
        let mut writer = stream.try_clone().unwrap();
        let mut came = Vec::new();
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some(answer) = answer(&line) {
                writer.write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
            came.push(line);
        }
        came
    };
    (endpoint, thread::spawn(move || serve(listener.accept().unwrap().0)))
}

fn id(request: &str) -> &str {
    request.rsplit_once("\"id\":").unwrap().1.trim_end_matches('}')
}

fn document(methods: &str) -> String {
    let info = r#""info":{"title":"t","version":"1"}"#;
    format!(r#"{{"openrpc":"1.4.1",{info},"methods":[{methods}]}}"#)
}

const PAGE: &str = r##"{"name":"page","params":[{"name":"limit","required":true,"schema":{"$ref":"#/components/schemas/Limit"}}],"result":{"name":"r","schema":true}}"##;

/// Describes `page` and replies to every other call with `"paged"`.
fn describes_a_page(request: &str) -> Option<String> {
    let result = match request.contains("rpc.discover") {
        true => document(PAGE).replacen(
            '{',
            r#"{"components":{"schemas":{"Limit":{"type":"integer","maximum":100}}},"#,
            1,
        ),
        false => "\"paged\"".to_owned(),
    };
    Some(format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{}}}"#, id(request)))
}

#[test]
fn list_has_a_line_for_each_method() {
    let server = Server::start(WIRES, "");
    for wire in ["tcp", "http", "ws"] {
        let ended = cli(&["list", server.endpoint(wire)]);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
        let names: Vec<_> =
            ended.stdout.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(
            names,
            [
                "subtract",
                "sum",
                "get_data",
                "notify_hello",
                "notify_sum",
                "update",
                "echo",
                "whoami",
                "sleep",
                "fail",
                "panic",
                "call_me_back",
                "subscribe_ticks",
                "unsubscribe_ticks",
            ]
        );
        for line in [
            "subtract\tmethod\tsubtract(minuend, subtrahend)\tSubtracts one number from another.",
            "sum\tmethod\tsum(number...)\tAdds any number of numbers.",
            "update\tnotification\tupdate(params...)\tAccepts any params and does nothing.",
            "subscribe_ticks\tsubscription\tsubscribe_ticks(ms, count?)\tCounts up from 0.",
        ] {
            assert!(ended.stdout.lines().any(|found| found == line), "{line}: {}", ended.stdout);
        }
    }
    let ended = cli(&["list", "--json", server.endpoint("tcp")]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 14));
    assert!(ended.stdout.starts_with(r#"{"name":"subtract","summary":"#), "{}", ended.stdout);
}

#[test]
fn describe_prints_everything_about_a_method() {
    let server = Server::start(WIRES, "");
    let ended = cli(&["describe", server.endpoint("http"), "subtract"]);
    let expected = "\
subtract(minuend, subtrahend)

  Subtracts one number from another.

Params, by position or by name:
  minuend     Number  required  The number to subtract from.
  subtrahend  Number  required  The number to subtract.

Result:
  Number

Errors:
  -32000  the result is out of range

Examples:
  [42,23]  returns 19  from the specification
";
    assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(0), expected, ""));
    let ticks = cli(&["describe", server.endpoint("tcp"), "subscribe_ticks"]).stdout;
    assert!(ticks.starts_with("subscribe_ticks(ms, count?)  (subscription)\n"), "{ticks}");
    assert!(
        ticks.contains("items by ticks: Integer from 0  ended by unsubscribe_ticks"),
        "{ticks}"
    );
    let raw = cli(&["describe", server.endpoint("tcp"), "echo", "--json"]);
    assert!(raw.stdout.starts_with(r#"{"name":"echo","#), "{raw:?}");
    let ended = cli(&["describe", server.endpoint("tcp"), "substract"]);
    fails(&ended, 1, &["no method `substract`", "did you mean `subtract`?"]);
}

/// Control characters are escaped, and references may be recursive.
#[test]
fn a_document_is_untrusted_input() {
    let scratch = Scratch::new();
    let file = scratch.path("openrpc.json");
    let endpoint = "tcp://127.0.0.1:1";
    let path = file.display().to_string();
    let schema = ["--schema", &path];
    let method = r##"{"name":"b\u001b[2J","deprecated":true,"summary":"Old.\u0007","paramStructure":"by-name",
        "params":[{"name":"tree","schema":{"$ref":"#/components/schemas/Tree"}}],
        "errors":[{"code":1,"message":"no\nway"}],
        "examples":[{"name":"odd","params":[7,{"value":"\u001b"}]},3],"x-aliases":["c"]}"##;
    let tree = r##"{"components":{"schemas":{"Tree":{"properties":{"up":{"$ref":"#/components/schemas/Tree"}}}}},"##;
    std::fs::write(&file, document(method).replacen('{', tree, 1)).unwrap();
    let ended = cli(&[&["list", endpoint][..], &schema].concat());
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "b\\u{1b}[2J\tnotification\tb\\u{1b}[2J({tree?})\t(deprecated) Old.\\u{7}\n")
    );
    let ended = cli(&[&["describe", endpoint, "c"][..], &schema].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for said in [
        "{up?: Tree}",
        "(deprecated)",
        "Params, by name:",
        "1  no way",
        "Also called c.",
        "[null,\"\\u001b\"]",
    ] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    assert!(!ended.stdout.contains('\x1b'), "{}", ended.stdout);
    for (text, said) in
        [("{", "not JSON"), ("[]", "not OpenRPC"), ("{\"openrpc\":1}", "not OpenRPC")]
    {
        std::fs::write(&file, text).unwrap();
        fails(&cli(&[&["list", endpoint][..], &schema].concat()), 2, &[said, "--schema"]);
    }
    let missing = cli(&["list", endpoint, "--schema", "/nonexistent/openrpc.json"]);
    fails(&missing, 2, &["cannot read /nonexistent/openrpc.json"]);
}

#[test]
fn a_server_without_a_document_is_an_error() {
    let server = Server::start(WIRES, "--deny-method rpc.discover");
    for words in
        [&["list", server.endpoint("tcp")][..], &["describe", server.endpoint("http"), "sum"]]
    {
        fails(&cli(words), 1, &["does not support rpc.discover", "--schema FILE"]);
    }
    let ended = cli(&["call", "--check", server.endpoint("tcp"), "sum", "1"]);
    fails(&ended, 1, &["does not support rpc.discover"]);
    // Errors of calls are reported as usual.
    fails(&cli(&["call", server.endpoint("tcp"), "nope"]), 1, &["-32601", "check its spelling"]);
    let (endpoint, _served) = scripted(|request| {
        Some(format!(r#"{{"jsonrpc":"2.0","result":"hello","id":{}}}"#, id(request)))
    });
    fails(&cli(&["list", &endpoint]), 5, &["rpc.discover", "not OpenRPC"]);
}

#[test]
fn an_invalid_call_is_not_sent() {
    for (params, said) in [
        (&["ten"][..], "invalid param at [0]"),
        (&["101"], "invalid param at [0]"),
        (&["limit=10"], "invalid param at limit"),
        (&["limit:=10", "more:=1"], "invalid param at more"),
        (&["1", "2"], "invalid param at [1]"),
        (&[], "`limit` is missing"),
    ] {
        let (endpoint, served) = scripted(describes_a_page);
        let ended = cli(&[&["call", "--check", &endpoint, "page"], params].concat());
        fails(&ended, 2, &[said, "nothing was sent", "page(limit)"]);
        let came = served.join().unwrap();
        assert!(came.len() == 1 && came[0].contains("rpc.discover"), "{came:?}");
    }
    let (endpoint, served) = scripted(describes_a_page);
    fails(&cli(&["call", "--check", &endpoint, "pages", "1"]), 2, &["did you mean `page`?"]);
    assert_eq!(served.join().unwrap().len(), 1);
}

#[test]
fn a_valid_call_is_sent_and_only_check_fetches_the_document() {
    for (flags, messages) in [(&["--check"][..], 2), (&[], 1)] {
        let (endpoint, served) = scripted(describes_a_page);
        let ended = cli(&[&["call", &endpoint, "page", "10"], flags].concat());
        assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(0), "\"paged\"\n", ""));
        assert_eq!(served.join().unwrap().len(), messages);
    }
    let server = Server::start("tcp://127.0.0.1:0", "");
    for params in [
        &["subtract", "42", "23"][..],
        &["sum"],
        &["sum", "1", "2"],
        &["echo", "a=b"],
        &["rpc.discover"],
    ] {
        let ended = cli(&[&["call", "--check", server.endpoint("tcp")], params].concat());
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{params:?}");
    }
}

/// With `--check` there are two responses. The one to the call is printed, whatever its id.
#[test]
fn raw_prints_the_response_to_the_call() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    for id in ["1", "0", "\"a\""] {
        let words =
            ["call", "--check", "--raw", "--id", id, server.endpoint("tcp"), "sum", "1", "2"];
        let expected = format!("{{\"jsonrpc\":\"2.0\",\"result\":3,\"id\":{id}}}\n");
        assert_eq!(cli(&words).stdout, expected);
    }
}

/// A call that is invalid by the file fails without a connection.
#[test]
fn a_file_can_replace_the_document() {
    let scratch = Scratch::new();
    let file = scratch.path("openrpc.json");
    std::fs::write(
        &file,
        document(&PAGE.replace("\"$ref\":\"#/components/schemas/Limit\"", "\"type\":\"integer\"")),
    )
    .unwrap();
    let call = |endpoint: &str, param: &str| {
        cli(&["call", "--schema", &file.display().to_string(), endpoint, "page", param])
    };
    fails(&call("tcp://127.0.0.1:1", "ten"), 2, &["invalid param at [0]"]);
    let (endpoint, served) = scripted(describes_a_page);
    assert_eq!(call(&endpoint, "10").stdout, "\"paged\"\n");
    assert_eq!(served.join().unwrap().len(), 1);
}

#[test]
fn an_error_gets_a_hint_from_the_document() {
    let server = Server::start(WIRES, "");
    for wire in ["tcp", "http", "ws"] {
        let endpoint = server.endpoint(wire);
        fails(
            &cli(&["call", endpoint, "substract", "1"]),
            1,
            &["-32601", "did you mean `subtract`?"],
        );
        let words = ["-32602", "data: ", "hint: the signature is subtract(minuend, subtrahend)"];
        fails(&cli(&["call", endpoint, "subtract", "1"]), 1, &words);
        // Without a similar name, the general hint stays.
        fails(&cli(&["call", endpoint, "xyzzy"]), 1, &["check its spelling"]);
    }
    // An error of the application does not fetch the document.
    let ended = cli(&["call", "-v", server.endpoint("tcp"), "fail", "7", "seven"]);
    assert!(!ended.stderr.contains("rpc.discover"), "{}", ended.stderr);
    // `--raw` prints the response without a hint.
    let ended = cli(&["call", "-v", "--raw", server.endpoint("tcp"), "nope"]);
    assert!(ended.stdout.contains("-32601") && !ended.stderr.contains("rpc.discover"), "{ended:?}");
}

/// The server returns an error and then stops replying: the error is still the outcome.
#[test]
fn a_missing_hint_does_not_change_the_outcome() {
    let (endpoint, served) = scripted(|request| {
        let refused = r#""error":{"code":-32601,"message":"nope"}"#;
        let answer = format!(r#"{{"jsonrpc":"2.0",{refused},"id":{}}}"#, id(request));
        (!request.contains("rpc.discover")).then_some(answer)
    });
    let ended = cli(&["call", "--timeout", "300ms", &endpoint, "page"]);
    fails(&ended, 1, &["error -32601: nope", "check its spelling"]);
    assert!(served.join().unwrap().len() == 2);
}
