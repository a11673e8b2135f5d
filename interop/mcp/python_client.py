"""Python's MCP SDK against the example `everything_server`, in one era of the protocol.

Usage: python_client.py legacy|modern URL
       python_client.py legacy|modern COMMAND ARGS...
"""

import asyncio
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import anyio
import mcp_types as types
from check import check, run
from mcp import Client, MCPError, StdioServerParameters

VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
ROOT = "file:///srv/project"
WATCHED = "test://watched-resource"


class Host:
    """What a program with a user and a model offers, and what the server has asked of it."""

    def __init__(self, era, endpoint):
        self.era = era
        self.asked = []
        self.logged = []
        self.updated = asyncio.Event()
        target = endpoint[0]
        if not target.startswith("http"):
            target = StdioServerParameters(command=target, args=endpoint[1:])
        self.client = Client(
            target,
            # `auto` asks with `server/discover` first, and would fall back to the handshake.
            mode="legacy" if era == "legacy" else "auto",
            sampling_callback=self.sample,
            elicitation_callback=self.elicit,
            list_roots_callback=self.roots,
            logging_callback=self.log,
            message_handler=self.notice,
            cache=None,
        )

    async def sample(self, _context, params):
        self.asked.append(params.messages[0].content.text)
        answer = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(role="assistant", content=answer, model="none")

    async def elicit(self, _context, params):
        self.asked.append(params.message)
        wanted = params.requested_schema["properties"]
        values = {"string": "Alice", "integer": 3, "number": 1.5, "boolean": True}
        content = {name: schema.get("default", values[schema["type"]]) for name, schema in wanted.items()}
        return types.ElicitResult(action="accept", content=content)

    async def roots(self, _context):
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri=ROOT, name="project")])

    async def log(self, params):
        self.logged.append(params.data)

    async def notice(self, message):
        if isinstance(message, types.ResourceUpdatedNotification) and str(message.params.uri) == WATCHED:
            self.updated.set()

    async def call(self, tool, arguments=None, **options):
        return await self.client.call_tool(tool, arguments or {}, **options)

    async def text(self, tool, arguments=None, **options):
        return (await self.call(tool, arguments, **options)).content[0].text


async def code(awaitable):
    """The code of an error response, or None for a result."""
    try:
        await awaitable
    except MCPError as error:
        return error.error.code


async def identity(host):
    check("the negotiated version", host.client.protocol_version, VERSIONS[host.era])
    check("the server names itself", bool(host.client.server_info and host.client.server_info.name), True)
    offered = host.client.server_capabilities
    check("capabilities", [kind for kind in ("tools", "resources", "prompts", "completions")
          if getattr(offered, kind) is None], [])
    if host.era == "legacy":
        check("ping", (await host.client.send_ping()).model_dump(exclude_none=True), {})
    else:
        discovered = await host.client.session.send_discover(VERSIONS["modern"])
        check("discover lists the version", VERSIONS["modern"] in discovered["supportedVersions"], True)


async def tool_contents(host):
    tools = (await host.client.list_tools()).tools
    names = [tool.name for tool in tools]
    check("the first tool", names[0], "test_simple_text")
    check("names are unique", len(set(names)), len(names))
    check("each tool has a description", [tool.name for tool in tools if not tool.description], [])
    check("text", await host.text("test_simple_text"), "This is a simple text response for testing.")
    image = (await host.call("test_image_content")).content[0]
    check("an image", (image.type, image.mime_type, image.data[:8]), ("image", "image/png", "iVBORw0K"))
    audio = (await host.call("test_audio_content")).content[0]
    check("audio", (audio.type, audio.mime_type, audio.data[:4]), ("audio", "audio/wav", "UklG"))
    embedded = (await host.call("test_embedded_resource")).content[0].resource
    check("an embedded resource", (str(embedded.uri), embedded.text),
          ("test://embedded-resource", "This is an embedded resource content."))
    mixed = (await host.call("test_multiple_content_types")).content
    check("mixed content", [block.type for block in mixed], ["text", "image", "resource"])


