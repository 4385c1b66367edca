# SPDX-License-Identifier: Apache-2.0
"""coracle-kube with a scripted apiserver that fails, and more pods than usual.  The test is the daemon."""
import statistics
import time

from apiserver import ApiServer
from coracle import SLOW, check, equal
from kube_alone import KubeAlone


def node_object(ready="True"):
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "peer", "labels": {"kubernetes.io/os": "linux"}}, "spec": {},
            "status": {"capacity": {"cpu": "2", "memory": "16777216Ki"}, "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                       "conditions": [{"type": "Ready", "status": ready, "reason": "KubeletReady", "message": "kubelet is posting ready status"}]}}


def bound(name):
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"nodeName": "peer", "containers": [{"name": "main", "image": "a"}]},
            "status": {"phase": "Pending"}}


def report(kube, pod, status, ended=False):
    kube.send("pod", static=False, ended=ended, object={"metadata": {k: pod["metadata"][k] for k in ("name", "namespace", "uid")}, "status": status})


def is_pod(m):
    return m["object"]["kind"] == "Pod"


def phase_is(phase):
    return lambda pod: pod is not None and pod["status"].get("phase") == phase


def joined(t, **config):
    server = ApiServer(f"{t.scratch}/tmp")
    kube = KubeAlone(t, server.credentials("peer"), nodeName="peer", **config)
    kube.send("node", object=node_object())
    server.wait_request("POST", "/leases")
    return server, kube


def test_an_apiserver_that_is_away(t):
    """while the apiserver is down no pod is lost, and changes made meanwhile are reported when it is back"""
    server, kube = joined(t)
    pod = server.store.put("Pod", bound("a"))
    kube.wait("put", is_pod)
    report(kube, pod, {"phase": "Running"})
    server.store.wait("Pod", "a", phase_is("Running"))
    server.stop()
    kube.wait("state", lambda m: not m["connected"], 20)
    report(kube, pod, {"phase": "Succeeded"}, ended=True)
    kube.send("event", object={"involvedObject": {"kind": "Pod", "namespace": "default", "name": "a", "uid": pod["metadata"]["uid"]},
                               "reason": "Killing", "message": "x", "type": "Normal"})
    server.store.put("Pod", bound("b"))
    server.start()
    server.store.wait("Pod", "a", phase_is("Succeeded"), seconds=30 * SLOW)
    equal(kube.wait("put", is_pod, 40)["object"]["metadata"]["name"], "b", "the pod of meanwhile")
    server.wait_request("POST", "/events", seconds=25 * SLOW)
    with kube.changed:
        equal([m for m in kube.messages if m["type"] == "gone"], [], "messages gone")
    kube.stop()
    server.stop()


def test_an_apiserver_that_refuses_for_a_while(t):
    """a status that is answered with 500, 429, garbage or not at all is sent again, one of a pod that is gone is not"""
    server, kube = joined(t)
    a, b = server.store.put("Pod", bound("a")), server.store.put("Pod", bound("b"))
    for _ in range(2):
        kube.wait("put", is_pod)
    for fault in ({"code": 500}, {"code": 429, "headers": {"Retry-After": "1"}}, {"what": "garbage"}, {"what": "drop"}):
        server.fault(match="/pods/a/status", method="PATCH", **fault)
    report(kube, a, {"phase": "Running"})
    report(kube, b, {"phase": "Running"})
    server.store.wait("Pod", "b", phase_is("Running"), seconds=5 * SLOW)  # it waits for nobody
    server.store.wait("Pod", "a", phase_is("Running"), seconds=40 * SLOW)
    server.store.remove("Pod", "b", gracePeriodSeconds=0)
    kube.wait("gone", lambda m: m["name"] == "b")
    before = len(server.requests("PATCH", "/pods/b/"))
    report(kube, b, {"phase": "Failed"}, ended=True)
    report(kube, a, {"phase": "Succeeded"}, ended=True)
    server.store.wait("Pod", "a", phase_is("Succeeded"))
    equal(len(server.requests("PATCH", "/pods/b/")), before, "patches of a pod that is gone")
    kube.stop()
    server.stop()


