# SPDX-License-Identifier: Apache-2.0
"""The effect of limits on programs, measured by the kernel's own counters, so that other load of the machine only costs time."""
import os
import time

import limits_check
from coracle import Skip, cgroup_v2, check, container, contains, equal, pod, read, shell, until
from test_volumes_hugepages import PAGE, pages, set_aside

SPIN = shell("trap 'exit 0' TERM; while :; do :; done")


def busy(name, milli, **more):
    return pod(name, container(command=SPIN, resources=more.pop("resources", {"requests": {"cpu": f"{milli}m"}})), hostNetwork=True,
               terminationGracePeriodSeconds=0, **more)


def used_ns(node, p):
    """Processor time of a pod's container."""
    folder = node.container_cgroup(p, "cpu" if cgroup_v2() else "cpuacct")
    if cgroup_v2():
        return int(dict(line.split() for line in read(f"{folder}/cpu.stat").splitlines())["usage_usec"]) * 1000
    return int(read(f"{folder}/cpuacct.usage"))


def test_a_quarter_of_a_processor(t):
    """a busy loop limited to 250m gets 250m, within 5% over 10 s"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", busy("a", 250, resources={"requests": {"cpu": "250m"}, "limits": {"cpu": "250m"}}))
    a = node.wait_running("a")
    shares = []
    for _ in range(6):  # never more; less only if the machine has no time for it
        start, before = time.monotonic_ns(), used_ns(node, a)
        time.sleep(10)
        shares.append((used_ns(node, a) - before) / (time.monotonic_ns() - start))
        check(shares[-1] < 0.25 * 1.05, f"used {shares[-1]:.4f} of a processor")
        if shares[-1] > 0.25 * 0.95:
            break
    check(shares[-1] > 0.25 * 0.95, f"used {shares} of a processor")
    print(f"MEASURED a busy loop limited to 250m: {shares[-1] * 1000:.1f}m over 10 s")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(node.stop(), 0, "exit code")


def ratio(node, one, three):
    before = used_ns(node, one), used_ns(node, three)
    time.sleep(5)
    return (used_ns(node, three) - before[1]) / max(1, used_ns(node, one) - before[0])


def test_one_to_three(t):
    """two pods whose requests are as 1 to 3 share one busy processor so, within 10%; on v2 as the weights of their requests"""
    node = t.node()
    node.import_image()
    node.put("one.yaml", busy("one", 300))
    node.put("three.yaml", busy("three", 900))
    node.wait_running("one", "three")
    pods = node.pods()
    one, three = pods["default", "one"], pods["default", "three"]
    for p in (one, three):
        os.sched_setaffinity(node.pid(p), {max(os.sched_getaffinity(0))})
    wanted = limits_check.weight(921) / limits_check.weight(307) if cgroup_v2() else 921 / 307
    found = []
    until(lambda: found.append(ratio(node, one, three)) or abs(found[-1] / wanted - 1) < 0.1, 40, lambda: f"ratios {found}, wanted {wanted:.2f}")
    print(f"MEASURED requests of 300m and 900m on one processor: 1 to {found[-1]:.2f}, wanted {wanted:.2f}")
    node.remove("one.yaml", "three.yaml")
    node.wait_gone("one", "three")
    equal(node.stop(), 0, "exit code")


def test_memory_hog(t):
    """a hog at 64Mi is OOM-killed and restarted, with reason and count; the container and the pod beside it are not affected"""
    node = t.node()
    node.import_image()
    limits = {"limits": {"memory": "64Mi"}}
    node.put("hog.yaml", pod("hog", container("hog", shell("[ -e /once/more ] && exec sleep 3600; touch /once/more; exec tail /dev/zero"), resources=limits,
                                              volumeMounts=[{"name": "once", "mountPath": "/once"}]),
                             container("beside", resources=limits), hostNetwork=True, volumes=[{"name": "once", "emptyDir": {}}]))
    node.put("other.yaml", pod("other", container(resources=limits), hostNetwork=True))
    other = node.wait_running("other")
    hog = node.wait_pod("hog", lambda p: p.restarts("hog") == 1 and p.state("hog")[0] == "running", 40)
    last = hog.container("hog")["lastState"]["terminated"]
    equal((last["reason"], last["exitCode"]), ("OOMKilled", 137), "how it ended")
    equal((hog.restarts("beside"), hog.state("beside")[0]), (0, "running"), "the container beside it")
    again = node.pod("other")
    equal((again.uid, again.container_id(), again.restarts()), (other.uid, other.container_id(), 0), "the pod beside it")
    node.remove("hog.yaml", "other.yaml")
    node.wait_gone("hog", "other")
    equal(node.stop(), 0, "exit code")


MAP = r"""
import ctypes, mmap, os, sys, time
PAGE = 2 << 20
MAP_HUGETLB = 0x40000

