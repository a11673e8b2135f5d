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


async def subscriptions(name, provider):
    async with AsyncWeb3(provider) as web3:
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


async def reconnect():
    """A loop over the provider connects again when its connection has ended."""
    connections = 0
    async for web3 in AsyncWeb3(WebSocketProvider(WS_URL)):
        connections += 1
        await web3.eth.subscribe("newHeads")
        number = mine()
        async for item in web3.socket.process_subscriptions():
            check(f"web3.py ws: newHeads on connection {connections}", item["result"]["number"], number)
            if connections == 2:
                return
            check("web3.py ws: the node cuts connections", NODE.provider.make_request("toy_disconnect", [])["result"] > 0, True)


def main():
    reads("http", NODE)
    reads("ipc", Web3(IPCProvider(IPC_PATH)))
    asyncio.run(subscriptions("ws", WebSocketProvider(WS_URL)))
    asyncio.run(subscriptions("ipc", AsyncIPCProvider(IPC_PATH)))
    asyncio.run(reconnect())


run(main)
