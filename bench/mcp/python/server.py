"""A server on Python's MCP SDK, with default settings. Usage: server.py http|stdio"""

import asyncio
import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

server = MCPServer("bench", log_level="ERROR")


class Sum(BaseModel):
    sum: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


async def serve_http():
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    await uvicorn.Server(config).serve(sockets=[listener])


if sys.argv[1:] == ["stdio"]:
    server.run("stdio")
elif sys.argv[1:] == ["http"]:
    asyncio.run(serve_http())
else:
    sys.exit(__doc__)
