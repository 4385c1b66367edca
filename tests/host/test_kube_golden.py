# SPDX-License-Identifier: Apache-2.0
"""The recorded conversation of a kubelet of 1.36 with its apiserver, replayed: the test is the daemon, and says what that kubelet found;
what coracle-kube asks is compared with what the kubelet asked.  docs/decisions/cluster.md argues the differences.
"""
import json
import os
import re

from apiserver import ApiServer
from coracle import Failed, check
from kube_alone import KubeAlone

RECORDING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/kube/conversation.ndjson")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# By chance: the kubelet's clock may have moved on between two of its states.  Heartbeats change with each second.
TIMES = ("lastTransitionTime", "lastHeartbeatTime")


def equal(ours, theirs):
    if ours != theirs:
        raise Failed(f"{json.dumps(ours)}\nand not\n{json.dumps(theirs)}")


def recorded():
    with open(RECORDING, encoding="utf-8") as f:
        return {r["n"]: r for r in map(json.loads, f)}


def normal(value, key=""):
    """Without what differs from run to run; an empty object or list is no member (Go sends some, and reads both alike)."""
    if isinstance(value, dict):
        made = {k: normal(v, k) for k, v in value.items() if k not in TIMES}
        return {k: v for k, v in made.items() if v not in ({}, [])}
    if isinstance(value, list):
        return [normal(v, key) for v in value]
    if isinstance(value, str) and (key == "uid" or key.startswith("kubernetes.io/config.") and "source" not in key):
        return f"<{key}>"
    return TIME.sub("<time>", value) if isinstance(value, str) else value


def same(ours, theirs):
    equal(normal(ours), normal(theirs))


def status_of(r):
    return json.loads(json.dumps(r["response"]["status"]))


class Replay:
    def __init__(self, t):
        self.said = recorded()
        self.server = ApiServer(f"{t.scratch}/tmp")
        self.kube = KubeAlone(t, self.server.credentials("peer"), nodeName="peer")
        self.after = 0

    def asked(self, method, part):
        r = self.server.wait_request(method, part, lambda r: r["code"] < 400, self.after)
        self.after = r["n"]
        return r

    def none_asked(self, method, part):
        equal([r["uri"] for r in self.server.requests(method, part)], [])


def join(replay):
    """The Node, its Lease, its status."""
    said, kube = replay.said, replay.kube
    node = json.loads(json.dumps(said[22]["request"]))
    kube.send("node", object=node)
    posted = replay.asked("POST", "/api/v1/nodes")
    same(posted["request"], said[22]["request"])
    lease = replay.asked("POST", "/leases")
    same(lease["request"], said[56]["request"])
    node["status"] = status_of(said[32])
    kube.send("node", object=node)
    patch = replay.asked("PATCH", "/api/v1/nodes/peer/status")
    equal(patch["headers"]["content-type"], said[32]["contentType"])
    same(patch["request"], {"status": {**said[32]["request"]["status"], "conditions":
                                       [{"type": c} for c in ("MemoryPressure", "DiskPressure", "PIDPressure")] + said[32]["request"]["status"]["conditions"]}})


def pod_object(replay, uid, status, **more):
    return {"metadata": {"name": "app", "namespace": "default", "uid": uid, **more}, "status": status}


