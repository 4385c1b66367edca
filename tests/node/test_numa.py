# SPDX-License-Identifier: Apache-2.0
"""numa - a machine with two NUMA nodes: the real processors and memory of containers that get them for themselves; cgroup v2, and v1."""
import os

OPTIONS = {"memory": 1536, "cpus": 4, "numa": 2}


def steps(t, vm, version):
    vm.call("numa.begin", version, deadline=200)
    with t.step(f"v{version}: Guaranteed containers get processors and memory of one node each, others share the rest"):
        vm.call("numa.placed", deadline=600)
    with t.step(f"v{version}: restarts and kills of the agent change none of it"):
        vm.call("numa.kept", deadline=600)
    with t.step(f"v{version}: a pod that fits into no single node is refused, and what a pod had is given again"):
        vm.call("numa.refused", deadline=600)
    with t.step(f"v{version}: processors are isolated where the kernel can; elsewhere the node says why not"):
        if vm.call("numa.begin_isolation", deadline=600) != "isolated":
            return
    with t.step(f"v{version}: restarts and kills of the agent keep them isolated"):
        vm.call("numa.isolation_kept", deadline=600)
    with t.step(f"v{version}: isolation follows pods, restarts of containers and processors that go offline"):
        vm.call("numa.isolation_follows", deadline=600)
    with t.step(f"v{version}: without the setting nothing of it is left"):
        vm.call("numa.isolation_off", deadline=600)


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    steps(t, vm, 2)
    if not os.environ.get("NODE_LONG"):
        return
    vm.kill()
    vm = t.vm("numa-v1", append="systemd.unified_cgroup_hierarchy=0")
    with t.step("a VM with the v1 hierarchy boots"):
        vm.boot()
    steps(t, vm, 1)
