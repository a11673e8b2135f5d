"""Python's `websockets` against `antiphon serve`. Usage: ws_client.py URL   (ws:// or http://)"""

import json
import re
import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from check import check, run

WAIT_S = 10


def request(id, method, params):
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": id}


def result(id, value):
    return {"jsonrpc": "2.0", "result": value, "id": id}


def receive(peer):
    return json.loads(peer.recv(timeout=WAIT_S))


def exchange(peer, frame):
    peer.send(frame)
    return receive(peer)


def calls(peer):
    text = json.dumps(request(1, "subtract", {"minuend": 42, "subtrahend": 23}))
    check("a call", exchange(peer, text), result(1, 19))
    check("a call in a binary frame", exchange(peer, text.encode()), result(1, 19))
    check("a call in three fragments", exchange(peer, [text[:9], text[9:20], text[20:]]), result(1, 19))
    check("a call in one fragment a byte", exchange(peer, list(text)), result(1, 19))

    batch = [request(1, "sum", [1, 2]), request("2", "echo", ["ä"])]
    check("a batch", exchange(peer, json.dumps(batch)), [result(1, 3), result("2", ["ä"])])

    peer.send('{"jsonrpc":"2.0","method":"update","params":[1]}')
    check("a notification is not answered", exchange(peer, text), result(1, 19))

    broken = exchange(peer, "{")
    check("a parse error", (broken.get("id"), broken.get("error", {}).get("code")), (None, -32700))


def control(peer):
    check("a ping is answered", peer.ping("antiphon").wait(WAIT_S), True)


def reverse_call(peer):
    asked = exchange(peer, json.dumps(request(1, "call_me_back", ["name", [7]])))
    check("the server calls back", (asked.get("method"), asked.get("params")), ("name", [7]))
    check("its caller gets the answer", exchange(peer, json.dumps(result(asked.get("id"), "py"))), result(1, "py"))


def invalid_utf8(url):
    with connect(url) as peer:
        peer.send(b'"\xc3\x28"', text=True)
        try:
            received = peer.recv(timeout=WAIT_S)
        except ConnectionClosed as closed:
            received = closed.rcvd and closed.rcvd.code
        check("invalid UTF-8 in a text frame closes with 1007", received, 1007)


def foreign_page(url):
    """A browser lets any page open a WebSocket to localhost, so the server must reject it."""
    try:
        with connect(url, origin="http://evil.example"):
            status = 101
    except InvalidStatus as refused:
        status = refused.response.status_code
    check("the upgrade of a foreign Origin is refused", status, 403)


def main():
    if len(sys.argv) != 2:
        raise ValueError("usage: ws_client.py URL")
    url = re.sub("^http", "ws", sys.argv[1])
    with connect(url) as peer:
        calls(peer)
        control(peer)
        reverse_call(peer)
        peer.close(1000)
        check("closes with 1000", peer.close_code, 1000)
    invalid_utf8(url)
    foreign_page(url)


run(main)
