# SPDX-License-Identifier: Apache-2.0
"""Volumes of CSI drivers at the edges: answers that come when the pod is gone, objects that vanish while a volume is mounted, pods that share one."""
import os
import time

import csi
from coracle import check, contains, equal, mount, until
from csi import STAGE, Driver, below, claim_pod, driver_object, events, folder, mounts, staging, volume
from test_csi_stage import all_gone, finish, start


def begin(t, *names, flags=(), **kinds):
    node, driver = start(t, "--caps", STAGE, *flags)
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"]))
    for name in names:
        node.put(f"keep-{name}.yaml", *volume(name, **kinds))
    return node, driver


def clean(node, driver, uid):
    """Nothing of the pod and its volumes is left."""
    until(lambda: not [p for p in below(node) if uid in p], 20, lambda: f"nothing is mounted for {uid}: {below(node)}")
    until(lambda: not os.path.exists(f"{node.root_dir}/pods/{uid}"), 20, lambda: f"the folder of {uid} is gone: {driver.methods()}")


def late_publish(node, driver, again):
    driver.faults(NodePublishVolume={"slow": 4})
    node.put("a.yaml", claim_pod("a", "data"))
    driver.wait_call("begins NodePublishVolume")
    uid = node.pod("a").uid
    node.remove("a.yaml")
    if again:
        node.kill()
        node.start()
    driver.wait_call("NodePublishVolume")
    driver.faults()
    node.wait_gone("a", deadline=40)
    clean(node, driver, uid)
    until(lambda: not os.path.exists(staging(node, "data")), 20, "it is unstaged")
    finish(node, driver)


def test_late_publish(t):
    """NodePublishVolume that returns after its pod was deleted is undone, also with a driver that creates all folders of its target"""
    node, driver = begin(t, "data", flags=["--parents"])
    late_publish(node, driver, False)
    check(driver.methods().index("NodePublishVolume") < driver.methods().index("NodeUnpublishVolume"), f"order: {driver.methods()}")


def test_late_publish_and_kill(t):
    """NodePublishVolume that returns after its pod was deleted and the agent killed is undone"""
    node, driver = begin(t, "data")
    late_publish(node, driver, True)


def test_late_stage(t):
    """NodeStageVolume that returns after its pod was deleted is undone, also if the agent was killed meanwhile"""
    node, driver = begin(t, "data")
    for again in (False, True):
        calls = len(driver.calls("NodeStageVolume"))
        driver.faults(NodeStageVolume={"slow": 4})
        node.put("a.yaml", claim_pod("a", "data"))
        driver.wait_call("begins NodeStageVolume", calls + 1)
        node.remove("a.yaml")
        if again:
            node.kill()
            node.start()
        driver.wait_call("NodeStageVolume", calls + 1)
        driver.faults()
        node.wait_gone("a", deadline=40)
        all_gone(node)
        until(lambda: not os.path.exists(staging(node, "data")), 20, lambda: f"it is unstaged: {driver.methods()}")
    finish(node, driver)


def test_done_and_refused(t):
    """a driver that has done what it answers DEADLINE_EXCEEDED to is asked again, and its volume is there once"""
    node, driver = begin(t, "data")
    for method in ("NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"):
        if method in ("NodeUnpublishVolume", "NodeUnstageVolume"):
            node.put("a.yaml", claim_pod("a", "data"))
            node.wait_running("a")
        before = len(driver.calls(method))
        driver.faults(**{method: {"code": "DEADLINE_EXCEEDED", "text": "too late", "done": True}})
        if method in ("NodeStageVolume", "NodePublishVolume"):
            node.put("a.yaml", claim_pod("a", "data"))
            until(lambda: any("too late" in m for m in events(node, "a")), 20, "the answer is an event")
        else:
            node.remove("a.yaml")
        driver.wait_call(method, before + 2)
        driver.faults()
        if method in ("NodeStageVolume", "NodePublishVolume"):
            node.wait_running("a")
            uid = node.pod("a").uid
            equal([mounts(p) for p in (staging(node, "data") + "/globalmount", folder(node, uid, "data") + "/mount")], [1, 1], "mounts")
            node.remove("a.yaml")
        node.wait_gone("a", deadline=40)
        all_gone(node)
    finish(node, driver)


