# SPDX-License-Identifier: Apache-2.0
"""Packets between node and apiserver that are lost without a word."""
import contextlib
import time

from apiserver import ApiServer
from coracle import SLOW, check, container, equal, pod, run, shell
from joined_node import Connected, Joined
from kube_alone import KubeAlone
from test_kube_sync import node_object

PARTITION_S = 55


@contextlib.contextmanager
def packets_lost(port):
    rules = [("INPUT", "-p", "tcp", side, str(port), "-j", "DROP") for side in ("--dport", "--sport")]
    for rule in rules:
        run("iptables", "-I", *rule)
    try:
        yield
    finally:
        for rule in rules:
            run("iptables", "-D", *rule)


def test_lost_packets(t):
    """a minute without packets disturbs nothing, is noticed once, and afterwards statuses and pods of meanwhile arrive"""
    ends = pod("ends", container(command=shell("sleep 8; exit 0")), restartPolicy="Never")
    j = Joined(t, pods=[pod("stays"), ends])
    j.remember("stays")
    view, began = Connected(j), time.monotonic()
    j.wait_connected()
    with packets_lost(j.server.port):
        noticed = j.wait_connected(False, 30)
        j.node.wait_phase("ends", "Succeeded", 20)
        j.put(pod("new"))
        j.server.store.remove("Pod", "stays", gracePeriodSeconds=3600)  # the node cannot know, and leaves it alone
        while time.monotonic() - began < PARTITION_S:
            check(j.node.pod("new") is None, "packets came through")
            time.sleep(1)
        j.undisturbed()
    back = time.monotonic()
    j.wait_connected(seconds=45)
    connected = time.monotonic() - back
    j.wait_phase("ends", "Succeeded", 60)
    told = time.monotonic() - back
    j.wait_phase("new", "Running", 60)
    print(f"noticed after {noticed:.1f} s; after the partition connected after {connected:.1f} s, the status of meanwhile after {told:.1f} s, "
          f"the pod of meanwhile runs after {time.monotonic() - back:.1f} s")
    changes = view.end()
    equal([c for _, c in changes], [True, False, True], f"connected, over time: {changes}")
    check(set(j.readies) <= {"True"}, f"Ready was {set(map(str, j.readies))}")
    j.stop()


test_lost_packets.seconds = 100


def test_deaf_connection(t):
    """one of two connections whose load balancer lost its server is noticed by a PING, though the lease's works"""
    server = ApiServer(f"{t.scratch}/tmp")
    names = [f"c{i}" for i in range(130)]  # a watch each; libcurl puts at most 100 streams on a connection
    one = {"metadata": {"name": "a", "namespace": "default"}, "status": {"phase": "Pending"},
           "spec": {"nodeName": "peer", "containers": [{"name": "main", "image": "a", "envFrom": [{"configMapRef": {"name": n}} for n in names]}]}}
    server.store.put("Pod", one)
    for n in names:
        server.store.put("ConfigMap", {"metadata": {"name": n, "namespace": "default"}, "data": {"k": "1"}})
    kube = KubeAlone(t, server.credentials("peer"), nodeName="peer")
    kube.send("node", object=node_object())
    server.wait_request("POST", "/leases")
    for n in names:
        kube.send("need", kind="ConfigMap", namespace="default", name=n)
    for n in names:
        kube.wait("put", lambda m, n=n: m["object"]["kind"] == "ConfigMap" and m["object"]["metadata"]["name"] == n, 30)
    watches = {}
    for r in server.requests("GET", "/configmaps"):
        if "watch=true" in r["uri"]:
            watches.setdefault(r["connection"], []).append(next(n for n in reversed(names) if f"={n}&" in r["uri"].replace("%3D", "=")))
    equal(len(watches), 2, f"connections with watches: {[(k, len(v)) for k, v in watches.items()]}")
    last = len(server.requests())
    works = server.wait_request("PUT", "/leases/", after=last, seconds=20 * SLOW)["connection"]
    second = next(c for c in watches if c != works)
    server.deafen(second)
    began = time.monotonic()
    server.store.put("ConfigMap", {"metadata": {"name": watches[second][-1], "namespace": "default"}, "data": {"k": "2"}})
    kube.wait("put", lambda m: m["object"]["kind"] == "ConfigMap" and m["object"]["data"]["k"] == "2", 60)
    took = time.monotonic() - began
    print(f"a change behind the deaf connection came after {took:.1f} s")
    check(took < 55 * SLOW, f"it took {took:.1f} s")
    with kube.changed:
        equal([m for m in kube.messages if m["type"] == "gone"], [], "messages gone")
        check(not [m for m in kube.messages if m["type"] == "state" and not m["connected"]], "the apiserver was said to be away")
    kube.stop()
    server.stop()


test_deaf_connection.seconds = 75
