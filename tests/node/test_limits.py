# SPDX-License-Identifier: Apache-2.0
"""limits - what stands in the cgroups of 80 pods, worked out by hand; huge pages beyond the limit; systemd's turns change no value."""
import os

PAGES = 16
EVERY = int(os.environ.get("LIMITS_EVERY", "8"))  # one row of so many of the large table; `make soak` takes all, other settings and a v1 VM, too
OPTIONS = {"append": f"hugepages={PAGES}"}


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    vm.call("limits.begin", 2, deadline=200)
    with t.step("daemon-reload, daemon-reexec, a restart and a kill of the agent leave every limit as it was"):
        vm.call("limits.turns", deadline=600)
    with t.step("v2: the pods' unit weighs what pods may ask for, after a restart and with reserved processors, too; an administrator's CPUWeight= stays"):
        vm.call("limits.weight", deadline=600)
    with t.step("v2: huge pages of every size are limited; one page more than the limit is refused, the pod beside it gets its own"):
        vm.call("limits.huge", PAGES, deadline=600)
    with t.step(f"v2: cgroups of pods, containers, classes and node stand as the table says (one row of {EVERY})"):
        vm.call("limits.table", EVERY, deadline=1800)
    if EVERY > 1:  # the host tests have the rest, on v1
        return
    with t.step("v2: requests of 250m and 1 share one busy processor as 1 to 3, within 10%"):
        vm.call("limits.one_to_three", deadline=600)
    with t.step("v2: with a swap file LimitedSwap gives Burstable containers their share, and others none"):
        vm.call("limits.swap", deadline=300)
    with t.step("v2: cgroups of the system and of kubelet's kind get what is reserved for them"):
        vm.call("limits.reserved", deadline=300)
    with t.step("v2: with reservations, MemoryQoS, a quota period and podPidsLimit protection, throttling and all limits follow"):
        vm.call("limits.tiers", deadline=600)
    with t.step("v2: without quotas, enforcement and group kills there are none, but for pods that ask for these"):
        vm.call("limits.loose", deadline=600)
    vm.kill()
    vm = t.vm("limits-v1", append=f"systemd.unified_cgroup_hierarchy=0 hugepages={PAGES}")
    with t.step("a VM with the v1 hierarchy boots"):
        vm.boot()
    vm.call("limits.begin", 1, deadline=200)
    with t.step("v1: huge pages of every size are limited; one page more than the limit is refused, the pod beside it gets its own"):
        vm.call("limits.huge", PAGES, deadline=600)
    with t.step("v1: daemon-reload, daemon-reexec, a restart and a kill of the agent leave every limit as it was"):
        vm.call("limits.turns", deadline=600)
