# SPDX-License-Identifier: Apache-2.0
"""coracle-kube alone, between a test that is its daemon and the scripted apiserver: faults of the server, of the link, and bounds."""
import contextlib
import random
import struct
import time

from apiserver import ApiServer
from coracle import check, contains, equal, read, run, until
from kube_process import KubeProcess, pod_object


@contextlib.contextmanager
def joined(t, **options):
    run("ip", "link", "set", "lo", "up")
    server = ApiServer(f"{t.scratch}/apiserver", **options)
    kube = KubeProcess(t.build)
    try:
        yield server, kube
    finally:
        code = kube.end()
        server.stop()
    equal(code, 0, f"exit code; {kube.stderr()}")


def put_pods(server, names):
    for name in names:
        server.store.put("Pod", pod_object(name, "node-1"))


def test_rights(t):
    """coracle-kube is nobody, without capabilities, behind a filter of system calls"""
    with joined(t) as (server, kube):
        kube.begin(server)
        kube.wait_message("state", lambda m: m["connected"])
        status = dict(line.split(":\t", 1) for line in read(f"/proc/{kube.process.pid}/status").splitlines())
        check("0" not in status["Uid"].split() and "0" not in status["Gid"].split(), status["Uid"])
        for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            equal(int(status[caps], 16), 0, caps)
        equal(status["NoNewPrivs"].strip(), "1", "NoNewPrivs")
        if "san" not in t.build and "address" not in t.build:
            equal(status["Seccomp"].strip(), "2", "Seccomp")


def test_follows(t):
    """pods of the node are added, changed and removed, the node is registered, and the lease is renewed"""
    with joined(t) as (server, kube):
        put_pods(server, ["a", "b"])
        server.store.put("Pod", pod_object("elsewhere", "node-2"))
        kube.begin(server)
        kube.wait_pods(["a", "b"])
        kube.wait_message("synced", lambda m: m["kind"] == "Pod")
        server.store.put("Pod", pod_object("c", "node-1"))
        kube.wait_pods(["a", "b", "c"])
        server.store.remove("Pod", "a")
        kube.wait(lambda: "deletionTimestamp" in kube.pods["default", "a"]["metadata"], "the end of a is wanted")
        server.store.remove("Pod", "b", gracePeriodSeconds=0)
        kube.wait_pods(["a", "c"])
        server.store.wait("Node", "node-1", lambda o: o is not None and o["status"].get("conditions"))
        server.store.wait("Lease", "node-1", lambda o: o is not None, namespace="kube-node-lease")
        equal([r["uri"] for r in server.requests() if r["code"] == 403], [], "what a node may not do")
        equal({r["connection"] for r in server.requests()}, {1}, "connections")


def test_server_killed(t):
    """a killed apiserver removes no pod, and its changes made meanwhile arrive when it is back"""
    with joined(t) as (server, kube):
        put_pods(server, ["a", "b"])
        kube.begin(server)
        kube.wait_pods(["a", "b"])
        for i in range(3):
            seen = len(kube.messages)
            server.stop()
            kube.wait_message("state", lambda m: not m["connected"], after=seen)
            server.store.put("Pod", pod_object(f"n{i}", "node-1"))
            server.start()
            kube.wait_message("state", lambda m: m["connected"], after=seen, seconds=40)
            kube.wait_pods(["a", "b", *(f"n{k}" for k in range(i + 1))], seconds=40)
        equal([m for m in kube.of_type("gone") if m["kind"] == "Pod"], [], "pods that were said to be gone")


def test_server_lost_its_objects(t):
    """an apiserver that comes back empty is asked twice before pods are gone; one that forgot its history is listed anew"""
    with joined(t) as (server, kube):
        put_pods(server, ["a", "b"])
        kube.begin(server)
        kube.wait_pods(["a", "b"])
        server.store.put("Pod", pod_object("c", "node-1"))
        kube.wait_pods(["a", "b", "c"])
        server.stop()
        server.store.remove("Pod", "b", gracePeriodSeconds=0)
        server.store.put("Pod", pod_object("d", "node-1"))
        server.store.compact()
        server.start()
        kube.wait_pods(["a", "c", "d"], seconds=40)
        server.stop()
        for name in ("a", "c", "d"):
            server.store.remove("Pod", name, gracePeriodSeconds=0)
        server.store.compact()
        before = len(server.requests("GET", "/api/v1/pods"))
        server.start()
        kube.wait_pods([], seconds=40)
        lists = [r["uri"] for r in server.requests("GET", "/api/v1/pods")[before:] if "watch" not in r["uri"]]
        check(any("resourceVersion" not in uri for uri in lists), f"no consistent read before pods ended: {lists}")


def meet(t, *faults):
    """Each fault in turn, at the watch of pods; then all is followed again, and no pod was said to be gone.  Few at a time: back-off doubles."""
    with joined(t) as (server, kube):
        put_pods(server, ["a", "b"])
        kube.begin(server)
        kube.wait_pods(["a", "b"])
        for i, how in enumerate(faults):
            fault = server.fault(match="/api/v1/pods", method="GET", **how)
            server.drop_connections()
            until(lambda f=fault: f.times == 0, 30, f"{how} was met")
            server.store.put("Pod", pod_object(f"n{i}", "node-1"))
            kube.wait_pods(["a", "b", *(f"n{k}" for k in range(i + 1))], seconds=30)
        equal([m for m in kube.of_type("gone") if m["kind"] == "Pod"], [], "pods that were said to be gone")


