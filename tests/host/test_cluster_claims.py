# SPDX-License-Identifier: Apache-2.0
"""Claims of a cluster: the objects come from the apiserver, told by a coracle-kube that the test plays; the driver is real."""
import base64
import hashlib
import json
import os
import time

import csi
from coracle import check, contains, equal, until
from csi import NAME, STAGE, Driver, claim_pod, driver_object, events, volume
from kube_peer import deleted, served
from test_cluster import UIDS, joined

IN_USE = f"kubernetes.io/csi/{NAME}^vol-data"
ATTACHMENT = "csi-" + hashlib.sha256(f"vol-data{NAME}test-node".encode()).hexdigest()


def objects(name="data", phase="Bound", size="1Gi", **how):
    """The claim and the volume of csi.volume(), as an apiserver has them."""
    pv, claim = volume(name, **how)
    served(claim, f"claim-{name}")
    served(pv, f"volume-{name}")
    del pv["metadata"]["namespace"]
    pv["spec"]["claimRef"]["uid"] = f"claim-{name}"
    claim["status"] = {"phase": phase, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}} if phase == "Bound" else {"phase": phase}
    return pv, claim


def newer(o, **more):
    o = json.loads(json.dumps(o))
    o["metadata"]["resourceVersion"] = str(int(o["metadata"]["resourceVersion"]) + 1)
    return {**o, **more}


def need(kind, name, what="need"):
    return lambda m: m["type"] == what and m.get("kind") == kind and m.get("name") == name


def begin(t, *flags, **spec):
    _, node, link = joined(t)
    link.synced()
    link.put(driver_object(volumeLifecycleModes=["Persistent"], podInfoOnMount=False, **spec))
    driver = Driver(node, "--caps", STAGE, *flags)
    return node, link, driver


def end(node, driver, link, *pods):
    for o in pods:
        link.put(deleted(o, 0))
        link.wait_pod(o["metadata"]["name"], lambda m: m["ended"])
        link.gone(o)
    for o in pods:
        node.wait_gone(o["metadata"]["name"])
    until(lambda: not csi.below(node), 20, "nothing of a driver is mounted")
    driver.leave()
    equal(node.stop(), 0, "the exit code")


def node_in_use(link, wanted):
    return link.wait(lambda m: m["type"] == "node" and m["object"]["status"].get("volumesInUse") == wanted, what=f"volumesInUse {wanted}")


def test_claim(t):
    """a pod waits for its claim with kubelet's text; its volume is staged with the Secrets of the PersistentVolume; all is dropped with the pod"""
    node, link, driver = begin(t)
    pv, claim = objects(csi={"nodeStageSecretRef": {"namespace": "storage", "name": "stage"}})
    web = served(claim_pod("web", "data"), UIDS[0])
    link.put(web)
    link.wait(need("PersistentVolumeClaim", "data"))
    link.send("gone", kind="PersistentVolumeClaim", namespace="default", name="data")
    text = "error processing PVC default/data: "
    until(lambda: any(f'{text}failed to fetch PVC from API server: persistentvolumeclaims "data" not found' in m for m in events(node, "web")), 10,
          lambda: f"the event: {node.events('web')}")
    waiting = json.loads(json.dumps(claim))
    waiting["status"] = {"phase": "Pending"}
    link.put(waiting)
    check(not any("was asked for" in m for m in events(node, "web")), "what is not answered yet is no event")
    until(lambda: any(text + "PVC is not bound" in m for m in events(node, "web")), 10, lambda: f"the event: {node.events('web')}")
    link.wait(need("PersistentVolumeClaim", "data", "look"), what="it is read again")
    link.put(newer(claim))
    link.wait(need("PersistentVolume", "data"))
    stranger = json.loads(json.dumps(pv))
    stranger["spec"]["claimRef"]["uid"] = "another"
    link.put(stranger)
    until(lambda: any("its pv.Spec.ClaimRef.UID another does not point to claim.UID claim-data" in m for m in events(node, "web")), 10,
          lambda: f"the event: {node.events('web')}")
    link.put(newer(pv))
    link.wait(need("Secret", "stage"))
    link.put(served({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "stage", "namespace": "storage"},
                     "data": {"word": base64.b64encode(b"s3cret").decode()}}, "secret-stage"))
    link.wait_phase("web", "Running")
    call = driver.calls("NodeStageVolume")[0]["request"]
    equal((call["volume_id"], call["secrets"]), ("vol-data", {"word": "s3cret"}), "NodeStageVolume")
    node_in_use(link, [])
    since = len(link.messages)
    end(node, driver, link, web)
    for kind, name in (("PersistentVolumeClaim", "data"), ("PersistentVolume", "data"), ("Secret", "stage")):
        link.wait(need(kind, name, "drop"), since=since)


