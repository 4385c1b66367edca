# SPDX-License-Identifier: Apache-2.0
"""disks - the agent's folders on XFS and on ext4 disks with project quotas; a reset on each; huge pages."""
PAGES = 16
OPTIONS = {"disks": {"xfs": "xfs", "ext4": "ext4"}, "append": f"hugepages={PAGES}", "memory": 1152, "cpus": 1}  # QEMU may hang in a reset with two


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    for fs in ("xfs", "ext4"):
        with t.step(f"{fs}: project quotas count and stop"):
            vm.call("data_disks.quotas", fs)
        with t.step(f"{fs}: pods run with state and volumes there; modes, capabilities and attributes of an image are kept"):
            uid = vm.call("data_disks.begin", fs, deadline=600)
        if fs == "xfs":
            with t.step("huge pages: the node has them, a container's cgroup limits them"):
                vm.call("data_disks.huge_pages", PAGES)
        if fs == "xfs" or t.long:
            with t.step(f"{fs}: a hard reset, and all is back"):
                vm.reset()
                vm.call("data_disks.after", fs, uid, deadline=600)
        with t.step(f"{fs}: the pods leave nothing on the disk, and nothing holds it"):
            vm.call("data_disks.end", fs, deadline=600)
