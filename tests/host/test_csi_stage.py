# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumes of a CSI driver: stage and publish as a kubelet does it, several pods on one volume, block devices, sizes."""
import json
import os

import coracle
import csi
from coracle import check, contains, equal, read, until
from csi import NAME, STAGE, Driver, below, claim_pod, driver_object, events, folder, mounts, staging, volume


def start(t, *flags, **how):
    node = t.node(**how)
    node.import_image()
    return node, Driver(node, *flags)


def all_gone(node):
    until(lambda: not below(node), 20, lambda: f"nothing of a driver is mounted: {below(node)}")


def finish(node, *drivers):
    for file in os.listdir(node.manifests):
        if not file.startswith("keep-"):
            node.remove(file)
    until(lambda: not node.pods(), 30, lambda: f"pods are gone: {list(node.pods())}")
    all_gone(node)
    for driver in drivers:
        driver.leave()
    node.stop()


def test_claim(t):
    """the volume of a claim is staged once, published to two pods, and unstaged after the last one (golden cases 01, 05a)"""
    node, driver = start(t, "--caps", STAGE)
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"], podInfoOnMount=False))
    node.put("keep-data.yaml", *volume("data", csi={"fsType": "ext4", "volumeAttributes": {"pool": "p1"}}))
    node.put("a.yaml", claim_pod("a", "data", command="cat /vol/file; echo from-a > /vol/a; sleep 1000"))
    node.wait_running("a")
    uid, shared = node.pod("a").uid, staging(node, "data")
    equal(driver.methods(), ["NodeGetInfo", "NodeStageVolume", "NodePublishVolume"], "calls")
    capability = {"access_mode": {"mode": "SINGLE_NODE_WRITER"}, "mount": {"fs_type": "ext4"}}
    asked = {"volume_id": "vol-data", "staging_target_path": shared + "/globalmount", "volume_capability": capability,
             "volume_context": {"pool": "p1"}}
    equal(driver.calls("NodeStageVolume")[0]["request"], asked, "NodeStageVolume")
    equal(driver.calls("NodePublishVolume")[0]["request"], {**asked, "target_path": folder(node, uid, "data") + "/mount"}, "NodePublishVolume")
    equal(read(shared + "/vol_data.json"), f'{{"driverName":"{NAME}","volumeHandle":"vol-data"}}\n', "vol_data.json of the staged volume")
    data = json.loads(read(folder(node, uid, "data") + "/vol_data.json"))
    equal(list(data), ["attachmentID", "driverName", "nodeName", "specVolID", "volumeHandle", "volumeLifecycleMode"], "vol_data.json")
    equal(data["volumeLifecycleMode"], "Persistent", "its mode")
    node.put("b.yaml", claim_pod("b", "data", command="cat /vol/a; sleep 1000"))
    node.wait_running("b")
    until(lambda: "from-a" in node.logs("b"), 10, "b sees what a wrote")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(driver.methods()[3:], ["NodePublishVolume", "NodeUnpublishVolume"], "calls for the second pod")
    equal(mounts(shared + "/globalmount"), 1, "mounts of the staged volume")
    node.remove("b.yaml")
    node.wait_gone("b")
    driver.wait_call("NodeUnstageVolume")
    equal(driver.methods()[5:], ["NodeUnpublishVolume", "NodeUnstageVolume"], "calls at the end")
    equal(driver.calls("NodeUnstageVolume")[0]["request"], {"volume_id": "vol-data", "staging_target_path": shared + "/globalmount"},
          "NodeUnstageVolume")
    until(lambda: not os.path.exists(shared), 10, "the staged volume's folder is gone")
    equal(read(driver.data + "/vol-data/a"), "from-a\n", "data")
    finish(node, driver)


