"""web3.py against the toy node of interop/ethereum: reads, batches, errors, subscriptions, and a lost connection.

Usage: ethereum_client.py HTTP_URL WS_URL IPC_PATH
"""

import asyncio
import sys

from check import check, run
from web3 import AsyncIPCProvider, AsyncWeb3, HTTPProvider, IPCProvider, Web3, WebSocketProvider
from web3.exceptions import ContractLogicError, MethodUnavailable, Web3Exception

HTTP_URL, WS_URL, IPC_PATH = sys.argv[1:]
ADDRESS = Web3.to_checksum_address("0x5fbdb2315678afecb367f032d93f642f64180aa3")
NODE = Web3(HTTPProvider(HTTP_URL))


def mine():
    """Mines a block. Returns its number."""
    return int(NODE.provider.make_request("evm_mine", [])["result"], 16)


def outcome(work):
    try:
        return work()
    except Web3Exception as error:
        return type(error)


def reads(name, web3):
    check(f"web3.py {name}: connected", web3.is_connected(), True)
    check(f"web3.py {name}: client version", web3.client_version, "antiphon-toy/1.0")
    check(f"web3.py {name}: chain id", web3.eth.chain_id, 1337)
    number = mine()
    check(f"web3.py {name}: block number", web3.eth.block_number, number)
    block = web3.eth.get_block(number)
    check(f"web3.py {name}: block", (block.number, web3.eth.get_block(block.hash).number), (number, number))
    logs = web3.eth.get_logs({"address": ADDRESS, "fromBlock": number, "toBlock": number})
    check(f"web3.py {name}: logs", [log.blockNumber for log in logs], [number])
    check(f"web3.py {name}: call", web3.eth.call({"to": ADDRESS, "data": "0x1234"}), bytes.fromhex("1234"))
    reverted = outcome(lambda: web3.eth.call({"to": ADDRESS}))
    check(f"web3.py {name}: a reverted call", reverted, ContractLogicError)
    missing = outcome(lambda: web3.manager.request_blocking("eth_toy", []))
    check(f"web3.py {name}: an unknown method", missing, MethodUnavailable)
    with web3.batch_requests() as batch:
        batch.add(web3.eth.get_block(number))
        batch.add(web3.eth.get_block("earliest"))
        blocks = [block.number for block in batch.execute()]
    check(f"web3.py {name}: a batch", blocks, [number, 0])


async def async_outcome(work):
    try:
        return await work
    except Web3Exception as error:
        return type(error)


async def async_reads(name, web3):
    check(f"web3.py {name}: connected", await web3.is_connected(), True)
    check(f"web3.py {name}: client version", await web3.client_version, "antiphon-toy/1.0")
    check(f"web3.py {name}: chain id", await web3.eth.chain_id, 1337)
    number = mine()
    check(f"web3.py {name}: block number", await web3.eth.block_number, number)
    block = await web3.eth.get_block(number)
    again = await web3.eth.get_block(block.hash)
    check(f"web3.py {name}: block", (block.number, again.number), (number, number))
    logs = await web3.eth.get_logs({"address": ADDRESS, "fromBlock": number, "toBlock": number})
    check(f"web3.py {name}: logs", [log.blockNumber for log in logs], [number])
    check(f"web3.py {name}: call", await web3.eth.call({"to": ADDRESS, "data": "0x1234"}), bytes.fromhex("1234"))
    reverted = await async_outcome(web3.eth.call({"to": ADDRESS}))
    check(f"web3.py {name}: a reverted call", reverted, ContractLogicError)
    missing = await async_outcome(web3.manager.socket_request("eth_toy", []))
    check(f"web3.py {name}: an unknown method", missing, MethodUnavailable)
    async with web3.batch_requests() as batch:
        batch.add(web3.eth.get_block(number))
        batch.add(web3.eth.get_block("earliest"))
        blocks = [block.number for block in await batch.async_execute()]
    check(f"web3.py {name}: a batch", blocks, [number, 0])


async def one_connection(name, provider):
    async with AsyncWeb3(provider) as web3:
        await async_reads(name, web3)
        await subscriptions(name, web3)


async def subscriptions(name, web3):
    heads = await web3.eth.subscribe("newHeads")
    logs = await web3.eth.subscribe("logs", {"address": ADDRESS})
    number = mine()
    found = {}
    async for item in web3.socket.process_subscriptions():
        result = item["result"]
        kind = "heads" if item["subscription"] == heads else "logs"
        found[kind] = result["number" if kind == "heads" else "blockNumber"]
        if len(found) == 2:
            break
    check(f"web3.py {name}: newHeads and logs", found, {"heads": number, "logs": number})
    check(f"web3.py {name}: unsubscribe", [await web3.eth.unsubscribe(one) for one in (heads, logs)], [True, True])
    mine()
    check(f"web3.py {name}: reads after it", await web3.eth.chain_id, 1337)


async def reconnect(name, provider):
    """A loop over the provider connects again when its connection has ended."""
    connections = 0
    async for web3 in AsyncWeb3(provider):
        connections += 1
        await web3.eth.subscribe("newHeads")
        number = mine()
        async for item in web3.socket.process_subscriptions():
            check(f"web3.py {name}: newHeads on connection {connections}", item["result"]["number"], number)
            if connections == 2:
                return
            cut = NODE.provider.make_request("toy_disconnect", [])["result"]
            check(f"web3.py {name}: the node cuts connections", cut > 0, True)


def main():
    reads("http", NODE)
    reads("ipc, blocking", Web3(IPCProvider(IPC_PATH)))
    for name, connect in [("ws", lambda: WebSocketProvider(WS_URL)), ("ipc", lambda: AsyncIPCProvider(IPC_PATH))]:
        asyncio.run(one_connection(name, connect()))
        asyncio.run(reconnect(name, connect()))


run(main)
