"""Python's jsonrpcserver as in its README, with its own HTTP server.

Usage: jsonrpcserver_serve.py PORT

It has no `echo`: the library does not tell empty params from absent ones, so that an echo could not.
"""

import sys

from jsonrpcserver import InvalidParams, Success, method, serve


@method
def subtract(minuend, subtrahend):
    if not all(isinstance(value, (int, float)) for value in (minuend, subtrahend)):
        return InvalidParams()
    return Success(minuend - subtrahend)


@method(name="sum")
def total(*values):
    if not all(isinstance(value, (int, float)) for value in values):
        return InvalidParams()
    return Success(sum(values))


@method
def get_data():
    return Success(["hello", 5])


def nothing(*_positional, **_named):
    return Success(None)


for name in ["update", "notify_hello", "notify_sum"]:
    method(nothing, name=name)

serve("127.0.0.1", int(sys.argv[1]))
