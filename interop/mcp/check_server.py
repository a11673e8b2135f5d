"""A server on the Python SDK, for `antiphon check --profile mcp`. Usage: check_server.py stdio | http PORT"""

import sys

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ToolAnnotations

server = MCPServer("check", version="1")
READ_ONLY = ToolAnnotations(readOnlyHint=True)


@server.tool(annotations=READ_ONLY)
def add(a: int, b: int) -> int:
    return a + b


@server.tool(annotations=READ_ONLY)
async def slow(steps: int, context: Context) -> str:
    for step in range(steps):
        await context.report_progress(step + 1, steps)
        await anyio.sleep(0.15)
    return "done"


@server.resource("memo://a")
def memo() -> str:
    return "memo"


@server.prompt()
def hello() -> str:
    return "hello"


match sys.argv[1:]:
    case ["http", port]:
        server.run("streamable-http", port=int(port))
    case _:
        server.run("stdio")
