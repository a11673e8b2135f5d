//! What does one line of a transcript say, once its mark is known?

use std::time::Duration;

use super::{
    Class, Crowd, ExpectedFrame, HeaderIs, HttpAnswer, Level, Pattern, Profile, Text, Wire,
};

/// The longest wait of a case.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The most connections beside the one that is judged.
const MAX_CROWD: usize = 512;
/// Of the last frame of a message.
const FIN: u8 = 0x80;

pub(super) fn level(text: &str) -> Result<Level, String> {
    match text {
        "MUST" => Ok(Level::Must),
        "SHOULD" => Ok(Level::Should),
        "choice" => Ok(Level::Choice),
        _ => Err(format!("unknown level {text:?}; choose MUST, SHOULD or choice")),
    }
}

pub(super) fn classes(text: &str) -> Result<Vec<Class>, String> {
    text.split_whitespace().map(class).collect()
}

fn class(name: &str) -> Result<Class, String> {
    match name {
        "duplex" => Ok(Class::Duplex),
        "stream" => Ok(Class::Stream),
        "http" => Ok(Class::One(Wire::Http)),
        "ws" => Ok(Class::One(Wire::Ws)),
        "line" => Ok(Class::One(Wire::Line)),
        "header" => Ok(Class::One(Wire::Header)),
        "values" => Ok(Class::One(Wire::Values)),
        _ => Err(format!(
            "unknown wire {name:?}; choose duplex, stream, http, ws, line, header or values"
        )),
    }
}

pub(super) fn profiles(text: &str) -> Result<Vec<Profile>, String> {
    let profile = |name: &str| match name {
        "lsp" => Ok(Profile::Lsp),
        "bitcoin" => Ok(Profile::Bitcoin),
        "ethereum" => Ok(Profile::Ethereum),
        _ => Err(format!("unknown profile {name:?}; choose lsp, bitcoin or ethereum")),
    };
    text.split_whitespace().map(profile).collect()
}

pub(super) fn yes(text: &str, word: &str) -> Result<bool, String> {
    if text == word { Ok(true) } else { Err(format!("{text:?} must be `{word}`")) }
}

pub(super) fn expectation(text: &str) -> Result<Pattern, String> {
    let text =
        String::from_utf8(Text::new(text)?.bytes()).map_err(|_| "an expectation must be UTF-8")?;
    Pattern::parse(&text)
}

/// `text TEXT`, `cont+ TEXT`, `close 1000 TEXT`: the first byte of a frame and its payload.
pub(super) fn frame(text: &str) -> Result<(u8, Text), String> {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (kind, fin) = kind.strip_suffix('+').map_or((kind, FIN), |kind| (kind, 0));
    let opcode = match kind {
        "cont" => 0,
        "text" => 1,
        "binary" => 2,
        "close" => return Ok((fin | 8, close(rest)?)),
        "ping" => 9,
        "pong" => 10,
        _ => {
            return Err(format!(
                "unknown frame {kind:?}; choose text, binary, cont, ping, pong or close"
            ));
        }
    };
    Ok((fin | opcode, Text::new(rest)?))
}

/// `1000 reason`, or nothing.
fn close(text: &str) -> Result<Text, String> {
    if text.is_empty() {
        return Text::new("");
    }
    let (code, reason) = text.split_once(' ').unwrap_or((text, ""));
    let [high, low] = code_of(code)?.to_be_bytes();
    Text::new(&format!("<<{high:02x} {low:02x}>>{reason}"))
}

fn code_of(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is no close code; write one as 1000"))
}

/// `pong TEXT` or `close 1002|1007`.
pub(super) fn expected_frame(text: &str) -> Result<ExpectedFrame, String> {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    match kind {
        "pong" => Ok(ExpectedFrame::Pong(Text::new(rest)?.bytes())),
        "close" if rest.trim().is_empty() => Ok(ExpectedFrame::Close(Vec::new())),
        "close" => {
            let codes = rest.trim().split('|').map(code_of).collect::<Result<_, _>>()?;
            Ok(ExpectedFrame::Close(codes))
        }
        _ => Err(format!("unknown frame {kind:?}; `pong TEXT` or `close CODE` can be expected")),
    }
}

/// The statuses that are right: `405`, `4xx`, `200|204`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statuses(pub(crate) String);

impl Statuses {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let is_one = |one: &str| {
            let digit = |c: char| c.is_ascii_digit();
            one.len() == 3
                && one.starts_with(digit)
                && (one.chars().all(digit) || one.ends_with("xx"))
        };
        if text.split('|').all(is_one) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("{text:?} is no status; write 405, 4xx or 200|204"))
    }

    pub(crate) fn has(&self, status: u16) -> bool {
        let status = status.to_string();
        self.0.split('|').any(|one| match one.strip_suffix("xx") {
            Some(class) => status.starts_with(class),
            None => one == status,
        })
    }
}

/// `405` begins an HTTP answer; `name: text` says more of one.
pub(super) enum Head {
    Begins(HttpAnswer),
    Header(String, HeaderIs),
}

pub(super) fn head(text: &str) -> Result<Head, String> {
    let Some((name, text)) = text.split_once(':') else {
        let statuses = Statuses::parse(text.trim())?;
        return Ok(Head::Begins(HttpAnswer { statuses, ..HttpAnswer::default() }));
    };
    let is = match text.trim() {
        "<any>" => HeaderIs::Any,
        "<none>" => HeaderIs::Absent,
        "" => return Err("say what the header holds, or <any>, or <none>".to_owned()),
        text => HeaderIs::Holding(text.to_ascii_lowercase()),
    };
    Ok(Head::Header(name.trim().to_ascii_lowercase(), is))
}

pub(super) fn wait(text: &str) -> Result<Duration, String> {
    let span: crate::quantity::Span = text.trim().parse()?;
    if span.0 > MAX_WAIT {
        return Err(format!("{text} is too long: a case waits for at most 5s at a time"));
    }
    Ok(span.0)
}

/// `N TEXT`.
pub(super) fn crowd(text: &str, stays: bool) -> Result<Crowd, String> {
    let (count, rest) = text.split_once(' ').unwrap_or((text, ""));
    match count.parse() {
        Ok(count @ 1..=MAX_CROWD) => Ok(Crowd { count, text: Text::new(rest)?, stays }),
        _ => Err(format!("{count:?} connections: write a number from 1 to {MAX_CROWD}")),
    }
}

/// Bytes as they are; `x` says that they are written in hex.
pub(super) fn raw(mark: &str, text: &str) -> Result<Text, String> {
    match mark {
        ">>x" => Text::hex(text),
        ">>." => Text::new(text),
        _ => Text::line(text),
    }
}
