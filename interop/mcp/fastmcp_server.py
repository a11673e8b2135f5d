"""A server on FastMCP, for our client.

Usage: fastmcp_server.py         serves on stdin and stdout
       fastmcp_server.py PORT    serves on http://127.0.0.1:PORT/mcp; with port 0, the system picks one

The address is written to stderr as `listening on URL`. Lists have pages of two entries.

tools      `add` (a, b): structured content `{"sum": ...}`
           `greet` (name): text, with a default name
           `fail`: an error of the tool
           `count` (to): a progress notification and a log message `{"msg": "number N", "extra": null}` for each number
           `ask_name`: asks the user for a name (property `value`), and greets
           `wait`: reports progress 0 of 1, then waits until it is cancelled
           `waits_cancelled`: how many calls of `wait` were cancelled
           `grow`: adds the tool `grown`, which changes the list
resources  `notes://readme` (text), `notes://logo` (8 bytes of PNG), `notes://{day}/entry` (template)
prompts    `review` (code): one message; completion of `code` among `rust`, `ruby`, `python`
"""

import asyncio
import socket
import sys
import warnings

import anyio
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from mcp_types import Completion, ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import BaseModel

server = FastMCP("interop-fastmcp", version="1.0.0", instructions="For tests.", list_page_size=2)
cancelled = 0

# Since this revision, a server asks in its result.
MODERN = "2026-07-28"


class Sum(BaseModel):
    sum: int


@server.tool
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


@server.tool
def greet(name: str = "nobody") -> str:
    """Greets."""
    return f"Hello, {name}!"


@server.tool
def fail() -> str:
    """Fails."""
    raise ToolError("this tool fails")


@server.tool
async def count(to: int, context: Context) -> str:
    """Counts, and tells each number."""
    for number in range(1, to + 1):
        await context.report_progress(number, to)
        await context.info(f"number {number}")
    return "done"


@server.tool
async def ask_name(context: Context) -> str | InputRequiredResult:
    """Asks the user."""
    if context.request_context.protocol_version != MODERN:
        answer = await context.elicit("What is your name?", str)
        return f"Hello, {answer.data}!" if answer.action == "accept" else answer.action
    answer = (context.input_responses or {}).get("name")
    if answer is None:
        schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
        params = ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
        return InputRequiredResult(input_requests={"name": ElicitRequest(params=params)})
    return f"Hello, {answer.content['value']}!" if answer.action == "accept" else answer.action


@server.tool
async def wait(context: Context) -> str:
    """Waits to be cancelled."""
    global cancelled
    await context.report_progress(0, 1)
    try:
        await anyio.sleep_forever()
    finally:
        cancelled += 1


@server.tool
def waits_cancelled() -> int:
    """Counts the cancelled calls."""
    return cancelled


@server.tool
def grow() -> str:
    """Adds a tool."""

    def grown() -> str:
        """Was added."""
        return "grown"

    server.tool(grown)
    return "added"


@server.resource("notes://readme", mime_type="text/plain")
def readme() -> str:
    """A text."""
    return "Read me."


@server.resource("notes://logo", mime_type="image/png")
def logo() -> bytes:
    """A blob."""
    return b"\x89PNG\r\n\x1a\n"


@server.resource("notes://{day}/entry", mime_type="text/plain")
def entry(day: str) -> str:
    """The entry of a day."""
    return f"Entry of {day}."


@server.prompt
def review(code: str) -> str:
    """Asks for a review."""
    return f"Review this {code}."


@server.completion
async def complete(_reference, argument, _context) -> Completion:
    known = ["rust", "ruby", "python"]
    return Completion(values=[word for word in known if word.startswith(argument.value)])


async def serve_http(port):
    listener = socket.create_server(("127.0.0.1", port))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    await server.run_http_async(show_banner=False, log_level="error", sockets=[listener])


def main():
    warnings.filterwarnings("ignore")
    if len(sys.argv) == 1:
        server.run(show_banner=False)
    else:
        asyncio.run(serve_http(int(sys.argv[1])))


main()
