# SPDX-License-Identifier: Apache-2.0
"""Pods are evicted before the node runs out of memory or disk: who goes, with which words, and what is left of it."""
import json
import re
import time

from coracle import container, contains, equal, mount, pod, read, shell, until

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


def conditions(node):
    return {c["type"]: c for c in node.get("/api/v1/nodes/test-node")["status"]["conditions"]}


def pressure(node, kind="MemoryPressure"):
    return conditions(node)[kind]["status"]


def full(node, *names):
    for name in names:
        node.wait_running(name)
        until(lambda n=name: "full" in node.logs(n), 20, f"{name} has its memory")


def test_memory(t):
    """the pod that uses most beyond its request goes, whatever it returns; others and the condition follow kubelet's rules"""
    node = small_node(t, "--eviction-pressure-transition-period=2s")
    node.put("asked.yaml", hog("asked", 120, request="150Mi"))
    node.put("small.yaml", hog("small", 40))
    full(node, "asked", "small")
    equal(pressure(node), "False", "MemoryPressure")
    node.put("big.yaml", hog("big", 300, restartPolicy="Never"))
    big = node.wait_phase("big", "Failed", deadline=30)
    equal(big.status["reason"], "Evicted", "reason")
    text = big.status["message"]
    pattern = (r"The node was low on resource: memory\. Threshold quantity: 128Mi, available: \d+Ki\. "
               r"Container main was using \d+Ki, request is 0, has larger consumption of memory\. ")
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
    node.finish(*(node.pod(n) for n in ("asked", "small", "big")))
    node.stop()
