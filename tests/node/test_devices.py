# SPDX-License-Identifier: Apache-2.0
"""devices - a device plugin as a systemd service beside the agent: systemd's turns, restarts in every order, reboot and reset."""

OPTIONS = {"cpus": 1}  # QEMU may hang in a reboot with two


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    with t.step("pods with devices run; they may do what the plugin's permissions say"):
        before = vm.call("devices_node.begin", deadline=900)
    for title, function in (
            ("daemon-reload and daemon-reexec leave the device rules alone", "devices_node.turns"),
            ("agent and plugin restarted in every order: no pod loses its device, capacity is right", "devices_node.orders")):
        with t.step(title):
            vm.call(function, before, deadline=900)
    with t.step("systemctl reboot: the machine comes up again"):
        vm.reboot()
    with t.step("the pods have their devices again, the plugin registered, capacity is right"):
        vm.call("devices_node.after", before, deadline=900)
    if t.long:
        with t.step("a reset in the midst: the same"):
            vm.reset()
            vm.call("devices_node.after", before, deadline=900)
    if not t.v1:
        return
    vm.kill()
    old = t.vm("devices-v1", append="systemd.unified_cgroup_hierarchy=0")
    with t.step("a VM on the v1 hierarchy boots; its pods may do what the plugin's permissions say"):
        old.boot()
        before = old.call("devices_node.begin", deadline=900)
    with t.step("v1: daemon-reload and daemon-reexec leave the device rules alone, kill -9 of agent and plugin does, too"):
        old.call("devices_node.turns", before, deadline=900)
        old.call("devices_node.kills", before, deadline=900)
    with t.step("v1: a reset: the pods have their devices again"):
        old.reset()
        old.call("devices_node.after", before, deadline=900)
