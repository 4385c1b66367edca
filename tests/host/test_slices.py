# SPDX-License-Identifier: Apache-2.0
"""A very large manifest does not delay anything else: the loop works through it in slices."""
import json
import os
import re
import threading
import time

from coracle import SLOW, check, config_map, container, equal, mount, pod, read, until

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
    """while a file of 1,000 pods is processed, the socket answers within half a second"""
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
FRACTION = r"\d+\.\d+(e-?\d+)?"  # Python and jansson write them with different digits
TRIES = 4  # on a busy machine the daemon waits for a processor; what the loop itself does takes as long each time
LIMIT_S = 0.1


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

    def all_steps():
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
        return longest

    best = all_steps()
    for _ in range(TRIES - 1):
        if max(best.values()) >= LIMIT_S * SLOW:
            best = {k: min(v, best[k]) for k, v in all_steps().items()}
    for what, took in best.items():
        check(took < LIMIT_S * SLOW, f"/healthz took {took:.3f} s while the volume was {what}")
    node.stop()


test_a_volume_of_many_files.seconds = 90


def test_lists_in_pieces(t):
    """a list of 110 ConfigMaps with 200 KB of annotations each comes in pieces; indented, it reads as if written at once"""
    node = t.node()
    node.import_image()
    maps = [config_map(f"c{i}", a="b") for i in range(110)]
    for one in maps:
        one["metadata"]["annotations"] = {"a": "x" * 200_000}
    for i in range(0, len(maps), 30):  # a file has at most 10 MiB
        node.put(f"maps{i}.yaml", *maps[i:i + 30])
    node.put("p.yaml", pod("p"))
    node.wait_running("p")
    until(lambda: len(node.get("/api/v1/configmaps")["items"]) == len(maps), deadline=30, what="all ConfigMaps are there")
    took = [beside(node, lambda: node.request("GET", "/api/v1/configmaps", timeout=60)) for _ in range(TRIES)]
    print("# longest answer of /healthz:", [f"{one * 1000:.0f} ms" for one in took])
    check(min(took) < LIMIT_S * SLOW, f"/healthz took {min(took):.3f} s")
    for path in ("/api/v1/configmaps", "/api/v1/events", "/api/v1/secrets", "/stats/summary"):
        body = node.request("GET", path + "?pretty=1", timeout=60)[1].decode()
        at_once = json.dumps(json.loads(body), indent=2, ensure_ascii=False) + "\n"
        equal(re.sub(FRACTION, "0", body), re.sub(FRACTION, "0", at_once), path)
    node.stop()


test_lists_in_pieces.seconds = 30
