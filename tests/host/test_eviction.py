# SPDX-License-Identifier: Apache-2.0
"""Pods are evicted before the node runs out of memory or disk: who goes, with which words, and what is left of it."""
import contextlib
import json
import os
import re

from coracle import container, contains, equal, mount, pod, read, run, shell, until

MIB = 1 << 20
STAY = "trap 'exit 0' TERM; while true; do sleep 3600 & wait $!; done"
M = [mount("m", "/m")]
MEMORY = [{"name": "m", "emptyDir": {"medium": "Memory"}}]
PODS = 512  # MiB that pods may use together; the machine itself is not filled


def machine_kib():
    return int(re.search(r"MemTotal:\s+(\d+)", read("/proc/meminfo")).group(1))


def small_node(t, *flags, threshold="128Mi"):
    """Pods together have PODS MiB, of which `threshold` is kept free; all the rest of the machine is reserved."""
    reserved = machine_kib() - PODS * 1024
    node = t.node(f"--kube-reserved=memory={reserved}Ki", f"--eviction-hard=memory.available<{threshold}", *flags)
    node.import_image()
    return node


def hog(name, mib, after="", request=None, stay=STAY, **spec):
    resources = {"requests": {"memory": request}} if request else {}
    fill = f"{after} head -c {mib * MIB} /dev/zero > /m/x; echo full; "
    return pod(name, container(command=shell(fill + stay), volumeMounts=M, resources=resources), volumes=MEMORY, **spec)


@contextlib.contextmanager
def small_disk(t, folder, mib):
    """A file system of its own for a folder of the node."""
    image, path = f"{t.scratch}/{folder}.ext4", f"{t.scratch}/{folder}"
    with open(image, "wb") as f:
        f.truncate(mib * MIB)
    run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0", image)
    os.makedirs(path, exist_ok=True)
    run("mount", "-o", "loop", image, path)
    try:
        yield path
    finally:
        run("umount", "-l", path)
        os.unlink(image)


def conditions(node):
    return {c["type"]: c for c in node.get("/api/v1/nodes/test-node")["status"]["conditions"]}


def pressure(node, kind="MemoryPressure"):
    return conditions(node)[kind]["status"]


def full(node, *names):
    for name in names:
        node.wait_running(name)
        until(lambda n=name: "full" in node.logs(n), 20, f"{name} has its memory")


def records(node):
    """The decision about `big`, with all pods in their order, in the API and as a table."""
    until(lambda: node.get("/evictions")["items"][-1].get("outcome"), 10, "its end is recorded")
    last = node.get("/evictions")["items"][-1]
    equal([v["pod"] for v in last["victims"]], ["default/big"], "victims")
    equal([p["pod"] for p in last["ranked"]], ["default/big", "default/small", "default/asked"], "ranking")
    contains(last["signal"], "emory.available", "signal")
    contains(node.cli("get", "evictions").stdout, "default/big", "table")
    equal(json.loads(node.cli("get", "evictions", "-o", "json").stdout)["items"][-1]["number"], last["number"], "number")


