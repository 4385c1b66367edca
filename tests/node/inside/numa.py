# SPDX-License-Identifier: Apache-2.0
"""numa - processors and memory of containers on two NUMA nodes, as the kernel has them.  Called by test_numa.py."""
import json
import os
import re

import coracle
from coracle import check, container, contains, equal, pod, read, run, until
from node import UNIT_CGROUP, node

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
OWN = """apiVersion: coracle.dev/v1
kind: CoracleConfiguration
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


def facts_of(*names):
    return {name: (in_cgroup(node.pod(name)), node.pid(node.pod(name), "main")) for name in names}


def facts():
    return facts_of("one", "two", "shared")


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


# ---- isolated processors ----

FS = "/sys/fs/cgroup"
# From below the root down to the cgroup of all pods: where a processor must be handed down.
ABOVE = [f"{FS}/system.slice", f"{FS}{UNIT_CGROUP}", f"{FS}{UNIT_CGROUP}/kubepods"]


def configure(isolated):
    with open(CONFIG, "w", encoding="utf-8") as f:
        f.write(SETTINGS + (f"---\n{OWN}isolateExclusiveCPUs: true\n" if isolated else ""))
    pid = node.main_pid
    started = run("systemctl", "restart", "coracle", ok=False)
    check(started.returncode == 0, lambda: f"{started.stderr}{node.log()[-4000:]}")
    node.wait_active(other_than=pid)


def can_isolate():
    return coracle.cgroup_v2() and os.path.exists(f"{ABOVE[0]}/cpuset.cpus.exclusive")


def isolated():
    """The processors that the kernel's scheduler leaves alone."""
    return members(read(f"{FS}/cpuset.cpus.isolated"))


def partition(p):
    return read(f"{node.container_cgroup(p, 'cpuset', 'main')}/cpuset.cpus.partition").strip()


def handed_down():
    return [members(read(f"{folder}/cpuset.cpus.exclusive")) for folder in ABOVE]


def strangers(own, but):
    """Cgroups whose processes may run on these processors, without that of the pod `but`."""
    found = []
    for folder, _, files in os.walk(FS):
        if "cpuset.cpus.effective" not in files or f"pod{but.uid}" in folder or not read(f"{folder}/cgroup.procs").strip():
            continue
        if members(read(f"{folder}/cpuset.cpus.effective")) & own:
            found.append(folder)
    return found


def alone(name):
    """The pod has its processors for itself: partition, scheduler, all others, and what is told."""
    p = node.pod(name)
    own = in_cgroup(p)[0]
    until(lambda: partition(p) == "isolated", 20, lambda: f"partition of {name}: {partition(p)}; {node.log()[-3000:]}")
    check(own <= isolated(), lambda: f"isolated are {isolated()}, not {own}")
    check(all(own <= there for there in handed_down()), lambda: f"handed down: {handed_down()}, not {own}")
    equal(allowed(p)[0], own, f"processors of the process of {name}")
    equal(strangers(own, p), [], "cgroups that may run on these processors, too")
    free = set(range(4)) - isolated()
    for pid in ("1", str(node.main_pid), str(node.pid(node.pod("shared"), "main"))):
        status = read(f"/proc/{pid}/status")
        equal(members(re.search(r"^Cpus_allowed_list:\s*(\S*)$", status, re.MULTILINE).group(1)) & own, set(), f"processors of process {pid}")
    check(free, "no processor is left")
    contains(node.cli("describe", "node").stdout, f"default/{name} (main), isolated", "the map of the nodes")
    contains(node.cli("explain", "pod", name).stdout, "isolated", "explain pod")
    return own


