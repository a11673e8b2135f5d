//! The table of requests and responses of Bitcoin Core, `testdata/bitcoin_core.txt`.

/// A request, and the response of each server.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The request, with `{host}` for the authority of the server.
    pub(crate) request: String,
    pub(crate) core: Expected,
    /// Where Antiphon differs on purpose.
    pub(crate) antiphon: Option<Expected>,
}

/// An expected response.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    status: &'static str,
    content_type: &'static str,
    headers: Vec<&'static str>,
    body: String,
}

impl Expected {
    /// Returns the first difference.
    pub(crate) fn compare(&self, response: &str) -> Result<(), String> {
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or((response, ""));
        let head = head.to_ascii_lowercase();
        let has = |line: &str| head.lines().any(|one| one == line.to_ascii_lowercase());
        let is_json = has("content-type: application/json");
        let is_same = head.starts_with(&format!("http/1.1 {} ", self.status))
            && is_json == (self.content_type == "application/json")
            && self.headers.iter().all(|line| has(line))
            && body == self.body;
        if is_same { Ok(()) } else { Err(format!("expected {self:?}, found {response:?}")) }
    }
}

/// Reads the table.
pub(crate) fn cases() -> Vec<Case> {
    let table = include_str!("../../../../testdata/bitcoin_core.txt");
    let table = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let lines: Vec<&str> = table.collect();
    let starts = |line: &&str| line.starts_with("== ");
    let all: Vec<_> = lines.chunk_by(|_, next| !starts(next)).map(case).collect();
    assert!(all.iter().all(|case| !case.core.status.is_empty()), "a case without a status");
    all
}

/// `alice` and `hush`.
const AUTHORIZATION: &str = "authorization: Basic YWxpY2U6aHVzaA==";

fn case(lines: &[&'static str]) -> Case {
    let (name, _) = lines[0][3..].split_once(": ").expect("a name and a sentence");
    let mut sent = Sent::default();
    let mut replies = vec![Expected::default()];
    for line in &lines[1..] {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        let reply = replies.last_mut().expect("there is one");
        match mark {
            "@" if rest.starts_with("source ") => {}
            "@" if rest.starts_with("differs ") => replies.push(Expected::default()),
            ">>" => sent.target = rest,
            ">+" => sent.headers.push(rest),
            "-->" => sent.body.push(rest),
            "<<" => {
                let (status, content_type) = rest.split_once(' ').expect("a status and a type");
                (reply.status, reply.content_type) = (status, content_type);
            }
            "<+" => reply.headers.push(rest),
            "<--" => reply.body = format!("{rest}\n"),
            "<-." => reply.body = rest.to_owned(),
            _ => panic!("{name}: unknown line {line:?}"),
        }
    }
    let mut replies = replies.into_iter();
    let core = replies.next().expect("there is one");
    Case { name, request: sent.to_text(), core, antiphon: replies.next() }
}

#[derive(Default)]
struct Sent {
    target: &'static str,
    headers: Vec<&'static str>,
    body: Vec<&'static str>,
}

impl Sent {
    fn to_text(&self) -> String {
        let mut headers = self.headers.clone();
        if !headers.iter().any(|line| line.starts_with("authorization:")) {
            headers.push(AUTHORIZATION);
        }
        // A header without a value is left out.
        headers.retain(|line| !line.ends_with(':'));
        let body = self.body.join("\n");
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let Self { target, .. } = self;
        let length = match target.starts_with('P') {
            true => format!("content-length: {}\r\n", body.len()),
            false => String::new(),
        };
        format!(
            "{target} HTTP/1.1\r\nhost: {{host}}\r\nconnection: close\r\n{headers}{length}\r\n{body}"
        )
    }
}
