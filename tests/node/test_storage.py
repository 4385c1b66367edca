# SPDX-License-Identifier: Apache-2.0
"""storage - pods on XFS and ext4 disks with project quotas: what they use, limits that evict and limits that refuse, agents killed at any time."""
OPTIONS = {"disks": {"xfs": "xfs", "ext4": "ext4"}, "memory": 1152, "cpus": 2}


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    for fs in ("xfs", "ext4"):
        with t.step(f"{fs}: the service runs with all its folders there, and says that quotas count"):
            vm.call("storage.begin", fs, deadline=600)
        with t.step(f"{fs}: each tree of a pod has its project before something is written; the summary equals du"):
            vm.call("storage.exact", fs, deadline=600)
        with t.step(f"{fs}: a container cannot change the project of a file, nor what new ones inherit"):
            vm.call("storage.kept", fs, deadline=600)
        with t.step(f"{fs}: a limit that is passed ends the pod at once, without a scan"):
            vm.call("storage.evicts", fs, deadline=600)
        with t.step(f"{fs}: an enforced limit stops a hog of removed open files, and the pod stays"):
            vm.call("storage.refuses", fs, deadline=600)
        with t.step(f"{fs}: a flood of refused writes costs the agent little"):
            vm.call("storage.flood", fs, deadline=600)
        with t.step(f"{fs}: agents are killed while pods come and go: no id is shared, none is left over"):
            vm.call("storage.killed", fs, deadline=1200)
        with t.step(f"{fs}: a disk that only counts: usage is read from time to time"):
            vm.call("storage.counts_only", fs, deadline=600)
        with t.step(f"{fs}: what pods of a time without quotas wrote is scanned"):
            vm.call("storage.upgraded", fs, deadline=600)
        with t.step(f"{fs}: what quotas cost a start and a summary"):
            vm.call("storage.cost", fs, deadline=1200)
        with t.step(f"{fs}: nothing is left on the disk"):
            vm.call("storage.end", fs, deadline=600)