def test_drivers_are_announced(t):
    """a registered driver is reported with its id, labels and limit; a removed driver is reported, also to the next coracle-kube"""
    peer, node, link = joined(t)
    link.synced()
    driver = Driver(node, "--caps", STAGE, "--max-volumes", "7", "--topology", "zone=z1")
    told = link.wait(lambda m: m["type"] == "drivers" and m["drivers"])
    equal(told["drivers"], [{"name": NAME, "nodeID": told["drivers"][0]["nodeID"], "topology": {"zone": "z1"}, "count": 7}], "drivers")
    driver.leave()
    equal(link.wait(lambda m: m["type"] == "drivers" and m["gone"])["gone"], [NAME], "gone")
    link.kill()
    link = peer.accept()
    told = link.wait(lambda m: m["type"] == "drivers")
    equal((told["drivers"], told["gone"]), ([], [NAME]), "to the next one")
    node.stop()


def test_label_of_another_value(t):
    """a driver with a conflicting label of the Node is refused, and accepted when the label is removed"""
    _, node, link = joined(t)
    link.synced()
    link.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "test-node", "labels": {"zone": "z2"}}})
    driver = Driver(node, "--topology", "zone=z1", wait=False)
    told = driver.wait_call("NotifyRegistrationStatus")["request"]
    contains(told["error"], 'detected topology value collision: driver reported "zone":"z1" but existing label is "zone":"z2"', "the refusal")
    link.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "test-node", "labels": {}}})
    link.wait(lambda m: m["type"] == "drivers" and m["drivers"], what="it is taken")
    driver.leave()
    node.stop()


def test_attachment(t):
    """a volume is reported in use before the wait; the attachment's metadata reach the driver; it is in use until it is unstaged"""
    node, link, driver = begin(t, attachRequired=True)
    link.put(*objects())
    web = served(claim_pod("web", "data"), UIDS[0])
    link.put(web)
    link.wait(need("PersistentVolumeClaim", "data"))
    pv, claim = objects()
    link.put(claim)
    link.wait(need("PersistentVolume", "data"))
    link.put(pv)
    link.wait(need("VolumeAttachment", ATTACHMENT))
    node_in_use(link, [IN_USE])
    attachment = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": ATTACHMENT, "resourceVersion": "1"},
                  "spec": {"attacher": NAME, "nodeName": "test-node"}, "status": {"attached": False}}
    link.put(attachment)
    text = f"volume vol-data is not attached for volume attachment {ATTACHMENT}"
    until(lambda: any(text in m for m in events(node, "web")), 15, lambda: f"an event says that it waits: {node.events('web')}")
    attached_node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "test-node"},
                     "status": {"volumesInUse": [IN_USE], "volumesAttached": [{"name": IN_USE, "devicePath": ""}]}}
    link.put(attached_node)
    until(lambda: f'MountVolume.WaitForAttach failed for volume "data" : {text}' in events(node, "web"), 10, lambda: f"the event: {node.events('web')}")
    link.put({**attached_node, "status": {"volumesInUse": [IN_USE]}})
    attached = {**newer(attachment), "status": {"attached": True, "attachmentMetadata": {"devicePath": "/dev/vdx", "lun": "3"}}}
    link.put(attached)
    equal(driver.calls("NodeStageVolume"), [], "calls before the Node has it attached")
    link.put(attached_node)
    link.wait_phase("web", "Running")
    for method in ("NodeStageVolume", "NodePublishVolume"):
        equal(driver.calls(method)[0]["request"]["publish_context"], {"devicePath": "/dev/vdx", "lun": "3"}, method)
    since = len(link.messages)
    driver.faults(NodeUnstageVolume={"code": "INTERNAL", "text": "busy"})
    link.put(deleted(web, 0))
    driver.wait_call("NodeUnstageVolume", 2)
    check(not any(m["type"] == "node" and m["object"]["status"].get("volumesInUse") == [] for m in link.messages[since:]), "it is in use while it is staged")
    driver.faults()
    link.wait(lambda m: m["type"] == "node" and m["object"]["status"].get("volumesInUse") == [], since=since, what="it is free")
    end(node, driver, link, web)