def test_admission(t):
    """under memory pressure BestEffort pods wait unless they tolerate it; an evicted pod returns later than the end of pressure"""
    node = small_node(t, "--eviction-pressure-transition-period=20s")
    node.put("hog.yaml", hog("hog", 420, terminationGracePeriodSeconds=1))
    # It may be back before anybody looks: what happened to it is in its events.
    until(lambda: any(e["reason"] == "Evicted" for e in node.events("hog")), 30, "hog is evicted")
    first = node.pod("hog").uid
    until(lambda: pressure(node) == "True", 10, "pressure")
    taints = node.get("/api/v1/nodes/test-node")["spec"]["taints"]
    equal([(x["key"], x["effect"]) for x in taints], [("node.kubernetes.io/memory-pressure", "NoSchedule")], "taints")
    node.put("effort.yaml", pod("effort", container(command=shell(STAY))))
    node.put("tolerates.yaml", pod("tolerates", container(command=shell(STAY)),
                                   tolerations=[{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]))
    node.put("burstable.yaml", pod("burstable", container(command=shell(STAY), resources={"requests": {"cpu": "10m"}})))
    node.wait_running("tolerates", "burstable")
    refused = node.wait_phase("effort", "Failed")
    equal((refused.status["reason"], refused.status["message"]),
          ("Evicted", "Pod was rejected: The node had condition: [MemoryPressure]. "), "refused")
    equal(pressure(node), "True", "pressure")
    equal(node.wait_phase("hog", "Failed").uid, first, "hog")
    node.wait_running("effort", deadline=40)
    equal(pressure(node), "False", "pressure")
    until(lambda: node.pod("hog").uid != first, 40, "hog is tried again")
    node.remove("hog.yaml")
    node.wait_gone("hog", deadline=30)
    node.finish(*(node.pod(n) for n in ("effort", "tolerates", "burstable")))
    node.stop()


def test_memory(t):
    """the pod that exceeds its request most is evicted, even if it releases memory; other pods and the condition follow kubelet's rules"""
    node = small_node(t, "--eviction-pressure-transition-period=2s")
    node.put("asked.yaml", hog("asked", 120, request="150Mi"))
    node.put("small.yaml", hog("small", 40))
    full(node, "asked", "small")
    equal(pressure(node), "False", "MemoryPressure")
    node.put("big.yaml", hog("big", 300, restartPolicy="Never"))
    big = node.wait_phase("big", "Failed", deadline=30)
    equal(big.status["reason"], "Evicted", "reason")
    text = big.status["message"]
    pattern = (r"The node was low on resource: memory\. Threshold quantity: 128Mi, available: \d+[KM]i\. "
               r"Container main was using \d+[KM]i, request is 0, has larger consumption of memory\. ")
    equal(bool(re.fullmatch(pattern, text)), True, text)
    disrupted = big.condition("DisruptionTarget")
    equal((disrupted["status"], disrupted["reason"], disrupted["message"]), ("True", "TerminationByKubelet", text), "condition")
    event = [e for e in node.events("big") if e["reason"] == "Evicted"][0]
    equal((event["type"], event["message"]), ("Warning", text), "event")
    equal(event["metadata"]["annotations"]["starved_resource"], "memory", "annotation")
    equal(event["metadata"]["annotations"]["offending_containers"], "main", "annotation")
    until(lambda: pressure(node) == "False", 20, "pressure is over")
    reasons = [e["reason"] for e in node.events("test-node")]
    for wanted in ("EvictionThresholdMet", "NodeHasInsufficientMemory", "NodeHasSufficientMemory"):
        equal(wanted in reasons, True, f"{wanted} in {reasons}")
    for name in ("asked", "small"):
        equal((node.pod(name).phase, node.pod(name).restarts()), ("Running", 0), name)
    records(node)
    node.kill()
    node.start()
    records(node)
    equal((node.pod("big").phase, node.pod("big").status["message"]), ("Failed", text), "after a restart")
    node.finish(*(node.pod(n) for n in ("asked", "small", "big")))
    node.stop()


def test_disk(t):
    """the disk of volumes runs short: the pod that filled it is evicted with its files, and the node recovers"""
    with small_disk(t, "kubelet", 256):
        node = t.node("--eviction-hard=nodefs.available<100Mi", "--eviction-pressure-transition-period=2s")
        node.import_image()
        e, disk = [mount("e", "/e")], [{"name": "e", "emptyDir": {}}]
        node.put("small.yaml", pod("small", container(command=shell(f"head -c {20 * MIB} /dev/zero > /e/x; echo full; {STAY}"),
                                                      volumeMounts=e), volumes=disk))
        full(node, "small")
        node.put("big.yaml", pod("big", container(command=shell(f"head -c {180 * MIB} /dev/zero > /e/x; {STAY}"), volumeMounts=e),
                                 volumes=disk, restartPolicy="Never", terminationGracePeriodSeconds=1))
        big = node.wait_phase("big", "Failed", deadline=60)
        text = big.status["message"]
        pattern = r"The node was low on resource: ephemeral-storage\. Threshold quantity: 100Mi, available: \d+[KM]i\. (Container main was using .*)?"
        equal((big.status["reason"], bool(re.fullmatch(pattern, text))), ("Evicted", True), text)
        until(lambda: pressure(node, "DiskPressure") == "False", 30, "pressure is over")
        reasons = [e["reason"] for e in node.events("test-node")]
        for wanted in ("EvictionThresholdMet", "NodeHasDiskPressure", "NodeHasNoDiskPressure"):
            equal(wanted in reasons, True, f"{wanted} in {reasons}")
        equal(node.pod("small").phase, "Running", "small")
        contains(node.cli("get", "evictions", "-o", "wide").stdout, "nodefs.available", "table")
        contains(node.cli("explain", "node").stdout, "nodefs.available", "explain")
        node.finish(*(node.pod(n) for n in ("small", "big")))
        node.stop()
