//! What a server says about itself, as `list`, `describe` and `call` tell it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use crate::support::{Ended, Scratch, Server, antiphon, run};

fn cli(words: &[&str]) -> Ended {
    run(antiphon().args(words), b"")
}

/// It fails with this code, prints nothing, and its words on stderr hold each of these.
#[track_caller]
fn fails(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is missing: {}", ended.stderr);
    }
}

const WIRES: &str = "tcp://127.0.0.1:0 http://127.0.0.1:0 ws://127.0.0.1:0";

/// A server of our own: it answers each line by what `answer` makes of it, and gives back all lines
/// that came. Where there is no answer, it says nothing more.
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

/// Describes `page`, and answers everything else with its id.
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
            "update\tnotification\tupdate(params...)\tIs told anything, and does nothing.",
            "subscribe_ticks\tsubscription\tsubscribe_ticks(ms, count?)\tCounts from 0 on.",
        ] {
            assert!(ended.stdout.lines().any(|found| found == line), "{line}: {}", ended.stdout);
        }
    }
    let ended = cli(&["list", "--json", server.endpoint("tcp")]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 14));
    assert!(ended.stdout.starts_with(r#"{"name":"subtract","summary":"#), "{}", ended.stdout);
}

#[test]
fn describe_tells_all_of_a_method() {
    let server = Server::start(WIRES, "");
    let ended = cli(&["describe", server.endpoint("http"), "subtract"]);
    let expected = "\
subtract(minuend, subtrahend)

  Subtracts one number from another.

Params, by position or by name:
  minuend     Number  required  What is subtracted from.
  subtrahend  Number  required  What is subtracted.

Result:
  Number

Errors:
  -32000  the result is out of range

Examples:
  [42,23]  gives 19  as in the specification
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

/// Nothing of the other side is trusted: not its text, not its references.
#[test]
fn documents_of_others_are_read_with_care() {
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
        "called c too",
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
    fails(&missing, 2, &["/nonexistent/openrpc.json cannot be read"]);
}

#[test]
fn a_server_that_does_not_describe_itself_is_named_so() {
    let server = Server::start(WIRES, "--deny-method rpc.discover");
    for words in
        [&["list", server.endpoint("tcp")][..], &["describe", server.endpoint("http"), "sum"]]
    {
        fails(&cli(words), 1, &["no rpc.discover", "--schema FILE"]);
    }
    fails(&cli(&["call", "--check", server.endpoint("tcp"), "sum", "1"]), 1, &["no rpc.discover"]);
    // Its errors are told as before.
    fails(&cli(&["call", server.endpoint("tcp"), "nope"]), 1, &["-32601", "check its spelling"]);
    let (endpoint, _served) = scripted(|request| {
        Some(format!(r#"{{"jsonrpc":"2.0","result":"hello","id":{}}}"#, id(request)))
    });
    fails(&cli(&["list", &endpoint]), 5, &["rpc.discover", "not OpenRPC"]);
}

#[test]
fn a_call_that_does_not_fit_is_not_sent() {
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
fn a_call_that_fits_is_sent_and_nobody_asks_unless_told_to() {
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

/// Of two Responses the one to the call is shown, whatever ids they have.
#[test]
fn the_whole_response_is_that_of_the_call() {
    let server = Server::start("tcp://127.0.0.1:0", "");
    for id in ["1", "0", "\"a\""] {
        let words =
            ["call", "--check", "--raw", "--id", id, server.endpoint("tcp"), "sum", "1", "2"];
        let expected = format!("{{\"jsonrpc\":\"2.0\",\"result\":3,\"id\":{id}}}\n");
        assert_eq!(cli(&words).stdout, expected);
    }
}

/// A file is enough to refuse, and then nobody is reached.
#[test]
fn a_file_says_what_fits() {
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
fn a_refusal_is_explained_by_the_document() {
    let server = Server::start(WIRES, "");
    for wire in ["tcp", "http", "ws"] {
        let endpoint = server.endpoint(wire);
        fails(
            &cli(&["call", endpoint, "substract", "1"]),
            1,
            &["-32601", "did you mean `subtract`?"],
        );
        let words = ["-32602", "data: ", "hint: it is subtract(minuend, subtrahend)"];
        fails(&cli(&["call", endpoint, "subtract", "1"]), 1, &words);
        // Where nothing is like it, the usual hint stays.
        fails(&cli(&["call", endpoint, "xyzzy"]), 1, &["check its spelling"]);
    }
    // An error that is not about the call is left alone.
    let ended = cli(&["call", "-v", server.endpoint("tcp"), "fail", "7", "seven"]);
    assert!(!ended.stderr.contains("rpc.discover"), "{}", ended.stderr);
    // The whole Response is asked for, and no hint.
    let ended = cli(&["call", "-v", "--raw", server.endpoint("tcp"), "nope"]);
    assert!(ended.stdout.contains("-32601") && !ended.stderr.contains("rpc.discover"), "{ended:?}");
}

/// A server that refuses, and then does not answer any more: the refusal is the outcome.
#[test]
fn advice_that_does_not_come_changes_nothing() {
    let (endpoint, served) = scripted(|request| {
        let refused = r#""error":{"code":-32601,"message":"nope"}"#;
        let answer = format!(r#"{{"jsonrpc":"2.0",{refused},"id":{}}}"#, id(request));
        (!request.contains("rpc.discover")).then_some(answer)
    });
    let ended = cli(&["call", "--timeout", "300ms", &endpoint, "page"]);
    fails(&ended, 1, &["error -32601: nope", "check its spelling"]);
    assert!(served.join().unwrap().len() == 2);
}