def test_refusals(t):
    """429 with Retry-After, 500 and 403: no pod is lost, and all watches recover"""
    meet(t, {"what": "code", "code": 429, "headers": {"Retry-After": "1"}}, {"what": "code", "code": 500}, {"what": "code", "code": 403})


def test_garbage(t):
    """answers that are no JSON, a page of HTML, and a truncated one: no pod is lost, and all watches recover"""
    meet(t, {"what": "garbage"}, {"what": "garbage", "body": "<html>login</html>"}, {"what": "truncate"})


def test_broken_streams(t):
    """a dropped connection, nonsense amid a watch, and an expired one: no pod is lost, and all watches recover"""
    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
    meet(t, {"what": "drop"}, {"what": "event", "line": "{nonsense", "seconds": 0}, {"what": "event", "line": expired, "seconds": 0})


def test_partition(t):
    """a server that answers nothing and closes nothing is detected by the lease's deadline, and all watches recover when it is back"""
    with joined(t) as (server, kube):
        put_pods(server, ["a"])
        kube.begin(server)
        kube.wait_pods(["a"])
        seen = len(kube.messages)
        server.freeze()
        began = time.monotonic()
        kube.wait_message("state", lambda m: not m["connected"], after=seen, seconds=45)
        print(f"noticed after {time.monotonic() - began:.1f} s")
        server.freeze(False)
        server.store.put("Pod", pod_object("b", "node-1"))
        kube.wait_pods(["a", "b"], seconds=60)
        equal([m for m in kube.of_type("gone") if m["kind"] == "Pod"], [], "pods that were said to be gone")


test_partition.seconds = 80


def test_credentials(t):
    """a revoked certificate requests other credentials, which restore the connection; unusable ones are a clear error"""
    with joined(t) as (server, kube):
        put_pods(server, ["a"])
        kube.begin(server)
        kube.wait_pods(["a"])
        seen = len(kube.messages)
        server.revoke("system:node:node-1")
        server.drop_connections()
        kube.wait_message("anew", lambda m: m["why"] == "unauthorized", after=seen, seconds=40)
        server.store.put("Pod", pod_object("b", "node-1"))
        token = server.token("system:node:node-1", "system:nodes")
        kube.send(type="credentials", server=server.url, ca=server.authority.read("ca.crt"), token=token)
        kube.wait_pods(["a", "b"], seconds=40)
        seen = len(kube.messages)
        kube.send(type="credentials", server=server.url, ca="-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n", token=token)
        contains(kube.wait_message("state", lambda m: m.get("error"), after=seen)["error"], "certificate of the authority: ", "error")
        equal([m for m in kube.of_type("gone") if m["kind"] == "Pod"], [], "pods that were said to be gone")


def test_link_is_hostile(t):
    """a link with nonsense ends the process, and unknown messages do not"""
    run("ip", "link", "set", "lo", "up")
    for data in (struct.pack("<I", 0xFFFFFFFF), struct.pack("<I", 3) + b"{]}", struct.pack("<I", 2) + b"{}", struct.pack("<I", 4) + b"null"):
        kube = KubeProcess(t.build)
        kube.send(type="nonsense", object=[1, {}])
        kube.send(type="credentials")
        kube.send(type="config", nodeName=7)
        kube.send_raw(data)
        equal(kube.process.wait(20), 0, "exit code")
    kube = KubeProcess(t.build)
    kube.send(type="stop")
    equal(kube.process.wait(20), 0, "exit code after stop")


def test_memory(t):
    """110 pods with managed fields, and an hour's worth of churn in short: memory stays bounded"""
    with joined(t) as (server, kube):
        chance = random.Random(7)
        managed = [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {f"f:{i}": {"f:x": {}} for i in range(100)}}]
        for i in range(110):
            server.store.put("Pod", pod_object(f"p{i}", "node-1", managedFields=managed))
        kube.begin(server)
        kube.wait_pods([f"p{i}" for i in range(110)], seconds=30)
        time.sleep(1)
        pss, dirty = kube.memory()
        print(f"110 pods: Pss {pss} KiB, private dirty {dirty} KiB")
        for _ in range(2000):
            name = f"p{chance.randrange(110)}"
            server.store.put("Pod", pod_object(name, "node-1", managedFields=managed, annotations={"n": str(chance.random())}))
        server.store.put("Pod", pod_object("last", "node-1"))
        kube.wait(lambda: ("default", "last") in kube.pods, "the last pod", 60)
        pss_after, dirty_after = kube.memory()
        print(f"after 2000 changes: Pss {pss_after} KiB, private dirty {dirty_after} KiB")
        if "address" not in t.build:
            check(dirty_after < dirty + 2048, f"private memory grew from {dirty} to {dirty_after} KiB")
            check(pss_after < 16 * 1024, f"Pss is {pss_after} KiB")


test_memory.seconds = 80
