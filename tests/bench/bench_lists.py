# SPDX-License-Identifier: Apache-2.0
"""What each list of network plugins costs a pod: the same pod under several lists, in turns."""
import json
import os
import statistics

from bench import Figure
from bench_start import shares
from coracle import until

DEFAULT = "bridge, masquerade, portmap, bandwidth"
PLUGINS = ("/opt/cni/bin", "/usr/lib/cni")


def plugin(kind, number, **more):
    ipam = {"type": "host-local", "ranges": [[{"subnet": f"10.{80 + number}.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    return {"type": kind, "ipam": ipam, **({"bridge": f"bench{number}", "isGateway": True} if kind == "bridge" else {}), **more}


PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
BANDWIDTH = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
LISTS = {
    "bridge, portmap, bandwidth": [plugin("bridge", 1), PORTMAP, BANDWIDTH],
    "bridge, masquerade": [plugin("bridge", 2, ipMasq=True)],
    "bridge, masquerade by nftables": [plugin("bridge", 3, ipMasq=True, ipMasqBackend="nftables")],
    "bridge alone": [plugin("bridge", 4)],
    "ptp, masquerade": [plugin("ptp", 5, ipMasq=True)],
    "ptp alone": [plugin("ptp", 6)],
}


def has_nftables():
    """Whether the bridge plugin is of a version (1.6) that knows a backend for its masquerading."""
    path = next((f"{d}/bridge" for d in PLUGINS if os.path.exists(f"{d}/bridge")), None)
    with open(path, "rb") as f:
        return b"ipMasqBackend" in f.read()


def choose(b, name):
    """Makes it the list of new pods; those that run keep theirs."""
    path = f"{b.scratch}/cni/00-bench.conflist"
    if name == DEFAULT:
        if os.path.exists(path):
            os.unlink(path)
        wanted = "coracle"
    else:
        wanted = f"bench{list(LISTS).index(name)}"
        with open(f"{path}.new", "w", encoding="ascii") as f:
            json.dump({"cniVersion": "1.0.0", "name": wanted, "plugins": LISTS[name]}, f)
        os.rename(f"{path}.new", path)
    until(lambda: json.dumps(b.node.get("/explain")).count(f'"{wanted}"'), 10, f"the list {wanted}")


def bench_lists(b, quick):
    """One pod under each list; the floor is the list that the agent is delivered with."""
    names = [DEFAULT] + [n for n in LISTS if "nftables" not in n or has_nftables()]
    took, parts = {n: [] for n in names}, {n: [] for n in names}
    for i in range(-1, 4 if quick else 20):
        for k, name in enumerate(names):
            choose(b, name)
            each, _ = b.start([b.pod(f"list-{i + 1}-{k}")])
            if i >= 0:  # the first makes the bridge
                took[name] += each.values()
                parts[name].append(shares(b, f"list-{i + 1}-{k}"))
            b.remove([f"list-{i + 1}-{k}"])
    for name in names:
        medians = {p: statistics.median(one[p] for one in parts[name]) for p in parts[name][0]}
        yield Figure(f"one pod, {name}", "ms", took[name], None if name == DEFAULT else took[DEFAULT], {"plugins": medians})


__all__ = ["bench_lists"]