async def structured(host):
    sum_ = await host.call("test_structured_content", {"a": 2, "b": 40})
    check("structured content", sum_.structured_content, {"sum": 42})
    check("the schema of the output", [tool.output_schema["required"] for tool in
          (await host.client.list_tools()).tools if tool.name == "test_structured_content"], [["sum"]])


async def tool_errors(host):
    failed = await host.call("test_error_handling")
    check("a tool that fails", (failed.is_error, failed.content[0].text),
          (True, "This tool intentionally returns an error for testing"))
    check("an unknown tool", await code(host.call("no_such_tool")), -32602)
    try:
        refused = (await host.call("test_structured_content", {"a": "two"})).is_error
    except MCPError as error:
        refused = error.error.code == -32602
    check("wrong arguments", refused, True)


async def resources(host):
    listed = (await host.client.list_resources()).resources
    check("listed resources", {"test://static-text", "test://static-binary", WATCHED}
          <= {str(resource.uri) for resource in listed}, True)
    text = (await host.client.read_resource("test://static-text")).contents[0]
    check("a text resource", (text.mime_type, text.text),
          ("text/plain", "This is the content of the static text resource."))
    binary = (await host.client.read_resource("test://static-binary")).contents[0]
    check("a binary resource", (binary.mime_type, binary.blob[:8]), ("image/png", "iVBORw0K"))
    templates = (await host.client.list_resource_templates()).resource_templates
    check("templates", "test://template/{id}/data" in [template.uri_template for template in templates], True)
    filled = (await host.client.read_resource("test://template/123/data")).contents[0]
    check("a template", '"id":"123"' in filled.text.replace(" ", ""), True)
    missing = {"legacy": (-32002, -32602), "modern": (-32602,)}[host.era]
    check("an unknown resource", await code(host.client.read_resource("test://none")) in missing, True)


async def subscription(host):
    if host.era == "legacy":
        await host.client.subscribe_resource(WATCHED)
        await host.text("test_trigger_resource_change")
        await host.updated.wait()
        check("an update of a subscribed resource", host.updated.is_set(), True)
        await host.client.unsubscribe_resource(WATCHED)
        return
    async with host.client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as events:
        check("the acknowledged filter", events.honored.resource_subscriptions, [WATCHED])
        await host.text("test_trigger_resource_change")
        check("an update of a subscribed resource", str((await anext(events)).uri), WATCHED)
        await host.text("test_trigger_prompt_change")
        await host.text("test_trigger_tool_change")
        check("only changes of the filter", type(await anext(events)).__name__, "ToolsListChanged")


