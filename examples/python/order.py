"""An order from Python: started, approved and awaited over HTTP, with the standard library alone.

    PAWL_URL=http://127.0.0.1:3000/pawl PAWL_TOKEN=... python3 order.py A-1 cart-77

PAWL_URL is where the HTTP API is mounted (examples/http-node is such a server). Run the program again with the same cart:
it finds the same run, and the approval counts once.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PAWL_URL = os.environ["PAWL_URL"].rstrip("/")
PAWL_TOKEN = os.environ["PAWL_TOKEN"]

LONGEST_POLL_S = 30


class Problem(Exception):
    """What the API answers when it refuses: problem details (RFC 9457)."""

    def __init__(self, details):
        super().__init__(f"{details['code']} ({details['status']}): {details['detail']}")
        self.details = details


def call(method, path, body=None, headers=None):
    """Returns the status and the JSON of the answer. It tries again when the server cannot be reached or is busy.

    A call may have had its effect when its answer is lost, so only calls that may be repeated belong here: reads, and what
    carries a key.
    """
    request = urllib.request.Request(
        f"{PAWL_URL}/api/v1{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {PAWL_TOKEN}",
            "Content-Type": "application/json",
            **(headers or {}),
        },
    )
    for wait_s in (0.5, 1, 2, 4, None):
        try:
            with urllib.request.urlopen(request, timeout=LONGEST_POLL_S + 30) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            if error.code != 503 or wait_s is None:
                raise Problem(json.load(error)) from None
        except urllib.error.URLError:
            if wait_s is None:
                raise
        time.sleep(wait_s)


def start(workflow, value, key):
    """Starts the workflow once for this key, and returns the id of the run."""
    path = f"/workflows/{urllib.parse.quote(workflow, safe='')}/runs"
    _, started = call("POST", path, {"input": value}, {"Idempotency-Key": key})
    print("started" if started["created"] else "found", started["id"])
    return started["id"]


def result(run):
    """Waits for the end of the run, however long it takes."""
    while True:
        status, answer = call("GET", f"/runs/{run}/result?plain=1&timeoutMs={LONGEST_POLL_S * 1000}")
        if status == 202:
            continue  # It has not ended yet.
        if answer["status"] != "completed":
            raise SystemExit(f"The run {answer['status']}: {answer['error']['message']}")
        return answer["output"]


def main(sku, cart):
    run = start("order", {"sku": sku}, key=cart)

    approval = {"name": "approved", "payload": {"by": "finance"}, "key": f"{cart}-approval"}
    try:
        call("POST", f"/runs/{run}/signals", approval)
    except Problem as problem:
        if problem.details["code"] != "INVALID_STATE":  # The run has ended: it was approved before.
            raise

    print("result", json.dumps(result(run)))

    _, info = call("GET", f"/runs/{run}?plain=1")
    print("read", info["workflow"], info["status"], info["input"]["sku"], info["startedBy"]["by"])

    _, page = call("GET", f"/runs?{urllib.parse.urlencode({'workflow': 'order', 'status': 'completed', 'limit': 10})}")
    print("completed orders", [one["idempotencyKey"] for one in page["runs"]])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except Problem as problem:
        sys.exit(str(problem))
