# SPDX-License-Identifier: Apache-2.0
"""The cgroups of 80 pods, their classes and the node, compared with a table calculated by hand (limits_table.py)."""
import contextlib
import os

import limits_check
import limits_table
from coracle import Failed, Skip, check, cgroup_v2, container, contains, equal, hierarchies, pod, read, shell, until
from test_volumes_hugepages import pages


def with_settings(t, text):
    path = f"{t.scratch}/config.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + text)
    node = t.node("--config", path)
    node.import_image()
    return node


def test_table(t):
    """cgroups of pods, containers, classes and node are as in the table, also after a restart of the agent"""
    node = t.node()
    node.import_image()
    restarts = []

    def after(batch):
        if restarts:
            return False
        restarts.append(batch)
        node.kill()
        node.start()
        for row in batch:
            p = node.wait_pod(row.name, lambda p: p.ready)
            limits_check.check_row(node, p, row, 100000, "max")
        return True

    check(len(limits_table.TABLE) >= 60, "at least 60 rows")
    limits_check.run_table(node, limits_table.TABLE, after=after)
    equal(node.stop(), 0, "exit code")


def test_tiers(t):
    """with reservations, MemoryQoS, a quota period and podPidsLimit: protection, throttling and all limits follow"""
    node = with_settings(t, limits_table.TIERS)

    def after(batch):
        node.kill()
        node.start()
        for row in batch:
            limits_check.check_row(node, node.wait_pod(row.name, lambda p: p.ready), row, 10000, 64)
        return True

    limits_check.run_table(node, limits_table.TIERS_TABLE, 10000, 64, (500, 100, 1024), protects=True, after=after)
    equal(node.stop(), 0, "exit code")


def test_loose(t):
    """without quotas, enforcement and group kills there are none, but for pods whose annotation asks for these"""
    node = with_settings(t, limits_table.LOOSE)
    limits_check.run_table(node, limits_table.LOOSE_TABLE)
    equal(node.stop(), 0, "exit code")


@contextlib.contextmanager
def cgroup(path):
    """A cgroup that is not the agent's, in all hierarchies."""
    folders = [root + path for root in hierarchies()]
    for folder in folders:
        os.makedirs(folder)
    try:
        yield folders
    finally:
        for folder in folders:
            os.rmdir(folder)


def test_reserved_cgroups(t):
    """limits of the reserved cgroups are written if configured; without the cgroup the agent refuses to start with a reason"""
    text = ("systemReserved: {cpu: 250m, memory: 64Mi, pid: '500'}\nkubeReserved: {cpu: 500m, memory: 32Mi}\n"
            f"systemReservedCgroup: /{t.name}/sys\nkubeReservedCgroup: {t.name}/kube\n"
            "enforceNodeAllocatable: [pods, system-reserved, kube-reserved-compressible]\n")
    if cgroup_v2():
        raise Skip("cgroups of v2 get their controllers from above: the node VM's part")
    try:
        node = with_settings(t, text)
        raise Failed("it started")
    except Failed as e:
        contains(str(e), "systemReservedCgroup: cgroup /sys/fs/cgroup/", "what the agent says")
        contains(str(e), f"/{t.name}/sys: No such file or directory", "what the agent says")
    with cgroup(f"/{t.name}/sys"), cgroup(f"/{t.name}/kube"):
        node = with_settings(t, text)

        def value(where, file):
            return read(f"/sys/fs/cgroup/{file.split('.')[0]}/{t.name}/{where}/{file}").strip()

        equal([value("sys", f) for f in ("cpu.shares", "memory.limit_in_bytes", "pids.max")], ["256", str(64 << 20), "500"], "of the system")
        equal([value("kube", f) for f in ("cpu.shares", "memory.limit_in_bytes", "pids.max")],
              ["512", str(limits_check.NO_MEMORY_LIMIT_V1), "max"], "of the node's agents: cpu alone")
        equal(node.stop(), 0, "exit code")


def test_less_than_pods_use(t):
    """on v1 the kernel refuses a new limit below the pods' usage: an event reports it, and everything else goes on"""
    if cgroup_v2():
        raise Skip("v2 takes the limit, and ends what is above it")
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=shell("head -c 96m /dev/zero > /memory/file; exec sleep 3600"),
                                          volumeMounts=[{"name": "memory", "mountPath": "/memory"}]),
                           hostNetwork=True, terminationGracePeriodSeconds=0, volumes=[{"name": "memory", "emptyDir": {"medium": "Memory"}}]))
    a = node.wait_running("a")
    until(lambda: node.enter(a, "stat", "-c", "%s", "/memory/file", ok=False).stdout.strip() == str(96 << 20), 20, "the file")
    node.stop()
    most = limits_check.meminfo("MemTotal")
    node.flags += ["--system-reserved", f"memory={most - (32 << 20)}", "--eviction-hard", "memory.available<1Mi"]
    node.start()
    said = [e for e in node.events("test-node") if e["reason"] == "FailedNodeAllocatableEnforcement"]
    equal(len(said), 1, "events")
    contains(said[0]["message"], "Failed to update Node Allocatable Limits: cgroup ", "event")
    contains(said[0]["message"], "Device or resource busy", "event")
    again = node.wait_pod("a", lambda p: p.ready)
    equal((again.uid, again.container_id(), again.restarts()), (a.uid, a.container_id(), 0), "the pod")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(node.stop(), 0, "exit code")


def test_left_over_cgroups(t):
    """cgroups of removed pods, or of another class, are removed at the start; cgroups of living pods are adopted"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(resources={"requests": {"cpu": "100m"}}), hostNetwork=True, terminationGracePeriodSeconds=0))
    a = node.wait_running("a")
    node.kill()
    roots = [root + node.cgroup_root for root in hierarchies() if os.path.isdir(root + node.cgroup_root)]
    left = [f"{root}/kubepods{path}" for root in roots for path in (f"/besteffort/pod{a.uid}", "/podgone", "/burstable/podgone/1234")]
    for folder in left:
        os.makedirs(folder)
    node.start()
    until(lambda: not any(os.path.exists(folder) for folder in left), 10, "leftovers are removed")
    again = node.wait_pod("a", lambda p: p.ready)
    equal((again.uid, again.container_id(), again.restarts()), (a.uid, a.container_id(), 0), "the pod")
    check(all(os.path.isdir(f"{root}/kubepods/burstable/pod{a.uid}") for root in roots), "its own cgroups stay")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(node.stop(), 0, "exit code")


def test_huge_pages(t):
    """every page size of the machine is limited to the request, or to 0 without one"""
    with contextlib.ExitStack() as stack:
        stack.enter_context(pages(8))
        node = t.node()
        node.import_image()
        if not cgroup_v2() and limits_check.folder(node, "hugetlb", "") is None:
            raise Skip("the hugetlb controller is mounted in no usual place here")
        limits_check.run_table(node, limits_table.HUGE)
        equal(node.stop(), 0, "exit code")


test_table.seconds = 120
