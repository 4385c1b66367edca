# SPDX-License-Identifier: Apache-2.0
"""Devices without a plugin: nodes that files declare, and resources that are only counted."""
import json
import os
import signal
import stat

from coracle import SLOW, check, contains, equal, until
from devices import RESOURCE, asking, devices_of, node_says, start, wait_node

NULL, ZERO, FUSE = (1, 3), (1, 5), (10, 229)  # every container may use the first two


def dev(t):
    folder = f"{t.scratch}/dev"
    os.makedirs(folder, exist_ok=True)
    return folder


def mknod(folder, name, number=NULL):
    os.mknod(f"{folder}/{name}", stat.S_IFCHR | 0o666, os.makedev(*number))


def declare(t, name, text):
    os.makedirs(f"{t.scratch}/devices.d", exist_ok=True)
    path = f"{t.scratch}/devices.d/{name}"
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".new", path)


def ttys(folder, count=1, more=""):
    return (f"devices:\n- name: {RESOURCE}\n  groups:\n  - count: {count}\n    paths:\n"
            f"    - {{path: '{folder}/tty*', {more}}}\n")


def says(node, name):
    return node.cli("logs", name, ok=False).stdout  # it may not have begun yet


def wait_says(node, name, text):
    until(lambda: text in says(node, name), 10, lambda: f"{text!r} in the log of {name}: {says(node, name)!r}")


def test_a_declared_node_reaches_its_pod(t):
    """a declared node is in its container at the declared path; another pod waits for its turn"""
    folder = dev(t)
    mknod(folder, "node", FUSE)
    os.symlink("node", f"{folder}/tty1")  # as udev's links are
    declare(t, "a.yaml", ttys(folder, more="mountPath: /dev/modem, permissions: r, env: MODEM"))
    node = start(t)
    wait_node(node, 1, 1)
    node.put("a.yaml", asking("a", command="stat -c '%t:%T' $MODEM; (: < /dev/modem) && echo reads; (: > /dev/modem) || echo refused; "
                                           "exec sleep 1000"))
    a = node.wait_running("a")
    wait_says(node, "a", "refused")
    contains(says(node, "a"), "a:e5\nreads\n")
    equal(devices_of(a), {f"{folder}/tty1": "Healthy"}, "the devices of a")
    node.put("b.yaml", asking("b"))
    contains(node.wait_phase("b", "Failed").status["message"], "requested number of devices unavailable")
    equal(node_says(node), ("1", "1"), "the node beside it")
    node.stop()


def test_a_shared_node_has_several_pods(t):
    """a node with a count is assigned to as many pods"""
    folder = dev(t)
    mknod(folder, "tty1")
    declare(t, "a.yaml", ttys(folder, count=2))
    node = start(t)
    wait_node(node, 2, 2)
    for name in ("a", "b"):
        node.put(f"{name}.yaml", asking(name, command=f"stat -c '%t:%T' {folder}/tty1; exec sleep 1000"))
    for name in ("a", "b"):
        node.wait_running(name)
        wait_says(node, name, "1:3")
    ids = [i for name in ("a", "b") for i in devices_of(node.pod(name))]
    equal(sorted(ids), [f"{folder}/tty1", f"{folder}/tty1#2"], "the devices of both")
    node.stop()


def test_hot_plug(t):
    """added and removed nodes change the node's resources; a pod that holds one keeps running"""
    folder = dev(t)
    declare(t, "a.yaml", ttys(folder))
    node = start(t, "--device-plugin-wait=1m")
    wait_node(node, 0, 0)
    node.put("a.yaml", asking("a"))
    node.wait_pod("a", lambda p: RESOURCE in p.status.get("message", ""), what="the pod waits for a device")
    mknod(folder, "tty1")
    a = node.wait_running("a")
    mknod(folder, "tty2", ZERO)
    wait_node(node, 2, 2)
    os.unlink(f"{folder}/tty1")
    wait_node(node, 1, 1)
    until(lambda: set(devices_of(node.pod("a")).values()) - {"Healthy"}, 10, lambda: node.pod("a").status)
    equal(node.pod("a").uid, a.uid, "the pod")
    equal(node.pod("a").restarts(), 0, "restarts")
    mknod(folder, "tty1")
    wait_node(node, 2, 2)
    until(lambda: devices_of(node.pod("a")) == {f"{folder}/tty1": "Healthy"}, 10, lambda: node.pod("a").status)
    node.stop()