def take(n):
    m = mmap.mmap(-1, n * PAGE, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | MAP_HUGETLB)
    for i in range(n):
        m[i * PAGE] = 1
    return m

kept = []
for n in map(int, sys.argv[1:]):
    try:
        kept.append(take(n))
        print("took", n, flush=True)
    except OSError as e:
        print("refused", n, os.strerror(e.errno), flush=True)
time.sleep(3600)
"""


def mapper(name, limit, *takes):
    """Runs this machine's Python inside the container: it takes pages as told."""
    return pod(name, container(command=["/bin/chroot", "/host", "/usr/bin/python3", "-c", MAP, *[str(n) for n in takes]],
                               volumeMounts=[{"name": "host", "mountPath": "/host", "readOnly": True}],
                               resources={"limits": {"cpu": "1", "memory": "64Mi", "hugepages-2Mi": f"{limit * 2}Mi"}, "requests": {"cpu": "100m"}}),
               volumes=[{"name": "host", "hostPath": {"path": "/"}}], hostNetwork=True, terminationGracePeriodSeconds=0)


def huge_pages(node):
    """One page more than the limit is refused inside the container; the pod beside it gets its own."""
    node.put("a.yaml", mapper("a", 2, 2, 1))
    node.put("b.yaml", mapper("b", 3, 4, 3))
    node.wait_running("a", "b", deadline=40)
    until(lambda: "refused 1 Cannot allocate memory" in node.logs("a"), 20, lambda: f"a: {node.logs('a')}")
    until(lambda: "took 3" in node.logs("b"), 20, lambda: f"b: {node.logs('b')}")
    contains(node.logs("a"), "took 2\n", "what a got")
    contains(node.logs("b"), "refused 4 Cannot allocate memory\n", "what b did not get")
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("a", "b")


def test_huge_pages(t):
    """a container that maps one huge page more than its limit gets the error, the pod beside it gets its pages"""
    with pages(8) as total:
        check(total >= 8 * PAGE, "pages")
        node = t.node()
        node.import_image()
        if not cgroup_v2() and limits_check.folder(node, "hugetlb", "") is None:
            raise Skip("the hugetlb controller is mounted in no usual place here")
        huge_pages(node)
        equal(node.stop(), 0, "exit code")


def test_capacity(t):
    """huge pages that are reserved or released while the agent runs are noticed at once, without polling"""
    with pages(1):
        node = t.node()

        def changes():
            return " | ".join(e["message"] for e in node.events("test-node") if e["reason"] == "HugePagesChanged")

        with set_aside(2) as total:
            until(lambda: f"hugepages-2Mi of this node: {total} bytes" in changes(), 5, lambda: f"event of more pages: {changes()}")
        until(lambda: f"hugepages-2Mi of this node: {total - 2 * PAGE} bytes" in changes(), 5, lambda: f"event of fewer pages: {changes()}")
        equal(node.stop(), 0, "exit code")


def test_missing_controllers(t):
    """a missing controller is named with the features it disables, and mounts of the agent are reported"""
    node = t.node()
    text = node.cli("explain", "node").stdout
    contains(text, "cgroups", "explain node")
    have = {w for root in limits_check.hierarchies() for w in os.path.basename(root).split(",")}
    if not cgroup_v2() and "hugetlb" not in have:
        contains(text, "huge pages are not limited: a container may use more than it requested", "explain node")
        contains(node.log(), "cgroup controller is missing", "log")
    if not cgroup_v2() and "freezer" in have:
        check("frozen before they are killed" not in text, "freezer is there")
    equal(node.stop(), 0, "exit code")


test_a_quarter_of_a_processor.seconds = 70
test_one_to_three.seconds = 60
