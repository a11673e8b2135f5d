//! Valid transcripts, and the errors of invalid ones.

use super::*;

const CASE: &str = "@ section 4\n== a: it works\n--> 1\n<-! nothing\n";

fn one(text: &str) -> TranscriptCase {
    parse("group", text).unwrap().pop().unwrap()
}

fn sent(line: &str) -> Vec<u8> {
    let case = one(&format!("@ section 4\n== a: it works\n{line}\n<-!\n"));
    match &case.steps[0] {
        CaseStep::Send(text) => text.bytes(),
        other => panic!("{other:?} sends nothing"),
    }
}

#[test]
fn a_case_has_its_facts_and_steps() {
    let case = one(
        "# what it is about\n@ section 4\n@ level SHOULD\n\n== a-1: it works: always\n@ section 4.1\n\
         @ level choice\n@ why it matters\n@ only duplex\n@ skip line ws\n--> {}\n<-- 1\n<~~ 2\n<~~ 3\n<-!\n",
    );
    assert_eq!((&*case.group, &*case.name, &*case.title), ("group", "a-1", "it works: always"));
    assert_eq!((&*case.facts.section, case.facts.level), ("4.1", RequirementLevel::Choice));
    assert_eq!(case.why.as_deref(), Some("it matters"));
    assert!(matches!(
        &case.steps[..],
        [CaseStep::Send(_), CaseStep::Expect(_), CaseStep::Unordered(two), CaseStep::Nothing] if two.len() == 2
    ));
}

#[test]
fn facts_of_the_file_hold_until_a_case_says_otherwise() {
    let text = "@ section 6\n@ level SHOULD\n@ only duplex\n== a: x\n--> 1\n<-!\n== b: y\n@ level MUST\n@ only http\n--> 1\n<-!\n";
    let cases = parse("group", text).unwrap();
    assert_eq!(
        (cases[0].facts.level, cases[0].facts.fits(WireKind::Http)),
        (RequirementLevel::Should, false)
    );
    assert_eq!(
        (cases[1].facts.level, cases[1].facts.fits(WireKind::Http)),
        (RequirementLevel::Must, true)
    );
    assert_eq!(one(CASE).facts.level, RequirementLevel::Must);
}

#[test]
fn wires_are_chosen() {
    let over = |facts: &str| {
        let case = one(&CASE.replace("--> ", &format!("{facts}\n--> ")));
        [WireKind::Http, WireKind::Ws, WireKind::Line, WireKind::Header]
            .map(|wire| case.facts.fits(wire))
    };
    assert_eq!(over(""), [true, true, true, true]);
    assert_eq!(over("@ only duplex"), [false, true, true, true]);
    assert_eq!(over("@ only stream"), [false, false, true, true]);
    assert_eq!(over("@ only http ws"), [true, true, false, false]);
    assert_eq!(over("@ skip line"), [true, true, false, true]);
    assert_eq!(over("@ only duplex\n@ skip line"), [false, true, false, true]);
}

#[test]
fn messages_are_sent_as_written() {
    assert_eq!(sent("-->  a  "), b" a  ");
    assert_eq!(sent("-->"), b"");
    assert_eq!(sent("--> "), b"");
    assert_eq!(sent("-->x 7B 22 ff"), b"{\"\xFF");
    assert_eq!(sent("--> [<<1, x 3>>4]<<0A C3>>"), b"[1,1,1,4]\n\xC3");
    assert_eq!(sent("--> <<a x  x 2>>"), b"a x a x ");
}

#[test]
fn faults_name_the_file_and_the_line() {
    for (text, line, part) in [
        ("--> 1", 1, "needs a case"),
        ("== a", 1, "case-name"),
        ("== A b: c", 1, "kebab-case"),
        ("\n<- 1", 2, "unknown mark"),
        ("== a: b\n<-- 1", 2, "starts with a message to send"),
        ("== a: b\n--> 1\n@ level MUST", 3, "before the first step"),
        ("== a: b\n--> 1\n<-- {", 3, "not JSON"),
        ("== a: b\n--> <<x", 2, "without `>>`"),
        ("== a: b\n--> <<xyz>>", 2, "hex"),
        ("== a: b\n--> <<xx x 999999999>>", 2, "longer than"),
        ("== a: b\n-->x 7B2", 2, "hex"),
        ("== a: b\n@ level must", 2, "MUST, SHOULD or choice"),
        ("== a: b\n@ only tcp", 2, "choose duplex"),
        ("== a: b\n@ colour red", 2, "unknown fact"),
        ("== a: b\n@ era old", 2, "legacy or modern"),
        ("== a: b\n@ watch all", 2, "unknown rule"),
        ("== a: b\n>h accept", 2, "name: value"),
        ("@ why not", 1, "whole file"),
        ("== a: b\n== a: b", 2, "twice"),
    ] {
        let fault = parse("group", text).unwrap_err();
        assert!(fault.starts_with(&format!("group.wire:{line}: ")), "{fault}");
        assert!(fault.contains(part), "{fault}");
    }
}

