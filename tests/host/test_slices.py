# SPDX-License-Identifier: Apache-2.0
"""A manifest with very much in it holds up nothing else: the loop works through it in slices."""
import json
import os
import threading
import time

from coracle import SLOW, check, config_map, container, mount, pod, read, until

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


KEYS = 20000


def beside(node, action):
    """The longest time in which /healthz did not answer while the action was under way, in seconds."""
    stop, found = threading.Event(), []
    watcher = threading.Thread(target=lambda: found.append(longest_answer(node, stop)))
    watcher.start()
    try:
        action()
    finally:
        stop.set()
        watcher.join()
    return found[0]


def test_a_volume_of_many_files(t):
    """while a volume of 20,000 files is published, edited, shrunk, taken over and removed, the socket answers within 100 ms"""
    node = t.node()
    node.import_image()

    texts = {(value, keys): json.dumps(config_map("many", **{f"k{i}": value for i in range(keys)}))
             for value, keys in (("first", KEYS), ("second", KEYS), ("third", 3), ("fourth", KEYS))}

    def seen(value, keys=KEYS):
        """The only container's view: whole, and nothing beside it but the one version and its link."""
        folder = f"/proc/{node.pid(node.pod('p'))}/root/many"
        until(lambda: read(f"{folder}/k{keys - 1}", "") == value and len(os.listdir(folder)) == keys + 2, deadline=30,
              what=f"{keys} files with {value}", interval=0.1)

    def edit(value, keys=KEYS):
        node.put("many.yaml", texts[value, keys])
        seen(value, keys)

    def start():
        node.put("many.yaml", texts["first", KEYS])
        node.put("p.yaml", pod("p", container(volumeMounts=[mount("v", "/many")]),
                               volumes=[{"name": "v", "configMap": {"name": "many"}}]))
        node.wait_running("p", deadline=30)
        seen("first")

    longest = {"published": beside(node, start),
               "edited": beside(node, lambda: edit("second")),
               "shrunk": beside(node, lambda: edit("third", 3)),
               "grown": beside(node, lambda: edit("fourth"))}
    node.kill()
    before = len(node.log())
    node.start()
    longest["taken over"] = beside(node, lambda: node.wait_log('from="setting up" to=ready', deadline=30, since=before))
    longest["removed"] = beside(node, lambda: (node.remove("p.yaml"), node.wait_gone("p")))
    print("# longest answer of /healthz:", {k: f"{v * 1000:.0f} ms" for k, v in longest.items()})
    for what, took in longest.items():
        check(took < 0.1 * SLOW, f"/healthz took {took:.3f} s while the volume was {what}")
    node.stop()


test_a_volume_of_many_files.seconds = 60