def test_in_use_without_objects(t):
    """a volume that is mounted is in use also when its claim and PersistentVolume are gone, until it is unstaged; the pod goes on"""
    node, link, driver = begin(t, attachRequired=True)
    pv, claim = objects()
    web = served(claim_pod("web", "data"), UIDS[0])
    link.put(web)
    link.wait(need("PersistentVolumeClaim", "data"))
    link.put(claim)
    link.wait(need("PersistentVolume", "data"))
    link.put(pv)
    link.wait(need("VolumeAttachment", ATTACHMENT))
    link.put({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": ATTACHMENT, "resourceVersion": "1"},
              "spec": {"attacher": NAME, "nodeName": "test-node"}, "status": {"attached": True}},
             {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "test-node"},
              "status": {"volumesInUse": [IN_USE], "volumesAttached": [{"name": IN_USE, "devicePath": ""}]}})
    link.wait_phase("web", "Running")
    since = len(link.messages)
    link.send("gone", kind="PersistentVolumeClaim", namespace="default", name="data")
    link.send("gone", kind="PersistentVolume", name="data")
    driver.faults(NodeUnpublishVolume={"code": "INTERNAL", "text": "busy"})
    link.put(deleted(web, 0))
    driver.wait_call("NodeUnpublishVolume", 2)
    until(lambda: link.pump(0.1) or driver.calls("NodeUnpublishVolume")[2:], 20, "it is tried again")
    check(not any(m["type"] == "node" and m["object"]["status"].get("volumesInUse") == [] for m in link.messages[since:]), "it is in use while it is mounted")
    driver.faults()
    link.wait(lambda m: m["type"] == "node" and m["object"]["status"].get("volumesInUse") == [], since=since, what="it is free")
    equal(len(driver.calls("NodeUnstageVolume")), 1, "it is unstaged by then")
    end(node, driver, link, web)


def test_limits(t):
    """a driver is asked for its limit of volumes again, in the period of its CSIDriver"""
    _, node, link = joined(t)
    link.synced()
    link.put(driver_object(volumeLifecycleModes=["Persistent"], nodeAllocatableUpdatePeriodSeconds=10))
    driver = Driver(node, "--caps", STAGE, "--max-volumes", "5")
    equal(link.wait(lambda m: m["type"] == "drivers" and m["drivers"])["drivers"][0]["count"], 5, "at first")
    driver.faults(NodeGetInfo={"max": 8})
    link.wait(lambda m: m["type"] == "drivers" and m["drivers"] and m["drivers"][0]["count"] == 8, 20, "the new number")
    driver.leave()
    node.stop()


def test_limit_reached(t):
    """no room for an attachment: the controller has two minutes; then the driver is asked for its limit, and the pod is rejected (13c)"""
    node, link, driver = begin(t, "--max-volumes", "5", attachRequired=True, nodeAllocatableUpdatePeriodSeconds=600)
    pv, claim = objects()
    web = served(claim_pod("web", "data"), UIDS[0])
    began = time.monotonic()
    link.put(web)
    link.wait(need("PersistentVolumeClaim", "data"))
    link.put(claim)
    link.wait(need("PersistentVolume", "data"))
    link.put(pv)
    link.wait(need("VolumeAttachment", ATTACHMENT))
    driver.faults(NodeGetInfo={"max": 6})
    link.put({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": ATTACHMENT, "resourceVersion": "1"},
              "spec": {"attacher": NAME, "nodeName": "test-node"},
              "status": {"attached": False, "attachError": {"time": "2026-01-01T00:00:00Z", "message": "no room", "errorCode": 8}}})
    text = ("Node has reached its volume attachment limit, rejecting pod. unmounted volumes=[vol], unattached volumes=[vol], "
            "failed to process volumes=[]: context deadline exceeded")
    failed = link.wait_phase("web", "Failed", deadline=150)["object"]["status"]
    check(time.monotonic() - began >= 110, "the controller had no time to find room")
    equal((failed["reason"], failed["message"]), ("VolumeAttachmentLimitExceeded", f"Pod was rejected: {text}"), "the status")
    equal([c["reason"] for c in failed["conditions"] if c["type"] == "Ready"], ["PodFailed"], "the condition")
    equal(events(node, "web", "VolumeAttachmentLimitExceeded"), [text], "events")
    link.wait(lambda m: m["type"] == "drivers" and m["drivers"] and m["drivers"][0]["count"] == 6, 20, "the driver's new limit")
    equal((len(driver.calls("NodeGetInfo")), driver.calls("NodeStageVolume")), (2, []), "calls")
    end(node, driver, link, web)


