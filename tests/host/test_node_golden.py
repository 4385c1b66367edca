# SPDX-License-Identifier: Apache-2.0
"""The Node that the daemon registers against that of a recorded kubelet of 1.36, member by member.  docs/decisions/cluster.md argues what is in
the tables below."""
import re

from coracle import equal
from joined_node import Joined
from test_kube_golden import recorded

KEYS = {"conditions": "type", "addresses": "type", "runtimeHandlers": "name"}
# What the apiserver and its controllers put there.
SERVERS = {"metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "spec.taints"}
# Members that only our Node has.
OURS = {"metadata.annotations.volumes.kubernetes.io/controller-managed-attach-detach", "status.features.supplementalGroupsPolicy",
        "status.nodeInfo.swap.capacity"}
# Texts that are this agent's own.
OWN = {"status.conditions[Ready].message": "coracle is posting ready status", "status.declaredFeatures": ["ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"]}
# What another machine has otherwise; its form is the same.
FORMS = {"status.nodeInfo.kubeletVersion": r"v\d+\.\d+\.\d+.*", "status.nodeInfo.containerRuntimeVersion": r"[a-z]+://\d+\.\d+.*",
         "status.nodeInfo.bootID": r"[0-9a-f-]{36}", "status.nodeInfo.machineID": r"[0-9a-f]{32}", "status.nodeInfo.systemUUID": r"[0-9a-f-]{32,36}",
         "status.nodeInfo.kernelVersion": r"\d+\.\d+.*", "status.nodeInfo.osImage": r".+", "status.nodeInfo.architecture": r"[a-z0-9]+",
         "metadata.labels.kubernetes.io/arch": r"[a-z0-9]+", "metadata.labels.beta.kubernetes.io/arch": r"[a-z0-9]+",
         "status.addresses[InternalIP].address": r"192\.0\.2\.9"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
AMOUNTS = {"cpu": r"\d+m?", "memory": r"\d+Ki", "pods": r"\d+", "ephemeral-storage": r"\d+(Ki)?"}


def leaves(value, path=""):
    """{path: value}, elements of lists by their key; lists of texts are values, images are left out."""
    if isinstance(value, dict):
        return {p: v for k, one in value.items() for p, v in leaves(one, f"{path}.{k}" if path else k).items()}
    name = path.rpartition(".")[2]
    if isinstance(value, list) and name in KEYS:
        return {p: v for one in value for p, v in leaves({k: v for k, v in one.items() if k != KEYS[name]}, f"{path}[{one[KEYS[name]]}]").items()}
    return {} if name == "images" else {path: value}


def is_machines(path):
    """Each kernel has its own sizes."""
    return path.startswith(("status.capacity.hugepages-", "status.allocatable.hugepages-"))


def compare(path, ours, theirs):
    name = path.rpartition(".")[2]
    if path in OWN:
        equal(ours, OWN[path], path)
    elif path in FORMS or path.startswith(("status.capacity.", "status.allocatable.")):
        form = FORMS.get(path) or AMOUNTS.get(name, r"\d+(Ki)?")
        equal(bool(re.fullmatch(form, ours)), True, f"{path} is {ours}, kubelet's {theirs}")
    elif name in ("lastHeartbeatTime", "lastTransitionTime"):
        equal(bool(TIME.fullmatch(ours)), True, f"{path} is {ours}")
    else:
        equal(ours, theirs.replace("peer", "test-node") if isinstance(theirs, str) else theirs, path)


def test_the_node(t):
    """every member of a kubelet's Node is in ours, and what is more, less or otherwise is argued"""
    joined = Joined(t, "--node-ip", "192.0.2.9")  # Ready
    ours = leaves(joined.server.store.get("Node", "test-node"))
    theirs = leaves(recorded()[32]["response"])
    equal(set(leaves(joined.server.requests("POST", "/api/v1/nodes")[0]["request"])) - set(ours), set(), "what was registered is still there")
    for found in (ours, theirs):
        for path in [p for p in found if p in SERVERS or is_machines(p)]:
            del found[path]
    equal(set(theirs) - set(ours), set(), "members that only kubelet's Node has")
    equal({p for p in ours if p not in theirs and not p.startswith("status.runtimeHandlers[")} - OURS, set(), "members that only our Node has")
    for path in sorted(set(ours) & set(theirs)):
        compare(path, ours[path], theirs[path])
    joined.stop()
