//! The middleware of `antiphon serve`.

use crate::support::{Connection, Framing, Http, Scratch, Server, Stream, Ws, antiphon, run};

const WHO: &str = r#"{"jsonrpc":"2.0","method":"whoami","id":1}"#;
const LOGIN: &str = r#"{"jsonrpc":"2.0","method":"rpc.login","params":["s3cret"],"id":0}"#;
const REFUSED: &str = r#"{"jsonrpc":"2.0","error":{"code":-32013,"message":"Unauthorized","data":"credentials are missing"},"id":1}"#;
const SERVED: &str = r#"{"jsonrpc":"2.0","result":"bearer-1","id":1}"#;
const JSON: &str = "content-type: application/json\r\n";

fn page(server: &Server, path: &str) -> String {
    let address = server.address("http");
    let mut http = Http::connect(address);
    http.raw(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).unwrap();
    let answer = http.answer().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

#[test]
fn every_transport_requires_credentials() {
    let scratch = Scratch::new();
    let socket = scratch.path("auth.sock");
    let unix = format!("unix:{}", socket.display());
    let server = Server::start(
        &format!("http://127.0.0.1:0 tcp://127.0.0.1:0 {unix}"),
        "--auth-bearer s3cret --auth-basic ada:pass --metrics",
    );
    let mut http = Http::connect(server.address("http"));
    let answer = http.post(WHO.as_bytes());
    assert_eq!((answer.status, &*answer.body), (401, REFUSED));
    assert!(answer.header("www-authenticate").unwrap().contains("Bearer"));
    let known = format!("{JSON}authorization: Bearer s3cret\r\n");
    let answer = http.request("POST", &known, WHO.as_bytes());
    assert_eq!((answer.status, &*answer.body), (200, SERVED));
    let known = format!("{JSON}authorization: Basic YWRhOnBhc3M=\r\n");
    assert!(http.request("POST", &known, WHO.as_bytes()).body.contains("\"ada\""));

    let mut ws = Ws::connect(server.address("http"));
    let mut tcp = Stream::tcp(server.address("tcp"), Framing::Line);
    let mut unix = Stream::unix(socket.to_str().unwrap(), Framing::Header);
    for stream in [&mut ws as &mut dyn Connection, &mut tcp, &mut unix] {
        assert_eq!(stream.ask(WHO), REFUSED);
        assert!(stream.ask(LOGIN).contains("\"bearer-1\""));
        assert_eq!(stream.ask(WHO), SERVED);
    }
    // Rejected calls are counted too, with their error code.
    let counts = page(&server, "/metrics");
    for line in [
        r#"antiphon_calls_total{method="whoami",kind="request"} 9"#,
        r#"antiphon_call_errors_total{method="whoami",code="-32013"} 4"#,
    ] {
        assert!(counts.lines().any(|found| found == line), "{line}\n{counts}");
    }
}

#[test]
fn stdio_supports_login() {
    let mut command = antiphon();
    command.args(["serve", "stdio:"]).env("ANTIPHON_AUTH_BEARER", "s3cret");
    let ended = run(&mut command, format!("{WHO}\n{LOGIN}\n{WHO}\n").as_bytes());
    let answers: Vec<_> = ended.stdout.lines().collect();
    let login = r#"{"jsonrpc":"2.0","result":"bearer-1","id":0}"#;
    assert_eq!(answers, [REFUSED, login, SERVED], "{ended:?}");
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
}

#[test]
fn secrets_come_from_files_and_are_never_printed() {
    let scratch = Scratch::new();
    let file = scratch.path("tokens");
    std::fs::write(&file, "first\n\n  second  \n").unwrap();
    let flags = format!("--auth-bearer @{} --log trace", file.display());
    let server = Server::start("tcp://127.0.0.1:0", &flags);
    let mut stream = Stream::tcp(server.address("tcp"), Framing::Line);
    let login = |token| LOGIN.replace("s3cret", token);
    assert!(stream.ask(&login("second")).contains("\"bearer-2\""));
    assert!(stream.ask(&login("third")).contains("-32013"));
    drop(stream);
    server.process().signal(rustix::process::Signal::TERM);
    let (_, stderr) = server.end();
    assert!(!stderr.contains("second") && !stderr.contains("first"), "{stderr}");

    for (flags, hint) in [
        (&["--auth-bearer", ""][..], "the secret is empty"),
        (&["--auth-bearer", "@/nowhere/tokens"], "/nowhere/tokens"),
        (&["--auth-basic", "ada"], "ada:secret"),
        (&["--rate-limit", "fast"], "100/s"),
    ] {
        let ended = run(antiphon().args(["serve", "tcp://127.0.0.1:0"]).args(flags), b"");
        assert_eq!(ended.code, Some(2), "{flags:?}: {ended:?}");
        assert!(ended.stderr.contains(hint), "{flags:?}: {}", ended.stderr);
    }
    let help = run(antiphon().args(["serve", "--help"]).env("ANTIPHON_AUTH_BEARER", "hush"), b"");
    assert!(help.stdout.contains("--auth-bearer") && !help.stdout.contains("hush"));
}

#[test]
fn rate_limits_and_method_filters_apply() {
    let server = Server::start(
        "tcp://127.0.0.1:0",
        "--rate-limit sum=1/h --allow-method s* --deny-method sleep",
    );
    let mut stream = Stream::tcp(server.address("tcp"), Framing::Line);
    let call = |method: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":1}}"#);
    let batch = format!("[{},{},{}]", call("sum"), call("sum"), call("sleep"));
    let answers: serde_json::Value = serde_json::from_str(&stream.ask(&batch)).unwrap();
    assert_eq!(answers[0]["result"], 0);
    assert_eq!(answers[1]["error"]["code"], -32014);
    assert!(answers[1]["error"]["data"]["retryAfterMs"].as_u64().unwrap() <= 3_600_000);
    assert_eq!(answers[2]["error"]["code"], -32601);
    assert!(stream.ask(&call("echo")).contains("-32601"));
    stream.works();
}

#[test]
fn login_attempts_are_limited_per_address() {
    let server = Server::start(
        "tcp://127.0.0.1:0",
        "--auth-bearer s3cret --rate-limit 1000/s --rate-limit rpc.login=2/h",
    );
    let ask = || Stream::tcp(server.address("tcp"), Framing::Line).ask(LOGIN);
    assert_eq!([ask(), ask()].map(|answer| answer.contains("bearer-1")), [true, true]);
    assert!(ask().contains("-32014"), "a new connection does not allow more attempts");
}

#[test]
fn every_http_endpoint_has_a_health_check() {
    let server = Server::start("http://127.0.0.1:0", "--max-concurrency 1 --auth-bearer x");
    assert_eq!(page(&server, "/healthz"), "ok\n");
    let address = server.address("http");
    let mut http = Http::connect(address);
    http.raw(format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(http.answer().unwrap().status, 405, "--metrics is not set");
}

#[test]
fn each_call_is_logged_with_its_trace() {
    let server = Server::start("tcp://127.0.0.1:0", "--trace");
    let mut stream = Stream::tcp(server.address("tcp"), Framing::Line);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let call = r#"{"jsonrpc":"2.0","method":"call_me_back","params":["name",[]],"id":"x"#;
    let asked = stream.ask(&format!(r#"{call}","traceparent":"{parent}"}}"#));
    assert!(asked.contains(r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-"#), "{asked}");
    assert!(
        !asked.contains("b7ad6b7169203331"),
        "an outgoing call has the span of this call as its parent"
    );
    let asked: serde_json::Value = serde_json::from_str(&asked).unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","result":1,"id":{}}}"#, asked["id"]);
    assert!(stream.ask(&answer).contains("\"result\":1"));
    assert!(stream.ask(r#"{"jsonrpc":"2.0","method":"a\nb","id":2}"#).contains("-32601"));
    let line = server.stderr_line();
    for part in ["call_me_back", "trace_id=0af7651916cd43dd8448eb211c80319c", "transport=\"tcp\""] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let line = server.stderr_line();
    assert!(line.contains("code=-32601") && line.contains("INFO"), "{line}");
}

#[test]
fn the_engine_api_needs_a_token_over_http_and_websocket_only() {
    let scratch = Scratch::new();
    let file = scratch.path("jwt.hex");
    std::fs::write(&file, format!("0x{}\n", "a7".repeat(32))).unwrap();
    let (file, socket) = (file.to_str().unwrap(), scratch.path("engine.sock"));
    let unix = format!("unix:{}", socket.display());
    let flags = format!("--dialect ethereum --jwt-secret {file}");
    let server = Server::start(&format!("http://127.0.0.1:0 {unix}"), &flags);
    let http = server.endpoint("http");
    let ws = http.replace("http:", "ws:");
    for endpoint in [http, &ws] {
        let words = ["call", endpoint, "echo", "1", "--jwt-secret", file, "--verbose"];
        let ended = run(antiphon().args(words), b"");
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "[1]\n"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("eyJ"), "{}", ended.stderr);
        let ended = run(antiphon().args(["call", endpoint, "echo", "1"]), b"");
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert!(ended.stderr.contains("401"), "{}", ended.stderr);
    }
    let check = ["check", http, "--only", "batch"];
    let ended = run(antiphon().args(check).args(["--jwt-secret", file]), b"");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_ne!(run(antiphon().args(check), b"").code, Some(0));
    let ended = run(antiphon().args(["call", "--dialect", "ethereum", &unix, "echo", "1"]), b"");
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "[1]\n"), "{}", ended.stderr);
}

#[test]
fn a_jwt_secret_that_cannot_be_used_is_a_usage_error() {
    let scratch = Scratch::new();
    let short = scratch.path("short.hex");
    std::fs::write(&short, "a7a7").unwrap();
    let (short, missing) = (short.to_str().unwrap(), scratch.path("missing.hex"));
    let missing = missing.to_str().unwrap();
    for (words, said) in [
        (["call", "http://127.0.0.1:1", "echo", "--jwt-secret", missing], "openssl rand -hex 32"),
        (
            ["call", "http://127.0.0.1:1", "echo", "--jwt-secret", short],
            "64 hexadecimal digits, found 4",
        ),
        (["call", "tcp://127.0.0.1:1", "echo", "--jwt-secret", short], "does not support headers"),
        (
            ["check", "http://127.0.0.1:1", "--budget=61s", "--jwt-secret", short],
            "--budget 60s or less",
        ),
        (
            ["check", "http://127.0.0.1:1", "--hostile", "--jwt-secret", short],
            "cannot be used with",
        ),
        (["serve", "http://127.0.0.1:0", "--threads=1", "--jwt-secret", short], "found 4"),
        (
            ["serve", "tcp://127.0.0.1:0", "--threads=1", "--jwt-secret", short],
            "cannot protect tcp://",
        ),
        (
            ["serve", "http://127.0.0.1:0", "--dialect=bitcoin", "--jwt-secret", short],
            "--auth-cookie",
        ),
        (
            ["serve", "http://127.0.0.1:0", "--auth-bearer=x", "--jwt-secret", short],
            "cannot be used with",
        ),
    ] {
        let ended = run(antiphon().args(words), b"");
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
    }
}