def test_shared(t):
    """two pods on one volume, one of them read-only: each has its own publish, also after a restart; the volume is unstaged after the last"""
    node, driver = begin(t, "data", modes=["ReadWriteMany"])
    look = "( echo {0} > /vol/{0} ) 2>/dev/null && echo wrote || echo refused; sleep 1000"
    node.put("rw.yaml", claim_pod("rw", "data", command=look.format("rw")))
    node.put("ro.yaml", claim_pod("ro", "data", command=look.format("ro"), source={"readOnly": True}))
    node.wait_running("rw", "ro")
    for name, word in (("rw", "wrote"), ("ro", "refused")):
        until(lambda n=name, w=word: w in node.logs(n).splitlines(), 10, lambda n=name: f"what the container of {n} says: {node.logs(n)}")
    uids = {name: node.pod(name).uid for name in ("rw", "ro")}

    def read_only():
        return {n: c["request"].get("readonly", False) for c in driver.calls("NodePublishVolume") for n, uid in uids.items()
                if uid in c["request"]["target_path"]}
    equal(read_only(), {"rw": False, "ro": True}, "requests")
    node.kill()
    node.start()
    driver.wait_call("NodePublishVolume", 4)
    equal(read_only(), {"rw": False, "ro": True}, "requests after the restart")
    node.remove("rw.yaml")
    node.wait_gone("rw")
    equal(mounts(folder(node, uids["ro"], "data") + "/mount"), 1, "mounts of the pod that stays")
    equal(driver.calls("NodeUnstageVolume"), [], "it is staged")
    node.remove("ro.yaml")
    node.wait_gone("ro")
    driver.wait_call("NodeUnstageVolume")
    finish(node, driver)


def test_volume_vanishes(t):
    """a PersistentVolume and claim deleted while mounted do not affect the pod, also at a restart; it ends normally"""
    node, driver = begin(t, "data", "more")
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"], requiresRepublish=True))
    node.put("a.yaml", claim_pod("a", "data"))
    node.put("b.yaml", claim_pod("b", "more"))
    node.wait_running("a", "b")
    uids, ids = [node.pod(n).uid for n in ("a", "b")], [node.pod(n).container_id() for n in ("a", "b")]
    node.remove("keep-data.yaml", "keep-more.yaml")
    until(lambda: "deletionTimestamp" in csi.claim_of(node, "data").get("metadata", {}), 20, "the claim is marked")
    node.remove("a.yaml")
    node.wait_gone("a", deadline=40)
    clean(node, driver, uids[0])
    until(lambda: not os.path.exists(staging(node, "data")), 20, "it is unstaged")
    node.kill()
    node.start()
    node.wait_running("b")
    equal(node.pod("b").container_id(), ids[1], "the container that stays")
    equal(mounts(folder(node, uids[1], "more") + "/mount"), 1, "mounts of the pod that stays")
    node.remove("b.yaml")
    node.wait_gone("b", deadline=40)
    clean(node, driver, uids[1])
    until(lambda: not os.path.exists(staging(node, "more")), 20, lambda: f"it is unstaged: {driver.methods()}")
    finish(node, driver)


def test_sub_paths(t):
    """subPaths of a volume: folders, a file, one that is made; they survive a restart, and do not keep the volume mounted"""
    node, driver = begin(t, "data")
    paths = [mount("vol", "/whole"), mount("vol", "/sub", subPath="sub"), mount("vol", "/file", subPath="file"), mount("vol", "/made", subPath="a/b/c"),
             mount("vol", "/ro", subPath="sub", readOnly=True)]
    node.put("a.yaml", claim_pod("a", "data", command="cat /file; echo x > /made/x; echo y > /sub/y; ( echo z > /ro/z ) 2>/dev/null || echo refused; exec sleep 1000",
                                 ctr={"volumeMounts": paths}))
    node.wait_running("a")
    uid, pid = node.pod("a").uid, node.pid(node.pod("a"))
    until(lambda: "refused" in node.logs("a"), 10, lambda: f"what the container says: {node.logs('a')}")
    equal(node.logs("a").splitlines()[0], "data", "the file")
    equal([os.path.exists(f"{driver.data}/vol-data/{p}") for p in ("a/b/c/x", "sub/y", "sub/z")], [True, True, False], "files of the volume")
    node.kill()
    node.start()
    driver.wait_call("NodePublishVolume", 2)
    os.kill(pid, 9)  # the container starts anew, with the same subPaths
    until(lambda: node.pod("a").restarts() == 1 and node.pod("a").phase == "Running" and node.pod("a").ready, 20, "it runs again")
    node.remove("a.yaml")
    node.wait_gone("a", deadline=40)
    clean(node, driver, uid)
    driver.wait_call("NodeUnstageVolume")
    until(lambda: not os.path.exists(staging(node, "data")), 20, "it is unstaged")
    equal(len(driver.calls("NodeUnpublishVolume")), 1, "calls")
    finish(node, driver)