def test_a_changed_config_map_is_quick(t):
    """a changed ConfigMap is with the daemon in less than 200 ms"""
    server, kube = joined(t)
    pod = bound("a")
    pod["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "cfg"}}]
    server.store.put("Pod", pod)
    kube.wait("put", is_pod)
    kube.send("need", kind="ConfigMap", namespace="default", name="cfg")
    equal(kube.wait("gone", lambda m: m["kind"] == "ConfigMap")["name"], "cfg", "proven to be missing")
    took = []
    for i in range(20):
        began = time.monotonic()
        server.store.put("ConfigMap", {"metadata": {"name": "cfg", "namespace": "default"}, "data": {"i": str(i)}})
        kube.wait("put", lambda m, i=i: m["object"]["kind"] == "ConfigMap" and m["object"]["data"]["i"] == str(i))
        took.append(time.monotonic() - began)
    print(f"a ConfigMap's change took {1000 * statistics.median(took):.1f} ms (median), {1000 * max(took):.1f} ms (most)")
    check(statistics.median(took) < 0.2 * SLOW, f"it took {took}")
    kube.send("drop", kind="ConfigMap", namespace="default", name="cfg")
    kube.stop()
    server.stop()


def pss_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def test_110_pods_at_once(t):
    """110 pods that are bound at once are told, and their statuses arrive, with few requests and little memory"""
    server, kube = joined(t)
    empty_kb, began = pss_kb(kube.process.pid), time.monotonic()
    pods = [server.store.put("Pod", bound(f"pod-{i}")) for i in range(110)]
    for _ in pods:
        kube.wait("put", is_pod, 20)
    told = time.monotonic()
    for phase in ("Pending", "Running"):
        for pod in pods:
            report(kube, pod, {"phase": phase, "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
                               "conditions": [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]})
    for pod in pods:
        server.store.wait("Pod", pod["metadata"]["name"], phase_is("Running"), seconds=30 * SLOW)
    patches = len(server.requests("PATCH", "/pods/"))
    print(f"told after {told - began:.2f} s, all Running after {time.monotonic() - began:.2f} s, {patches} patches; "
          f"coracle-kube has {empty_kb} kB without pods, {pss_kb(kube.process.pid)} kB (Pss) with them")
    check(patches <= 220, f"{patches} patches of 110 pods")
    equal([r["uri"] for r in server.requests() if r["code"] == 403], [], "requests that a node may not send")
    equal(len(server.requests("GET", "/pods/")), 0, "pods that were read one by one")
    kube.stop()
    server.stop()


def test_a_bootstrap(t):
    """a node gets its certificate by a request, and finds the request again after a restart"""
    server = ApiServer(f"{t.scratch}/tmp")
    server.signs = False
    token = server.token("system:bootstrap:abcdef", "system:bootstrappers")
    start = {"server": server.url, "ca": server.authority.read("ca.crt"), "token": token, "bootstrap": True}
    settings = {"bootstrap": True, "rotateClient": True}
    first = KubeAlone(t, start, nodeName="peer", certificates=settings)
    key = first.wait("certificate", lambda m: "certificate" not in m)["key"]
    server.wait_request("POST", "/certificatesigningrequests")
    first.stop()
    kube = KubeAlone(t, {**start, "waitingKey": key}, nodeName="peer", certificates=settings)
    server.wait_request("POST", "/certificatesigningrequests", lambda r: r["code"] == 409)
    requests = server.store.all("CertificateSigningRequest")
    equal(len(requests), 1, "requests for one key")
    equal(requests[0]["spec"]["signerName"], "kubernetes.io/kube-apiserver-client-kubelet", "signer")
    server.sign(requests[0]["metadata"]["name"])
    issued = kube.wait("certificate")
    equal((issued["usage"], issued["key"]), ("client", key), "what was issued")
    kube.send("node", object=node_object())
    kube.send("credentials", **{**start, "token": "", "bootstrap": False, "certificate": issued["certificate"], "key": key})
    server.wait_request("POST", "/api/v1/nodes", lambda r: r["code"] == 201)
    kube.stop()
    server.stop()


def test_a_restart_of_the_process(t):
    """a coracle-kube that is killed and started anew disturbs nothing: no object is touched, what is the same is not sent"""
    server, kube = joined(t)
    pod = server.store.put("Pod", bound("a"))
    kube.wait("put", is_pod)
    report(kube, pod, {"phase": "Running"})
    server.store.wait("Pod", "a", phase_is("Running"))
    kube.process.kill()
    kube.process.wait()
    last = len(server.requests())
    kube = KubeAlone(t, server.credentials("peer"), nodeName="peer")
    kube.send("node", object=node_object())
    report(kube, pod, {"phase": "Running"})
    equal(kube.wait("put", is_pod)["object"]["metadata"]["name"], "a", "the pod")
    kube.wait("synced", lambda m: m["kind"] == "Pod")
    server.wait_request("PUT", "/leases/", after=last)
    equal([(r["method"], r["uri"]) for r in server.requests()[last:] if r["method"] not in ("GET", "PUT") and "nodes/peer/status" not in r["uri"]], [],
          "requests that change something")
    kube.stop()
    server.stop()
