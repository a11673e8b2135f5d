"""The parser of Python's `prometheus_client` against `antiphon serve --metrics`. Usage: metrics.py URL"""

import json
import math
import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from check import check, run

WAIT_S = 10


def fetch(url, body=None):
    headers = {"content-type": "application/json"} if body else {}
    data = json.dumps(body).encode() if body else None
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=WAIT_S) as response:
        return response.headers["content-type"], response.read().decode()


def request(id, method, params):
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": id}


def scrape(url):
    kind, text = fetch(url + "/metrics")
    check("the type of the page", kind, "text/plain; version=0.0.4; charset=utf-8")
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(family, **labels):
    found = [sample.value for sample in family.samples if sample.labels == labels]
    return found[0] if len(found) == 1 else found


def histogram(family, method):
    """Returns the buckets of one method, and whether they never decrease."""
    buckets = [
        (float(sample.labels["le"]), sample.value)
        for sample in family.samples
        if sample.name.endswith("_bucket") and sample.labels["method"] == method
    ]
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in zip(buckets, buckets[1:]))
    return buckets, rising


def main():
    if len(sys.argv) != 2:
        raise ValueError("usage: metrics.py URL")
    url = sys.argv[1].rstrip("/")
    batch = [request(1, "sum", [1, 2]), request(2, "fail", [7, "no"]), request(3, "a\"b\\c", [])]
    batch += [request(id, "echo", ["x" * 100]) for id in range(4, 14)]
    batch += [{"jsonrpc": "2.0", "method": "update", "params": [1]}]
    fetch(url, batch)
    families = scrape(url)
    types = {name: family.type for name, family in families.items()}
    check(
        "the families and their types",
        types,
        {
            "antiphon_calls": "counter",
            "antiphon_call_errors": "counter",
            "antiphon_call_duration_seconds": "histogram",
            "antiphon_calls_in_flight": "gauge",
            "antiphon_params_bytes": "counter",
            "antiphon_results_bytes": "counter",
        },
    )
    calls = families["antiphon_calls"]
    check("each entry of a batch is counted once", value(calls, method="echo", kind="request"), 10.0)
    check("a notification is counted", value(calls, method="update", kind="notification"), 1.0)
    check("a method that is not there", value(calls, method="(other)", kind="request"), 1.0)
    errors = families["antiphon_call_errors"]
    check("errors by code", value(errors, method="fail", code="7"), 1.0)
    check("of what is not there", value(errors, method="(other)", code="-32601"), 1.0)
    check("bytes of params", value(families["antiphon_params_bytes"], method="echo"), 1040.0)
    check("bytes of results", value(families["antiphon_results_bytes"], method="echo"), 1040.0)
    check("nothing is in flight", value(families["antiphon_calls_in_flight"], method="echo"), 0.0)
    buckets, rising = histogram(families["antiphon_call_duration_seconds"], "echo")
    check("the buckets rise", rising, True)
    check("the last one holds all", buckets[-1], (math.inf, 10.0))
    check("there are some", len(buckets) > 10, True)
    again = scrape(url)["antiphon_calls"]
    check("asking for the page counts nothing", value(again, method="echo", kind="request"), 10.0)


run(main)