def test_a_container_that_starts_again_has_the_node_as_it_is(t):
    """a restarted container gets the present nodes of a device that was unplugged and plugged in again"""
    folder = dev(t)
    mknod(folder, "tty1", FUSE)
    text = (f"devices:\n- name: {RESOURCE}\n  groups:\n  - paths:\n    - {{path: {folder}/tty1}}\n"
            f"    - {{path: {folder}/led*, optional: true, mountPath: /dev/}}\n")
    declare(t, "a.yaml", text)
    node = start(t)
    wait_node(node, 1, 1)
    node.put("a.yaml", asking("a", command=f"stat -c '%n %t:%T' {folder}/tty1 /dev/led1; sleep 1; exit 1"))
    wait_says(node, "a", "tty1 a:e5")
    check("/dev/led1 1:5" not in says(node, "a"), "an optional node is there before it came")
    mknod(folder, "led1", ZERO)
    until(lambda: "/dev/led1 1:5" in node.cli("logs", "a", "--previous", ok=False).stdout + says(node, "a"), 60,
          lambda: f"the optional node in a later run: {says(node, 'a')}")
    node.stop()


def test_a_restart_keeps_devices(t):
    """over kill -9 of the daemon and an edit of the declaration a pod keeps its device exclusively"""
    folder = dev(t)
    mknod(folder, "tty1")
    declare(t, "a.yaml", ttys(folder))
    node = start(t)
    wait_node(node, 1, 1)
    node.put("a.yaml", asking("a"))
    a = node.wait_running("a")
    node.kill()
    node.start()
    wait_node(node, 1, 1)
    equal(node.wait_running("a").uid, a.uid, "the pod")
    equal(devices_of(node.pod("a")), {f"{folder}/tty1": "Healthy"}, "the devices of a")
    mknod(folder, "tty2", ZERO)
    wait_node(node, 2, 2)
    node.put("b.yaml", asking("b"))
    node.wait_running("b")
    equal(devices_of(node.pod("b")), {f"{folder}/tty2": "Healthy"}, "the devices of b")
    declare(t, "a.yaml", "devices: 3\n")
    until(lambda: "devices: not a list" in node.cli("explain", "node").stdout, 10, lambda: node.cli("explain", "node").stdout)
    equal(node_says(node), ("2", "2"), "the node after a bad edit")
    equal(node.pod("a").restarts(), 0, "restarts")
    node.stop()


def test_a_pod_that_was_there_before_the_daemon(t):
    """also where pods do not wait for devices, a start of the daemon looks at the declared ones first"""
    folder = dev(t)
    mknod(folder, "tty1")
    declare(t, "a.yaml", ttys(folder))
    groups = [{"paths": [{"path": "/usr/*/*/*/nothing"}]}] * (4 if SLOW == 1 else 1)  # takes a while, but less than its deadline
    declare(t, "slow.json", json.dumps({"devices": [{"name": "example.com/slow", "groups": groups}]}))
    node = start(t, "--device-plugin-wait=0s")
    wait_node(node, 1, 1)
    node.kill()
    node.put("a.yaml", asking("a"))
    node.start()
    node.wait_running("a")
    equal(devices_of(node.pod("a")), {f"{folder}/tty1": "Healthy"}, "the devices of a")
    node.stop()


def test_counted_resources(t):
    """resources of the configuration are only counted, also after a reload and a restart"""
    config = f"{t.scratch}/config.yaml"

    def configure(text):
        with open(config, "w", encoding="utf-8") as f:
            f.write("apiVersion: coracle.dev/v1\nkind: CoracleConfiguration\n" + text)

    configure("extendedResources: {example.com/phantom: 3}\n")
    node = start(t, "--config", config)
    wait_node(node, 3, 3, "example.com/phantom")
    node.put("a.yaml", asking("a", 2, resource="example.com/phantom"))
    node.wait_running("a")
    node.put("b.yaml", asking("b", 2, resource="example.com/phantom"))
    b = node.wait_phase("b", "Failed")
    equal(b.status["reason"], "OutOfexample.com/phantom", "the reason")
    equal(b.status["message"], "Pod was rejected: Node didn't have enough resource: example.com/phantom, requested: 2, used: 2, "
                               "capacity: 3", "the message")
    node.kill()
    node.start()
    wait_node(node, 3, 3, "example.com/phantom")
    configure("extendedResources: {example.com/phantom: 5, example.com/more: 1}\n")
    os.kill(node.process.pid, signal.SIGHUP)
    wait_node(node, 5, 5, "example.com/phantom")
    wait_node(node, 1, 1, "example.com/more")
    node.wait_running("b")
    check("allocatedResourcesStatus" not in node.pod("b").container("main"), "a number has no devices")
    configure("")
    os.kill(node.process.pid, signal.SIGHUP)
    wait_node(node, 0, 0, "example.com/phantom")
    equal(node.pod("a").phase, "Running", "the phase")
    node.stop()