def test_block(t):
    """volumeDevices: kubelet's folders, the device in the container, two events (golden case 04a)"""
    node, driver = start(t, "--caps", STAGE)
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"]))
    node.put("keep-data.yaml", *volume("raw", mode="Block", csi={"volumeAttributes": {"x": "y"}}))
    node.put("a.yaml", claim_pod("a", device="raw", command="stat -c '%F' /dev/xvda; echo hello | dd of=/dev/xvda conv=fsync; sleep 1000"))
    node.wait_running("a")
    uid, plugin = node.pod("a").uid, node.root_dir + "/plugins/kubernetes.io/csi/volumeDevices"
    until(lambda: "block special file" in node.logs("a"), 10, lambda: f"the container has the device: {node.logs('a')}")
    staged, published = (driver.calls(m)[0]["request"] for m in ("NodeStageVolume", "NodePublishVolume"))
    equal(staged, {"volume_id": "vol-raw", "staging_target_path": plugin + "/staging/raw", "volume_context": {"x": "y"},
                   "volume_capability": {"access_mode": {"mode": "SINGLE_NODE_WRITER"}, "block": {}}}, "NodeStageVolume")
    equal((published["target_path"], published["staging_target_path"]), (f"{plugin}/publish/raw/{uid}", plugin + "/staging/raw"), "paths")
    equal(os.readlink(f"{node.root_dir}/pods/{uid}/volumeDevices/kubernetes.io~csi/raw"), f"{plugin}/publish/raw/{uid}", "the pod's link")
    equal((mounts(f"{plugin}/raw/dev/{uid}"), mounts(f"{plugin}/publish/raw/{uid}")), (1, 1), "mounts")
    equal(list(json.loads(read(plugin + "/raw/data/vol_data.json"))), ["attachmentID", "driverName", "nodeName", "specVolID", "volumeHandle"],
          "vol_data.json")
    said = events(node, "a", "SuccessfulMountVolume")
    equal(sorted(said), sorted([
        f'MapVolume.MapPodDevice succeeded for volume "raw" globalMapPath "{plugin}/raw/dev"',
        f'MapVolume.MapPodDevice succeeded for volume "raw" volumeMapPath "{node.root_dir}/pods/{uid}/volumeDevices/kubernetes.io~csi"']), "events")
    node.remove("a.yaml")
    node.wait_gone("a")
    driver.wait_call("NodeUnstageVolume")
    until(lambda: [d for d in os.listdir(plugin) if d not in ("staging", "publish")] == [], 10, "the volume's folders are gone")
    equal((os.listdir(plugin + "/staging"), os.listdir(plugin + "/publish")), ([], []), "folders of drivers")
    with open(driver.data + "/vol-raw.img", "rb") as f:
        equal(f.read(5), b"hello", "data")
    finish(node, driver)


def test_one_pod(t):
    """ReadWriteOncePod: the second pod waits, and is published as soon as the first one's publish is undone, without unstage (golden case 05b)"""
    node, driver = start(t, "--caps", STAGE)
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"]))
    node.put("keep-data.yaml", *volume("data", modes=["ReadWriteOncePod"]))
    node.put("a.yaml", claim_pod("a", "data"))
    node.wait_running("a")
    node.put("b.yaml", claim_pod("b", "data"))
    text = 'MountVolume.SetUp failed for volume "data" : volume uses the ReadWriteOncePod access mode and is already in use by another pod'
    until(lambda: text in events(node, "b"), 20, lambda: f"b is refused: {node.events('b')}")
    node.kill()
    node.start()
    driver.wait_call("NodePublishVolume", 2)
    equal({c["request"]["target_path"].split("/pods/")[1].split("/")[0] for c in driver.calls("NodePublishVolume")}, {node.pod("a").uid},
          "who has it after a restart")
    node.remove("a.yaml")
    node.wait_running("b")
    equal(driver.methods()[-2:], ["NodeUnpublishVolume", "NodePublishVolume"], "hand-over")
    equal(driver.calls("NodeUnstageVolume"), [], "unstages")
    finish(node, driver)


