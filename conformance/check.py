"""Checks every server with `antiphon check`, one after another, and writes docs/conformance.md.

Usage: check.py ANTIPHON BINARIES [--only NAME]...

ANTIPHON is the binary, BINARIES the directory of the peers in Rust. With --only nothing is written: the
document goes to stdout.
"""

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import report
import versions
from peers import ROOT, Peer, Wire, peers

# A silent server costs one timeout per case.
TIMEOUT = "1s"
BUDGET = "5m"

# Exit codes: nothing failed, something failed, the time budget ran out.
JUDGED = {0, 1, 4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("antiphon", type=Path)
    parser.add_argument("binaries", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    wanted = parser.parse_args()
    chosen = [
        peer
        for peer in peers(wanted.antiphon.resolve(), wanted.binaries.resolve())
        if not wanted.only or peer.name in wanted.only
    ]
    if not chosen:
        sys.exit(f"conformance: there is no peer {', '.join(wanted.only)}")
    runs = [(peer, wire, checked(wanted.antiphon, peer, wire)) for peer in chosen for wire in peer.wires]
    document = report.write(runs, versions.found(wanted.antiphon))
    if wanted.only:
        print(document, end="")
    else:
        (ROOT / "docs/conformance.md").write_text(document)


def checked(antiphon: Path, peer: Peer, wire: Wire) -> dict:
    """Returns the report of one run. Progress goes to stderr."""
    print(f"{peer.name}, {wire.name} ...", end=" ", file=sys.stderr, flush=True)
    scratch = Path(tempfile.mkdtemp(prefix="conformance-"))
    try:
        place = {"port": free_port(), "socket": scratch / "socket"}
        told = run(antiphon, wire, place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    counts = told["counts"]
    print(", ".join(f"{counts[kind]} {kind}" for kind in counts), file=sys.stderr)
    return scrubbed(told, place)


def run(antiphon: Path, wire: Wire, place: dict) -> dict:
    command = [antiphon, "check", wire.endpoint.format(**place), "--format", "json"]
    command += ["--timeout", TIMEOUT, "--budget", BUDGET, *wire.flags]
    if wire.command:
        command += ["--spawn", wire.command.format(**place)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ended.returncode not in JUDGED:
        sys.exit(f"\nconformance: `antiphon check` ended with {ended.returncode}: {ended.stderr}")
    return json.loads(ended.stdout)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def scrubbed(told: dict, place: dict) -> dict:
    """Removes ports and directories, which differ between runs and machines."""
    text = json.dumps(told)
    for mine, anyone in [
        (f"127.0.0.1:{place['port']}", "127.0.0.1"),
        (str(place["socket"]), "SOCKET"),
        (str(ROOT), "."),
    ]:
        text = text.replace(mine, anyone)
    return json.loads(text)


if __name__ == "__main__":
    main()