def begin_isolation():
    """Pods of before are isolated when the setting comes, on a kernel that can; otherwise it says why not."""
    node.remove("one.yaml", "next.yaml")
    node.wait_gone("one", "next", deadline=60)
    put("two", "2")
    node.wait_running("two", "shared", deadline=60)
    configure(True)
    node.wait_running("two", "shared", deadline=60)
    if can_isolate():
        alone("two")
        contains(node.cli("explain", "node").stdout, "isolated processors", "explain node")
        return "isolated"
    contains(node.cli("explain", "node").stdout, "it needs Linux 6.7" if coracle.cgroup_v2() else "it needs cgroup v2", "explain node")
    contains(node.cli("explain", "pod", "two").stdout, "not isolated", "explain pod")
    contains(node.cli("describe", "node").stdout, "default/two (main), not isolated", "the map of the nodes")
    equal(node.log().count("cannot isolate processors of containers on this machine"), 1, "lines of the log about it")
    configure(False)
    return "impossible"


def isolation_kept():
    own = alone("two")
    before = facts_of("two", "shared")
    for turn in (("restart", "coracle"), ("kill", "-s", "KILL", "coracle"), ("daemon-reload",)):
        pid = node.main_pid
        run("systemctl", *turn)
        node.wait_active(other_than=pid if turn[0] != "daemon-reload" else 0)
        equal(partition(node.pod("two")), "isolated", f"partition after systemctl {' '.join(turn)}")
        node.wait_running("two", "shared", deadline=60)
        equal(alone("two"), own, f"after systemctl {' '.join(turn)}")
        equal(facts_of("two", "shared"), before, f"after systemctl {' '.join(turn)}")


def isolation_follows():
    """A second pod, a container that starts again, a processor that goes offline and comes back, the end."""
    two = alone("two")
    taken(two)
    one = alone("one")
    equal(handed_down(), [one | two] * 3, "handed down for both")
    pid = node.pid(node.pod("one"), "main")
    os.kill(pid, 9)
    until(lambda: node.pid(node.pod("one"), "main") not in (0, pid), 60, "the container to start again")
    node.wait_running("one", deadline=60)
    equal(alone("one"), one, "processors after the container has started again")
    offline(one)
    node.remove("two.yaml")
    node.wait_gone("two", deadline=60)
    until(lambda: handed_down() == [one] * 3 and isolated() == one, 30, lambda: f"handed down: {handed_down()}, isolated: {isolated()}")
    node.remove("one.yaml")
    node.wait_gone("one", deadline=60)
    until(lambda: handed_down() == [set()] * 3 and isolated() == set(), 30, lambda: f"handed down: {handed_down()}")


def offline(one):
    """The one processor of a partition goes, which ends it. It is isolated again when it is back."""
    cpu = f"/sys/devices/system/cpu/cpu{min(one)}/online"
    with open(cpu, "w", encoding="ascii") as f:
        f.write("0")
    until(lambda: partition(node.pod("one")) != "isolated", 30, "the kernel to end the partition")
    with open(cpu, "w", encoding="ascii") as f:
        f.write("1")
    until(lambda: partition(node.pod("one")) == "isolated", 30, lambda: f"partition: {partition(node.pod('one'))}")


def taken(own):
    """Somebody else has the processor of the next pod: it runs, is not isolated, and says so until it is."""
    other = f"{FS}/taken"
    os.mkdir(other)
    with open(f"{other}/cpuset.cpus.exclusive", "w", encoding="ascii") as f:
        f.write(",".join(map(str, {1, 2, 3} - own)))
    put("one", "1")
    node.wait_running("one", deadline=60)
    contains(node.cli("explain", "pod", "one").stdout, "not isolated", "explain pod")
    contains(node.cli("describe", "pod", "one").stdout, "CPUsNotIsolated", "events of the pod")
    contains(node.cli("describe", "node").stdout, "default/one (main), not isolated", "the map of the nodes")
    os.rmdir(other)


def isolation_off():
    """What a killed agent left is taken back by one without the setting."""
    put("two", "2")
    node.wait_running("two", deadline=60)
    alone("two")
    run("systemctl", "kill", "-s", "KILL", "coracle")
    configure(False)
    until(lambda: handed_down() == [set()] * 3 and isolated() == set(), 30, lambda: f"handed down: {handed_down()}")
    equal(partition(node.pod("two")), "member", "partition without the setting")
    node.wait_running("two", "shared", deadline=60)
