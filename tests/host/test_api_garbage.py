# SPDX-License-Identifier: Apache-2.0
"""coracle-kube and an apiserver that sends what no apiserver sends; and one that puts everything off."""
import time

from coracle import SLOW, check, equal, until
from kube_process import pod_object
from test_kube_process import joined, put_pods

MIB = 1 << 20


def meets(kube, server, number, fault):
    """The fault was met by the watch of pods, and all is followed again."""
    server.drop_connections()
    until(lambda: fault.times == 0, 40, f"fault {number} was met")
    server.store.put("Pod", pod_object(f"n{number}", "node-1"))
    kube.wait_pods(["a", "b", *(f"n{i}" for i in range(number + 1))], seconds=60)


def no_pod_was_gone(kube):
    equal([m for m in kube.of_type("gone") if m["kind"] == "Pod"], [], "pods that were said to be gone")


def test_odd_answers(t):
    """a page of another type, events of unknown types, and a negative Retry-After: all watches recover"""
    faults = ({"what": "garbage", "body": "<html>log in</html>", "headers": {"Content-Type": "text/html"}},
              {"what": "event", "line": {"type": "FROBNICATED", "object": pod_object("odd", "node-1", uid="1")}, "seconds": 0},
              {"what": "code", "code": 429, "headers": {"Retry-After": "-5"}},
              {"what": "truncate", "body": '{"kind":"PodList","items":[{"metadata":{"name":"a'})
    with joined(t) as (server, kube):
        put_pods(server, ["a", "b"])
        kube.begin(server)
        kube.wait_pods(["a", "b"])
        for i, how in enumerate(faults):
            meets(kube, server, i, server.fault(match="/api/v1/pods", method="GET", **how))
        no_pod_was_gone(kube)


test_odd_answers.seconds = 60


def test_large_objects(t):
    """objects of up to 4 MiB arrive, one of 11 MiB is left out by name; a larger one and an endless line hide no other pod; memory comes back"""
    with joined(t) as (server, kube):
        put_pods(server, ["a", "b"])
        kube.begin(server)
        kube.wait_pods(["a", "b"])
        pss, _ = kube.memory()
        for n in (1 * MIB, 4 * MIB - 4096):
            server.store.put("Pod", pod_object("a", "node-1", annotations={"x": "y" * n}))
            kube.wait(lambda n=n: len(kube.pods["default", "a"]["metadata"].get("annotations", {}).get("x", "")) == n, f"{n} bytes", 40)
        server.store.put("Pod", pod_object("a", "node-1", annotations={"x": "y" * (11 * MIB)}))
        left = kube.wait_message("log", lambda m: m["message"] == "ignoring an object: it is too large", seconds=40)
        equal((left["fields"]["kind"], left["fields"]["name"]), ("Pod", "a"), "what is left out")
        server.store.put("Pod", pod_object("a", "node-1", annotations={"x": "small"}))
        kube.wait(lambda: kube.pods["default", "a"]["metadata"]["annotations"]["x"] == "small", "the small one")
        meets(kube, server, 0, server.fault("endless", match="/api/v1/pods", method="GET"))
        server.store.put("Pod", pod_object("huge", "node-1", annotations={"x": "y" * (13 * MIB)}))
        server.store.put("Pod", pod_object("n1", "node-1"))
        kube.wait(lambda: ("default", "n1") in kube.pods, "a pod beside one of 13 MiB", 60)
        server.store.remove("Pod", "huge", gracePeriodSeconds=0)
        server.store.put("Pod", pod_object("n2", "node-1"))
        kube.wait_pods(["a", "b", "n0", "n1", "n2"], seconds=60)
        equal([m["name"] for m in kube.of_type("gone") if m["kind"] == "Pod" and m["name"] != "huge"], [], "pods that were said to be gone")
        after, _ = kube.memory()
        print(f"Pss {pss} KiB before, {after} KiB after")
        if "address" not in t.build:
            check(after < pss + 16 * 1024, f"Pss grew from {pss} to {after} KiB")


test_large_objects.seconds = 80


def test_all_is_put_off(t):
    """ten seconds of 429 for every request: few requests, no pod is lost, and all watches recover soon afterwards"""
    with joined(t) as (server, kube):
        put_pods(server, ["a", "b"])
        kube.begin(server)
        kube.wait_pods(["a", "b"])
        server.store.wait("Node", "node-1", lambda o: o is not None)
        server.fault(code=429, times=-1, headers={"Retry-After": "1"})
        before = len(server.requests())
        server.drop_connections()
        server.store.put("Pod", pod_object("c", "node-1"))
        time.sleep(10)
        asked = len(server.requests()) - before
        server.no_faults()
        began = time.monotonic()
        kube.wait_pods(["a", "b", "c"], seconds=40)
        server.wait_request("PUT", "/leases/", lambda r: r["code"] == 200, after=before, seconds=25 * SLOW)
        print(f"{asked} requests in ten seconds; all goes on after {time.monotonic() - began:.1f} s")
        check(asked < 100, f"{asked} requests in ten seconds")
        no_pod_was_gone(kube)