def test_details(t):
    """secrets, mount options, read-only, groups and access modes reach the driver as they reach it from a kubelet"""
    node, driver = start(t, "--caps", STAGE + ",EXPAND_VOLUME,GET_VOLUME_STATS,VOLUME_CONDITION,SINGLE_NODE_MULTI_WRITER")
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"], podInfoOnMount=False, fsGroupPolicy="File"))
    for name in ("stage", "publish", "expand"):
        node.put(f"keep-{name}.yaml", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": name}})
    refs = {f"node{n.capitalize()}SecretRef": {"name": n, "namespace": "default"} for n in ("stage", "publish", "expand")}
    options = ["noatime", "nodev", "noatime"]
    node.put("keep-data.yaml", *volume("data", csi=refs, mountOptions=options))
    node.put("a.yaml", claim_pod("a", "data", command="stat -c '%n %a %g' /vol/file /vol/sub; sleep 1000", securityContext={"fsGroup": 4000}))
    node.wait_running("a")
    until(lambda: "/vol/sub" in node.logs("a"), 10, "the container's look")
    equal(node.logs("a").splitlines(), ["/vol/file 664 4000", "/vol/sub 2775 4000"], "the group")
    staged, published = (driver.calls(m)[0]["request"] for m in ("NodeStageVolume", "NodePublishVolume"))
    equal((staged["secrets"], published["secrets"]), ({"key": "stage"}, {"key": "publish"}), "secrets")
    equal(published["volume_capability"], {"access_mode": {"mode": "SINGLE_NODE_MULTI_WRITER"}, "mount": {"mount_flags": options}}, "capability")
    # The PersistentVolume has become larger: the pod goes on.
    before = len(driver.methods())
    node.put("keep-data.yaml", volume("data", csi=refs, mountOptions=options, size="2Gi")[0], volume("data")[1])
    grown = driver.wait_call("NodeExpandVolume")["request"]
    uid = node.pod("a").uid
    equal(grown, {"volume_id": "vol-data", "volume_path": folder(node, uid, "data") + "/mount", "capacity_range": {"required_bytes": "2147483648"},
                  "staging_target_path": staging(node, "data") + "/globalmount", "volume_capability": published["volume_capability"],
                  "secrets": {"key": "expand"}}, "NodeExpandVolume")
    until(lambda: events(node, "a", "FileSystemResizeSuccessful"), 10, "the event")
    equal(events(node, "a", "FileSystemResizeSuccessful"), ['MountVolume.NodeExpandVolume succeeded for volume "data" test-node'], "events")
    until(lambda: csi.claim_of(node, "data")["status"]["capacity"]["storage"] in ("2Gi", "2147483648"), 10,
          "the claim's capacity")

    def shown():
        return [v for p in node.get("/stats/summary")["pods"] if p["podRef"]["name"] == "a" for v in p.get("volume", []) if "capacityBytes" in v]
    usage = until(shown, 15, "the volume is in /stats/summary")[0]
    equal((usage["capacityBytes"], usage["pvcRef"]), (1073741824, {"name": "data", "namespace": "default"}), "volume")
    check(before < len(driver.methods()), "calls")
    finish(node, driver)


def test_sizes(t):
    """a volume that has to grow is expanded before the containers; a driver that cannot keeps the pod from starting (11b, 11c)"""
    node, driver = start(t, "--caps", STAGE + ",EXPAND_VOLUME")
    other = Driver(node, name="no.example.test")
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"]),
             driver_object("no.example.test", volumeLifecycleModes=["Persistent"]))
    for name, who in (("data", NAME), ("none", "no.example.test")):
        node.put(f"keep-{name}.yaml", *volume(name, driver=who))
        until(lambda n=name: csi.claim_of(node, n)["status"].get("phase") == "Bound", 20, "the claim is bound")
        node.put(f"keep-{name}.yaml", volume(name, driver=who, size="3Gi")[0], volume(name)[1])
    driver.faults(NodeExpandVolume={"code": "INTERNAL", "text": "cannot grow"})
    node.put("a.yaml", claim_pod("a", "data"))
    node.put("b.yaml", claim_pod("b", "none"))
    for name, pv, why in (("a", "data", "rpc error: code = Internal desc = cannot grow"),
                          ("b", "none", "NodeExpand is not supported by the CSI driver no.example.test")):
        text = f'MountVolume.Setup failed while expanding volume for volume "{pv}" : {why}'
        until(lambda n=name, x=text: x in events(node, n), 20, lambda n=name: f"{n} waits: {node.events(n)}")
    driver.faults()
    node.wait_running("a")
    equal(driver.methods().count("NodeStageVolume"), 1, "stages")
    finish(node, driver, other)


def test_refused(t):
    """no attachment on a node of its own, no tokens, a mode that a driver does not serve: named"""
    node, driver = start(t, "--caps", STAGE)
    node.put("driver.yaml", driver_object("inline.only", volumeLifecycleModes=["Ephemeral"]),
             {**driver_object("attach.only", volumeLifecycleModes=["Persistent"], attachRequired=True)},
             driver_object("token.only", volumeLifecycleModes=["Persistent"], tokenRequests=[{"audience": "vault"}]))
    for name in ("inline", "attach", "token"):
        node.put(f"keep-{name}.yaml", *volume(name, driver=name + ".only"))
        node.put(f"{name}.yaml", claim_pod(name, name))
    for name, why in (("inline", 'volume mode "Persistent" not supported by driver inline.only (only supports ["Ephemeral"])'),
                      ("attach", "attachRequired: false says that it needs none"), ("token", "only the apiserver of a cluster issues")):
        until(lambda n=name, w=why: any(w in m for m in events(node, n)), 20, lambda n=name: f"{n} is refused: {node.events(n)}")
    contains(node.cli("explain", "pod", "token").stdout, "service account tokens", "explain")
    finish(node, driver)
