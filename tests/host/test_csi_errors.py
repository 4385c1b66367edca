# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumes of a CSI driver when calls fail, when the agent stops within one, and when files are lost."""
import os

from coracle import check, equal, until
from csi import NAME, STAGE, Driver, claim_pod, driver_object, events, folder, mounts, staging, volume
from test_csi_stage import all_gone, finish, start

# Answers to NodeStageVolume, and whether the pod's end sends NodeUnstageVolume (golden case 08j).
CODES = {"CANCELLED": True, "DEADLINE_EXCEEDED": True, "RESOURCE_EXHAUSTED": True, "ABORTED": True, "UNAVAILABLE": True, "UNKNOWN": False,
         "NOT_FOUND": False, "ALREADY_EXISTS": False, "OUT_OF_RANGE": False, "UNIMPLEMENTED": False, "DATA_LOSS": False,
         "UNAUTHENTICATED": False, "INTERNAL": False}


def begin(t, *names, **kinds):
    node, driver = start(t, "--caps", STAGE)
    node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"]))
    for name in names:
        node.put(f"keep-{name}.yaml", *volume(name, **kinds))
    return node, driver


def node_events(node):
    return [e for e in node.events("test-node") if e["reason"] == "FailedUnMount"]


def unstaged(driver):
    return [c["request"]["volume_id"] for c in driver.calls("NodeUnstageVolume")]


def test_codes(t):
    """an error that leaves open whether the volume was staged is undone with the pod, any other is not (golden case 08j)"""
    names = {code: "v-" + code.lower().replace("_", "-") for code in CODES}
    node, driver = begin(t, *names.values())
    driver.faults(NodeStageVolume={"of": {"vol-" + name: {"code": code, "text": "no luck"} for code, name in names.items()}})
    node.put("pods.yaml", *[claim_pod(name, name) for name in names.values()])
    for code, name in names.items():
        go = "".join(w.capitalize() for w in code.split("_")).replace("Cancelled", "Canceled")
        text = f'MountVolume.MountDevice failed for volume "{name}" : rpc error: code = {go} desc = no luck'
        until(lambda n=name, x=text: x in events(node, n), 20, lambda n=name: f"{n} fails: {node.events(n)}")

    def tries():
        called = [c["request"]["volume_id"] for c in driver.calls("NodeStageVolume")]
        return min(called.count("vol-" + name) for name in names.values())
    until(lambda: tries() >= 5, 40, lambda: f"tries: {tries()}")  # the next ones are eight seconds away: none is under way when the pods go
    for code, name in names.items():
        until(lambda c=code, n=name: os.path.exists(staging(node, n)) == CODES[c], 5, lambda c=code: f"the folder after {c}")
    node.remove("pods.yaml")
    node.wait_gone(*names.values(), deadline=40)
    for code, name in names.items():
        until(lambda n=name: not os.path.exists(staging(node, n)), 20, lambda c=code: f"no folder is left after {c}")
    equal(sorted(unstaged(driver)), sorted("vol-" + n for c, n in names.items() if CODES[c]), "volumes that were unstaged")
    equal((driver.calls("NodePublishVolume"), driver.calls("NodeUnpublishVolume")), ([], []), "other calls")
    finish(node, driver)


def test_publish_fails(t):
    """the volume stays staged while its publish fails, and is unstaged with the pod (golden cases 08b, 08h)"""
    node, driver = begin(t, "data", "other")
    driver.faults(NodePublishVolume={"code": "FAILED_PRECONDITION", "text": "cannot publish it"})
    node.put("a.yaml", claim_pod("a", "data"))
    text = 'MountVolume.SetUp failed for volume "data" : rpc error: code = FailedPrecondition desc = cannot publish it'
    until(lambda: text in events(node, "a"), 20, lambda: f"a fails: {node.events('a')}")
    driver.wait_call("NodePublishVolume", 2)
    node.remove("a.yaml")
    node.wait_gone("a")
    driver.wait_call("NodeUnstageVolume")
    equal(set(driver.methods()[2:-1]), {"NodePublishVolume"}, "calls between")
    driver.faults(NodePublishVolume={"code": "UNAVAILABLE", "text": "busy"})
    node.put("b.yaml", claim_pod("b", "other"))
    driver.wait_call("NodeStageVolume", 2)
    until(lambda: any("code = Unavailable desc = busy" in m for m in events(node, "b")), 20, "b fails")
    node.remove("b.yaml")
    node.wait_gone("b")
    driver.wait_call("NodeUnstageVolume", 2)
    equal(driver.methods()[-2:], ["NodeUnpublishVolume", "NodeUnstageVolume"], "the end after an open answer")
    finish(node, driver)


