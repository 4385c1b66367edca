# SPDX-License-Identifier: Apache-2.0
"""A manifest with very much in it holds up nothing else: the loop works through it in slices."""
import threading
import time

from coracle import SLOW, check, container, pod, until

PODS = 1000


def longest_answer(node, stop):
    """The longest time in which /healthz did not answer while `stop` was not set."""
    longest = 0.0
    while not stop.is_set():
        begin = time.monotonic()
        node.request("GET", "/healthz", timeout=60)
        longest = max(longest, time.monotonic() - begin)
    return longest


def test_a_thousand_pods_in_a_file(t):
    """while a file of 1,000 pods is taken on, the socket answers within half a second"""
    node = t.node()
    stop, found = threading.Event(), []
    watcher = threading.Thread(target=lambda: found.append(longest_answer(node, stop)))
    watcher.start()
    pods = [pod(f"p{i}", container(), nodeSelector={"no": "such-node"}) for i in range(PODS)]
    node.put("many.yaml", {"apiVersion": "v1", "kind": "List", "items": pods})
    until(lambda: sum(p["status"].get("phase") == "Failed" for p in node.get("/api/v1/pods")["items"]) == PODS, deadline=60,
          what="every pod has its verdict")
    stop.set()
    watcher.join()
    print(f"# longest answer of /healthz: {found[0] * 1000:.0f} ms")
    check(found[0] < 0.5 * SLOW, f"/healthz took {found[0]:.2f} s")
    node.stop()
