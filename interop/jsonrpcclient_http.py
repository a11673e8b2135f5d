"""Python's jsonrpcclient over urllib, for `antiphon check-client`: a call and a batch.

Exits with 0 if all had results. Usage: python jsonrpcclient_http.py http://127.0.0.1:PORT
"""

import json
import sys
import urllib.request

from jsonrpcclient import Error, Ok, parse, request


def post(message):
    head = {"Content-Type": "application/json"}
    body = json.dumps(message).encode()
    with urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, head), timeout=5) as answer:
        return json.load(answer)


def check(answer):
    if isinstance(answer, Error):
        sys.exit(f"error {answer.code}: {answer.message}")
    assert isinstance(answer, Ok), answer


check(parse(post(request("subtract", params=[42, 23]))))
calls = [request("sum", params=[1, 2]), request("subtract", params={"minuend": 2, "subtrahend": 1})]
answers = list(parse(post(calls)))
for answer in answers:
    check(answer)
assert len(answers) == len(calls), answers
