# SPDX-License-Identifier: Apache-2.0
"""Inline volumes of a CSI driver: the recorded calls of a kubelet, drivers that fail, hang, lie or are away, restarts and kills."""
import json
import os

import coracle
import csi
from coracle import check, contains, equal, read, until
from csi import NAME, Driver, driver_object, events, folder, handle, mounts, pod


def start(t, *flags, **how):
    node = t.node(**how)
    node.import_image()
    return node, Driver(node, *flags)


def published(node, driver, uid, **more):
    """The request that kubelet sends for the volume of such a pod (golden case 03a)."""
    return {"volume_id": handle(uid), "target_path": folder(node, uid) + "/mount",
            "volume_capability": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}, **more}


def wait_unpublished(node, driver, uid, deadline=30):
    until(lambda: not os.path.exists(f"{node.root_dir}/pods/{uid}"), deadline, lambda: f"the folder of {uid} is gone: {driver.methods()}")
    equal(mounts(folder(node, uid) + "/mount"), 0, "mounts of the target")


def finish(node, *drivers):
    node.clear()
    for driver in drivers:
        driver.leave()
    node.stop()


def test_inline(t):
    """a volume of a driver is published as kubelet does it, used, and unpublished"""
    node, driver = start(t)
    node.put("driver.yaml", driver_object(fsGroupPolicy="File"))
    node.put("secret.yaml", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"user": "u", "key": "k"}})
    source = {"volumeAttributes": {"size": "1Mi", "kind": "scratch"}, "fsType": "ext4", "nodePublishSecretRef": {"name": "s"}}
    ctr = {"volumeMounts": [{"name": "vol", "mountPath": "/vol"}, {"name": "vol", "mountPath": "/sub", "subPath": "sub"}]}
    object_ = pod("a", "cat /vol/file; echo x > /vol/mine; stat -c '%n %a %g' /vol/file /vol/sub; sleep 1000", source=source,
                  securityContext={"fsGroup": 4000})
    object_["spec"]["containers"][0].update(ctr)
    node.put("a.yaml", object_)
    node.wait_running("a")
    uid = node.pod("a").uid
    equal([c["method"] for c in driver.calls()][:4], ["serving", "GetInfo", "NodeGetInfo", "NotifyRegistrationStatus"], "registration")
    equal(driver.calls("NotifyRegistrationStatus")[0]["request"], {"plugin_registered": True}, "the answer to the registration")
    equal(driver.methods(), ["NodeGetInfo", "NodePublishVolume"], "calls")
    request = driver.calls("NodePublishVolume")[0]["request"]
    equal(request, published(node, driver, uid, **{
        "volume_capability": {"access_mode": {"mode": "SINGLE_NODE_WRITER"}, "mount": {"fs_type": "ext4"}},
        "secrets": {"user": "u", "key": "k"},
        "volume_context": {"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "a",
                           "csi.storage.k8s.io/pod.namespace": "default", "csi.storage.k8s.io/pod.uid": uid,
                           "csi.storage.k8s.io/serviceAccount.name": "default", "kind": "scratch", "size": "1Mi"}}), "NodePublishVolume")
    data = read(folder(node, uid) + "/vol_data.json")
    equal(list(json.loads(data).items())[1:], [("driverName", NAME), ("nodeName", "test-node"), ("specVolID", "vol"),
                                              ("volumeHandle", handle(uid)), ("volumeLifecycleMode", "Ephemeral")], "vol_data.json")
    check(data.endswith("}\n") and json.loads(data)["attachmentID"].startswith("csi-"), data)
    until(lambda: "/vol/sub" in node.logs("a"), 10, "the container's look")
    equal(node.logs("a").splitlines(), ["data", "/vol/file 664 4000", "/vol/sub 2775 4000"], "what the container sees")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(driver.methods()[2:], ["NodeUnpublishVolume"], "calls at the end")
    equal(driver.calls("NodeUnpublishVolume")[0]["request"], {"volume_id": handle(uid), "target_path": folder(node, uid) + "/mount"},
          "NodeUnpublishVolume")
    wait_unpublished(node, driver, uid)
    equal(os.listdir(driver.data), [], "volumes of the driver")
    finish(node, driver)


