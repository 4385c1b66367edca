# SPDX-License-Identifier: Apache-2.0
"""sound - the whole VM against its manifests: every trace a pod may leave names one that lives, once."""
import collections
import json
import os
import re

import coracle
from coracle import read, run, until
from node import node

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
ID = re.compile(r"[0-9a-f]{64}")


def names(path):
    """What is in a folder; [] when it is not there."""
    return os.listdir(path) if os.path.isdir(path) else []


def conmons():
    """The container ids of all supervisors."""
    lines = [read(f"/proc/{p}/cmdline", "").split("\0") for p in coracle.processes()]
    return [words[words.index("--cid") + 1] for words in lines if words[0].endswith("conmon") and "--cid" in words]


def strays():
    """What is there and belongs to nobody, or is missing, as words; [] when all is sound."""
    pods = list(node.pods().values())
    uids = {p.uid for p in pods}
    active = {p.uid for p in pods if p.phase in ("Pending", "Running")}
    networked = {p.uid: p for p in pods if p.uid in active and not p["spec"].get("hostNetwork")}
    running = {c["containerID"].rpartition("//")[2] for p in pods for kind in ("containerStatuses", "initContainerStatuses")
               for c in p.status.get(kind, []) if "running" in c["state"]}
    sandboxes = {uid: json.loads(read(f"{node.state_dir}/pods/{uid}.json", "{}")).get("sandboxID") for uid in networked}
    found = []

    def same(what, there, wanted):
        there = list(there)
        found.extend(f"{what}: {t} belongs to nobody" for t in there if t not in wanted)
        found.extend(f"{what}: none for {w}" for w in wanted if w not in there)
        found.extend(f"{what}: {t} {n} times" for t, n in collections.Counter(there).items() if n > 1)

    def known(what, there, wanted):
        found.extend(f"{what}: {t} belongs to nobody" for t in there if t not in wanted)

    records = names(f"{node.state_dir}/pods")
    same("record", (n[:-len(".json")] for n in records if n.endswith(".json")), uids)
    known("synced record", (n.partition(".")[0] for n in records if not n.endswith(".json")), uids)
    same("container on disk", names(f"{node.state_dir}/containers"), running)
    same("bundle", names(f"{node.run_dir}/containers"), running)
    same("runtime's state", names(f"{node.run_dir}/oci"), running)
    same("conmon", conmons(), running)
    known("exit file", names(f"{node.run_dir}/exits"), running)
    known("pod folder", names(f"{node.root_dir}/pods"), uids)
    known("log folder", (n.rpartition("_")[2] for n in names(node.pod_logs)), uids)
    same("lease", (n for network in names(f"{node.state_dir}/cni/networks") for n in names(f"{node.state_dir}/cni/networks/{network}")
                   if n[0].isdigit()), {p.ip for p in networked.values()})
    same("network result", (n.split("-")[1] for n in names(f"{node.state_dir}/cni/results")), set(sandboxes.values()))
    same("pinned namespaces", names(f"{node.run_dir}/ns"), set(networked) | (set(names(f"{node.run_dir}/ns")) & active))
    known("image in the making", names(f"{node.state_dir}/images/tmp"), ())
    found += [f"dangling link {link}" for link in names(node.container_logs) if not os.path.exists(f"{node.container_logs}/{link}")]
    for root in coracle.hierarchies():
        for folder, _, _ in os.walk(f"{root}{node.cgroup_root}/kubepods"):
            uid = re.match(r"pod(" + UUID.pattern + ")$", os.path.basename(folder))
            if uid and uid.group(1) not in active:
                found.append(f"cgroup {folder} belongs to nobody")
    mounts = [m for m in coracle.mounts_below("") if m.startswith((node.run_dir, node.state_dir, node.root_dir))]
    for mount, n in collections.Counter(mounts).items():
        owners = set(UUID.findall(mount)) | set(ID.findall(mount))
        if n > 1 or not owners <= uids | running:
            found.append(f"mount {mount}, {n} times")
    veths = [link for link in coracle.links() if link.startswith("veth")]
    if len(veths) != len(networked):
        found.append(f"{len(veths)} veth links for {len(networked)} pods with a network")
    rules = coracle.firewall()
    known("firewall", set(re.findall(r'id: \\"(' + ID.pattern + ")", rules)), set(sandboxes.values()))
    for p in networked.values():
        for port in (port for c in p["spec"]["containers"] for port in c.get("ports", []) if port.get("hostPort")):
            goals = re.findall(rf"--dport {port['hostPort']} -j DNAT --to-destination (\S+)", rules)
            if goals != [f"{p.ip}:{port['containerPort']}"]:
                found.append(f"hostPort {port['hostPort']} of {p.name} leads to {goals}, wanted {p.ip}:{port['containerPort']}")
    for folder, _, files in os.walk(node.state_dir):
        if "/layers" not in folder:
            found += [f"{folder}/{f} was set aside" for f in files if ".damaged" in f]
            found += [f"{folder}/{f} was left" for f in files if f.endswith((".tmp", ".new"))]
    return found


def wait(deadline=30, what="the node"):
    """Until nothing is left over and nothing is missing."""
    left = []

    def sound():
        try:
            left[:] = strays()
        except (OSError, coracle.Failed) as e:  # it is just starting; or a file went while it was looked at
            left[:] = [str(e)]
        return not left

    until(sound, deadline, lambda: f"{what}:\n" + "\n".join(left), interval=0.5)


def explain():
    """What the agent itself says about the node."""
    return run("coracle", "explain", "node").stdout
