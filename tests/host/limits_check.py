# SPDX-License-Identifier: Apache-2.0
"""limits_check - reads the cgroups of running pods and compares them with limits_table's rows, on cgroup v1 and v2."""
import math
import os

import coracle
from coracle import CGROUP_FS, check, equal, hierarchies, pod, read
from limits_table import BEST_EFFORT, GUARANTEED, MI

NO_MEMORY_LIMIT_V1 = 9223372036854771712  # whole pages of a signed 64 bit number
CLASS_PATH = {"Guaranteed": "", "Burstable": "/burstable", "BestEffort": "/besteffort"}
BATCH_MILLI, BATCH_MI = 1800, 400  # the total requests of a batch of pods: less than a small node has


def meminfo(key):
    return next(int(line.split()[1]) for line in read("/proc/meminfo").splitlines() if line.startswith(key + ":")) * 1024


def folder(node, controller, path):
    """The folder of a cgroup below the node's root, in the hierarchy that has the controller; None if there is none."""
    for root in hierarchies():
        if coracle.cgroup_v2() or controller in os.path.basename(root).split(","):
            return root + node.cgroup_root + path
    return None


def controller_of(file):
    return file.split(".")[0]


def weight(shares):
    if shares <= 2:
        return 1
    log = math.log2(shares)
    return math.ceil(10 ** ((log * log + 125 * log) / 612 - 7 / 34) - 1e-9)


def page_sizes():
    """{"2MB": None, ...}: the page sizes of this kernel, as in its file names."""
    found = []
    for name in os.listdir("/sys/kernel/mm/hugepages"):
        kib = int(name[len("hugepages-"):-len("kB")])
        found.append(f"{kib >> 20}GB" if kib >= 1 << 20 else f"{kib >> 10}MB" if kib >= 1 << 10 else f"{kib}KB")
    return found


def expected(k, period, pids, leaf):
    """{file: value} of a cgroup."""
    if coracle.cgroup_v2():
        files = {"cpu.weight": k.weight, "cpu.max": f"{k.quota or 'max'} {period if k.quota else 100000}",
                 "memory.max": k.memory or "max", "pids.max": pids, **k.more}
        huge = {f"hugetlb.{s}.{kind}max": k.huge if s == "2MB" else 0 for s in page_sizes() for kind in ("", "rsvd.")}
        if leaf:
            files.setdefault("memory.oom.group", 1)
    else:
        files = {"cpu.shares": k.shares, "cpu.cfs_quota_us": k.quota or -1, "cpu.cfs_period_us": period if k.quota else 100000,
                 "memory.limit_in_bytes": k.memory or NO_MEMORY_LIMIT_V1, "pids.max": pids}
        huge = {f"hugetlb.{s}.limit_in_bytes": k.huge if s == "2MB" else 0 for s in page_sizes()}
    return {**files, **huge}


def differences(node, path, files):
    """The differences from the expected values, in words."""
    found = []
    for file, wanted in files.items():
        where = folder(node, controller_of(file), path)
        if where is None or (".rsvd." in file and not os.path.exists(f"{where}/{file}")):
            continue  # the machine has no such controller
        got = read(f"{where}/{file}", "missing").strip()
        if got != str(wanted):
            found.append(f"{where}/{file}: {got}, wanted {wanted}")
    if coracle.cgroup_v2() and path.count("/") > 3 and os.path.exists(f"{CGROUP_FS}{node.cgroup_root}{path}/memory.swap.max"):
        got = read(f"{CGROUP_FS}{node.cgroup_root}{path}/memory.swap.max").strip()
        found += [f"{path}/memory.swap.max: {got}, wanted 0"] if got != "0" else []
    return found