def test_again(t):
    """requiresRepublish: the volume is published again and mounted once; the driver says how full it is"""
    node, driver = start(t, "--caps", "GET_VOLUME_STATS")
    node.put("driver.yaml", driver_object(requiresRepublish=True))
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    uid = node.pod("a").uid
    first, second = (driver.wait_call("NodePublishVolume", n)["request"] for n in (1, 2))
    equal(second, first, "the second NodePublishVolume")
    equal(mounts(folder(node, uid) + "/mount"), 1, "mounts of the target")
    asked = driver.wait_call("NodeGetVolumeStats")["request"]
    equal(asked, {"volume_id": handle(uid), "volume_path": folder(node, uid) + "/mount"}, "NodeGetVolumeStats")

    def shown():
        pods = node.get("/stats/summary")["pods"]
        return [v for p in pods if p["podRef"]["name"] == "a" for v in p.get("volume", [])]
    usage = until(shown, 15, "the volume is in /stats/summary")[0]
    del usage["time"]
    equal(usage, {"availableBytes": 1070596096, "capacityBytes": 1073741824, "usedBytes": 3145728, "inodesFree": 65525, "inodes": 65536,
                  "inodesUsed": 11, "name": "vol"}, "volume")
    finish(node, driver)


def test_refused(t):
    """drivers without a CSIDriver, or that serve no inline volumes; registrations that kubelet refuses, in its words"""
    node, driver = start(t)
    node.put("driver.yaml", driver_object("ponly.example.test", volumeLifecycleModes=["Persistent"]))
    node.put("a.yaml", pod("a", driver="ponly.example.test"), pod("b", driver="noobject.example.test"))
    prefix = 'MountVolume.SetUp failed for volume "vol" : kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: volume mode '
    for name, why in (("a", '"Ephemeral" not supported by driver ponly.example.test (only supports ["Persistent"])'),
                      ("b", '"Ephemeral" not supported by driver noobject.example.test (no CSIDriver object)')):
        until(lambda n=name, w=why: prefix + w in events(node, n), 20, lambda n=name: f"{n} is refused: {node.events(n)}")
    # An object that comes is used at once.
    node.put("driver.yaml", driver_object("noobject.example.test"), driver_object(driver.name))
    until(lambda: any("driver name noobject.example.test not found in the list of registered CSI drivers" in m for m in events(node, "b")), 20,
          lambda: f"the object is used: {events(node, 'b')}")
    two = Driver(node, "--versions", "2.0.0", name="two.example.test", wait=False)
    told = two.wait_call("NotifyRegistrationStatus")["request"]
    equal(told["error"], "RegisterPlugin error -- plugin validation failed with err: validation failed for CSI Driver two.example.test at "
          f"endpoint {node.root_dir}/plugins/two.example.test/csi.sock: kubernetes.io/csi: ValidatePlugin for CSI driver "
          "\"two.example.test\" failed. None of the versions specified [\"2.0.0\"] are supported. err=could not find a highest supported "
          "version from versions ([2.0.0]) reported: <nil>", "a driver of another version")
    empty = Driver(node, "--node-id", "", name="empty.example.test", wait=False)
    equal(empty.wait_call("NotifyRegistrationStatus")["request"]["error"], "RegisterPlugin error -- plugin registration failed with err: "
          "error adding CSI driver node info: driverNodeID must not be empty", "a driver without node id")
    finish(node, driver, two, empty)


