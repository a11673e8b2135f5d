"""The versions of everything that ran, read from the lock files."""

import datetime
import json
import platform
import re
import subprocess
import tomllib
from pathlib import Path

from peers import HERE, ROOT


def found(antiphon: Path) -> dict:
    """Returns versions by package name of `peers.py`, plus `date` and `machine`."""
    known = {"antiphon": said(antiphon, "--version").split()[-1]}
    crates = tomllib.loads((ROOT / "bench/Cargo.lock").read_text())["package"]
    known |= {f"crates.io:{crate['name']}": crate["version"] for crate in crates}
    locked = json.loads((HERE / "package-lock.json").read_text())["packages"]
    known |= {f"npm:{path.removeprefix('node_modules/')}": it.get("version") for path, it in locked.items()}
    pinned = (ROOT / "interop/requirements.txt").read_text()
    known |= {f"PyPI:{name}": version for name, version in re.findall(r"^([\w-]+)==(\S+)$", pinned, re.M)}
    known["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
    known["machine"] = machine()
    return known


def machine() -> str:
    tools = [
        said("rustc", "--version").split(" (")[0],
        f"Node {said('node', '--version').lstrip('v')}",
        f"Python {platform.python_version()}",
    ]
    return f"{platform.system()} on {platform.machine()}, {', '.join(tools)}"


def said(program: Path | str, *words: str) -> str:
    return subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
