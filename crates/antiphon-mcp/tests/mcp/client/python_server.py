"""A server of the Python SDK: python_server.py stdio|sse|streamable-http [PORT]."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

app = MCPServer("python")


class Name(BaseModel):
    name: str


@app.tool()
def add(a: int, b: int) -> int:
    return a + b


@app.tool()
async def work(steps: int, ctx: Context) -> str:
    for step in range(steps):
        await ctx.report_progress(step + 1, steps)
    return "done"


@app.tool()
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", Name)
    return f"hello {answer.data.name}" if answer.action == "accept" else answer.action


@app.resource("note://{name}")
def note(name: str) -> str:
    return f"note {name}"


@app.prompt()
def review(code: str) -> str:
    return f"Review {code}"


if sys.argv[1] == "stdio":
    app.run("stdio")
else:
    app.run(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]))