def test_undo_fails(t):
    """a failed unpublish is an event and keeps the pod, a failed unstage keeps only the volume; both go on; a lie is named"""
    node, driver = begin(t, "data")
    node.put("a.yaml", claim_pod("a", "data"))
    node.wait_running("a")
    driver.faults(NodeUnpublishVolume={"code": "INTERNAL", "text": "cannot"}, NodeUnstageVolume={"code": "INTERNAL", "text": "cannot"})
    node.remove("a.yaml")
    text = 'UnmountVolume.TearDown failed for volume "data"'
    until(lambda: any(text in m and "desc = cannot" in m for m in events(node, "a", "FailedUnMount")), 20,
          lambda: f"the event: {node.events('a')}")
    driver.faults(NodeUnstageVolume={"code": "INTERNAL", "text": "cannot"})
    node.wait_gone("a", deadline=30)
    driver.wait_call("NodeUnstageVolume", 3)
    said = f'UnmountDevice failed for volume "vol-data" of CSI driver {NAME}: rpc error: code = Internal desc = cannot'
    equal([(e["message"], e["type"], e.get("count", 1)) for e in node_events(node)], [(said, "Warning", 1)], "the event of the node, once")
    equal(mounts(staging(node, "data") + "/globalmount"), 1, "it is staged")
    driver.faults(NodeUnstageVolume={"code": "INTERNAL", "text": "still busy"})
    until(lambda: [e["message"] for e in node_events(node)] == [said, said.replace("cannot", "still busy")], 20,
          lambda: f"the driver's new words: {node_events(node)}")
    # A pod that comes meanwhile uses it, and nothing is unstaged below it.
    node.put("b.yaml", claim_pod("b", "data"))
    node.wait_running("b")
    driver.faults()
    node.remove("b.yaml")
    node.wait_gone("b")
    all_gone(node)
    finish(node, driver)


def test_stopped_in_stage(t):
    """the agent is killed within NodeStageVolume and the pod removed: the volume is unstaged (a kubelet leaves it, golden case 09f)"""
    node, driver = begin(t, "one", "two")
    driver.faults(NodeStageVolume={"slow": 3})
    node.put("a.yaml", claim_pod("a", "one"))
    node.put("b.yaml", claim_pod("b", "two"))
    driver.wait_call("begins NodeStageVolume", 2)
    node.kill()
    node.remove("a.yaml")
    driver.wait_call("NodeStageVolume", 2)
    driver.faults()
    equal(mounts(staging(node, "one") + "/globalmount"), 1, "the driver went on")
    node.start()
    node.wait_running("b")
    until(lambda: unstaged(driver) == ["vol-one"], 20, lambda: f"one is unstaged: {driver.methods()}")
    check("vol-two" in [c["request"]["volume_id"] for c in driver.calls("NodeStageVolume")[2:]], "two is staged once more")
    finish(node, driver)


def test_lost_files(t):
    """files vol_data.json that are lost, empty or damaged leak no volume (with a kubelet they do, golden case 09e)"""
    names = ("pod", "stage", "empty", "both")
    node, driver = begin(t, *names)
    for name in names:
        node.put(f"{name}.yaml", claim_pod(name, name))
    node.wait_running(*names)
    files = {name: (folder(node, node.pod(name).uid, name) + "/vol_data.json", staging(node, name) + "/vol_data.json") for name in names}
    node.kill()
    os.unlink(files["pod"][0])
    os.unlink(files["stage"][1])
    os.truncate(files["empty"][0], 0)
    os.truncate(files["both"][1], 0)
    with open(files["both"][1], "w", encoding="ascii") as f:
        f.write('{"driverName":')
    for name in names:
        node.remove(f"{name}.yaml")
    node.start()
    until(lambda: sorted(unstaged(driver)) == sorted("vol-" + n for n in names), 30, lambda: f"all are unstaged: {driver.methods()}")
    equal(sorted(c["request"]["volume_id"] for c in driver.calls("NodeUnpublishVolume")), sorted("vol-" + n for n in names), "unpublished")
    all_gone(node)
    finish(node, driver)


def test_repeated(t):
    """each call is repeated after the driver died behind it, and the finished work is recognised"""
    node, driver = begin(t, "data")
    for method in ("NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"):
        up = method in ("NodeStageVolume", "NodePublishVolume")
        if not up:
            node.put("a.yaml", claim_pod("a", "data"))
            node.wait_running("a")
        before = len(driver.calls(method))
        driver.faults(**{method: {"die": "after"}})
        if up:
            node.put("a.yaml", claim_pod("a", "data"))
        else:
            node.remove("a.yaml")
        driver.process.wait(timeout=60)
        driver.faults()
        driver.start()
        driver.wait_call(method, before + 2)
        lines = driver.calls(method)[before:before + 2]
        equal((lines[0]["request"], "twice" in lines[0], "twice" in lines[1]), (lines[1]["request"], False, True), method)
        if up:
            node.wait_running("a")
            equal([mounts(p) for p in (staging(node, "data") + "/globalmount", folder(node, node.pod("a").uid, "data") + "/mount")], [1, 1],
                  "mounts")
            node.remove("a.yaml")
        node.wait_gone("a", deadline=40)
        all_gone(node)
        until(lambda: not os.path.exists(staging(node, "data")), 20, "the folder is gone")
    finish(node, driver)


def test_apart(t):
    """a driver that hangs in NodeStageVolume blocks only its own pods: pods of another driver start and end"""
    node, driver = begin(t, "data")
    other = Driver(node, "--caps", STAGE, name="other.example.test")
    node.put("other.yaml", driver_object("other.example.test", volumeLifecycleModes=["Persistent"]))
    node.put("keep-else.yaml", *volume("else", driver="other.example.test"))
    driver.faults(NodeStageVolume={"hang": True})
    node.put("a.yaml", claim_pod("a", "data"))
    until(lambda: "the driver is asked" in node.cli("explain", "pod", "a", ok=False).stdout, 20, "a waits for its driver")
    node.put("b.yaml", claim_pod("b", "else"))
    node.wait_running("b")
    node.remove("b.yaml")
    node.wait_gone("b")
    other.wait_call("NodeUnstageVolume")
    node.remove("a.yaml")
    node.wait_gone("a")  # the call is given up, and undone
    driver.faults()
    driver.wait_call("NodeUnstageVolume")
    check("NodePublishVolume" not in driver.methods(), "calls")
    finish(node, driver, other)
