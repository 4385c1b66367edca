# SPDX-License-Identifier: Apache-2.0
"""v1 - the same on the v1 hierarchy, with huge pages (the hugetlb controller is v1, too)."""
import os

CHECK = os.path.exists("/sys/fs/cgroup/cgroup.controllers")  # a machine with v1 shows it by its host tests
OPTIONS = {"append": "systemd.unified_cgroup_hierarchy=0 hugepages=16"}


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    t.program(vm, "main.run_all", 1)
