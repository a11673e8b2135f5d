"""The page: the findings by server. The same runs produce the same text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from peers import Peer, Wire

Run = tuple[Peer, Wire, dict]

COUNTED = ("passed", "failed", "warned")

INTRO = """\
# Conformance of JSON-RPC servers

`conformance/run` generated this page on {date}. It installs each server from its registry, starts it as its README
shows, with defaults, and runs `antiphon check` on it. No part of the page is written by hand.

**Independence.** The suite is [Antiphon's](../testdata/wire), and Antiphon is one of the servers in the tables. Our
reading of the specification may be wrong. Every finding names its case and links to the section, so that you can
verify it. If a finding is unfair to your project, or a server is set up badly, please open an issue; we correct the
case or the setup and generate the page again.

**Verdicts.** *Failed*: the specification (or that of HTTP or WebSocket) says MUST, or shows it in an example, and the
server does something else, or it crashed. *Warned*: the specification says SHOULD, or implies it. *Differs*: the
specification leaves a choice, and the server chose differently from Antiphon; this is never a fault. *Not run*: the
case needs a wire or a method that the server does not have. One fault can fail many cases, so the numbers count
cases and not faults. Many of these messages are rare between correct programs.

**Reproduce.** `conformance/run`, or `conformance/run --only jayson`. It needs Rust, Node 20 and Python 3.11. For a
server of your own: `antiphon check http://localhost:8545 --method eth_chainId`.

Run on {machine}.
"""


def write(runs: list[Run], versions: dict) -> str:
    parts = [INTRO.format(**versions), who(runs, versions), totals(runs), matrix(runs)]
    parts += [section(peer, versions, mine) for peer, mine in by_peer(runs)]
    return "\n".join(parts)


def by_peer(runs: list[Run]) -> Iterator[tuple[Peer, list[tuple[Wire, dict]]]]:
    for name in dict.fromkeys(peer.name for peer, _, _ in runs):
        mine = [run for run in runs if run[0].name == name]
        yield mine[0][0], [(wire, told) for _, wire, told in mine]


def who(runs: list[Run], versions: dict) -> str:
    rows = [
        (f"[{peer.name}]({peer.home})", versions[peer.package], f"[`{peer.setup}`](../{peer.setup})")
        for peer, _ in by_peer(runs)
    ]
    return "## Servers\n\n" + table(("server", "version", "setup"), rows)


def totals(runs: list[Run]) -> str:
    heads = ("server", "wire", *COUNTED, "as Antiphon chose", "otherwise", "not run")
    rows = [(peer.name, wire.name, *map(str, total(told["cases"]))) for peer, wire, told in runs]
    legend = "Requirements of the specification by verdict, then the choices that it leaves open.\n\n"
    return "## Results\n\n" + legend + table(heads, rows, numbers=6)


def total(cases: list[dict]) -> list[int]:
    judged = Counter(case["verdict"] for case in cases if is_judged(case))
    chosen = Counter(case["verdict"] for case in cases if not is_judged(case))
    unrun = sum(case["verdict"] == "not-run" for case in cases)
    return [*(judged[verdict] for verdict in COUNTED), chosen["passed"], chosen["differs"], unrun]


def is_judged(case: dict) -> bool:
    """Whether a case is scored. A choice is not, unless the server crashed."""
    return case["verdict"] in COUNTED and (case["level"] != "choice" or case["verdict"] == "failed")


def matrix(runs: list[Run]) -> str:
    judged = [case for _, _, told in runs for case in told["cases"] if is_judged(case)]
    groups = list(dict.fromkeys(case["group"] for case in judged))
    rows = [
        (peer.name, wire.name, *(cell(told["cases"], group) for group in groups)) for peer, wire, told in runs
    ]
    legend = "Passed of judged; ✗ failed, ! warned, – nothing to judge. Choices are not counted.\n\n"
    return "## By group\n\n" + legend + table(("server", "wire", *groups), rows, numbers=len(groups))


def cell(cases: list[dict], group: str) -> str:
    count = Counter(case["verdict"] for case in cases if case["group"] == group and is_judged(case))
    if not count:
        return "–"
    marks = [f"{mark}{count[kind]}" for kind, mark in (("failed", "✗"), ("warned", "!")) if count[kind]]
    return " ".join([f"{count['passed']}/{count.total()}", *marks])


def section(peer: Peer, versions: dict, runs: list[tuple[Wire, dict]]) -> str:
    parts = [f"## {peer.name} {versions[peer.package]}\n", *(f"{note}\n" for note in peer.notes)]
    faults = listed("Failed", "failed", runs) + listed("Warned", "warned", runs)
    parts += faults or ["No failure and no warning.\n"]
    parts += folded("Differs by choice", "differs", runs) + unrun(runs)
    return "\n".join(parts)


def listed(title: str, verdict: str, runs: list[tuple[Wire, dict]]) -> list[str]:
    """Returns no section if there is nothing to list, like the functions below."""
    found = findings(verdict, runs)
    return [f"### {title}: {len(found)}\n\n" + "\n".join(found) + "\n"] if found else []


def folded(title: str, verdict: str, runs: list[tuple[Wire, dict]]) -> list[str]:
    found = findings(verdict, runs)
    return [details(f"{title}: {len(found)}", found)] if found else []


def findings(verdict: str, runs: list[tuple[Wire, dict]]) -> list[str]:
    """Returns one line per case, for all wires together."""
    cases: dict[str, tuple[dict, list[str]]] = {}
    for wire, told in runs:
        for case in told["cases"]:
            if case["verdict"] == verdict:
                cases.setdefault(case["name"], (case, []))[1].append(wire.name)
    return [finding(case, wires) for case, wires in cases.values()]


def finding(case: dict, wires: list[str]) -> str:
    section = case["section"]
    source = f"[{section if section.startswith('RFC') else f'section {section}'}]({case['link']})"
    return f"- **{case['name']}**: {case['title']} ({source}; {', '.join(wires)}). {evidence(case)}"


def evidence(case: dict) -> str:
    """Returns the messages sent and received; for raw bytes only the fault in the response."""
    dialogue = case.get("dialogue", [])
    sent = [step["sent"] for step in dialogue if "sent" in step]
    came = [step["came"] for step in dialogue if "came" in step]
    by_hand = case["group"] == "websocket" or any(text.endswith("\r\n") for text in sent)
    if by_hand or not sent:
        reason = case["reason"].splitlines()[0]
        return f"{reason[0].upper()}{reason[1:]}" + (f": {code(plain(came[-1]))}." if came else ".")
    return f"Sent {code(sent[-1])}; {outcome(case, came)}."


def outcome(case: dict, came: list[str]) -> str:
    endings = {
        "silent": "nothing came",
        "closed": "the connection was closed",
        "crashed": "the server died",
    }
    ending = endings.get(case.get("fault", ""))
    return ending or (f"came {code(plain(came[-1]))}" if came else case["reason"].splitlines()[0])


def plain(came: str) -> str:
    """Removes the head of an HTTP response that is as expected."""
    return re.sub(r"^HTTP 200 application/json(; *charset=utf-8)? ", "", came)


def unrun(runs: list[tuple[Wire, dict]]) -> list[str]:
    """Returns counts of the cases that did not run, by reason: the names are the same for all servers."""
    lines = []
    for wire, told in runs:
        why = Counter(case["reason"] for case in told["cases"] if case["verdict"] == "not-run")
        lines += [f"- {wire.name}: {count} ({reason})" for reason, count in why.most_common()]
    return [details("Not run", lines)] if lines else []


def details(title: str, lines: Iterable[str]) -> str:
    return f"<details><summary>{title}</summary>\n\n" + "\n".join(lines) + "\n\n</details>\n"


def code(text: str, most: int = 100) -> str:
    """Returns inline code on one line, shortened in the middle."""
    line = text.encode("unicode_escape", "replace").decode() if not text.isprintable() else text
    if len(line) > most:
        line = f"{line[: most * 2 // 3]} ... {line[-most // 3 :]}"
    fence = "``" if "`" in line else "`"
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def table(heads: tuple, rows: list[tuple], numbers: int = 0) -> str:
    """Returns a table whose last `numbers` columns are right-aligned."""
    rules = ["---"] * (len(heads) - numbers) + ["--:"] * numbers
    lines = [heads, rules, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
