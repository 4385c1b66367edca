# SPDX-License-Identifier: Apache-2.0
"""storage - pods on XFS and ext4 disks with project quotas: what they use, limits that evict and limits that refuse, agents killed at any time."""
OPTIONS = {"disks": {"xfs": "xfs", "ext4": "ext4"}, "memory": 1152, "cpus": 2}
# (title, function, whether the short form has it on ext4 as well)
STEPS = [
    ("each tree of a pod has its project before something is written; the summary equals du", "exact", True),
    ("a container cannot change the project of a file, nor what new ones inherit", "kept", False),
    ("a limit that is passed ends the pod at once, without a scan", "evicts", True),
    ("an enforced limit stops a hog of removed open files, and the pod stays", "refuses", True),
    ("a flood of refused writes costs the agent little", "flood", False),
    ("agents are killed while pods come and go: no id is shared, none is left over", "killed", False),
    ("a disk that only counts: usage is read from time to time", "counts_only", True),
    ("what pods of a time without quotas wrote is scanned", "upgraded", False),
]


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    for fs in ("xfs", "ext4"):
        with t.step(f"{fs}: the service runs with all its folders there, and says that quotas count"):
            vm.call("storage.begin", fs, deadline=600)
        for title, function, often in STEPS:
            if fs == "xfs" or often or t.long:
                with t.step(f"{fs}: {title}"):
                    vm.call(f"storage.{function}", fs, deadline=1200)
        with t.step(f"{fs}: nothing is left on the disk"):
            vm.call("storage.end", fs, deadline=600)
