# SPDX-License-Identifier: Apache-2.0
"""numa - processors and memory of containers on two NUMA nodes, as the kernel has them.  Called by test_numa.py."""
import json
import os
import re

import coracle
from coracle import check, container, contains, equal, pod, read, run, until
from node import node

CONFIG = "/etc/coracle/config.yaml"
SETTINGS = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
memoryManagerPolicy: Static
topologyManagerPolicy: single-numa-node
systemReserved: {memory: 156Mi}
evictionHard: {memory.available: 100Mi}
reservedMemory:
- {numaNode: 0, limits: {memory: 256Mi}}
"""
BUFFER_MIB = 24
# dd keeps a buffer of its own in memory, again and again written.
WORK = {"command": ["dd", "if=/dev/zero", "of=/dev/null", f"bs={BUFFER_MIB}M", "count=100000000"]}
IDLE = {"command": ["sleep", "1000000"]}


def begin(version):
    with open(CONFIG, "w", encoding="utf-8") as f:
        f.write(SETTINGS)
    run("systemctl", "enable", "--now", "coracle.service")
    node.wait_active()
    node.import_image()
    equal(2 if coracle.cgroup_v2() else 1, version, "version of cgroups")
    equal(read("/sys/devices/system/node/online").strip(), "0-1", "NUMA nodes of this VM")


def members(text):
    """"0-1,3" as a set."""
    found = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def allowed(p):
    """(processors, nodes) that the kernel lets the container's process use."""
    status = read(f"/proc/{node.pid(p, 'main')}/status")
    return tuple(members(re.search(rf"^{name}_allowed_list:\s*(\S*)$", status, re.MULTILINE).group(1)) for name in ("Cpus", "Mems"))


def in_cgroup(p):
    folder = node.container_cgroup(p, "cpuset", "main")
    return tuple(members(read(f"{folder}/cpuset.{name}")) for name in ("cpus", "mems"))


def pages(p):
    """{node: MiB} of the anonymous memory of the container's process."""
    found = {0: 0, 1: 0}
    for line in read(f"/proc/{node.pid(p, 'main')}/numa_maps").splitlines():
        if "anon=" in line:
            size = int((re.search(r"kernelpagesize_kB=(\d+)", line) or [0, 4])[1])
            for number, count in re.findall(r" N(\d+)=(\d+)", line):
                found[int(number)] += int(count) * size / 1024
    return found


def put(name, cpu, program=IDLE, memory="64Mi"):
    node.put(f"{name}.yaml", pod(name, containers=[container("main", resources={"limits": {"cpu": cpu, "memory": memory}}, **program)],
                                 hostNetwork=True, terminationGracePeriodSeconds=0))


def home(p):
    """The node of its processors, which must be one."""
    nodes = {n for n in (0, 1) if in_cgroup(p)[0] & members(read(f"/sys/devices/system/node/node{n}/cpulist"))}
    equal(len(nodes), 1, f"nodes of the processors of {p.name}")
    return nodes.pop()


def placed():
    """One processor on each of two nodes, with memory beside it."""
    node.put("shared.yaml", pod("shared", containers=[container("main", **IDLE)], hostNetwork=True, terminationGracePeriodSeconds=0))
    put("two", "2", WORK)
    node.wait_running("shared", "two", deadline=60)
    put("one", "1", WORK)
    node.wait_running("one", deadline=60)
    both = {name: node.pod(name) for name in ("one", "two")}
    equal({home(p) for p in both.values()}, {0, 1}, "nodes of the two pods")
    for name, p in both.items():
        equal(allowed(p), in_cgroup(p), f"what the kernel allows {name}, and its cgroup")
        equal(in_cgroup(p)[1], {home(p)}, f"nodes of the memory of {name}")
        until(lambda p=p: sum(pages(p).values()) >= BUFFER_MIB, 30, f"memory of {name}")
        other = pages(p)[1 - home(p)]  # some pages are older than the program: the runtime's
        check(other < 1, lambda name=name, p=p: f"{name} has memory of another node: {pages(p)}")
    equal(len(in_cgroup(both["two"])[0]), 2, "processors of two")
    own = in_cgroup(both["one"])[0] | in_cgroup(both["two"])[0]
    until(lambda: in_cgroup(node.pod("shared"))[0] == {0, 1, 2, 3} - own, 20, lambda: f"the shared processors: {in_cgroup(node.pod('shared'))}")
    shown = node.cli("describe", "node").stdout
    contains(shown, "default/two (main)", "the map of the nodes")


def facts():
    return {name: (in_cgroup(node.pod(name)), node.pid(node.pod(name), "main")) for name in ("one", "two", "shared")}


def kept():
    before = facts()
    for turn in (("restart", "coracle"), ("kill", "-s", "KILL", "coracle"), ("daemon-reload",)):
        pid = node.main_pid
        run("systemctl", *turn)
        node.wait_active(other_than=pid if turn[0] != "daemon-reload" else 0)
        node.wait_running("one", "two", "shared", deadline=60)
        equal(facts(), before, f"after systemctl {' '.join(turn)}")


def refused():
    put("wide", "2")
    p = node.wait_phase("wide", "Failed", deadline=60)
    contains(("TopologyAffinityError", "OutOfcpu", "UnexpectedAdmissionError"), p["status"]["reason"], "why it does not fit")
    gone = in_cgroup(node.pod("two"))[0]
    node.remove("wide.yaml", "two.yaml")
    node.wait_gone("wide", "two", deadline=60)
    until(lambda: gone <= in_cgroup(node.pod("shared"))[0], 20, "processors that are shared again")
    put("next", "2")
    node.wait_running("next", deadline=60)
    equal(in_cgroup(node.pod("next"))[0], gone, "processors of the next pod")
    state = json.loads(read(f"{node.root_dir}/cpu_manager_state"))
    equal(len(state["entries"]), 2, "pods in the state file")
    check(os.path.exists(f"{node.root_dir}/memory_manager_state"), "the state of memory")
