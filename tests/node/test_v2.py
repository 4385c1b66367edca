# SPDX-License-Identifier: Apache-2.0
"""v2 - the installed build as a systemd service on cgroup v2, as every Debian 12 has it."""

CHECK = True


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    t.program(vm, "main.run_all", 2)
