# SPDX-License-Identifier: Apache-2.0
"""reboot - agents, limits and the whole machine come and go below pods that stay.  The short form: an upgrade, the clock, a reboot."""

OPTIONS = {"cpus": 1}  # QEMU may hang in a reboot with two


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    with t.step("the examples and three more pods run"):
        before = vm.call("reboot.begin", deadline=600)
    with t.step("an upgrade of the agent changes nothing for a pod"):
        vm.call("reboot.upgrade", before, deadline=600)
    for title, function in (
            ("daemon-reload, daemon-reexec, systemctl kill coracle change nothing for a pod", "reboot.turns"),
            ("MemoryMax on the agent's unit and its OOM change nothing for a pod", "reboot.memory_max"),
            ("a container started by the unit and one started by hand show the same status, limits and mounts", "reboot.by_hand"),
            ("the wall clock is set a year forward and back: no pod ends, no probe is silent, deadlines keep their length", "clock.steps")):
        if not t.long and function != "clock.steps":
            continue
        with t.step(title):
            vm.call(function, before, deadline=600)
    if t.long:
        sleep(t, vm, before)
    with t.step("all is as the manifests say before the reboot"):
        before = vm.call("reboot.checked", deadline=600)
    with t.step("systemctl reboot: the machine comes up again"):
        vm.reboot()
    with t.step("the pods had ended in order; all are back: same uids, new sandboxes, one restart each, the job still done, nothing left of before"):
        vm.call("reboot.after", before, deadline=800)


def sleep(t, vm, before):
    with t.step("the machine sleeps: a back-off goes on meanwhile, and no pod notices"):
        late = vm.call("clock.before_sleep", deadline=600)
        vm.sleep(25)
        vm.call("clock.after_sleep", before, *late, deadline=600)
