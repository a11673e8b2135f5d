//! Parsers for the lines of a transcript, one per mark.

use std::time::Duration;

use super::{
    ExpectedFrame, ExpectedHeader, ExpectedResponse, ExtraConnections, McpEra, Pattern, Profile,
    RequirementLevel, TranscriptText, WireClass, WireKind,
};

/// The longest wait of one step.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The limit of extra connections.
const MAX_CROWD: usize = 512;
/// The FIN bit, set on the last frame of a message.
const FIN: u8 = 0x80;

pub(super) fn level(text: &str) -> Result<RequirementLevel, String> {
    match text {
        "MUST" => Ok(RequirementLevel::Must),
        "SHOULD" => Ok(RequirementLevel::Should),
        "choice" => Ok(RequirementLevel::Choice),
        _ => Err(format!("unknown level {text:?}; choose MUST, SHOULD or choice")),
    }
}

pub(super) fn classes(text: &str) -> Result<Vec<WireClass>, String> {
    text.split_whitespace().map(class).collect()
}

fn class(name: &str) -> Result<WireClass, String> {
    match name {
        "duplex" => Ok(WireClass::Duplex),
        "stream" => Ok(WireClass::Stream),
        "http" => Ok(WireClass::One(WireKind::Http)),
        "ws" => Ok(WireClass::One(WireKind::Ws)),
        "line" => Ok(WireClass::One(WireKind::Line)),
        "header" => Ok(WireClass::One(WireKind::Header)),
        "values" => Ok(WireClass::One(WireKind::Values)),
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
        "mcp" => Ok(Profile::Mcp),
        _ => Err(format!("unknown profile {name:?}; choose lsp, bitcoin, ethereum or mcp")),
    };
    text.split_whitespace().map(profile).collect()
}

pub(super) fn era(text: &str) -> Result<McpEra, String> {
    match text {
        "legacy" => Ok(McpEra::Legacy),
        "modern" => Ok(McpEra::Modern),
        _ => Err(format!("unknown era {text:?}; choose legacy or modern")),
    }
}

pub(super) fn yes(text: &str, word: &str) -> Result<bool, String> {
    if text == word { Ok(true) } else { Err(format!("{text:?} must be `{word}`")) }
}

pub(super) fn expectation(text: &str) -> Result<Pattern, String> {
    let text = String::from_utf8(TranscriptText::new(text)?.bytes())
        .map_err(|_| "an expectation must be UTF-8")?;
    Pattern::parse(&text)
}

/// Parses `text TEXT`, `cont+ TEXT` or `close 1000 TEXT` to the first byte of a frame and its payload.
pub(super) fn frame(text: &str) -> Result<(u8, TranscriptText), String> {
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
    Ok((fin | opcode, TranscriptText::new(rest)?))
}

/// Parses `1000 reason`, or nothing.
fn close(text: &str) -> Result<TranscriptText, String> {
    if text.is_empty() {
        return TranscriptText::new("");
    }
    let (code, reason) = text.split_once(' ').unwrap_or((text, ""));
    let [high, low] = code_of(code)?.to_be_bytes();
    TranscriptText::new(&format!("<<{high:02x} {low:02x}>>{reason}"))
}

fn code_of(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is not a close code; write a number such as 1000"))
}

/// Parses `pong TEXT` or `close 1002|1007`.
pub(super) fn expected_frame(text: &str) -> Result<ExpectedFrame, String> {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    match kind {
        "pong" => Ok(ExpectedFrame::Pong(TranscriptText::new(rest)?.bytes())),
        "close" if rest.trim().is_empty() => Ok(ExpectedFrame::Close(Vec::new())),
        "close" => {
            let codes = rest.trim().split('|').map(code_of).collect::<Result<_, _>>()?;
            Ok(ExpectedFrame::Close(codes))
        }
        _ => Err(format!("unknown frame {kind:?}; `pong TEXT` or `close CODE` can be expected")),
    }
}

/// The expected statuses: `405`, `4xx`, `200|204`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatusSet(pub(crate) String);

impl StatusSet {
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
        Err(format!("{text:?} is not a status; write 405, 4xx or 200|204"))
    }

    pub(crate) fn has(&self, status: u16) -> bool {
        let status = status.to_string();
        self.0.split('|').any(|one| match one.strip_suffix("xx") {
            Some(class) => status.starts_with(class),
            None => one == status,
        })
    }
}

/// A line of an expected HTTP response: `405` begins one, `name: text` adds a header.
pub(super) enum HeadLine {
    Begins(ExpectedResponse),
    Header(String, ExpectedHeader),
}

pub(super) fn head(text: &str) -> Result<HeadLine, String> {
    let Some((name, text)) = text.split_once(':') else {
        let statuses = StatusSet::parse(text.trim())?;
        return Ok(HeadLine::Begins(ExpectedResponse { statuses, ..ExpectedResponse::default() }));
    };
    let is = match text.trim() {
        "<any>" => ExpectedHeader::Any,
        "<none>" => ExpectedHeader::Absent,
        "" => return Err("write a text that the header contains, <any> or <none>".to_owned()),
        text => ExpectedHeader::Holding(text.to_ascii_lowercase()),
    };
    Ok(HeadLine::Header(name.trim().to_ascii_lowercase(), is))
}

/// Parses `name: value` or `name: <none>`, a header of the next POST.
pub(super) fn post_header(text: &str) -> Result<(String, Option<TranscriptText>), String> {
    let (name, value) =
        text.split_once(':').ok_or("write `>h name: value` or `>h name: <none>`")?;
    let value = match value.trim() {
        "<none>" => None,
        value => Some(TranscriptText::new(value)?),
    };
    Ok((name.trim().to_ascii_lowercase(), value))
}

pub(super) fn wait(text: &str) -> Result<Duration, String> {
    let time = duration(text.trim()).filter(|time| !time.is_zero());
    let time = time.ok_or_else(|| format!("`{text}` is not a time; write 500ms or 2s"))?;
    if time > MAX_WAIT {
        return Err(format!("{text} is too long: a case waits for at most 5s at a time"));
    }
    Ok(time)
}

/// Parses a number with a unit; without one, seconds.
fn duration(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

/// Parses `N TEXT`.
pub(super) fn crowd(text: &str, stays: bool) -> Result<ExtraConnections, String> {
    let (count, rest) = text.split_once(' ').unwrap_or((text, ""));
    match count.parse() {
        Ok(count @ 1..=MAX_CROWD) => {
            Ok(ExtraConnections { count, text: TranscriptText::new(rest)?, stays })
        }
        _ => Err(format!("{count:?} connections: write a number from 1 to {MAX_CROWD}")),
    }
}

/// Parses raw bytes; `>>x` is hex.
pub(super) fn raw(mark: &str, text: &str) -> Result<TranscriptText, String> {
    match mark {
        ">>x" => TranscriptText::hex(text),
        ">>." => TranscriptText::new(text),
        _ => TranscriptText::line(text),
    }
}
