# SPDX-License-Identifier: Apache-2.0
"""devices_node - a device plugin as a service, under systemd's turns and restarts.  Called by test_devices.py."""
import itertools
import os

import coracle
import devices
from coracle import check, equal, run, until
from node import node

UNIT = "/etc/systemd/system/device-plugin.service"
RESOURCE, COUNT = "example.com/dev", 4
PODS = {"one": 1, "two": 2}
MAY = {name: ("allowed", "refused") for name in PODS}  # reading and writing, as the plugin's permissions say
DEVICE = "/var/lib/device-r"                           # /dev is made anew at each boot, /var stays


def begin():
    """The plugin as a service, two pods with devices; the ids that they have."""
    devices.device_node(DEVICE, 1)
    with open(UNIT, "w", encoding="ascii") as f:
        f.write(f"""[Unit]
Description=A device plugin
[Service]
ExecStart=/usr/bin/python3 /payload/tests/host/device_plugin.py --root {node.root_dir} --name service --resource {RESOURCE} \\
    --devices {COUNT} --device {DEVICE}:/dev/x:r --prestart --preferred
ExecStartPre=/bin/mkdir -p {node.root_dir}/device-plugins
Restart=always
[Install]
WantedBy=multi-user.target
""")
    run("systemctl", "enable", "--now", "coracle.service", "device-plugin.service", timeout=60)
    node.wait_active()
    node.import_image()
    devices.wait_node(node, COUNT, COUNT, deadline=30)
    for name, count in PODS.items():
        node.put(f"{name}.yaml", devices.asking(name, count, command="""
trap 'exit 0' TERM
while true; do sleep 3600 & wait $!; done"""))
    node.wait_running(*PODS, deadline=40)
    equal(rules(), MAY, "what the pods may do")
    return given()


def rules():
    return {name: devices.opens(node, name) for name in PODS}


def given():
    """{pod: ids}, of the processes' environment and of the checkpoint."""
    found, held = {}, devices.held(devices.checkpoint(node))
    for name in PODS:
        pod = node.pod(name)
        env = dict(v.split("=", 1) for v in coracle.read(f"/proc/{node.pid(pod)}/environ").split("\0") if "=" in v)
        found[name] = sorted(env["DEV_IDS"].split(","))
        equal(held.get((pod.uid, "main", RESOURCE)), found[name], f"the checkpoint's devices of {name}")
        until(lambda: devices.devices_of(node.pod(name)) == {i: "Healthy" for i in found[name]}, 20,
              lambda: f"{name}: {devices.devices_of(node.pod(name))}")
    return found


def same(before, restarts=0):
    devices.wait_node(node, COUNT, COUNT, deadline=60)
    node.wait_running(*PODS, deadline=60)
    equal(given(), before, "the devices of the pods")
    equal(rules(), MAY, "what the pods may do")
    if restarts == 0:
        equal([node.pod(n).restarts() for n in PODS], [0] * len(PODS), "restarts")


def turns(before):
    for verb in ("daemon-reload", "daemon-reexec"):
        run("systemctl", verb, timeout=60)
        same(before)


def orders(before):
    steps = (("stop", "coracle"), ("start", "coracle"), ("stop", "device-plugin"), ("start", "device-plugin"))
    for order in itertools.permutations(steps):
        if order.index(steps[0]) < order.index(steps[1]) and order.index(steps[2]) < order.index(steps[3]):
            for verb, unit in order:
                run("systemctl", verb, unit, timeout=60)
            node.wait_active()
            same(before)
    kills(before)


def kills(before):
    """Both at once."""
    old = node.main_pid
    run("systemctl", "kill", "--signal=KILL", "coracle", "device-plugin")
    node.wait_active(other_than=old)
    until(lambda: run("systemctl", "is-active", "device-plugin", ok=False).stdout.strip() == "active", 60, "the plugin is back")
    same(before)


def after(before):
    """The machine was booted again: the pods have been started again, with the same devices."""
    node.wait_active()
    same(before, restarts=1)
    free = COUNT - sum(PODS.values())
    node.put("more.yaml", devices.asking("more", free))
    more = node.wait_running("more", deadline=60)
    ids = devices.held(devices.checkpoint(node))[(more.uid, "main", RESOURCE)]
    check(set(ids).isdisjoint(i for l in before.values() for i in l), f"{ids} beside {before}")
    node.remove("more.yaml")
    node.wait_gone("more")