def oom_score(k):
    """The expected oom_score_adj of the process; without CAP_SYS_RESOURCE it cannot be lower than the agent's own."""
    if k.oom == GUARANTEED:
        return -997
    if k.oom == BEST_EFFORT:
        return 1000
    return min(999, max(3, 1000 - 1000 * k.oom // meminfo("MemTotal")))


def check_row(node, p, row, period, pids):
    base = f"/kubepods{CLASS_PATH[row.qos]}/pod{p.uid}"
    equal(p.status["qosClass"], row.qos, f"{row.name}: class")
    found = differences(node, base, expected(row.pod, period, pids, False))
    own = int(read(f"/proc/{node.main_pid if hasattr(node, 'main_pid') else node.process.pid}/oom_score_adj"))
    for name, k in row.containers.items():
        found += differences(node, f"{base}/{p.container_id(name)}", expected(k, period, "max", True))
        got, wanted = int(read(f"/proc/{node.pid(p, name)}/oom_score_adj")), oom_score(k)
        if got != wanted and not (wanted < own == got):
            found.append(f"{row.name}/{name}: oom_score_adj {got}, wanted {wanted}")
    check(not found, lambda: f"{row.name}:\n" + "\n".join(found))


def batches(table):
    """Rows that fit on a small node together."""
    batch, milli, mebi = [], 0, 0
    for row in sorted(table, key=lambda r: r.asks):
        if batch and (milli + row.asks[0] > BATCH_MILLI or mebi + row.asks[1] > BATCH_MI):
            yield batch
            batch, milli, mebi = [], 0, 0
        batch.append(row)
        milli, mebi = milli + row.asks[0], mebi + row.asks[1]
    yield batch


def levels(node, shares, memory, pids, batch, protects=False):
    """The cgroups of all pods and of the classes."""
    burstable = [row.asks for row in batch if row.qos == "Burstable"]
    protected = [row.asks for row in batch if row.qos != "BestEffort"]
    sum_shares = max(2, sum(a[0] for a in burstable) * 1024 // 1000)
    if coracle.cgroup_v2():
        wanted = [("/kubepods", {"cpu.weight": weight(shares), "cpu.max": "max 100000", "memory.max": memory, "pids.max": pids,
                                 "memory.min": sum(a[1] for a in protected) * MI if protects else 0}),
                  ("/kubepods/burstable", {"cpu.weight": weight(sum_shares), "cpu.max": "max 100000", "memory.max": "max", "pids.max": "max",
                                           "memory.low": sum(a[1] for a in burstable) * MI if protects else 0}),
                  ("/kubepods/besteffort", {"cpu.weight": 1, "cpu.max": "max 100000", "memory.max": "max", "pids.max": "max"})]
    else:
        wanted = [("/kubepods", {"cpu.shares": shares, "cpu.cfs_quota_us": -1, "memory.limit_in_bytes": memory, "pids.max": pids}),
                  ("/kubepods/burstable", {"cpu.shares": sum_shares, "cpu.cfs_quota_us": -1, "memory.limit_in_bytes": NO_MEMORY_LIMIT_V1, "pids.max": "max"}),
                  ("/kubepods/besteffort", {"cpu.shares": 2, "cpu.cfs_quota_us": -1, "memory.limit_in_bytes": NO_MEMORY_LIMIT_V1, "pids.max": "max"})]
    found = [d for path, files in wanted for d in differences(node, path, files)]
    check(not found, lambda: "\n".join(found))


def run_table(node, table, period=100000, pids="max", reserved=(0, 0, 0), protects=False, after=lambda batch: False):
    """Runs all rows, as many at a time as fit, and checks every level.  reserved: thousandths of a cpu, Mi, process ids.

    after(batch) is called while the pods exist; if it returns true, the upper levels are checked once more.
    """
    shares = (os.cpu_count() * 1000 - reserved[0]) * 1024 // 1000
    memory = meminfo("MemTotal") - reserved[1] * MI
    all_ids = min(int(read("/proc/sys/kernel/pid_max")), int(read("/proc/sys/kernel/threads-max")))
    for batch in batches(table):
        names = [row.name for row in batch]
        for row in batch:
            spec = dict(row.spec)
            node.put(f"{row.name}.yaml", pod(row.name, *spec.pop("containers"), hostNetwork=True, terminationGracePeriodSeconds=0, **spec))
        node.wait_running(*names, deadline=60)
        pods = node.pods()
        for row in batch:
            check_row(node, pods["default", row.name], row, period, pids)
        levels(node, shares, memory, all_ids - reserved[2], batch, protects)
        if after(batch):
            levels(node, shares, memory, all_ids - reserved[2], batch, protects)
        node.remove(*[f"{name}.yaml" for name in names])
        node.wait_gone(*names, deadline=60)