def test_the_node_and_its_pods(t):
    """what a kubelet was recorded to ask for a node, an API pod and its objects is asked for here, too"""
    replay = Replay(t)
    said, kube, server = replay.said, replay.kube, replay.server
    join(replay)
    for kind in ("ConfigMap", "Secret"):
        server.store.put(kind, {"metadata": {"name": "app", "namespace": "default"}, "data": {"s": "eA=="}})
    server.store.put("ServiceAccount", {"metadata": {"name": "default", "namespace": "default"}})
    pod = json.loads(json.dumps(said[34]["response"]))
    pod["spec"]["nodeName"] = "peer"
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        del pod["metadata"][key]
    uid = server.store.put("Pod", pod)["metadata"]["uid"]
    equal(kube.wait("put", lambda m: m["object"]["kind"] == "Pod")["object"]["metadata"]["uid"], uid)
    for kind in ("ConfigMap", "Secret"):
        kube.send("need", kind=kind, namespace="default", name="app")
        equal(kube.wait("put", lambda m, kind=kind: m["object"]["kind"] == kind)["object"]["metadata"]["name"], "app")
    kube.send("token", id=1, namespace="default", serviceAccount="default",
              request={**said[38]["request"]["spec"], "boundObjectRef": {**said[38]["request"]["spec"]["boundObjectRef"], "uid": uid}})
    check(kube.wait("answer")["object"]["status"]["token"], "a token")
    token = replay.asked("POST", "/serviceaccounts/default/token")["request"]
    same({**token, "status": None}, {**said[38]["request"], "status": None})
    for n in (37, 41, 45, 59, 61):
        if n == 59:
            server.store.remove("Pod", "app", gracePeriodSeconds=2)
        kube.send("pod", object=pod_object(replay, uid, status_of(said[n])), static=False, ended=False)
        patch = replay.asked("PATCH", "/pods/app/status")
        equal(patch["request"]["metadata"]["uid"], uid)
        same(patch["request"], said[n]["request"])
    kube.send("pod", object=pod_object(replay, uid, status_of(said[61])), static=False, ended=True)
    gone = replay.asked("DELETE", "/pods/app")["request"]
    equal((gone["gracePeriodSeconds"], gone["preconditions"]), (0, {"uid": uid}))
    equal(kube.wait("gone", lambda m: m["kind"] == "Pod")["uid"], uid)
    # The kubelet's requests but its watches, and those of parts that the agent has not.
    theirs = [r for r in said.values() if r["n"] < 74 and r["verb"] not in ("watch", "deletecollection") and "csi" not in r["uri"]
              and "static" not in r["uri"] and "events" not in r["uri"] and r["code"] < 400]
    ours = [r for r in server.requests() if "watch=true" not in r["uri"]]
    check(len(ours) < len(theirs), f"{len(ours)} requests, a kubelet had {len(theirs)}")
    equal([r["uri"] for r in ours if r["code"] == 403], [])
    made = server.requests("POST", "/csinodes")[0]["request"]
    uid = server.store.get("Node", "peer")["metadata"]["uid"]
    equal({**made, "spec": None}, {**said[30]["request"], "spec": None, "metadata": {**said[30]["request"]["metadata"], "ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "peer", "uid": uid}]}})
    replay.none_asked("GET", "resourceslices")
    kube.stop()
    server.stop()


def static_pod(said):
    """The daemon's own object, as a kubelet makes it from the file."""
    pod = json.loads(json.dumps(said[46]["request"]))
    del pod["metadata"]["ownerReferences"], pod["metadata"]["annotations"]["kubernetes.io/config.mirror"]
    return pod


def test_a_mirror_pod(t):
    """a static pod's mirror is made, shown, made again when a user deletes it, and removed with its file as a kubelet does"""
    replay = Replay(t)
    said, kube, server = replay.said, replay.kube, replay.server
    join(replay)
    pod = static_pod(said)
    pod["spec"]["nodeName"] = "peer"
    for n, status in ((46, None), (49, said[49]), (53, said[53])):
        pod["status"] = status_of(status) if status else {}
        kube.send("pod", object=pod, static=True, ended=False)
        asked = replay.asked("POST" if n == 46 else "PATCH", "/api/v1/namespaces/default/pods")["request"]
        wanted = json.loads(json.dumps(said[n]["request"]))
        if n == 46:
            wanted["spec"]["nodeName"] = "peer"
        same(asked, wanted)
    first = server.store.get("Pod", "static-peer")["metadata"]["uid"]
    server.store.remove("Pod", "static-peer", gracePeriodSeconds=30)
    gone = replay.asked("DELETE", "/pods/static-peer")["request"]
    equal((gone["gracePeriodSeconds"], gone["preconditions"]), (said[65]["request"]["gracePeriodSeconds"], {"uid": first}))
    again = replay.asked("POST", "/api/v1/namespaces/default/pods")["request"]
    same(again["metadata"], said[66]["request"]["metadata"])
    replay.asked("PATCH", "/pods/static-peer/status")
    kube.send("podgone", namespace="default", name="static-peer", uid=pod["metadata"]["uid"])
    equal(replay.asked("DELETE", "/pods/static-peer")["request"]["gracePeriodSeconds"], 0)
    kube.stop()
    server.stop()


def test_events(t):
    """events are created and counted with the kubelet's words"""
    replay = Replay(t)
    said, kube = replay.said, replay.kube
    join(replay)
    for r in (r for r in said.values() if r["verb"] == "create" and r["uri"].endswith("/events") and "static" not in json.dumps(r)):
        about = r["request"]
        kube.send("event", object={k: about[k] for k in ("involvedObject", "reason", "message", "type")})
        asked = replay.asked("POST", "/events")["request"]
        same({**asked, "metadata": asked["metadata"]["namespace"]}, {**about, "metadata": about["metadata"]["namespace"]})
        check(re.fullmatch(about["involvedObject"]["name"] + r"\.[0-9a-f]{16}", asked["metadata"]["name"]), asked["metadata"]["name"])
    kube.send("event", object={k: said[13]["request"][k] for k in ("involvedObject", "reason", "message", "type")})
    patch = replay.asked("PATCH", "/events/peer.")
    equal(patch["headers"]["content-type"], said[17]["contentType"])
    same(patch["request"], said[17]["request"])
    kube.stop()
    replay.server.stop()