async def prompts(host):
    listed = {prompt.name: prompt for prompt in (await host.client.list_prompts()).prompts}
    arguments = [(a.name, a.required) for a in listed["test_prompt_with_arguments"].arguments]
    check("the arguments of a prompt", arguments, [("arg1", True), ("arg2", True)])
    simple = (await host.client.get_prompt("test_simple_prompt")).messages[0]
    check("a prompt", (simple.role, simple.content.text), ("user", "This is a simple prompt for testing."))
    filled = await host.client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
    check("a prompt with arguments", filled.messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'")
    embedded = await host.client.get_prompt("test_prompt_with_embedded_resource", {"resourceUri": "test://x"})
    check("a prompt with a resource", str(embedded.messages[0].content.resource.uri), "test://x")
    image = await host.client.get_prompt("test_prompt_with_image")
    check("a prompt with an image", image.messages[0].content.mime_type, "image/png")
    check("an unknown prompt", await code(host.client.get_prompt("none")), -32602)


async def completion(host):
    async def values(reference, name, value):
        return (await host.client.complete(reference, {"name": name, "value": value})).completion.values

    prompt = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    check("completion of an argument", await values(prompt, "arg1", "par"), ["paris", "park", "party"])
    template = types.ResourceTemplateReference(type="ref/resource", uri="test://template/{id}/data")
    check("completion of a template", await values(template, "id", "12"), ["123", "124"])


async def progress_and_logs(host):
    steps = []

    async def step(progress, total, _message):
        steps.append((progress, total))

    await host.call("test_tool_with_progress", progress_callback=step)
    check("progress", steps, [(0, 100), (50, 100), (100, 100)])
    # The opt-in of the modern era travels in `_meta`; the legacy era has a request.
    options = {"meta": {"io.modelcontextprotocol/logLevel": "debug"}} if host.era == "modern" else {}
    if host.era == "legacy":
        await host.client.set_logging_level("debug")
    await host.call("test_tool_with_logging", **options)
    messages = ["Tool execution started", "Tool processing data", "Tool execution completed"]
    check("log messages", [data for data in host.logged if data in messages], messages)


async def questions(host):
    sampled = await host.text("test_sampling", {"prompt": "What is the capital of France?"})
    check("sampling", sampled, "LLM response: Paris")
    elicited = await host.text("test_elicitation", {"message": "Who are you?"})
    check("elicitation", (elicited.startswith("User response: action=accept"), "Alice" in elicited), (True, True))
    check("roots", await host.text("test_roots"), ROOT)
    defaults = await host.text("test_elicitation_sep1034_defaults")
    check("an elicitation with every type", "action=accept" in defaults, True)
    check("what the server asked", host.asked[:3], ["What is the capital of France?", "Who are you?", "roots"])


async def input_rounds(host):
    """The requests for input that the modern era puts into results."""
    check("an elicitation in a result", await host.text("test_input_required_result_elicitation"), "Hello, Alice!")
    many = await host.call("test_input_required_result_multiple_inputs")
    check("three questions in a result", many.is_error, False)
    rounds = await host.call("test_input_required_result_multi_round")
    check("two rounds with state", rounds.is_error, False)
    prompt = await host.client.get_prompt("test_input_required_result_prompt")
    check("a question of a prompt", prompt.messages[0].content.text, "Prompt with context: Alice")
    first = await host.client.session.call_tool(
        "test_input_required_result_tampered_state", {}, allow_input_required=True)
    answer = {"confirm": types.ElicitResult(action="accept", content={"ok": True})}
    changed = host.call("test_input_required_result_tampered_state", input_responses=answer,
                        request_state=first.request_state + "x")
    check("a changed state", await code(changed), -32602)


async def cancellation(host):
    before = int(await host.text("test_cancellation_count"))
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def begun(*_progress):
            scope.cancel()

        async def wait_in_vain():
            with scope:
                await host.call("test_cancellation", progress_callback=begun)

        tasks.start_soon(wait_in_vain)
    check("the call was cancelled", scope.cancelled_caught, True)
    # The count changes when the server has seen the cancellation; the deadline of the script bounds the loop.
    while int(await host.text("test_cancellation_count")) == before:
        pass
    check("the server stopped the call", int(await host.text("test_cancellation_count")), before + 1)


async def everything(era, endpoint):
    host = Host(era, endpoint)
    sections = [identity, tool_contents, structured, tool_errors, resources, subscription, prompts, completion,
                progress_and_logs, questions, cancellation]
    if era == "modern":
        sections.insert(-1, input_rounds)
    async with host.client:
        for section in sections:
            await section(host)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in VERSIONS:
        sys.exit(__doc__)
    # The SDK warns of everything that only the legacy era has.
    warnings.filterwarnings("ignore")
    try:
        asyncio.run(everything(sys.argv[1], sys.argv[2:]))
    except BaseExceptionGroup as group:
        raise innermost(group) from group


def innermost(error):
    """The first error that is no group: the SDK runs in groups of tasks."""
    return innermost(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


run(main)
