//! The sections of the specifications: their names and their URLs.

/// The sections of the JSON-RPC 2.0 specification: number, name, and anchor.
const SECTIONS: [(&str, &str, &str); 11] = [
    ("1", "Overview", "overview"),
    ("2", "Conventions", "conventions"),
    ("3", "Compatibility", "compatibility"),
    ("4", "Request object", "request_object"),
    ("4.1", "Notification", "notification"),
    ("4.2", "Parameter structures", "parameter_structures"),
    ("5", "Response object", "response_object"),
    ("5.1", "Error object", "error_object"),
    ("6", "Batch", "batch"),
    ("7", "Examples", "examples"),
    ("8", "Extensions", "extensions"),
];

/// Returns the readable name of a section: `section 4.1, Notification`, `RFC 9110, section 15.5.6`.
pub(crate) fn name(section: &str) -> String {
    if let Some((number, name, _)) = SECTIONS.iter().find(|(number, ..)| *number == section) {
        return format!("section {number}, {name}");
    }
    match rfc(section) {
        Some((number, part)) => format!("RFC {number}, section {part}"),
        None => section.to_owned(),
    }
}

/// Returns the URL of a section.
pub(crate) fn link(section: &str) -> Option<String> {
    if let Some((.., anchor)) = SECTIONS.iter().find(|(number, ..)| *number == section) {
        return Some(format!("https://www.jsonrpc.org/specification#{anchor}"));
    }
    if let Some((number, part)) = rfc(section) {
        return Some(format!("https://www.rfc-editor.org/rfc/rfc{number}#section-{part}"));
    }
    let place = match section.split_once(' ').unwrap_or((section, "")) {
        ("LSP", anchor) => format!(
            "https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#{anchor}"
        ),
        ("MCP", page) => {
            let page = page.replacen(' ', "/", 1).replace("/index#", "#");
            format!("https://modelcontextprotocol.io/specification/{page}")
        }
        ("JSON-RPC", "1.0") => "https://www.jsonrpc.org/specification_v1".to_owned(),
        ("Bitcoin", _) => {
            "https://github.com/bitcoin/bitcoin/blob/master/doc/JSON-RPC-interface.md".to_owned()
        }
        ("EIP", number) => format!("https://eips.ethereum.org/EIPS/eip-{number}"),
        ("Ethereum", _) => "https://ethereum.github.io/execution-apis/".to_owned(),
        _ => return None,
    };
    Some(place.trim_end_matches('#').to_owned())
}

/// Splits `RFC 9110 15.5.6` into the number of the RFC and the section.
fn rfc(section: &str) -> Option<(&str, &str)> {
    section.strip_prefix("RFC ")?.split_once(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_names_and_links() {
        assert_eq!(name("4.1"), "section 4.1, Notification");
        assert_eq!(name("RFC 9110 15.5.6"), "RFC 9110, section 15.5.6");
        assert_eq!(name("LSP headerPart"), "LSP headerPart");
        assert_eq!(link("5.1").unwrap(), "https://www.jsonrpc.org/specification#error_object");
        let allow = link("RFC 9110 15.5.6").unwrap();
        assert_eq!(allow, "https://www.rfc-editor.org/rfc/rfc9110#section-15.5.6");
        assert!(link("LSP headerPart").unwrap().ends_with("/#headerPart"));
        let lifecycle = link("MCP 2025-11-25 basic/lifecycle#initialization").unwrap();
        assert!(lifecycle.ends_with("/specification/2025-11-25/basic/lifecycle#initialization"));
        assert_eq!(link("my own rules"), None);
    }
}