#[test]
fn a_case_needs_a_section_and_an_end() {
    assert!(parse("group", "== a: b\n--> 1\n<-!").unwrap_err().contains("no section"));
    assert!(parse("group", "@ section 4\n== a: b\n--> 1").unwrap_err().contains("must have"));
    let unended = "@ section 4\n== a: b\n--> 1\n<-!\n--> 2";
    assert!(parse("group", unended).unwrap_err().contains("must end"));
    assert!(parse("group", "@ section 4\n== a: b").unwrap_err().contains("must have"));
}

#[test]
fn steps_below_messages_are_parsed() {
    let case = one(
        "@ section RFC 9110 15.5.6\n@ unless lsp bitcoin\n@ order kept\n@ alone yes\n== a: b\n>> GET <path> HTTP/1.1\n>>\n>>. {}\n\
         >>x 0D\n<< 4xx|200\n<< Allow: post\n<< x: <none>\n<|| 501\n<-!\n>f cont+ ab\n>f close 1000 by\n<f close 1002|1007\n\
         <f pong hi\n>+ 3 x\n>- 4\n~~ 10ms\n<-- 1\n<|| 2\n<|!\n<|x\n<-x\n",
    );
    assert!(case.is_raw() && case.facts.is_ordered && case.facts.is_alone);
    assert_eq!(case.facts.unless, [Profile::Lsp, Profile::Bitcoin]);
    let steps = &case.steps;
    assert!(matches!(&steps[0], CaseStep::Raw(line) if line.bytes() == b"GET <path> HTTP/1.1\r\n"));
    assert!(matches!(&steps[1], CaseStep::Raw(line) if line.bytes() == b"\r\n"));
    assert!(matches!(&steps[2], CaseStep::Raw(body) if body.bytes() == b"{}"));
    assert!(matches!(&steps[3], CaseStep::Raw(byte) if byte.bytes() == b"\r"));
    let CaseStep::Response(answer) = &steps[4] else { panic!("{:?}", steps[4]) };
    assert_eq!([200, 404, 204, 500].map(|s| answer.statuses.has(s)), [true, true, false, false]);
    assert_eq!(answer.headers[0], ("allow".into(), ExpectedHeader::Holding("post".into())));
    assert_eq!(answer.headers[1], ("x".into(), ExpectedHeader::Absent));
    assert!(answer.or_statuses[0].has(501) && !answer.or_statuses[0].has(500));
    assert!(matches!(&steps[6], CaseStep::Frame(0, load) if load.bytes() == b"ab"));
    assert!(matches!(&steps[7], CaseStep::Frame(0x88, load) if load.bytes() == b"\x03\xE8by"));
    assert!(
        matches!(&steps[8], CaseStep::ExpectFrame(ExpectedFrame::Close(codes), _) if codes == &[1002, 1007])
    );
    assert!(
        matches!(&steps[9], CaseStep::ExpectFrame(ExpectedFrame::Pong(load), _) if load == b"hi")
    );
    assert!(matches!(&steps[10], CaseStep::Connect(crowd) if crowd.count == 3 && crowd.stays));
    assert!(
        matches!(&steps[11], CaseStep::Connect(crowd) if crowd.text.written.is_empty() && !crowd.stays)
    );
    assert!(matches!(&steps[12], CaseStep::Wait(time) if time.as_millis() == 10));
    let CaseStep::Expect(expected) = &steps[13] else { panic!("{:?}", steps[13]) };
    assert!(expected.any_of.len() == 2 && expected.or.silence && expected.or.closed);
    assert!(matches!(&steps[14], CaseStep::Closed));
}

#[test]
fn a_watch_has_no_steps() {
    let case = one("@ section 4\n== a: b\n@ profile mcp\n@ era modern\n@ watch json\n");
    assert_eq!((case.facts.watch, case.facts.era), (Some(McpRule::Json), Some(McpEra::Modern)));
    let with_steps = "@ section 4\n== a: b\n@ watch json\n--> 1\n<-!";
    assert!(parse("group", with_steps).unwrap_err().contains("cannot have steps"));
}

#[test]
fn headers_of_a_post_are_set_and_left_out() {
    let case =
        one("@ section 4\n@ handshake none\n== a: b\n>h X-A: <b>\n>h y: <none>\n--> 1\n<-!\n");
    assert!(case.facts.is_without_handshake && case.is_raw());
    assert!(
        matches!(&case.steps[0], CaseStep::Header(name, Some(text)) if name == "x-a" && text.bytes() == b"<b>")
    );
    assert!(matches!(&case.steps[1], CaseStep::Header(name, None) if name == "y"));
}