test_limit_reached.seconds = 240


def test_growth(t):
    """a volume that has grown is expanded while its pod runs, and the claim's status is reported"""
    node, link, driver = begin(t)
    driver.leave()
    driver = Driver(node, "--caps", f"{STAGE},EXPAND_VOLUME")
    pv, claim = objects()
    web = served(claim_pod("web", "data"), UIDS[0])
    link.put(web)
    link.wait(need("PersistentVolumeClaim", "data"))
    link.put(claim)
    link.wait(need("PersistentVolume", "data"))
    link.put(pv)
    link.wait_phase("web", "Running")
    equal(driver.calls("NodeExpandVolume"), [], "nothing is expanded")
    driver.faults(NodeExpandVolume={"code": "INTERNAL", "text": "cannot grow"})
    larger = newer(pv)
    larger["spec"]["capacity"]["storage"] = "2Gi"
    link.put(larger)
    failed = link.wait(lambda m: m["type"] == "claim")
    equal((failed["name"], failed["uid"], failed["resize"]["state"]), ("data", "claim-data", "failed"), "the failure")
    equal(failed["resize"]["error"], "Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = cannot grow", "the error")
    driver.faults()
    done = link.wait(lambda m: m["type"] == "claim" and m["resize"]["state"] == "done")
    equal(done["resize"]["size"], "2Gi", "the size")
    equal(driver.calls("NodeExpandVolume")[-1]["request"]["capacity_range"], {"required_bytes": str(2 << 30)}, "NodeExpandVolume")
    calls = len(driver.calls("NodeExpandVolume"))
    link.put(newer(web))
    check(len(driver.calls("NodeExpandVolume")) == calls, "it is not expanded again")
    contains(str(events(node, "web", "FileSystemResizeSuccessful")), "MountVolume.NodeExpandVolume succeeded", "the event")
    end(node, driver, link, web)


def test_ephemeral(t):
    """the claim of an ephemeral volume must belong to the pod"""
    node, link, driver = begin(t)
    web = served(claim_pod("web", "unused"), UIDS[0])
    web["spec"]["volumes"] = [{"name": "vol", "ephemeral": {"volumeClaimTemplate": {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}]
    link.put(web)
    link.wait(need("PersistentVolumeClaim", "web-vol"))
    pv, claim = objects("web-vol")
    link.put(claim)
    link.wait(need("PersistentVolume", "web-vol"))
    link.put(pv)
    until(lambda: any("PVC default/web-vol was not created for pod default/web (pod is not owner)" in m for m in events(node, "web")), 10,
          lambda: f"the event: {node.events('web')}")
    own = newer(claim)
    own["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": UIDS[0], "controller": True}]
    link.put(own)
    link.wait_phase("web", "Running")
    end(node, driver, link, web)


def test_restart_without_the_apiserver(t):
    """claims, volumes and CSIDrivers are kept: a pod starts again while the apiserver does not answer"""
    peer, node, link = joined(t)
    link.send("state", connected=True, since="2026-01-01T00:00:00Z", error="", requests=1)
    link.synced()
    link.put(driver_object(volumeLifecycleModes=["Persistent"], podInfoOnMount=False))
    driver = Driver(node, "--caps", STAGE)
    pv, claim = objects()
    web = served(claim_pod("web", "data"), UIDS[0])
    link.put(web)
    link.wait(need("PersistentVolumeClaim", "data"))
    link.put(claim)
    link.wait(need("PersistentVolume", "data"))
    link.put(pv)
    link.wait_phase("web", "Running")
    kept = f"{node.state_dir}/kept"

    def names():
        return {f.split("-")[0] for f in (os.listdir(kept) if os.path.isdir(kept) else [])}
    until(lambda: {"persistentvolume", "persistentvolumeclaim", "csidrivers"} <= names(), 30, lambda: f"kept: {names()}")
    calls = len(driver.calls("NodePublishVolume"))
    node.kill()
    node.start()
    link = peer.accept()
    link.send("state", connected=False, since="2026-01-01T00:00:00Z", error="connection refused", requests=1)
    driver.wait_call("NodePublishVolume", calls + 1, 30)
    node.wait_running("web")
    link.synced()
    link.put(web)
    end(node, driver, link, web)