def test_faults(t):
    """a driver that fails, hangs, returns wrong answers or is absent is named and retried, and blocks no other pod"""
    node, driver = start(t)
    node.put("driver.yaml", driver_object())
    driver.faults(NodePublishVolume={"code": "FAILED_PRECONDITION", "text": "cannot publish it"})
    node.put("a.yaml", pod("a"))
    text = 'MountVolume.SetUp failed for volume "vol" : rpc error: code = FailedPrecondition desc = cannot publish it'
    until(lambda: text in events(node, "a"), 20, lambda: f"the failure is an event: {node.events('a')}")
    contains(node.cli("explain", "pod", "a").stdout, "cannot publish it", "explain")
    uid = node.pod("a").uid
    driver.wait_call("NodePublishVolume", 2)
    # A failure that is final leaves nothing to unpublish.
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(driver.calls("NodeUnpublishVolume"), [], "calls for a volume that was never published")
    wait_unpublished(node, driver, uid)
    # One that is not: the driver may have done it.
    driver.faults(NodePublishVolume={"code": "UNAVAILABLE", "text": "busy"})
    node.put("b.yaml", pod("b"))
    until(lambda: any("code = Unavailable desc = busy" in m for m in events(node, "b")), 20, "b fails")
    node.remove("b.yaml")
    node.wait_gone("b")
    equal(len(driver.calls("NodeUnpublishVolume")), 1, "calls for a volume that may be published")
    # A call that hangs holds its own pod.
    driver.faults(NodePublishVolume={"hang": True})
    node.put("c.yaml", pod("c"))
    node.put("plain.yaml", coracle.pod("plain", coracle.container(), terminationGracePeriodSeconds=0))
    node.wait_running("plain")
    until(lambda: "the driver is asked" in node.cli("explain", "pod", "c").stdout, 20, "explain says it")
    driver.faults()
    node.wait_running("c")
    # Away: the volume waits for the driver, and comes with it.
    driver.leave()
    node.put("d.yaml", pod("d"))
    missing = ('MountVolume.SetUp failed for volume "vol" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name '
               f"{NAME} not found in the list of registered CSI drivers")
    until(lambda: missing in events(node, "d"), 20, lambda: f"the driver is missing: {node.events('d')}")
    uid = node.pod("c").uid
    node.remove("c.yaml")
    until(lambda: any("not found in the list of registered CSI drivers" in m for m in events(node, "c", "FailedUnMount")), 20,
          lambda: f"the end of c says what it waits for: {node.events('c')}")
    check(mounts(folder(node, uid) + "/mount") == 1 and os.path.exists(folder(node, uid) + "/vol_data.json"), "nothing of c is removed")
    driver.start()
    node.wait_running("d")
    node.wait_gone("c")
    wait_unpublished(node, driver, uid)
    # A driver that only says so.
    uid = node.pod("d").uid
    driver.faults(NodeUnpublishVolume={"lie": True})
    node.remove("d.yaml")
    until(lambda: any("the driver answered OK to NodeUnpublishVolume, and yet" in m and folder(node, uid) + "/mount is still mounted" in m
                      for m in events(node, "d", "FailedUnMount")), 20, lambda: f"the lie is named: {node.events('d')}")
    equal(mounts(folder(node, uid) + "/mount"), 1, "mounts of the target")
    driver.faults()
    node.wait_gone("d", deadline=30)
    wait_unpublished(node, driver, uid)
    finish(node, driver)


def test_restart(t):
    """volumes survive the agent; volumes of pods removed meanwhile are unpublished, also without vol_data.json"""
    node, driver = start(t)
    node.put("driver.yaml", driver_object())
    for name in ("stays", "goes", "lost"):
        node.put(f"{name}.yaml", pod(name))
    node.wait_running("stays", "goes", "lost")
    uids = {name: node.pod(name).uid for name in ("stays", "goes", "lost")}
    pid = node.pid(node.pod("stays"))
    node.kill()
    before = len(driver.calls("NodePublishVolume"))
    os.truncate(folder(node, uids["lost"]) + "/vol_data.json", 0)
    node.remove("goes.yaml", "lost.yaml")
    node.start()
    node.wait_gone("goes", "lost", deadline=30)
    for name in ("goes", "lost"):
        wait_unpublished(node, driver, uids[name])
    equal(sorted(c["request"]["volume_id"] for c in driver.calls("NodeUnpublishVolume")),
          sorted(handle(uids[n]) for n in ("goes", "lost")), "volumes that were unpublished")
    driver.wait_call("NodePublishVolume", before + 1)  # kubelet repeats it, too
    equal(mounts(folder(node, uids["stays"]) + "/mount"), 1, "mounts of the pod that stays")
    equal(node.pid(node.pod("stays")), pid, "its process")
    finish(node, driver)


def test_kills(t):
    """agent and driver are killed before and after calls: no volume is published twice, none stays"""
    node, driver = start(t)
    node.put("driver.yaml", driver_object())
    for number, (method, when, victim) in enumerate(
            (m, w, v) for m in ("NodePublishVolume", "NodeUnpublishVolume") for w in ("before", "after") for v in ("driver", "both")):
        name = f"p{number}"
        if method == "NodeUnpublishVolume":
            node.put(f"{name}.yaml", pod(name))
            node.wait_running(name)
        driver.faults(**{method: {"die": when}})
        if method == "NodePublishVolume":
            node.put(f"{name}.yaml", pod(name))
        else:
            node.remove(f"{name}.yaml")
        driver.process.wait(timeout=30 * coracle.SLOW)
        if victim == "both":
            node.kill()
            node.start()
        driver.faults()
        driver.start()
        if method == "NodePublishVolume":
            node.wait_running(name, deadline=40)
            equal(mounts(folder(node, node.pod(name).uid) + "/mount"), 1, f"mounts after {method}, {when}, {victim}")
            node.remove(f"{name}.yaml")
        node.wait_gone(name, deadline=40)
        equal(os.listdir(driver.data), [], f"volumes of the driver after {method}, {when}, {victim}")
        until(lambda: not [p for p in coracle.mounts_below(node.root_dir) if "kubernetes.io~csi" in p], 10, "no target is mounted")
    finish(node, driver)
