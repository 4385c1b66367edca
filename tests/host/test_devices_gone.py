# SPDX-License-Identifier: Apache-2.0
"""A device node that is gone when a container starts, and is there again."""
import os
import signal
import stat

import devices
from coracle import equal, until
from devices import RESOURCE, asking, devices_of, plugin_at_work


def test_node_gone(t):
    """a container whose device node is missing does not start, and an event names the node; it keeps its device and starts when the node exists again"""
    node = devices.start(t)
    path = f"{t.scratch}/stick"
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    plugin = plugin_at_work(node, "--device", f"{path}:/dev/stick:rw")
    node.put("a.yaml", asking("a"))
    a = node.wait_running("a")
    ids = list(devices_of(a))
    os.unlink(path)
    os.kill(node.pid(a), signal.SIGKILL)
    text = f"Error: device /dev/stick: lstat {path}: no such file or directory"
    until(lambda: text in [e["message"] for e in node.events("a")], 20, lambda: f"an event names the node: {node.events('a')}")
    a = node.pod("a")
    equal(a.state()[0], "waiting", "the container's state")
    equal(list(devices_of(a)), ids, "its devices")
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    a = node.wait_pod("a", lambda p: p.state()[0] == "running", deadline=60, what="the container runs again")
    equal(list(devices_of(a)), ids, "its devices")
    equal(len(plugin.allocated()), 1, "calls of Allocate")
    node.finish(a)
    until(lambda: not devices.held(devices.checkpoint(node)), 10, f"nothing of {RESOURCE} is held")
    plugin.stop()
    node.stop()