def test_shared_device(t):
    """two pods with one block volume: mapped for each, also after a restart; the device is released after the last"""
    node, driver = begin(t, "raw", mode="Block", modes=["ReadWriteMany"])
    plugin = node.root_dir + "/plugins/kubernetes.io/csi/volumeDevices"
    node.put("a.yaml", claim_pod("a", device="raw", command="echo hello | dd of=/dev/xvda conv=fsync; exec sleep 1000"))
    node.put("b.yaml", claim_pod("b", device="raw", source={"readOnly": True}, command="echo no | dd of=/dev/xvda conv=fsync || echo refused; exec sleep 1000"))
    node.wait_running("a", "b")
    uids = {name: node.pod(name).uid for name in ("a", "b")}
    until(lambda: "refused" in node.logs("b"), 10, lambda: f"what the container says: {node.logs('b')}")
    node.kill()
    node.start()
    driver.wait_call("NodePublishVolume", 4)
    for uid in uids.values():
        equal((mounts(f"{plugin}/raw/dev/{uid}"), mounts(f"{plugin}/publish/raw/{uid}")), (1, 1), "mounts")
    node.kill()
    node.remove("a.yaml")
    node.start()
    node.wait_gone("a", deadline=40)
    equal((mounts(f"{plugin}/raw/dev/{uids['b']}"), mounts(f"{plugin}/publish/raw/{uids['b']}")), (1, 1), "mounts of the pod that stays")
    equal(driver.calls("NodeUnstageVolume"), [], "it is staged")
    node.remove("b.yaml")
    node.wait_gone("b", deadline=40)
    driver.wait_call("NodeUnstageVolume")
    until(lambda: [d for d in os.listdir(plugin) if d not in ("staging", "publish")] == [], 20, "the volume's folders are gone")
    contains(open(driver.data + "/vol-raw.img", "rb").read(5).decode(), "hello", "data")
    finish(node, driver)


def turns(node, seconds=2):
    """How often pods were looked at within that time."""
    before = node.log().count("pod reconciled")
    time.sleep(seconds)
    return node.log().count("pod reconciled") - before


def test_quiet(t):
    """a pod whose end waits for a driver, one that has ended and one that waits for its volume keep the agent no more busy than their tries"""
    node, driver = begin(t, "data", "other", "done")
    node.put("done.yaml", claim_pod("done", "done", command="exit 0", restartPolicy="Never"))
    node.wait_phase("done", "Succeeded", deadline=40)
    node.put("a.yaml", claim_pod("a", "data"))
    node.wait_running("a")
    driver.leave()
    node.put("b.yaml", claim_pod("b", "other"))
    node.remove("a.yaml")
    until(lambda: events(node, "a", "FailedUnMount") and events(node, "b"), 20, "both wait")
    seen = turns(node)
    check(seen < 60, f"pods were looked at {seen} times in two seconds")
    driver.start()
    node.wait_gone("a")
    node.wait_running("b")
    seen = turns(node)
    check(seen < 60, f"pods were looked at {seen} times in two seconds when all is well")
    finish(node, driver)


def test_away_at_the_end(t):
    """a driver that is absent when its pod is removed and the agent restarts: the volume is kept, and undone when the driver returns"""
    node, driver = begin(t, "data", "other")
    node.put("a.yaml", claim_pod("a", "data"))
    node.put("b.yaml", claim_pod("b", "other"))
    node.wait_running("a", "b")
    uids = [node.pod(n).uid for n in ("a", "b")]
    driver.leave()
    node.remove("a.yaml")
    until(lambda: events(node, "a", "FailedUnMount"), 20, "the end of a waits")
    node.kill()
    node.remove("b.yaml")
    node.start()
    for name, uid, claim in (("a", uids[0], "data"), ("b", uids[1], "other")):
        equal(mounts(folder(node, uid, claim) + "/mount"), 1, f"mounts of {name}")
        check(os.path.exists(folder(node, uid, claim) + "/vol_data.json"), f"the file of {name}")
    driver.start()
    for uid in uids:
        clean(node, driver, uid)
    until(lambda: sorted(c["request"]["volume_id"] for c in driver.calls("NodeUnstageVolume")) == ["vol-data", "vol-other"], 20,
          lambda: f"both are unstaged: {driver.methods()}")
    until(lambda: not node.pods(), 20, "no pod is left")
    finish(node, driver)


for test in (test_done_and_refused, test_shared, test_volume_vanishes, test_sub_paths, test_shared_device):
    test.seconds = 150  # several starts one after the other
