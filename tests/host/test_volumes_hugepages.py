# SPDX-License-Identifier: Apache-2.0
"""emptyDir of huge pages, and their limits.  Pages are reserved for the test if the kernel allows it."""
import contextlib
import fcntl
import glob
import os

from coracle import check, container, contains, equal, mount, pod, read, Skip, until

SYS = "/sys/kernel/mm/hugepages/hugepages-2048kB"
PAGE = 2 << 20


@contextlib.contextmanager
def pages(wanted):
    """At least that many free pages of 2 MiB, for one test of the machine at a time; afterwards as many as before."""
    if not os.path.isdir(SYS):
        raise Skip("this kernel has no huge pages of 2 MiB")
    with open(f"{SYS}/nr_hugepages", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with set_aside(wanted) as total:
            yield total


@contextlib.contextmanager
def set_aside(wanted):
    before = int(read(f"{SYS}/nr_hugepages"))

    def set_to(n):
        with contextlib.suppress(OSError), open(f"{SYS}/nr_hugepages", "w", encoding="ascii") as f:
            f.write(str(n))
    try:
        set_to(before + wanted)
        if int(read(f"{SYS}/free_hugepages")) < wanted:
            raise Skip("no huge pages can be set aside on this machine")
        yield int(read(f"{SYS}/nr_hugepages")) * PAGE
    finally:
        set_to(before)


def huge(amount, memory="64Mi", **more):
    return {"resources": {"limits": {"cpu": "100m", "memory": memory, "hugepages-2Mi": amount}}, **more}


def test_volume(t):
    """HugePages and HugePages-2Mi are a hugetlbfs of that page size, limited; without a request the pod waits with kubelet's words"""
    with pages(4):
        node = t.node()
        node.import_image()
        mounts = [mount("any", "/any"), mount("two", "/two")]
        volumes = [{"name": "any", "emptyDir": {"medium": "HugePages"}}, {"name": "two", "emptyDir": {"medium": "HugePages-2Mi", "sizeLimit": "3Mi"}}]
        node.put("a.yaml", pod("a", container(volumeMounts=mounts, **huge("4Mi")), securityContext={"fsGroup": 2000}, volumes=volumes))
        node.put("b.yaml", pod("b", container(volumeMounts=mounts[:1]), volumes=volumes[:1]))
        node.put("c.yaml", pod("c", container(volumeMounts=mounts[1:], **huge("0")), volumes=[{"name": "two", "emptyDir": {"medium": "HugePages-1Gi"}}]))
        a = node.wait_running("a")
        lines = {line.split()[1]: line.split() for line in node.enter(a, "cat", "/proc/self/mounts").stdout.splitlines()}
        for path in ("/any", "/two"):
            equal(lines[path][2], "hugetlbfs", f"file system at {path}")
            contains(lines[path][3], "pagesize=2M", f"options of {path}")
            equal(node.enter(a, "stat", "-c", "%a %g", path).stdout, "2775 2000\n", f"mode of {path}")
        contains(lines["/two"][3], "size=4194304", "the size limit, in whole pages")
        for name, medium in (("b", "HugePages"), ("c", "HugePages-1Gi")):
            until(lambda n=name, m=medium: any(f'medium {m}: hugePages storage requested, but there is no resource request for huge pages' in e["message"]
                                               and e["reason"] == "FailedMount" for e in node.events(n)), 10, lambda n=name: f"{node.events(n)}")
        for folder in glob.glob("/sys/fs/cgroup/**/pod" + a.uid, recursive=True):
            for file in glob.glob(f"{folder}/hugetlb.2MB.max") + glob.glob(f"{folder}/hugetlb.2MB.limit_in_bytes"):
                equal(int(read(file)), 2 * PAGE, f"{file}: the pod's limit")
                inside = glob.glob(f"{folder}/*/{os.path.basename(file)}")
                equal([int(read(f)) for f in inside], [2 * PAGE] * len(inside), "the container's")
            for file in glob.glob(f"{folder}/hugetlb.1GB.max"):
                equal(int(read(file)), 0, f"{file}: a size that is not asked for")
        node.remove("a.yaml", "b.yaml", "c.yaml")
        node.wait_gone("a", "b", "c")
        node.wait_no_traces(a)
        equal(node.stop(), 0, "exit code")


def test_admission(t):
    """a pod that requests more huge pages than exist fails with OutOfhugepages-2Mi; another pod gets released pages"""
    with pages(4) as total:
        node = t.node()
        node.import_image()
        node.put("a.yaml", pod("a", container(**huge(str(total - PAGE)))))
        node.wait_running("a")
        node.put("b.yaml", pod("b", container(**huge(str(2 * PAGE)))))
        b = node.wait_phase("b", "Failed")
        equal(b.status.get("reason"), "OutOfhugepages-2Mi", "reason")
        contains(b.status["message"], f"hugepages-2Mi, requested: {2 * PAGE}, used: {total - PAGE}, capacity: {total}", "message")
        node.remove("a.yaml", "b.yaml")
        node.wait_gone("a", "b")
        node.put("b.yaml", pod("b", container(**huge(str(2 * PAGE)))))
        check(node.wait_running("b").phase == "Running", "the pod that fits now")
        equal(node.stop(), 0, "exit code")
