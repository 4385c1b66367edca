# SPDX-License-Identifier: Apache-2.0
"""quota - volumes/quota on XFS and ext4: usage against du and scans, limits, warnings, ids that survive kill -9, disks that are full, read-only or without quotas.

TEXTs choose among the file systems; `many` is the step with the large tree alone."""
import os
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = int(os.environ.get("QUOTA_FILES", "10000"))  # files of the large tree
# Inodes of a large tree stay in memory, for the scan; XFS takes a kilobyte for each.
OPTIONS = {"disks": {"xfs": "xfs", "ext4": "ext4"}, "cpus": 1, "memory": 1024 + COUNT // 500}


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    vm.call("quota.begin")
    for fs in [fs for fs in ("xfs", "ext4") if fs in t.words or not {"xfs", "ext4"} & set(t.words)]:
        if "many" not in t.words:
            whole(t, vm, fs)
        many(t, vm, fs)


def many(t, vm, fs):
    with t.step(f"{fs}: the usage of {COUNT} files is read within a millisecond"):
        project = vm.call("quota.many_begin", fs, COUNT, deadline=600)
        began = time.monotonic()
        code = subprocess.run(["unshare", "-m", f"{HERE}/fill.py", vm.disk(fs), "many", str(COUNT), str(project)], check=False).returncode
        if code not in (0, 77):
            raise AssertionError(f"fill.py: {code}")
        print(f"# {fs}: {COUNT} files by {'this machine' if code == 0 else 'the VM'}, {time.monotonic() - began:.0f} s", flush=True)
        vm.call("quota.many", fs, COUNT if code != 0 else 0, deadline=7200)


def whole(t, vm, fs):
    with t.step(f"{fs}: its quotas are found by both system calls, and none on other disks"):
        vm.call("quota.kinds", fs)
    with t.step(f"{fs}: usage is du's to the byte, with removed files that are open"):
        vm.call("quota.exact", fs, deadline=300)
    with t.step(f"{fs}: a hard limit stops a hog of removed files"):
        vm.call("quota.hog", fs, deadline=300)
    with t.step(f"{fs}: ids of others are respected, in both files and on the disk"):
        vm.call("quota.foreign", fs, deadline=300)
    with t.step(f"{fs}: xfs_quota and repquota agree with the table"):
        vm.call("quota.reports", fs, deadline=300)
    with t.step(f"{fs}: a soft limit warns by netlink and is never enforced"):
        vm.call("quota.soft", fs, deadline=300)
    with t.step(f"{fs}: an owner may change the project of a file, but not in a user namespace"):
        vm.call("quota.unprivileged", fs, deadline=300)
    with t.step(f"{fs}: a volume and a layer with the ids of a user namespace are counted and limited"):
        vm.call("idmapped.counted", fs, deadline=300)
    for what in ("start", "end", "left") if fs == "xfs" or t.long else ("start",):  # on both it is the same code above the disk
        with t.step(f"{fs}: killed at each system call ({what}), nothing is shared and nothing leaks"):
            vm.call("quota.kills", fs, what, deadline=1800)
    with t.step(f"{fs}: quotas switched off, a full disk, a read-only one"):
        vm.call("quota.broken", fs, deadline=600)
