# SPDX-License-Identifier: Apache-2.0
"""host - host tests (tests/host) inside a VM, on cgroup v2: `make check-node-host ONLY=text`.  Slow."""
BY_HAND = True


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    # In a cgroup handed over to the tests, as on any systemd machine.
    t.program(vm, "tools.stream", ["systemd-run", "--quiet", "--unit", "host-tests", "--slice", "system.slice", "-p", "Delegate=yes", "--pipe",
                                   "--wait", "--setenv=CORACLE_TEST_CGROUP=/system.slice", "python3", "/payload/tests/host/run",
                                   "--slow", "8", "--jobs", "1", "--build", "/usr/bin", *t.words], deadline=4 * 3600)
