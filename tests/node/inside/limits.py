# SPDX-License-Identifier: Apache-2.0
"""limits - what stands in cgroups below the unit of the pods: the host tests' table, and that nothing changes it.  Called by test_limits.py."""
import contextlib
import os
import re

import coracle
from coracle import check, contains, equal, hierarchies, pod, read, run, until
from node import UNIT_CGROUP, node

import limits_check  # of the host tests, like the next ones
import limits_table
import test_resources_work

CONFIG = "/etc/coracle/config.yaml"
SWAP_FILE = "/var/tmp/swap"
DROP_INS = "/etc/systemd/system/coracle-pods.service.d"
LIMIT = re.compile(r"cpu\.(weight|max|shares|cfs_.*_us)|memory\.(min|low|high|max|oom\.group|swap\.max|limit_in_bytes)|pids\.max|"
                   r"hugetlb\..*(max|limit_in_bytes)|cpuset\.(cpus|mems)")


def begin(version):
    run("systemctl", "enable", "--now", "coracle.service")
    node.wait_active()
    node.import_image()
    equal(2 if coracle.cgroup_v2() else 1, version, "version of cgroups")


def table(every):
    check(len(limits_table.TABLE) >= 60, "at least 60 rows")
    limits_check.run_table(node, limits_table.TABLE[::every])


def huge(pages):
    """Tables of huge pages, and one page more than the limit."""
    equal(int(read("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")), pages, "pages that this VM was booted with")
    limits_check.run_table(node, limits_table.HUGE)
    test_resources_work.huge_pages(node)


