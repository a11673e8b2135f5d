"""Python's `jsonrpcserver` over HTTP, for calls by antiphon.

Usage: jsonrpcserver_http.py PORT   (0 picks a free port; prints `listening PORT`)
"""

import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from jsonrpcserver import Error, InvalidParams, Success, dispatch, method


@method
def subtract(minuend, subtrahend):
    if not all(isinstance(value, (int, float)) for value in (minuend, subtrahend)):
        return InvalidParams()
    return Success(minuend - subtrahend)


@method(name="sum")
def total(*values):
    return Success(sum(values))


@method
def fail(code, message, data=None):
    return Error(code, message, data)


@method
def echo(*positional, **named):
    return Success(named or positional)


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Bytes, so that the library itself rejects invalid UTF-8.
        reply = dispatch(body).encode()
        self.send_response(HTTPStatus.OK if reply else HTTPStatus.NO_CONTENT)
        if reply:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


if len(sys.argv) != 2:
    sys.exit("usage: jsonrpcserver_http.py PORT")
server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Endpoint)
print(f"listening {server.server_port}", flush=True)
server.serve_forever()
