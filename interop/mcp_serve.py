"""The MCP client of the Python SDK against `antiphon mcp serve`. Prints a line `ok` per assertion.

Usage: python mcp_serve.py SERVICE URL             SERVICE is demo, anvil or jayson
       python mcp_serve.py SERVICE COMMAND ARGS..  (stdio)
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")
    print("ok", what)


def text(result):
    return result.content[0].text


async def demo(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    check({"subtract", "sum", "echo", "fail", "sleep"} <= tools.keys(), "the methods are tools")
    check("subscribe_ticks" not in tools, "a subscription is not a tool")
    check(tools["subtract"].input_schema["required"] == ["minuend", "subtrahend"], "input schema")
    difference = await client.call_tool("subtract", {"minuend": 42, "subtrahend": 23})
    check(text(difference) == "19" and not difference.is_error, "a call")
    echoed = await client.call_tool("echo", {"params": [2**64, "x"]})
    check(text(echoed) == f'[{2**64},"x"]', "large integers stay")
    failed = await client.call_tool("fail", {"code": -32050, "message": "no", "data": [1]})
    check(failed.is_error and text(failed) == "error -32050: no\ndata: [1]", "an error of the service")
    refused = await client.call_tool("subtract", {"minuend": "x", "subtrahend": 1})
    check(refused.is_error and "minuend" in text(refused), "an invalid argument")


async def ticks(client):
    """The subscriptions of the demonstration service: only where it can call back."""
    templates = (await client.list_resource_templates()).resource_templates
    template = "subscription:///subscribe_ticks/{ms}"
    check([it.uri_template for it in templates] == [template], "a subscription is a resource")
    await newest(client, template.replace("{ms}", "50"), int)


async def newest(client, uri, number):
    """Reads a resource, and reads it again after it was updated, until it has changed."""
    async def read():
        return number(json.loads((await client.read_resource(uri)).contents[0].text))

    first = await read()
    check(first >= 0, f"{uri} is read")
    async with client.listen(resource_subscriptions=[uri]) as events:
        async for event in events:
            check(isinstance(event, ResourceUpdated) and str(event.uri) == uri, "an update")
            if await read() > first:
                break
    check(True, "the newest item has changed")


async def anvil(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    check("eth_getBalance" in tools and "eth_sendTransaction" not in tools, "the allowed methods")
    check(all(tool.annotations.read_only_hint for tool in tools.values()), "read-only hints")
    check(text(await client.call_tool("eth_chainId", {})) == "0x539", "a call without params")
    account = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
    balance = await client.call_tool("eth_getBalance", {"Address": account, "Block": "latest"})
    check(int(text(balance), 16) == 10_000 * 10**18, "params by position")
    block = await client.call_tool(
        "eth_getBlockByNumber", {"Block": "earliest", "Hydrated_transactions": False}
    )
    check(block.structured_content["number"] == "0x0", "a structured result")
    refused = await client.call_tool("eth_getBalance", {"Address": "nobody", "Block": "latest"})
    check(refused.is_error and "Address" in text(refused), "an invalid address")
    heads = "subscription:///eth_subscribe/newHeads"
    resources = [str(it.uri) for it in (await client.list_resources()).resources]
    check(heads in resources, "a kind of eth_subscribe is a resource")
    await newest(client, heads, lambda head: int(head["number"], 16))


async def jayson(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    check(names == ["js_subtract", "js_fail"], "the names of the tools")
    difference = await client.call_tool("js_subtract", {"minuend": 42, "subtrahend": 23})
    check(text(difference) == "19", "params by name")
    failed = await client.call_tool("js_fail", {"code": 7, "message": "no"})
    check(failed.is_error and text(failed).startswith("error 7: no"), "an error of the service")


async def main():
    service, target, *rest = sys.argv[1:]
    server = StdioServerParameters(command=target, args=rest) if rest else target
    checks = {"demo": [demo], "ticks": [demo, ticks], "anvil": [anvil], "jayson": [jayson]}[service]
    async with Client(server) as client:
        for one in checks:
            await asyncio.wait_for(one(client), 20)


asyncio.run(main())