@contextlib.contextmanager
def settings(text):
    """A node with other settings; afterwards it has its own again."""
    before = read(CONFIG)
    with open(CONFIG, "w", encoding="utf-8") as f:
        f.write("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + text)
    restart()
    try:
        yield
    finally:
        with open(CONFIG, "w", encoding="utf-8") as f:
            f.write(before)
        restart()


def with_settings(text, rows, *args, **kwargs):
    """The table on such a node."""
    with settings(text):
        limits_check.run_table(node, rows, *args, **kwargs)


def swap():
    """A swap file, and LimitedSwap: Burstable containers get of it what their memory request is of the machine's memory, others none."""
    for argv in (("dd", "if=/dev/zero", f"of={SWAP_FILE}", "bs=1M", "count=128"), ("chmod", "600", SWAP_FILE), ("mkswap", SWAP_FILE), ("swapon", SWAP_FILE)):
        run(*argv, timeout=60)
    try:
        with settings("failSwapOn: false\nmemorySwap: {swapBehavior: LimitedSwap}\n"):
            asks = {"guaranteed": {"limits": {"cpu": "50m", "memory": "32Mi"}}, "idle": {},
                    "burstable": {"requests": {"memory": "48Mi"}, "limits": {"memory": "96Mi"}}, "full": {"requests": {"cpu": "10m", "memory": "32Mi"},
                                                                                                         "limits": {"memory": "32Mi"}}}
            for name, resources in asks.items():
                node.put(f"{name}.yaml", pod(name, coracle.container(resources=resources), hostNetwork=True, terminationGracePeriodSeconds=0))
            node.wait_running(*asks, deadline=60)
            share = (48 << 20) / limits_check.meminfo("MemTotal") * limits_check.meminfo("SwapTotal")
            got = {n: int(read(node.container_cgroup(node.pod(n), "memory") + "/memory.swap.max")) for n in asks}
            equal(got, {"guaranteed": 0, "idle": 0, "full": 0, "burstable": int(share) // 4096 * 4096}, "memory.swap.max")
            check(got["burstable"] > 1 << 20, f"a share of swap that can be seen: {got}")
            node.remove(*[f"{n}.yaml" for n in asks])
            node.wait_gone(*asks, deadline=60)
    finally:
        run("swapoff", SWAP_FILE, timeout=60)
        os.unlink(SWAP_FILE)


def reserved():
    """Cgroups of the system and of the agent's kind that are there get what is reserved for them."""
    wanted = {"reserved-system": (200, 64 << 20, 1000), "reserved-kube": (300, 36 << 20, 24)}
    for name in wanted:
        os.mkdir(f"/sys/fs/cgroup/{name}")
    try:
        with settings("enforceNodeAllocatable: [pods, system-reserved, kube-reserved]\n"
                      "systemReserved: {cpu: 200m, memory: 64Mi, pid: '1000'}\nsystemReservedCgroup: /reserved-system\n"
                      "kubeReserved: {cpu: 300m, memory: 36Mi, pid: '24'}\nkubeReservedCgroup: /reserved-kube\n"):
            for name, (milli, memory, pids) in wanted.items():
                found = [read(f"/sys/fs/cgroup/{name}/{file}").strip() for file in ("cpu.weight", "memory.max", "pids.max")]
                equal(found, [str(limits_check.weight(milli * 1024 // 1000)), str(memory), str(pids)], name)
    finally:
        for name in wanted:
            os.rmdir(f"/sys/fs/cgroup/{name}")


def restart():
    old = node.main_pid
    run("systemctl", "restart", "coracle", timeout=60)
    node.wait_active(other_than=old)
    until(lambda: node.request("GET", "/healthz")[0] == 200, 20, "the agent answers")


def unit_weight():
    """Of the unit in which the pods are."""
    return int(read(limits_check.folder(node, "cpu", "") + "/cpu.weight"))


def wait_unit_weight(weight=None, reserved=0):
    """An administrator's, else that of the processors that pods may ask for: all but what is reserved (in thousandths)."""
    wanted = weight or limits_check.weight((os.cpu_count() * 1000 - reserved) * 1024 // 1000)
    until(lambda: unit_weight() == wanted, 20, lambda: f"weight of the pods' unit: {unit_weight()}, wanted {wanted}")


@contextlib.contextmanager
def drop_in(name, weight):
    """A file of the administrator's beside the unit's."""
    os.makedirs(DROP_INS, exist_ok=True)
    with open(f"{DROP_INS}/{name}", "w", encoding="utf-8") as f:
        f.write(f"[Service]\nCPUWeight={weight}\n")
    run("systemctl", "daemon-reload", timeout=60)
    try:
        yield
    finally:
        os.unlink(f"{DROP_INS}/{name}")
        run("systemctl", "daemon-reload", timeout=60)


def left_alone(turn):
    """The agent has looked, and says so."""
    since = len(node.log())
    turn()
    until(lambda: "keeping the administrator's CPU weight of the pods' unit" in node.log()[since:], 20, "the agent says whose weight it is")


def reload():
    run("systemctl", "reload", "coracle", timeout=60)


def weight():
    """The unit of the pods has its weight from the start on, and after what is done to it; one of an administrator's stays."""
    wait_unit_weight()
    with drop_in("override.conf", 321):  # as `systemctl edit` calls it: systemd reads it after ours
        wait_unit_weight(321)
        left_alone(restart)
        wait_unit_weight(321)
    wait_unit_weight()
    with drop_in("10-weight.conf", 456):  # before ours
        left_alone(reload)
        wait_unit_weight(456)
    reload()
    wait_unit_weight()
    run("systemctl", "set-property", "coracle-pods.service", "CPUWeight=78", timeout=60)
    left_alone(reload)
    wait_unit_weight(78)
    run("systemctl", "revert", "coracle-pods.service", timeout=60)  # ours is gone, too
    reload()
    wait_unit_weight()
    with settings("systemReserved: {cpu: 500m}\n"):
        wait_unit_weight(reserved=500)
    wait_unit_weight()


def tiers():
    since = len(node.log())
    with_settings(limits_table.TIERS, limits_table.TIERS_TABLE, 10000, 64, (500, 100, 1024), protects=True)
    contains(node.log()[since:], "memory requests of pods are only protected against each other", "the log, below a unit without MemoryMin=")


def loose():
    with_settings(limits_table.LOOSE, limits_table.LOOSE_TABLE)


def one_to_three():
    """Two pods on one busy processor whose weights are as 1 to 3 within ten percent: their requests are as 1 to 4 (docs/decisions/resources.md)."""
    work, found = test_resources_work, []
    node.put("one.yaml", work.busy("one", 250))
    node.put("three.yaml", work.busy("three", 1000))
    node.wait_running("one", "three", deadline=60)
    one, three = node.pod("one"), node.pod("three")
    for p in (one, three):
        os.sched_setaffinity(node.pid(p), {max(os.sched_getaffinity(0))})
    until(lambda: found.append(work.ratio(node, one, three)) or 2.7 < found[-1] < 3.3, 180, lambda: f"ratios {found}, wanted 3 within 10%")
    node.remove("one.yaml", "three.yaml")
    node.wait_gone("one", "three", deadline=60)
    return found[-1]


def values():
    """Every limit of the pods' unit and of all cgroups below it; not the level of the memory alarm, which follows the node's use."""
    found = {}
    for root in hierarchies():
        for folder, _, files in os.walk(root + UNIT_CGROUP):
            for file in files:
                if LIMIT.fullmatch(file) and f"{folder}/{file}" != f"{root}{UNIT_CGROUP}/kubepods/memory.high":
                    found[f"{folder}/{file}"] = read(f"{folder}/{file}", "").strip()
    return found


def turns():
    """systemd's turns and the agent's restarts write nothing that was not there."""
    rows = limits_table.TABLE[:2] + limits_table.HUGE[:1] + [row for row in limits_table.TABLE if row.name in ("g-both", "b-between", "b-sidecar-limits", "p-and-containers")]
    names = [row.name for row in rows]
    if coracle.cgroup_v2():
        wait_unit_weight()
    for row in rows:
        spec = dict(row.spec)
        node.put(f"{row.name}.yaml", pod(row.name, *spec.pop("containers"), hostNetwork=True, terminationGracePeriodSeconds=0, **spec))
    node.wait_running(*names, deadline=60)
    before = values()
    check(len(before) > 100, f"{len(before)} values")
    for argv in (("daemon-reload",), ("daemon-reexec",), ("restart", "coracle"), ("kill", "--signal=KILL", "coracle"), ("daemon-reload",)):
        old = node.main_pid
        run("systemctl", *argv, timeout=60)
        if "coracle" in argv:
            node.wait_active(other_than=old)
        until(lambda: node.request("GET", "/healthz")[0] == 200, 20, "the agent answers")
        node.watch(lambda pods: all(("default", n) in pods and pods["default", n].ready for n in names), what="pods ready")
        now = values()
        equal({k: (v, now.get(k)) for k, v in before.items() if now.get(k) != v}, {}, f"changed by systemctl {' '.join(argv)}")
        equal(sorted(now), sorted(before), "files")
    node.remove(*[f"{n}.yaml" for n in names])
    node.wait_gone(*names, deadline=60)
    return len(before)
