"""The servers, how each is started, and notes about the setup for its users."""

from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PYTHON = ROOT / "interop/.venv/bin/python"


@dataclass(frozen=True)
class Wire:
    """One wire. `{port}` and `{socket}` are replaced by free ones; without a command, the endpoint starts the server."""

    name: str
    endpoint: str
    command: str | None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peer:
    name: str
    package: str
    home: str
    setup: str
    wires: tuple[Wire, ...]
    notes: tuple[str, ...] = field(default=())


def script(name: str) -> str:
    return f"node {HERE / name}"


def peers(antiphon: Path, binaries: Path) -> list[Peer]:
    """Returns all servers by name. `binaries` is the directory of the servers in Rust."""
    return [
        ajj(binaries / "conformance-ajj"),
        itself(antiphon),
        ganache(),
        jayson(),
        json_rpc_2_0(),
        jsonrpcserver(),
        jsonrpsee(binaries / "conformance-jsonrpsee"),
        vscode_jsonrpc(),
    ]


def ajj(binary: Path) -> Peer:
    command = f"{binary} {{port}} {{socket}}"
    return Peer(
        "ajj",
        "crates.io:ajj",
        "https://github.com/init4tech/ajj",
        "conformance/peers/ajj/src/main.rs",
        (
            Wire("http", "http://127.0.0.1:{port}/", command),
            Wire("ws", "ws://127.0.0.1:{port}/ws", command),
            Wire("unix+values", "unix+values:{socket}", command),
        ),
        ("HTTP and WebSocket are axum's, as its documentation recommends.",),
    )


def itself(binary: Path) -> Peer:
    def serves(name: str, endpoint: str) -> Wire:
        return Wire(name, endpoint, f"{binary} serve {endpoint}")

    return Peer(
        "Antiphon",
        "antiphon",
        "../README.md",
        "crates/antiphon-cli/src/demo",
        (
            serves("http", "http://127.0.0.1:{port}"),
            serves("ws", "ws://127.0.0.1:{port}"),
            serves("tcp+line", "tcp+line://127.0.0.1:{port}"),
            serves("tcp+header", "tcp+header://127.0.0.1:{port}"),
            serves("unix", "unix:{socket}"),
            Wire("stdio", f"exec:{binary} serve stdio:", None),
        ),
        ("The suite is its own, and its choices are what the choices are compared with.",),
    )


def ganache() -> Peer:
    command = f"{script('node_modules/ganache/dist/node/cli.js')} --logging.quiet --server.port {{port}}"
    flags = ("--profile", "ethereum", "--method", "eth_chainId")
    return Peer(
        "ganache",
        "npm:ganache",
        "https://github.com/trufflesuite/ganache",
        "conformance/peers.py",
        (
            Wire("http", "http://127.0.0.1:{port}", command, flags),
            Wire("ws", "ws://127.0.0.1:{port}", command, flags),
        ),
        (
            "A whole Ethereum node: the methods of the specification's examples are not there, so it is "
            "asked for `eth_chainId`, with the profile `ethereum`.",
            "Its maintainers have ended its development.",
        ),
    )


def jayson() -> Peer:
    return Peer(
        "jayson",
        "npm:jayson",
        "https://github.com/tedeh/jayson",
        "conformance/jayson.mjs",
        (
            Wire("http", "http://127.0.0.1:{port}", f"{script('jayson.mjs')} http {{port}}"),
            Wire("tcp+line", "tcp+line://127.0.0.1:{port}", f"{script('jayson.mjs')} tcp {{port}}"),
        ),
    )


def json_rpc_2_0() -> Peer:
    command = f"{script('json_rpc_2_0.mjs')} {{port}}"
    return Peer(
        "json-rpc-2.0",
        "npm:json-rpc-2.0",
        "https://github.com/shogowada/json-rpc-2.0",
        "conformance/json_rpc_2_0.mjs",
        (Wire("http", "http://127.0.0.1:{port}", command, ("--skip", "http")),),
        (
            "It has no wire of its own. The group `http` is not run: it would judge the few lines of "
            "Node's `http` that stand around it here.",
        ),
    )


def jsonrpcserver() -> Peer:
    command = f"{PYTHON} {HERE / 'jsonrpcserver_serve.py'} {{port}}"
    return Peer(
        "jsonrpcserver",
        "PyPI:jsonrpcserver",
        "https://github.com/explodinglabs/jsonrpcserver",
        "conformance/jsonrpcserver_serve.py",
        (Wire("http", "http://127.0.0.1:{port}", command),),
        ("Served by its own `serve()`, which is meant for development.",),
    )


def jsonrpsee(binary: Path) -> Peer:
    command = f"{binary} {{port}}"
    return Peer(
        "jsonrpsee",
        "crates.io:jsonrpsee",
        "https://github.com/paritytech/jsonrpsee",
        "conformance/peers/jsonrpsee/src/main.rs",
        (
            Wire("http", "http://127.0.0.1:{port}", command),
            Wire("ws", "ws://127.0.0.1:{port}", command),
        ),
    )


def vscode_jsonrpc() -> Peer:
    endpoint = f"exec+header:{script('vscode_jsonrpc.mjs')}"
    flags = ("--profile", "lsp", "--skip", "lsp", "--method", "subtract", "--params", "[42,23]")
    return Peer(
        "vscode-jsonrpc",
        "npm:vscode-jsonrpc",
        "https://github.com/microsoft/vscode-languageserver-node",
        "conformance/vscode_jsonrpc.mjs",
        (Wire("stdio+header", endpoint, None, flags),),
        (
            "Made for language servers, so the profile is `lsp`: what that protocol leaves out is not "
            "judged, batches first. It is no language server itself, so the group `lsp` is not run.",
        ),
    )
