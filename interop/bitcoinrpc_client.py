"""python-bitcoinrpc against a Bitcoin node.

Usage: bitcoinrpc_client.py HOST:PORT USER PASSWORD v1|by-call

With `v1`, the node answers every call in 1.0. With `by-call`, it answers calls of 2.0 in 2.0, as Bitcoin Core 28 and
later do.
"""

import sys
from decimal import Decimal

from bitcoinrpc.authproxy import AuthServiceProxy, JSONRPCException

from check import check, run

GENESIS = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"


def code(call):
    """Returns the code of the error that this call gets."""
    try:
        return f"no error, but {call()!r}"
    except JSONRPCException as error:
        return error.code


def main():
    address, user, password, mode = sys.argv[1:]

    def proxy(path="", password=password):
        return AuthServiceProxy(f"http://{user}:{password}@{address}{path}", timeout=10)

    node = proxy()
    check("a call", node.getblockcount(), 0)
    check("params", node.getblockhash(0), GENESIS)
    balance = node.getbalance()
    check("a decimal has all digits", str(balance), "20999999.97690000")
    check("a decimal is exact", balance, Decimal("20999999.9769"))
    check("an Object", node.getblockchaininfo()["chain"], "regtest")
    check("an error", code(lambda: node.getblockhash(7)), -8)
    check("an unknown method", code(lambda: node.unknown()), -32601)
    check("a call after errors, on the same connection", node.getblockcount(), 0)
    check("a wallet", str(proxy("/wallet/savings").getbalance()), "1.50000000")
    check("an unknown wallet", code(lambda: proxy("/wallet/none").getbalance()), -18)
    # The client has its own code for a response that is not JSON.
    check("a wrong password", code(lambda: proxy(password="wrong").getblockcount()), -342)
    calls = [["getblockhash", 0], ["getbalance"]]
    if mode == "v1":
        check("a batch", proxy().batch_(calls), [GENESIS, Decimal("20999999.97690000")])
        check("a batch with an error", code(lambda: proxy().batch_([["getblockhash", 7]])), -8)
    else:
        try:
            outcome = proxy().batch_(calls)
        except KeyError as missing:
            outcome = f"no member {missing}"
        check("a batch fails in the client", outcome, "no member 'error'")


run(main)
