# SPDX-License-Identifier: Apache-2.0
"""FlexVolumes of a cluster: a controller attaches what drivers want attached.  The apiserver is a coracle-kube that the test plays."""
import json
import os

from coracle import check, equal, until
from flex import Driver
from kube_peer import deleted, served
from test_cluster import UIDS, joined
from test_flex import pod

NAME = "example.test/vol/vol"


def begin(t):
    plugins = os.path.join(t.scratch, "plugins")
    os.makedirs(plugins)
    peer, node, link = joined(t, "--volume-plugin-dir", plugins)
    driver = Driver(t, plugins)
    driver.answer("init", {"status": "Success", "capabilities": {"attach": True}})
    driver.answer("waitforattach", {"status": "Success", "device": "/dev/vdy"})
    for command in ("mountdevice", "unmountdevice"):
        driver.answer(command, {"status": "Success"})
    driver.install()
    link.synced()
    return peer, node, link, driver


def volumes_in_use(link, wanted, since=0):
    return link.wait(lambda m: m["type"] == "node" and m["object"]["status"].get("volumesInUse") == wanted, what=f"volumesInUse {wanted}", since=since)


def the_node(in_use, device=None):
    attached = {"volumesAttached": [{"name": NAME, "devicePath": device}]} if device is not None else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "test-node"}, "status": {"volumesInUse": in_use, **attached}}


def test_attached(t):
    """the volume is in use before it is waited for; the Node's devicePath goes to waitforattach; attach and detach are not called (30c)"""
    peer, node, link, driver = begin(t)
    web = served(pod("web", driver), UIDS[0])
    link.put(web)
    volumes_in_use(link, [NAME])
    link.put(the_node([NAME]))
    until(lambda: any(e["reason"] == "FailedMount" and f"volume {NAME} is not attached" in e["message"] for e in node.events("web")), 20,
          lambda: f"an event says that it waits: {node.events('web')}")
    equal(driver.commands(), ["init"], "calls before it is attached")
    link.put(the_node([NAME], "/dev/vdz"))
    link.wait_phase("web", "Running")
    device = f"{node.root_dir}/plugins/kubernetes.io/flexvolume/example.test/vol/mounts/vol"
    options = {"kubernetes.io/fsType": "", "kubernetes.io/pvOrVolumeName": "vol", "kubernetes.io/readwrite": "rw"}
    calls = driver.calls()
    equal([c[0] for c in calls], ["init", "getvolumename", "waitforattach", "mountdevice", "mount"], "calls")
    equal((calls[2][1], json.loads(calls[2][2])), ("/dev/vdz", options), "waitforattach")
    equal((calls[3][1:3], json.loads(calls[3][3])), ([device, "/dev/vdy"], options), "mountdevice")
    # Without an apiserver the mounts are what counts.
    node.kill()
    node.start()
    link = peer.accept()
    link.put(web)
    link.synced()
    link.put(the_node([]))
    until(lambda: node.pod("web") is not None and node.pod("web").phase == "Running", 20, "the pod after a restart")
    volumes_in_use(link, [NAME])
    since = len(link.messages)
    driver.answer("unmountdevice", {"status": "Failure", "message": "busy"}, 1)
    link.put(deleted(web, 0))
    until(lambda: len(driver.calls("unmountdevice")) > 1, 20, "a second try")
    check(not any(m["type"] == "node" and m["object"]["status"].get("volumesInUse") == [] for m in link.messages[since:]), "it is in use until then")
    driver.answer("unmountdevice", {"status": "Success"})
    link.wait_pod("web", lambda m: m["ended"])
    link.gone(web)
    node.wait_gone("web")
    volumes_in_use(link, [], since)
    check(not {"attach", "detach"} & set(driver.commands()), f"calls of a controller: {driver.commands()}")
    check(not os.path.exists(device), "the folder of the device is there")
    equal(node.stop(), 0, "the exit code")
