# SPDX-License-Identifier: Apache-2.0
"""shutdown - the machine goes down by systemctl: logind waits while pods end by priority, and what is recorded outlives it."""
import re

CHECK = True
# The agent's lines are the console's while the machine goes down.  One processor: QEMU may hang in a reboot with two.
OPTIONS = {"append": "systemd.journald.forward_to_console=1 systemd.journald.max_level_console=info", "cpus": 1}


def after(text, *parts):
    """The parts stand in the text in this order."""
    at = 0
    for part in parts:
        found = re.compile(part).search(text, at)
        if found is None:
            raise AssertionError(f"no {part!r} after byte {at} of:\n{text[-6000:]}")
        at = found.end()


def console_since(vm, start):
    with open(vm.console, encoding="utf-8", errors="replace") as f:
        f.seek(start)
        return f.read()


def console_size(vm):
    with open(vm.console, "rb") as f:
        return f.seek(0, 2)


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    with t.step("pods of three priorities run; logind's lock is held and long enough"):
        before = vm.call("shutdown.begin", deadline=300)
    with t.step("the journal knows pod, container and operation of a line"):
        vm.call("shutdown.journal")
    with t.step("coracle-shutdown has no rights and its confinement reaches no container"):
        vm.call("shutdown.confined")
    with t.step("logind restarts: the lock is held again"):
        vm.call("shutdown.logind_restarts")
    with t.step("systemctl reboot: the machine comes up again"):
        vm.reboot()
    with t.step("pods ended in order, with their hooks; the same pods run again, their last run is told; the job that ran once does not"):
        vm.call("shutdown.after", before, deadline=400)
    start = console_size(vm)
    with t.step("systemctl poweroff"):
        vm.poweroff()
    with t.step("the console shows the order: plain pods, then high ones, then the critical one, then the agent and the pods' unit"):
        after(console_since(vm, start), "the machine is shutting down: ending pods by priority",
              r"ending the pods of a priority priority=0 ", "container ended pod=default/plain", "pod ended pod=default/plain",
              r"ending the pods of a priority priority=1000 ", "container ended pod=default/high", "pod ended pod=default/high",
              r"ending the pods of a priority priority=2000000000 ", "container ended pod=default/critical", "pod ended pod=default/critical",
              "the machine may go down", "stopping; pods continue to run")
